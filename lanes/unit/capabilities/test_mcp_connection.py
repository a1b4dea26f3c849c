"""A server that fails ends neither the opening of a session nor a turn: the connection tells why and nothing more."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from harness.capabilities.mcp_config import StdioServer
from harness.capabilities.mcp_connection import Limits
from lanes.unit.capabilities.mcp_bench import START_S, Bench
from lanes.unit.loop.rig import Rig
from lanes.unit.loop.scripted_model import calls, text

Make = Callable[..., Rig]


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    found = Bench(tmp_path, limits=Limits(start_s=START_S, close_s=1.0))
    yield found
    await found.close()


async def test_a_server_that_ends_at_its_start_leaves_the_session_to_the_others(bench: Bench) -> None:
    servers = await bench.open(StdioServer("gone", "/bin/sh", ("-c", "exit 3")), bench.raw("fine"))
    assert (list(servers.tools), servers.notices) == (
        ["raw__echo"],
        ("MCP server 'gone' is left out: ended with exit code 3",),
    )


async def test_a_turn_goes_on_when_a_server_ends_in_its_call(bench: Bench, make_rig: Make) -> None:
    servers = await bench.open(bench.raw("killed-in-call"))
    twice = [calls((f"c{at}", "raw__echo", '{"text": "a"}')) for at in (1, 2)]
    rig = make_rig(*twice, text("without it, then"), tools=servers.tools.values())
    rig.naps.holds = True
    await rig.run("echo a")
    told = "Error: the MCP server 'raw' was ended by SIGKILL; its tools cannot be used any more in this run"
    assert rig.results() == [("c1", True, "MCP_SERVER_ENDED", told), ("c2", True, "MCP_SERVER_ENDED", told)]
    assert rig.outcomes == ["completed"]
