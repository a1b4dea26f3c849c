"""One recorder a recording: who comes second is told so before it asks anybody anything.

Room: the recorders come in. The lock is a file beside the recording, held by the kernel for as long as the process
lives, so that one that was killed locks nobody out.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lanes.errors import CassetteError


@contextmanager
def held_for_recording(path: Path) -> Iterator[None]:
    """Hold a recording, a file or a folder, for this process alone.

    Raises: CassetteError with code CASSETTE_LOCKED while another one holds it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = path.with_name(f".{path.name}.lock")
    held = _taken(lock, path)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)  # while it is still held: nobody can have taken it meanwhile
        os.close(held)


def _taken(lock: Path, path: Path) -> int:
    """The open lock file; the one that stands there when it was taken, and not one that its holder took away."""
    while True:
        held = os.open(lock, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(held)
            raise CassetteError(
                "another recorder is at work on it",
                where=path.name,
                expected="one recorder",
                fix="wait for its end; what it records is what will stand there",
                code="CASSETTE_LOCKED",
            ) from None
        if lock.exists() and lock.stat().st_ino == os.fstat(held).st_ino:
            return held
        os.close(held)
