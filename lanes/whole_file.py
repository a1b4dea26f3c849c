"""Files written whole or not at all: beside their place, under a name of the writer's own, then put there at once.

Room: whoever writes evidence, recordings or boards comes in, reports too. The mock provider writes its own: it imports
nothing of ours. Whoever reads meanwhile sees the old file or the new one.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

_MODE = 0o600  # evidence may hold what a test printed; whoever is to read it is told so by its owner
_MAX_NAME_BYTES = 200  # of the 255 that file systems take; the rest is for what makes a name one's own
_NUMBERS = itertools.count()


@contextlib.contextmanager
def whole_file(path: Path, *, synced: bool = False) -> Iterator[BinaryIO]:
    """A file to write to, which stands at path when the block ends, and is gone when it fails.

    Shape: the folder is there; of two writers the one that ends last stays. Only its owner may read it. synced is for
    what somebody was promised: the bytes and the name are on the disk before this returns.
    Raises: OSError; then, as when the block fails, the old file is as it was and nothing lies beside it.
    """
    file = _open_beside(path)
    beside = Path(file.name)
    try:
        with file:
            yield file
            if synced:
                file.flush()
                os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    if synced:
        _sync_folder(path.parent)


def write_whole(path: Path, data: bytes, *, synced: bool = False) -> None:
    """Write some bytes as whole_file does."""
    with whole_file(path, synced=synced) as file:
        file.write(data)


def _open_beside(path: Path) -> BinaryIO:
    kept = os.fsdecode(os.fsencode(path.name)[:_MAX_NAME_BYTES])
    while True:
        beside = path.with_name(f".{kept}.{os.getpid()}-{next(_NUMBERS)}.new")
        with contextlib.suppress(FileExistsError):  # of a process that was killed, or on another machine
            return open(beside, "xb", opener=_open_private)


def _open_private(name: str, flags: int) -> int:
    return os.open(name, flags | os.O_CLOEXEC, _MODE)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
