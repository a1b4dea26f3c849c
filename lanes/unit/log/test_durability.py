"""What survives when the process does not."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import harness
from harness.log.events import SessionHeader
from harness.log.load import encode_header
from harness.log.store import SessionStore
from harness.model.messages import SessionId

S = SessionId("s1")
CHILD = Path(__file__).with_name("writer_child.py")
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def store(tmp_path: Path) -> SessionStore:
    """A store with one empty session."""
    ticks = itertools.count(1)
    store = SessionStore(tmp_path, clock=lambda: next(ticks))
    path = store.path_of(S, None)
    path.parent.mkdir(parents=True)
    path.write_bytes(encode_header(SessionHeader(S, 1)))
    return store


@pytest.fixture
def start(store: SessionStore) -> Iterator[Start]:
    """Start writer processes; none outlives the test."""
    running: list[subprocess.Popen[str]] = []
    places = [str(Path(harness.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, places))}

    def run(name: str = "W", records: int = 1000, *sizes: int) -> subprocess.Popen[str]:
        command = [sys.executable, str(CHILD), str(store.root), S, name, str(records), *map(str, sizes or (10,))]
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        running.append(child)
        assert child.stdout.readline() == "ready\n"
        return child

    yield run
    for child in running:
        child.kill()
        child.wait()
        child.stdin.close()
        child.stdout.close()


def _tell(child: subprocess.Popen[str]) -> None:
    child.stdin.write("go\n")
    child.stdin.flush()


def _until_killed_at(child: subprocess.Popen[str], reports: int) -> int:
    """Kill after that many reports and give the last seq that was promised."""
    _tell(child)
    assert child.stdout.readline() == "opened\n"
    promised = -1
    for _ in range(reports):
        promised = int(child.stdout.readline().split()[1])
    child.kill()
    child.wait()
    for line in child.stdout:
        if line.startswith("durable") and line.endswith("\n"):
            promised = int(line.split()[1])
    return promised


@pytest.mark.parametrize("reports", [1, 2, 7, 23])
def test_what_a_flush_promised_is_there_after_a_kill(store, start, reports):
    promised = _until_killed_at(start("W", 1000, 10, 5000), reports)
    log = store.inspect(S).log
    assert len(log) > promised >= reports
    texts = [message.content[0].text for message in log.messages()]
    assert texts == [f"W-{at}-".ljust((10, 5000)[at % 2], "x") for at in range(len(texts))]


def test_a_killed_holder_locks_nobody_out_and_its_work_goes_on(store, start):
    promised = _until_killed_at(start("W1", 1000), 5)
    second = start("W2", 3)
    _tell(second)
    lines = [second.stdout.readline() for _ in range(5)]
    assert (lines[0], lines[-1]) == ("opened\n", "done\n")
    ids = [message.id for message in store.inspect(S).log.messages()]
    assert ids[-3:] == ["W2-0", "W2-1", "W2-2"]
    assert len(ids) - 3 >= promised
    assert ids[:-3] == [f"W1-{at}" for at in range(len(ids) - 3)]
