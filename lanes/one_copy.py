"""One copy: every process of a lane has the project's packages from the same place, or the lane does not start.

Room: the runner comes in before anything was started. Who runs one copy and digests another proves nothing.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from lanes.errors import UsageError
from lanes.project import load_project
from lanes.record import Json
from lanes.spool import read_canaries
from lanes.subject import digest_package, imported_folder

NOT_IMPORTED = "not_imported"  # what a trailer says of such a run
_LOOK_TIMEOUT_S = 60
_LOOK = """
import importlib.util, json, os, sys
found = {}
for name in sys.argv[1:]:
    spec = importlib.util.find_spec(name)
    found[name] = os.path.dirname(spec.origin) if spec is not None and spec.origin else None
sys.stdout.write(json.dumps(found))
"""


def check_one_copy(root: Path, lane: str) -> None:
    """Check that this process, the tests at root and the programs they start elsewhere import the same packages.

    Shape: two places with equal files are the same copy. A package that nobody finds is no matter.
    Raises: UsageError that names the package and both places, code OTHER_COPY.
    """
    packages = tuple(filter(None, (load_project(root).package, "mock_provider", "lanes")))
    ours = {name: imported_folder(name) for name in packages}
    views = {
        "its tests": _folders(root, packages),
        "the programs its tests start": _folders(Path(root.anchor), packages, "-P"),
    }
    for whose, folders in views.items():
        for name, place in ours.items():
            other = folders.get(name)
            if place == other or (place is not None and other is not None and _is_equal(place, other)):
                continue
            message = f"{whose} would have package {name!r} from {other or 'nowhere'}, this command has it from {place}"
            raise UsageError(
                message,
                where=f"lane {lane!r}",
                expected="one copy, so that the evidence is about what ran",
                fix=f"start the lane with `tox -e {lane}`, or {_way_to_one(place, other)}",
                code="OTHER_COPY",
            )


def _way_to_one(place: Path | None, other: Path | None) -> str:
    if place is not None and other is None:  # seen from the project's folder alone
        return f"say where it is: PYTHONPATH={place.parent} lanes run …"
    return "install the tree at hand: pip install -e ."


def check_loops(folders: Mapping[str, int], loop_digest: str) -> tuple[str, ...]:
    """Say which loops ran that are not the subject's, from the files that processes had their loop package from.

    Shape: folders map such a file to the number of processes; one sentence for each copy.
    """
    return tuple(
        f"{count} {'process' if count == 1 else 'processes'} ran the loop of another copy, {Path(file).parent} "
        "[LOOP_MISMATCH]"
        for file, count in sorted(folders.items())
        if digest_package(Path(file).parent) != loop_digest
    )


def not_imported(root: Path, spool: Path) -> dict[str, Json]:
    """The fact of a run in which no process imported the package that its evidence is about, in words; else nothing.

    Shape: only of a project that names its package; what its tests looked at was something else then.
    """
    project = load_project(root)
    is_seen = any(canary.loop is not None for canary in read_canaries(spool))
    if is_seen or not project.is_declared or not project.package:
        return {}
    return {NOT_IMPORTED: f"no process imported {project.package!r}, the package that this evidence is about"}


def _is_equal(one: Path, other: Path) -> bool:
    return digest_package(one) == digest_package(other)


def _folders(where: Path, packages: Sequence[str], *options: str) -> dict[str, Path | None]:
    """Where a Python child with these options finds the packages, when it is started in that folder."""
    done = subprocess.run(
        [sys.executable, *options, "-c", _LOOK, *packages],
        cwd=where,
        capture_output=True,
        timeout=_LOOK_TIMEOUT_S,
        check=False,
    )
    if done.returncode != 0:
        return {}
    found: dict[str, str | None] = json.loads(done.stdout)
    return {name: None if place is None else Path(place).resolve() for name, place in found.items()}
