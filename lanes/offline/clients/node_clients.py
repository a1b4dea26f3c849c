"""Clients that are published for Node: where they are installed, and how one of them does a task.

Room: tests come in, and `python -m lanes.offline.clients.node_clients`, which installs them before the lane starts.
They lie beside the Python packages of the environment, not in the work tree.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lanes.offline.clients.asking import Ask, Said, Trouble
from mock_provider.json_values import Json

SOURCE = Path(__file__).parent / "node"
FOLDER = Path(sys.prefix) / "node-clients"
MANIFESTS = ("package.json", "package-lock.json")
STAMP = "installed"
TIME_LIMIT_S = 60


def why_missing(package: str) -> str:
    """Say why a package cannot be used here, empty when it can."""
    if shutil.which("node") is None:
        return "node"
    return "" if (FOLDER / "node_modules" / package / "package.json").is_file() else package


def drive(driver: str, ask: Ask) -> Said:
    """Let a client do a task in a process of its own. Raises: as `run`."""
    found = run("drive", ask.to_json(), driver)
    trouble = found.pop("trouble")
    calls = [(name, arguments) for name, arguments in found.pop("calls")]
    return Said(**found, calls=calls, trouble=Trouble(**trouble) if trouble else None)


def run(script: str, given: Mapping[str, Json], *arguments: str) -> Any:
    """Run one of the scripts of `node/`; it reads JSON and writes JSON. Raises: RuntimeError when it broke."""
    _place((script, "said", *arguments))
    done = subprocess.run(
        ["node", str(FOLDER / f"{script}.mjs"), *arguments],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=TIME_LIMIT_S,
        check=False,
    )
    if done.returncode or not done.stdout:
        raise RuntimeError(f"{script}.mjs ended with {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)


def install() -> str:
    """Install what the lock names, unless it is there already.

    Shape: what was done, for a person. Raises: OSError, and CalledProcessError when npm fails; npm has said why.
    """
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        return "node or npm is not on this machine: the clients for Node will show as not run"
    digest = hashlib.sha256(b"".join((SOURCE / name).read_bytes() for name in MANIFESTS)).hexdigest()
    stamp = FOLDER / STAMP
    if stamp.is_file() and stamp.read_text("utf-8") == digest:
        return "the clients for Node are installed"
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in MANIFESTS:
        shutil.copyfile(SOURCE / name, FOLDER / name)
    # Programs of their own come inside the packages; what a package would run after its installation is not needed.
    command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    subprocess.run(command, cwd=FOLDER, check=True, stdout=sys.stderr)
    stamp.write_text(digest, "utf-8")
    return "the clients for Node were installed"


def _place(names: Sequence[str]) -> None:
    """Put scripts beside the packages, where Node looks for what they import."""
    for name in names:
        source, there = SOURCE / f"{name}.mjs", FOLDER / f"{name}.mjs"
        if not there.is_file() or there.read_bytes() != source.read_bytes():
            beside = there.with_suffix(f".{os.getpid()}.new")
            shutil.copyfile(source, beside)
            beside.replace(there)


if __name__ == "__main__":
    try:
        sys.stderr.write(f"node clients: {install()}\n")
    except (OSError, subprocess.CalledProcessError) as problem:
        sys.exit(f"node clients: they could not be installed: {problem}\n  fix: see what npm says above, and try again")
