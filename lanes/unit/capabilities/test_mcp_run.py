"""A run with `--mcp` has the tools of the servers its file names, and ends with them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.assemble import Assembled
from harness.cli import main
from harness.tools.processes import command_line, find_members, mark_of, own_mark, read_table
from lanes.unit.capabilities.mcp_bench import RAW, until
from lanes.unit.surfaces.conftest import Bench
from lanes.unit.surfaces.scripted import say, use


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def configured(bench: Bench, *ways: str) -> dict[str, Any]:
    """A file with one raw server for each way, and the flag that names it."""
    servers = {way: {"command": sys.executable, "args": [str(RAW), way, str(bench.folder / "notes")]} for way in ways}
    path = bench.folder / "mcp.json"
    path.write_text(json.dumps({"servers": servers}), encoding="utf-8")
    return {"mcp": str(path)}


def running(bench: Bench) -> list[str]:
    """The servers of this test that still run."""
    lines = [command_line(row.pid) for row in read_table()]
    return [line for line in lines if str(RAW) in line and str(bench.folder) in line]


def results(bench: Bench) -> list[str]:
    return [
        event["data"]["message"]["content"][0]["content"][0]["text"]
        for event in bench.logs()[0]
        if event["type"] == "tool/result"
    ]


async def test_the_model_uses_a_tool_of_a_server_beside_the_shipped_ones(bench: Bench) -> None:
    done = await bench.run(use("fine__echo", {"text": "a"}), say("done"), flags=configured(bench, "fine"))
    offered = [tool["function"]["name"] for tool in done.script.requests[0]["tools"]]
    assert (done.exit_code, done.out, done.err) == (0, "done\n", "")
    assert (results(bench), running(bench)) == (["echo: a"], [])
    assert ("fine__echo" in offered, "shell" in offered, offered) == (True, True, sorted(offered))


async def test_a_server_that_fails_costs_one_line_and_not_the_run(bench: Bench) -> None:
    done = await bench.run(
        use("fine__echo", {"text": "a"}), say("done"), flags=configured(bench, "dies-at-start", "fine")
    )
    assert (done.exit_code, done.out, results(bench)) == (0, "done\n", ["echo: a"])
    assert done.err == (
        "harness: MCP server 'dies-at-start' is left out: ended with exit code 3; it said last: \"no such database\"\n"
    )


async def test_a_server_that_dies_in_a_call_is_an_error_the_model_reads(bench: Bench) -> None:
    done = await bench.run(
        use("killed-in-call__echo", {"text": "a"}), say("ok"), flags=configured(bench, "killed-in-call")
    )
    assert (done.exit_code, done.out, done.err, running(bench)) == (0, "ok\n", "", [])
    assert results(bench) == [
        "Error: the MCP server 'killed-in-call' was ended by SIGKILL; its tools cannot be used any more in this run"
    ]


async def interrupt_once(is_time: Callable[[], bool]) -> None:
    await until(is_time)
    os.kill(os.getpid(), signal.SIGINT)


async def test_a_run_that_is_stopped_in_a_call_ends_the_server_too(bench: Bench) -> None:
    flags, notes = configured(bench, "never-answers"), bench.folder / "notes"
    interrupting = asyncio.ensure_future(
        interrupt_once(lambda: notes.exists() and "call a\n" in notes.read_text("utf-8"))
    )
    done = await bench.run(use("never-answers__echo", {"text": "a"}), flags=flags)
    await interrupting
    assert (done.exit_code, running(bench)) == (130, [])
    assert results(bench) == ["Error: the call was cancelled; the server 'never-answers' was told"]


async def test_a_signal_while_servers_start_ends_the_run_without_a_session(bench: Bench) -> None:
    flags = configured(bench, "silent")
    interrupting = asyncio.ensure_future(interrupt_once(lambda: running(bench) != []))
    done = await asyncio.wait_for(bench.run(say("never"), flags=flags), 20)
    await interrupting
    assert (done.exit_code, done.out, done.err) == (130, "", "harness: SIGINT; the session was not opened\n")
    assert (bench.logs(), running(bench)) == ([], [])


async def test_a_resumed_session_can_tell_what_its_servers_left_and_its_shell_cannot(bench: Bench) -> None:
    found: list[tuple[int, ...]] = []

    def look(assembled: Assembled) -> None:
        place = str(assembled.writer.path.parent / "output")
        marks = (mark_of(place), own_mark(place))
        found.append(tuple(len(find_members(read_table(), frozenset(), mark)) for mark in marks))

    await bench.run(say("ok"), hook=look, flags=configured(bench, "fine"))
    assert found == [(1, 0)]


async def test_arguments_that_do_not_fit_never_reach_the_server(bench: Bench) -> None:
    await bench.run(use("fine__echo", {"text": 5}), say("ok"), flags=configured(bench, "fine"))
    assert results(bench) == ["Error: invalid arguments for fine__echo: text: expected string, got integer 5"]
    assert not [note for note in (bench.folder / "notes").read_text("utf-8").splitlines() if note.startswith("call")]


async def test_a_child_uses_the_servers_of_its_parent(bench: Bench) -> None:
    flags = {**configured(bench, "fine"), "delegation_depth": 1}
    done = await bench.run(
        use("delegate", {"task": "echo it"}),
        use("fine__echo", {"text": "from the child"}, call_id="call_2"),
        say("echoed"),
        say("done"),
        flags=flags,
    )
    notes = (bench.folder / "notes").read_text("utf-8").splitlines()
    assert (done.exit_code, done.out, running(bench)) == (0, "done\n", [])
    assert (len([note for note in notes if note.startswith("pid")]), "call from the child" in notes) == (1, True)


def test_a_faulty_file_is_a_usage_error_before_anything_is_opened(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mcp.toml").write_text("[servers.git]\ncomand = 'x'\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    arguments = [
        "run",
        "--base-url",
        "http://127.0.0.1:9/v1",
        "--model",
        "m",
        "--session-root",
        "s",
        "--mcp",
        "mcp.toml",
    ]
    code = main([*arguments, "task"])
    out, err = capfd.readouterr()
    assert (code, out, (tmp_path / "s").exists()) == (2, "", False)
    assert err == (
        "harness: mcp.toml:2, servers.git.comand: field 'comand' is unknown; did you mean 'command'? [MCP_CONFIG]\n"
        "  expected: one of command, args, env, cwd, timeout_s, url, headers\n"
    )


async def test_a_missing_package_is_named_with_the_way_to_get_it(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    from harness.errors import UsageError

    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UsageError) as raised:
        await bench.run(say("never"), flags=configured(bench, "fine"))
    assert (raised.value.error_code, raised.value.fix) == ("MCP_MISSING", 'pip install "five-lanes[mcp]"')
