"""What is on disk when the process is killed where the loop may not have waited."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from harness.log.events import ToolResult
from harness.log.load import scan
from harness.log.repair import TOOL_OUTCOME_UNKNOWN
from harness.log.store import SessionStore
from lanes.crash_child import LEDGER, SESSION, sessions_of, workspace_of

Start = Callable[..., "subprocess.Popen[str]"]


def kill_at(child: subprocess.Popen[str], kind: str, count: int = 1) -> list[str]:
    """Hear promises until that many of the kind were made, kill, and give them all."""
    heard: list[str] = []
    assert child.stdout is not None
    for line in child.stdout:
        heard.append(line.rstrip("\n"))
        if sum(said.startswith(f"{kind} ") for said in heard) == count:
            break
    child.kill()
    child.wait()
    return heard


def types_on_disk(folder: Path) -> list[str]:
    """The event types in the file as the kill left it, without what a repair would add."""
    path = SessionStore(sessions_of(folder), clock=lambda: 0).find(SESSION)
    found = scan(path.read_bytes(), clock=lambda: 0)
    assert found.damage is None
    return [event.type for event in found.log]


def test_P10_killed_during_the_request_the_envelope_is_on_disk(folder: Path, start: Start) -> None:
    heard = kill_at(start(1, 1, hang_at="asked"), "asked")
    assert heard[-1] == "asked job-1-0"
    assert types_on_disk(folder)[-4:] == ["step/start", "user/message", "request/header", "request/context"]


def test_P11_killed_inside_a_tool_body_its_call_is_on_disk_and_it_never_runs_again(folder: Path, start: Start) -> None:
    kill_at(start(1, 1, hang_at="call"), "call")  # the first job of the first life calls one tool
    assert types_on_disk(folder)[-1] == "tool/call"
    child = start(2, 1)
    said, _ = child.communicate()
    assert "\nclosed " in said
    ledger = (workspace_of(folder) / LEDGER).read_text().split()
    assert ledger.count("job-1-0-0-0") <= 1
    log = SessionStore(sessions_of(folder), clock=lambda: 0).inspect(SESSION).log
    results = [event.payload for event in log if isinstance(event.payload, ToolResult)]
    assert results[0].message.source.call_id == "job-1-0-0-0"
    assert results[0].error.code == TOOL_OUTCOME_UNKNOWN
