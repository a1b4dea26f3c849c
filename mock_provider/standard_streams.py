"""Standard output and standard error, each of which may be closed, or have no reader any more.

Room: the commands come in.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from typing import TextIO

from mock_provider.errors import OutputError

_NO_READER = (errno.EPIPE, errno.EBADF)


def fill_gaps() -> None:
    """Open the standard streams that are closed, onto nothing: else the next file or socket takes their number.

    The faster event loop ends the process when it is to close a socket with such a number.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free


def say(text: str) -> None:
    """Write to standard output, at once; without a reader nothing happens.

    Raises: OutputError when there is no room for it: who asked would take half an answer for a whole one.
    """
    why = _write(sys.stdout, text, 1)
    if why is not None and why.errno not in _NO_READER:
        what = f"not everything could be written: {why.strerror or why}"
        raise OutputError(what, where="standard output", fix="make room, or choose another place")


def tell(text: str) -> None:
    """Write to standard error, at once; without a reader nothing happens."""
    _write(sys.stderr, text, 2)


def _write(stream: TextIO | None, text: str, number: int) -> OSError | None:
    """Write. Shape: what went wrong, for whom it may concern; characters that the stream cannot spell are escaped."""
    if stream is None:  # closed before the interpreter began
        return None
    try:
        try:
            stream.write(text)
        except UnicodeEncodeError:
            stream.write(text.encode(stream.encoding, "backslashreplace").decode(stream.encoding))
        stream.flush()
    except (OSError, ValueError) as error:  # at its end the interpreter would try again, and complain
        with contextlib.suppress(OSError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, number)
            os.close(nowhere)
        return error if isinstance(error, OSError) else None  # ValueError: it was closed inside this process
    return None
