"""Files that a person names: read whole, up to a limit, as text.

Room: reads files; scripts and the command come in. A device or a pipe tells no size, so nothing is asked for one.
"""

from __future__ import annotations

from pathlib import Path


class UnreadableError(Exception):
    """A file that cannot be used. Shape: line and column are 0 where the text is not to blame."""

    def __init__(self, what: str, fix: str, expected: str = "", line: int = 0, column: int = 0) -> None:
        super().__init__(what)
        self.what = what
        self.fix = fix
        self.expected = expected
        self.line = line
        self.column = column


class TooLargeError(Exception):
    """A file over the limit; its text says by how much, as far as it is known."""


def read_named(path: Path, limit_bytes: int) -> str:
    """Read a text in UTF-8, with or without a byte order mark.

    Limits: limit_bytes; no more than one byte beyond is read.
    Raises: UnreadableError, TooLargeError.
    """
    try:
        with path.open("rb") as file:
            data = file.read(limit_bytes + 1)
            if len(data) > limit_bytes:
                size = max(path.stat().st_size, len(data))
                raise TooLargeError(f"{size} bytes are more than {limit_bytes}")
    except OSError as error:
        raise UnreadableError(f"cannot be read: {error.strerror or error}", "check the path") from None
    except ValueError as error:  # a null character in the name
        raise UnreadableError(f"cannot be read: {error}", "check the path") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line, column = before.count(b"\n") + 1, len(before) - (before.rfind(b"\n") + 1) + 1
        what = f"byte {error.start} is not UTF-8"
        raise UnreadableError(what, "save the file as UTF-8", "UTF-8", line, column) from None
