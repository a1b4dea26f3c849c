"""`mock-provider run`: a command with the provider's address in its environment, and the verdict afterwards.

Room: child processes, signals, environment; the command comes in.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from types import FrameType

from mock_provider.dialects.table import BASES
from mock_provider.errors import UsageError
from mock_provider.mock import Mock
from mock_provider.server import ServerThread
from mock_provider.serving import warn_about_host

DUMMY_KEY = "sk-mock"  # no conversation behind it: `sk-mock-NAME` would name one
PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def child_environment(mock: Mock, given: Mapping[str, str]) -> dict[str, str]:
    """The environment of the command: real keys covered by dummies, base URLs set, the proxy told to keep out."""
    host = mock.root.removeprefix("http://").rpartition(":")[0].strip("[]")
    spared = ",".join(part for part in (given.get("no_proxy", given.get("NO_PROXY", "")), host, "localhost") if part)
    key = mock.script.api_key or DUMMY_KEY
    return {
        **given,
        **{name: mock.base_url(base.name) for base in BASES for name in base.variables},
        **{name: key for base in BASES for name in base.keys},
        "NO_PROXY": spared,
        "no_proxy": spared,
    }


def run_command(mock: Mock, command: Sequence[str], *, host: str, port: int) -> int:
    """Run a command against a play.

    Shape: the command's exit code (128 + n when signal n ended it), or 3 when the verdict is bad.
    Raises: UsageError when the command cannot be started.
    """
    warn_about_host(host)
    with ServerThread(mock, host, port):
        code = _run_child(command, child_environment(mock, os.environ))
        verdict = mock.verify()
    sys.stderr.write(f"mock-provider: {verdict}\n")
    return code if verdict.ok else 3


def _run_child(command: Sequence[str], environment: Mapping[str, str]) -> int:
    child: subprocess.Popen[bytes] | None = None
    early: list[int] = []

    def pass_on(number: int, frame: FrameType | None) -> None:
        del frame
        if child is None:
            early.append(number)
        elif not (number == signal.SIGINT and _is_in_foreground()):
            child.send_signal(number)

    before = {number: signal.signal(number, pass_on) for number in PASSED_ON}
    try:
        try:
            child = subprocess.Popen(list(command), env=dict(environment))
        except OSError as error:
            what = f"cannot start '{command[0]}': {error.strerror or error}"
            raise UsageError(what, where="mock-provider run", expected="a command that exists") from None
        for number in early:
            child.send_signal(number)
        code = child.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return 128 - code if code < 0 else code


def _is_in_foreground() -> bool:
    """Whether a Ctrl-C from the terminal reached the child already, being sent to the whole group."""
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False
