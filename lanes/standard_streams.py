"""Standard streams that are there and take any text: one that was closed goes nowhere, a poor encoding gets numbers.

Room: the command comes in before anything else; it changes this process alone.
"""

from __future__ import annotations

import io
import os
import sys


def prepare_streams() -> None:
    """Open the standard streams that were closed before we began onto nothing, and let the others spell every text.

    Shape: the descriptor of a closed one is taken, too: the next file that is opened would have its number, and every
    child would write into that file. A character that an encoding does not have is written by its number.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, os.O_RDWR)
            if descriptor != number:
                os.dup2(descriptor, number)
                os.close(descriptor)
            os.set_inheritable(number, True)
            setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
