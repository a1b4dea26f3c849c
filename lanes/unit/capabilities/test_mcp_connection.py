"""A server that fails ends neither the opening of a session nor a turn: the connection tells why and nothing more."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from harness.capabilities.mcp_config import StdioServer
from harness.capabilities.mcp_connection import Limits
from harness.loop.redaction import STAND_IN, Secrets
from lanes.unit.capabilities.mcp_bench import START_S, Bench, ask, text_of
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


TOKEN = "example-token-0123"
KEY = "example-key-4567"


async def test_S12_what_a_server_says_holds_none_of_its_secrets_and_not_the_key(bench: Bench) -> None:
    secret: dict[str, Any] = {"env": {"TOKEN": TOKEN, "KEY": KEY}, "secrets": Secrets((TOKEN,))}
    dies = "echo first; printf 'x%.0s' $(seq 180) >&2; echo \"token $TOKEN and $KEY\" >&2; exit 3"
    servers = await bench.open(
        bench.raw("tells-its-secret", "tells", **secret),
        bench.raw("fine", "echoes", **secret),
        StdioServer("dies", "/bin/sh", ("-c", dies), **secret),
        key=KEY,
    )
    outputs = [
        await ask(servers, "tells__echo", text=""),
        await ask(servers, "echoes__echo", text=f"{TOKEN} {KEY}"),
        await ask(servers, "echoes__echo", text="x" * 19_985 + f"{TOKEN}" + "x" * 20_000),
    ]
    said = repr((outputs, servers.notices, {name: tool.schema for name, tool in servers.tools.items()}))
    assert (TOKEN[:9] in said, KEY[:9] in said) == (False, False)
    assert text_of(outputs[1]) == f"echo: {STAND_IN} {STAND_IN}"
    assert servers.tools["echoes__echo"].schema.description == f"Give the text back.{STAND_IN}"
    assert "ended with exit code 3; it said last:" in servers.notices[0]


async def test_a_server_that_ignores_what_it_does_not_know_is_opened_without_the_long_wait_for_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp.client.session.DISCOVER_TIMEOUT_SECONDS", 2 * START_S)
    bench.limits = Limits(start_s=START_S, close_s=1.0, probe_s=0.05)
    servers = await bench.open(bench.raw("ignores-unknown"))
    assert (list(servers.tools), servers.notices) == (["raw__echo"], ())
    assert text_of(await ask(servers, "raw__echo", text="hi")) == "echo: hi"
