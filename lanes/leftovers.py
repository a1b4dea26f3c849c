"""What a lane must not leave behind: changed tracked files, and values of keys in its output.

Room: the runner comes in before and after. A finding names a file, never what was found in it.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Collection
from pathlib import Path

from lanes.redaction import forms_of


class TrackedFiles:
    """The tracked files that differed from the index when the lane started."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._before = self._differing()

    def changed(self) -> tuple[str, ...]:
        """Return the tracked files that changed since then, sorted."""
        after = self._differing()
        names = self._before.keys() | after.keys()
        return tuple(sorted(name for name in names if self._before.get(name) != after.get(name)))

    def _differing(self) -> dict[str, str]:
        try:
            done = subprocess.run(
                ["git", "status", "--porcelain", "-z", "--untracked-files=no", "--no-renames"],  # noqa: S607 - found on PATH
                cwd=self._root,
                env=os.environ | {"GIT_OPTIONAL_LOCKS": "0"},
                capture_output=True,
                check=False,
            )
        except OSError:  # no git on this machine: then no file is a tracked one
            return {}
        names = [os.fsdecode(entry[3:]) for entry in done.stdout.split(b"\0") if entry]
        return {name: _digest(self._root / name) for name in names}


def remove_secrets(folder: Path, secrets: Collection[str]) -> tuple[str, ...]:
    """Remove every file below the folder that holds one of the values in any spelling, and return their names."""
    forms = {form.encode("utf-8", "surrogatepass") for secret in secrets for form in forms_of(secret).values()}
    leaks = []
    for path in sorted(folder.rglob("*")) if forms else ():
        if path.is_file() and not path.is_symlink():
            data = path.read_bytes()
            if any(form in data for form in forms):
                path.unlink()
                leaks.append(path.relative_to(folder).as_posix())
    return tuple(leaks)


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:  # gone, or a folder now: different from every content
        return "gone"
