"""One child process under our signals: each is passed on, and a child that will not end is ended.

Room: child processes, signals; the wrapped command comes in.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from types import FrameType

from mock_provider.errors import UsageError
from mock_provider.standard_streams import tell

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PASSED_ON = (*ENDING, signal.SIGUSR1, signal.SIGUSR2)
GRACE_S = 10.0  # as long as the tools that stop containers and services give before they kill


class WrappedChild:
    """A command that was started, waited for and, if it has to be, killed.

    Shape: a signal is passed on to the child and its group. One that asks for the end starts the grace; when that is
    over, or at the second such signal, the whole group is killed. A child that shares a terminal with us stays in our
    group, or it could not read from it; then it gets the signals alone.
    Units: grace_s seconds.
    """

    def __init__(self, grace_s: float) -> None:
        self._grace_s = grace_s
        self._child: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []
        self._has_group = not _has_terminal()
        self._is_ending = False

    def run(self, command: Sequence[str], environment: Mapping[str, str]) -> int:
        """Run a command to its end. Shape: its exit code, 128 + n when signal n ended it. Raises: UsageError."""
        before = {number: signal.signal(number, self._pass_on) for number in PASSED_ON}
        before[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._time_is_over)
        try:
            self._child = _start(command, environment, has_group=self._has_group)
            for number in self._early:
                self._take(number)
            code = self._child.wait()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            for number, handler in before.items():
                signal.signal(number, handler)
        return 128 - code if code < 0 else code

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        del frame
        if self._child is None:
            self._early.append(number)
        else:
            self._take(number)

    def _take(self, number: int) -> None:
        name = signal.Signals(number).name
        if number in ENDING and self._is_ending:
            self._kill(f"{name} came again")
            return
        if self._has_group or not (number == signal.SIGINT and _is_in_foreground()):
            self._send(number)
        if number in ENDING:
            self._is_ending = True
            signal.setitimer(signal.ITIMER_REAL, self._grace_s)
            told = f"{name} passed on; in {self._grace_s:g} s, or at the next signal, the command is killed"
            tell(f"mock-provider: {told}\n")

    def _time_is_over(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self._kill(f"{self._grace_s:g} s are over")

    def _kill(self, why: str) -> None:
        tell(f"mock-provider: {why}, the command did not end: killed\n")
        self._send(signal.SIGKILL)

    def _send(self, number: int) -> None:
        child = self._child
        if child is None:
            return
        try:
            if self._has_group:
                os.killpg(child.pid, number)
            else:
                child.send_signal(number)
        except ProcessLookupError:  # it ended in this moment; nobody is left to hear it
            return


def _start(command: Sequence[str], environment: Mapping[str, str], *, has_group: bool) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(list(command), env=dict(environment), process_group=0 if has_group else None)
    except (OSError, ValueError) as error:  # ValueError: a null character in the command
        what = f"cannot start '{command[0]}': {getattr(error, 'strerror', None) or error}"
        raise UsageError(what, where="mock-provider run", expected="a command that exists") from None


def _has_terminal() -> bool:
    """Whether standard input is a terminal on which the child would be in the foreground."""
    try:
        return os.isatty(0)
    except OSError:
        return False


def _is_in_foreground() -> bool:
    """Whether a Ctrl-C from the terminal reached the child already, being sent to the whole group."""
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False
