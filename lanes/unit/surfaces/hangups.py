"""Hang-ups for programs that a test starts: what they do is the test's choice, not that of who started the tests.

Room: the tests of the surfaces come in.
"""

from __future__ import annotations

import signal


def hear_hangups() -> None:
    """Undo in a new process what nohup did to the tests, for it would inherit that."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def ignore_hangups() -> None:
    """What nohup does before it starts a program."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
