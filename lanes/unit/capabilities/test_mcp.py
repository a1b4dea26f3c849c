"""MCP servers serve tools, and whatever they do wrong stays an error result or a line."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from harness.capabilities.mcp_config import StdioServer
from harness.capabilities.mcp_connection import Limits
from harness.log.events import Cause
from harness.loop.scope import CancelScope
from harness.loop.tools import PreparedCall, mode_of_call, run_call
from harness.model.messages import CallId
from lanes.unit.capabilities.mcp_bench import GOOD, Bench, ask, text_of, until


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    """A bench whose servers are closed at the end, after which none of their processes may run."""
    found = Bench(tmp_path)
    yield found
    await found.close()
    assert found.left() == ()


async def test_a_server_of_the_official_package_serves_its_tools(bench: Bench) -> None:
    servers = await bench.open(StdioServer("good", sys.executable, (str(GOOD),)))
    shout = servers.tools["good__shout"].schema
    answers = [
        await ask(servers, "good__shout", text="hello"),
        await ask(servers, "good__add", left=2, right=3),
        await ask(servers, "good__fail", reason="no luck"),
        await ask(servers, "good__add", left="two", right=3),
    ]
    assert (sorted(servers.tools), servers.notices) == (["good__add", "good__fail", "good__shout"], ())
    assert (shout.description, shout.parameters["required"]) == ("Give the text back in capitals.", ["text"])
    assert [each.is_error for each in answers] == [False, False, True, True]
    assert [text_of(each).partition(chr(10))[0] for each in answers[::2]] == [
        "HELLO",
        "Error: Error executing tool fail: no luck",
    ]
    assert json.loads(text_of(answers[1])) == {"left": 2, "right": 3, "total": 5}
    assert "left" in text_of(answers[3])


async def test_only_a_hint_that_is_exactly_true_lets_calls_run_side_by_side(bench: Bench) -> None:
    servers = await bench.open(bench.raw("hints"))
    modes = {name: mode_of_call(PreparedCall(CallId("c"), tool, {})) for name, tool in sorted(servers.tools.items())}
    assert modes == {
        "raw__false": "exclusive",
        "raw__none": "exclusive",
        "raw__one": "exclusive",
        "raw__text": "exclusive",
        "raw__true": "parallel",
    }


async def test_calls_of_one_server_may_be_on_their_way_together(bench: Bench) -> None:
    servers = await bench.open(bench.raw("fine"))
    outputs = await asyncio.gather(*(ask(servers, "raw__echo", text=str(number)) for number in range(20)))
    assert [text_of(each) for each in outputs] == [f"echo: {number}" for number in range(20)]


@pytest.mark.parametrize(
    ("way", "expected"),
    [
        pytest.param("dies-at-start", 'ended with exit code 3; it said last: "no such database"', id="dies-at-start"),
        pytest.param(
            "no-schema",
            "its answer does not follow the protocol, tools.1.inputSchema: Field required",
            id="a-tool-without-a-schema",
        ),
        pytest.param("old", "RuntimeError: Unsupported protocol version from the server: 1999-01-01", id="too-old"),
    ],
)
async def test_a_server_that_cannot_start_is_left_out_with_one_line(bench: Bench, way: str, expected: str) -> None:
    servers = await bench.open(bench.raw(way), bench.raw("fine", name="other"))
    assert (list(servers.tools), servers.notices) == (["other__echo"], (f"MCP server 'raw' is left out: {expected}",))


@pytest.mark.parametrize(
    ("does", "more"),
    [
        pytest.param("cat > /dev/null", "", id="says-nothing"),
        pytest.param(
            "echo 'Loading the model...'; cat > /dev/null",
            "; it wrote 1 lines that are no messages",
            id="says-something-else",
        ),
        pytest.param("echo 'no disk' >&2; sleep 60", '; it said last: "no disk"', id="complains"),
    ],
)
async def test_a_server_that_hangs_at_the_handshake_is_given_up_after_its_time(
    bench: Bench, does: str, more: str
) -> None:
    bench.limits = Limits(start_s=1.0)
    servers = await bench.open(StdioServer("raw", "/bin/sh", ("-c", does)))
    assert servers.notices == (f"MCP server 'raw' is left out: it did not list its tools within 1 s{more}",)
    assert bench.left() == ()


@pytest.mark.parametrize(
    ("command", "cwd", "expected"),
    [
        pytest.param("no-such-program", None, "its command 'no-such-program' is not found or cannot be run", id="none"),
        pytest.param(sys.executable, Path("gone"), "it did not start: no such file or directory", id="folder-is-gone"),
    ],
)
async def test_a_program_that_is_not_there_is_a_line(
    bench: Bench, command: str, cwd: Path | None, expected: str
) -> None:
    where = None if cwd is None else bench.folder / cwd
    servers = await bench.open(StdioServer("raw", command, cwd=where))
    assert (servers.tools, servers.notices) == ({}, (f"MCP server 'raw' is left out: {expected}",))


async def test_bad_tools_are_left_out_one_by_one(bench: Bench) -> None:
    servers = await bench.open(bench.raw("bad-schemas"))
    assert sorted(servers.tools) == ["raw__fine", "raw__twice"]
    assert [notice.partition(": ")[2].partition(":")[0] for notice in servers.notices] == [
        "tool 'twice'",
        "tool 'no type'",
        "tool 'too large'",
    ]
    assert all(notice.endswith("; left out") for notice in servers.notices)


async def test_a_list_that_never_ends_is_read_for_a_while(bench: Bench) -> None:
    servers = await bench.open(bench.raw("endless-list"))
    assert len(servers.tools) == 50
    assert text_of(await ask(servers, "raw__tool-3", text="x")) == "echo: x"


async def test_noise_on_both_streams_disturbs_nothing(bench: Bench) -> None:
    servers = await bench.open(bench.raw("noise"))
    assert (servers.notices, text_of(await ask(servers, "raw__echo", text="a"))) == ((), "echo: a")


ENDED = "; its tools cannot be used any more in this run"


@pytest.mark.parametrize(
    ("way", "expected"),
    [
        pytest.param("dies-in-call", 'ended with exit code 7; it said last: "out of luck"', id="exits"),
        pytest.param("killed-in-call", "was ended by SIGKILL", id="killed"),
        pytest.param("closes-output", "closed its output", id="closes-its-output"),
    ],
)
async def test_a_server_that_ends_in_a_call_answers_this_one_and_all_later_ones(
    bench: Bench, way: str, expected: str
) -> None:
    servers = await bench.open(bench.raw(way), bench.raw("fine", name="other"))
    outputs = [await ask(servers, "raw__echo", text="a") for _ in range(2)]
    told = f"Error: the MCP server 'raw' {expected}{ENDED}"
    assert [(text_of(each), each.code) for each in outputs] == [(told, "MCP_SERVER_ENDED")] * 2
    assert text_of(await ask(servers, "other__echo", text="b")) == "echo: b"


@pytest.mark.parametrize(
    ("way", "expected"),
    [
        pytest.param("garbage", "its answer cannot be used: it is no JSON-RPC answer", id="garbage"),
        pytest.param(
            "wrong-result",
            "its answer does not follow the protocol, content: Input should be a valid list",
            id="wrong-result",
        ),
        pytest.param(
            "long-line", "its answer cannot be used: a line of more than 33554432 bytes was dropped", id="long-line"
        ),
        pytest.param("error", "no such tool", id="error"),
    ],
)
async def test_an_answer_that_is_none_is_an_error_result_and_the_server_stays(
    bench: Bench, way: str, expected: str
) -> None:
    servers = await bench.open(bench.raw(way))
    for _ in range(2):
        output = await ask(servers, "raw__echo", text="a")
        assert (text_of(output), output.code) == (
            f"Error: the MCP server 'raw' failed: {expected}",
            "MCP_CALL_FAILED",
        )


async def test_half_a_character_is_replaced_in_both_directions(bench: Bench) -> None:
    servers = await bench.open(bench.raw("half-character"), bench.raw("fine", name="other"))
    assert text_of(await ask(servers, "raw__echo", text="a")) == "a?b"
    output = await ask(servers, "other__echo", text="a\ud800b", more=[{"c\udfff": ("d\ud800", 1, None)}])
    assert text_of(output) == "echo: a?b"


async def test_a_changed_list_is_named_beside_the_failure_it_may_explain(bench: Bench) -> None:
    servers = await bench.open(bench.raw("changes-list"))
    await ask(servers, "raw__echo", text="a")  # the notice and the first answer may pass each other
    output = await ask(servers, "raw__echo", text="a")
    assert (output.is_error, output.context) == (
        True,
        ("the server 'raw' has changed its list of tools since this session was opened",),
    )


async def test_a_server_that_asks_for_a_model_is_refused_and_goes_on(bench: Bench) -> None:
    servers = await bench.open(bench.raw("asks-back"))
    assert text_of(await ask(servers, "raw__echo", text="a")) == "Sampling not supported"


async def until_noted(bench: Bench, note: str) -> None:
    await until(lambda: note in bench.notes)


async def test_a_cancel_reaches_the_call_and_the_server(bench: Bench) -> None:
    servers = await bench.open(bench.raw("never-answers"))
    scope = CancelScope()
    asking = asyncio.ensure_future(ask(servers, "raw__echo", scope, text="a"))
    await until_noted(bench, "call a")
    scope.cancel(Cause("user"))
    output = await asking
    await until_noted(bench, "cancelled")
    assert (text_of(output), output.code) == ("Error: the call was cancelled; the server 'raw' was told", "ABORTED")


async def test_a_call_past_its_time_limit_is_stopped_as_any_tool_is(bench: Bench) -> None:
    servers = await bench.open(bench.raw("never-answers", timeout_s=0.2))
    tool = servers.tools["raw__echo"]
    output = await run_call(PreparedCall(CallId("c"), tool, {"text": "a"}), CancelScope(), asyncio.sleep)
    await until_noted(bench, "cancelled")
    assert (text_of(output), output.code) == (
        "Error: raw__echo was stopped after its time limit of 0.2 s",
        "TOOL_TIMEOUT",
    )


async def test_a_server_that_ignores_every_request_to_end_is_killed(bench: Bench) -> None:
    servers = await bench.open(bench.raw("ignores-end"))
    was_running = bench.left()
    await servers.close()
    assert (len(was_running), bench.left()) == (1, ())


@pytest.mark.parametrize("way", ["child", "child-then-dies"])
async def test_what_a_server_started_ends_with_it(bench: Bench, way: str) -> None:
    servers = await bench.open(bench.raw(way))
    was_running = bench.left()
    await servers.close()
    assert (len(was_running), bench.left()) == (2, ())


async def test_end_now_kills_without_waiting(bench: Bench) -> None:
    servers = await bench.open(bench.raw("child"), bench.raw("ignores-end", name="other"))
    assert len(bench.left()) == 3
    servers.end_now()
    await until(lambda: bench.left() == ())
    await servers.close()


async def test_closing_twice_and_calling_afterwards_is_harmless(bench: Bench) -> None:
    servers = await bench.open(bench.raw("fine"))
    await asyncio.gather(servers.close(), servers.close())
    await servers.close()
    output = await ask(servers, "raw__echo", text="a")
    assert text_of(output) == f"Error: the MCP server 'raw' was closed{ENDED}"


async def test_an_opening_that_is_cancelled_leaves_no_process(bench: Bench) -> None:
    opening = asyncio.ensure_future(bench.open(bench.raw("silent"), bench.raw("fine", name="other")))
    await until(lambda: len(bench.left()) == 2)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert bench.left() == ()


async def test_a_server_gets_its_own_variables_and_none_of_ours_but_the_listed_ones(bench: Bench) -> None:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": "/nowhere",
        "OPENAI_API_KEY": "sk-1",
        "AWS_PROFILE": "work",
        "PYTHONPATH": "/x",
    }
    server = replace(bench.raw("fine"), env={"NAMED": "yes"})
    await bench.open(server, environment=environment)
    seen = next(note for note in bench.notes if note.startswith("environment ")).split()[1:]
    assert set(seen) - {"LC_CTYPE"} == {"HARNESS_SHELL", "HOME", "NAMED", "PATH"}  # the interpreter sets LC_CTYPE
    assert f"folder {bench.folder}" in bench.notes


async def test_a_folder_of_its_own_is_where_the_server_runs(bench: Bench) -> None:
    (bench.folder / "own").mkdir()
    await bench.open(replace(bench.raw("fine"), cwd=bench.folder / "own"))
    assert f"folder {bench.folder / 'own'}" in bench.notes


def test_nothing_of_the_package_is_loaded_without_a_server() -> None:
    program = (
        "import asyncio, sys, pathlib\n"
        "import harness.cli, harness.assemble\n"
        "from harness.capabilities.mcp import open_servers, read_servers\n"
        "assert read_servers(None, {}, None) == ()\n"
        "asyncio.run(open_servers((), pathlib.Path('.'), {}, None))\n"
        "print([name for name in sys.modules if name in {'mcp', 'mcp_types', 'pydantic', 'jsonschema'}])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout.strip() == "[]"
