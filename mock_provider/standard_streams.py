"""Standard output and standard error, each of which may be closed, or have no reader any more.

Room: the commands come in.
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TextIO


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
    """Write to standard output, at once; without a reader nothing happens."""
    _write(sys.stdout, text, 1)


def tell(text: str) -> None:
    """Write to standard error, at once; without a reader nothing happens."""
    _write(sys.stderr, text, 2)


def _write(stream: TextIO | None, text: str, number: int) -> None:
    if stream is None:  # closed before the interpreter began
        return
    try:
        stream.write(text)
        stream.flush()
    except (
        OSError,
        ValueError,
    ):  # nobody reads any more; at its end the interpreter would try again, and complain
        with contextlib.suppress(OSError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, number)
            os.close(nowhere)
