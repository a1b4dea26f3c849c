"""The file that tells a starter where the server is: there as a whole, or not at all, and gone when the server is.

Room: files; serving comes in.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from mock_provider.errors import UsageError


class ReadyFile:
    """A file with one line. Shape: made only when nothing but a file stands at its path; removed only if still ours.

    Raises: UsageError when the path cannot be used, at once and not when the server is up.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._line: str | None = None
        try:
            kind = path.stat().st_mode  # follows links: one to a device is a device
        except FileNotFoundError:
            kind = stat.S_IFREG
        except OSError as error:
            raise self._unusable(error) from None
        if not stat.S_ISREG(kind):
            what = f"the ready file cannot be written: it is {_word(kind)}"
            raise UsageError(what, where=str(path), expected="a file, or a path where none is yet")
        if not os.access(path.parent, os.W_OK | os.X_OK):
            why = "no permission" if path.parent.is_dir() else "no such folder"
            what = f"the ready file cannot be written: {why}"
            raise UsageError(what, where=str(path), fix="check the path")

    def write(self, line: str) -> None:
        """Write it; a reader sees all of it or none. Raises: UsageError."""
        beside = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        try:
            with contextlib.suppress(FileNotFoundError):
                beside.unlink()  # of an earlier process with our number
            number = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(number, "w", encoding="utf-8") as file:
                file.write(line)
            beside.replace(self._path)
        except OSError as error:
            with contextlib.suppress(OSError):
                beside.unlink()
            raise self._unusable(error) from None
        self._line = line

    def remove(self) -> None:
        """Take it away, unless another server has put its own there meanwhile."""
        with contextlib.suppress(OSError, UnicodeDecodeError):
            if self._line is not None and self._path.read_text(encoding="utf-8") == self._line:
                self._path.unlink()

    def _unusable(self, error: OSError) -> UsageError:
        what = f"the ready file cannot be written: {error.strerror or error}"
        return UsageError(what, where=str(self._path), fix="check the path")


def _word(kind: int) -> str:
    if stat.S_ISDIR(kind):
        return "a folder"
    return "a device" if stat.S_ISCHR(kind) or stat.S_ISBLK(kind) else "no regular file"
