"""What a person is told when a server opens a session: what was repaired in its log, and what it does without."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lanes.unit.surfaces.acp_bench import AcpBench
from lanes.unit.surfaces.scripted import say
from lanes.unit.surfaces.sdk_bench import SdkBench


@pytest.fixture
def servers(tmp_path: Path) -> str:
    """A file that names one MCP server, whose program is not there."""
    path = tmp_path / "servers.json"
    path.write_text(json.dumps({"servers": {"gone": {"command": "/no/such/program"}}}), encoding="utf-8")
    return str(path)


async def test_SV01_a_server_of_tools_that_does_not_start_is_said_once(tmp_path: Path, servers: str) -> None:
    bench = SdkBench(tmp_path, say("one"), say("two"), mcp=servers)
    for count in (1, 2):
        await bench.prompt("a")
        await bench.idle(count=count)
    await bench.leave()
    (line,) = bench.said
    assert ("session s: " in line, "'gone'" in line, "\n" in line) == (True, True, False)


async def test_a_server_of_tools_that_does_not_start_is_said_on_the_other_wire_too(
    tmp_path: Path, servers: str
) -> None:
    bench = AcpBench(tmp_path, say("one"), mcp=servers)
    session = await bench.ready()
    answer = await bench.say(session, "a")
    await bench.leave()
    (line,) = bench.said
    assert (answer["stopReason"], f"session {session}: " in line, "'gone'" in line) == ("end_turn", True, True)


async def test_a_log_that_was_repaired_when_it_was_opened_is_said(tmp_path: Path) -> None:
    first = SdkBench(tmp_path, say("one"))
    await first.prompt("a")
    await first.idle()
    await first.leave()
    (log,) = (tmp_path / "sessions").rglob("session.jsonl")
    with log.open("ab") as file:
        file.write(b'{"type":"turn/st')
    second = SdkBench(tmp_path, say("two"))
    receipt = await second.prompt("b")
    await second.idle()
    await second.leave()
    (line,) = second.said
    assert ("messageId" in receipt, line.startswith("session s: it was repaired: ")) == (True, True)
