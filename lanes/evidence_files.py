"""Files of evidence as they may lie on a strange disk: links are followed once, and nothing but plain files is opened.

Room: whoever reads bundles or what was made from them comes in. A pipe, a device or a folder in the place of a file is
an error with words, never a wait.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

MAX_FILE_BYTES = (
    4 << 30
)  # ten times the largest bundle that was measured (200,000 records); a sparse file is no evidence


def read_plain_file(path: Path) -> bytes:
    """Return what a plain file holds, also one that a link leads to.

    Limits: MAX_FILE_BYTES.
    Raises: OSError, with words for what is no plain file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # else a pipe would be waited for
    try:
        found = os.fstat(descriptor)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, "it is a folder", path.name)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is a pipe or a device, not a plain file", path.name)
        if found.st_size > MAX_FILE_BYTES:
            raise OSError(errno.EFBIG, f"it is larger than {MAX_FILE_BYTES} bytes", path.name)
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def folders_with(root: Path, names: frozenset[str]) -> Iterator[Path]:
    """Every folder at or below root in which one of these names lies, whatever it is; sorted.

    Shape: links to folders are followed, each folder once, by the shortest way to it that comes first.
    """
    seen: set[tuple[int, int]] = set()
    found: list[Path] = []
    waiting = [root]
    while waiting:
        following: list[Path] = []
        for folder in waiting:
            inside = _entries(folder, seen)
            if any(entry.name in names for entry in inside):
                found.append(folder)
            following += [folder / entry.name for entry in inside if entry.is_dir()]
        waiting = sorted(following, key=lambda each: (each.is_symlink(), each))
    yield from sorted(found)


def _entries(folder: Path, seen: set[tuple[int, int]]) -> list[os.DirEntry[str]]:
    """What lies in a folder that was not looked into before; a folder that cannot be read raises OSError."""
    identity = folder.stat()
    key = (identity.st_dev, identity.st_ino)
    if key in seen:
        return []
    seen.add(key)
    with os.scandir(folder) as entries:
        return sorted(entries, key=lambda each: each.name)
