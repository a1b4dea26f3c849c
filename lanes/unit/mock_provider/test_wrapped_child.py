"""A wrapped command gets our signals, and a command that will not end is ended."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PATH_OF_CHILDREN = os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), str(Path(__file__).parents[3])])
# Deaf to every signal that asks for the end; its own child too, which outlives it unless the group is killed.
DEAF = """
import os, signal, sys
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
if os.fork() == 0:
    signal.pause()
print("ready", flush=True)
signal.pause()
"""
# Written straight to the descriptor: a signal may come while `print` of the one before has not yet returned.
COUNTING = """
import os, signal, sys
signal.signal(signal.SIGUSR1, lambda *_: os.write(1, b"usr1\\n"))
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
print("ready", flush=True)
while True:
    signal.pause()
"""


@contextlib.contextmanager
def wrapped(tmp_path: Path, code: str, *options: str) -> Iterator[subprocess.Popen[str]]:
    script = tmp_path / "plain.yaml"
    script.write_text("version: 1\nsteps:\n  - {reply: hi, optional: true}\n", encoding="utf-8")
    command = [sys.executable, "-m", "mock_provider", "run", *options, str(script), "--", sys.executable, "-c", code]
    environment = {**os.environ, "PYTHONPATH": PATH_OF_CHILDREN}
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process


def test_a_command_deaf_to_signals_is_killed_when_its_grace_is_over(tmp_path: Path) -> None:
    with wrapped(tmp_path, DEAF, "--grace", "0.2") as process:
        process.send_signal(signal.SIGTERM)
        _, told = process.communicate(timeout=30)  # ends only when nobody holds the pipes: the whole group is gone
    assert process.returncode == 128 + signal.SIGKILL
    assert told.splitlines()[:2] == [
        "mock-provider: SIGTERM passed on; in 0.2 s, or at the next signal, the command is killed",
        "mock-provider: 0.2 s are over, the command did not end: killed",
    ]


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT], ids=["term", "int"])
def test_the_second_signal_kills_at_once(tmp_path: Path, second: signal.Signals) -> None:
    with wrapped(tmp_path, DEAF, "--grace", "3600") as process:
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        assert "SIGTERM passed on" in process.stderr.readline()
        process.send_signal(second)
        _, told = process.communicate(timeout=30)
    assert (process.returncode, f"{second.name} came again" in told) == (128 + signal.SIGKILL, True)


def test_other_signals_are_passed_on_and_start_no_clock(tmp_path: Path) -> None:
    with wrapped(tmp_path, COUNTING, "--grace", "3600") as process:
        assert process.stdout is not None
        for _ in range(2):
            process.send_signal(signal.SIGUSR1)
            assert process.stdout.readline() == "usr1\n"
        process.send_signal(signal.SIGTERM)
        _, told = process.communicate(timeout=30)
    assert (process.returncode, "killed\n" in told.replace("is killed\n", "")) == (7, False)
