"""Known faults from the field, played through the whole program: the wire in, the log on disk, the next request out."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from harness.assemble import Assembled, assemble
from harness.log.events import ToolCall, TurnEnd
from harness.loop.tools import Tool, ToolContext, ToolOutput
from harness.model.call import ToolSchema
from harness.model.messages import SessionId, TextBlock
from lanes.unit.assemble.place import ask, logs, settings
from lanes.unit.log.test_cases import Translation

CASES = Path(__file__).parents[2] / "cases"
SURROGATES = ("B16-lone-surrogate-content.sse", "B16-lone-surrogate-arguments.sse")
B20 = json.loads((CASES / "flows/B20-resume.json").read_bytes())
B45 = json.loads((CASES / "tools/B45-binary.json").read_bytes())
HEAD = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
Tools = dict[str, Tool]


class Wire(httpx.AsyncBaseTransport):
    """Plays bodies of streams in turn and keeps the bytes of each request."""

    def __init__(self, *bodies: bytes) -> None:
        self.bodies = list(bodies)
        self.sent: list[bytes] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.sent.append(await request.aread())
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=self.bodies.pop(0))

    @property
    def last(self) -> list[dict[str, Any]]:
        """The messages of the last request as a strict reader takes them: UTF-8, JSON, and no NUL in it."""
        body = json.loads(self.sent[-1].decode("utf-8"))
        assert "\\u0000" not in self.sent[-1].decode("utf-8")
        messages: list[dict[str, Any]] = body["messages"]
        return messages


def answer(text: str = "", calls: list[tuple[str, str, dict[str, str]]] | None = None) -> bytes:
    """A whole stream of the chat dialect."""
    named = [
        {"index": at, "id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for at, (call_id, name, arguments) in enumerate(calls or [])
    ]
    delta = {"tool_calls": named} if named else {"content": text}
    reason = "tool_calls" if named else "stop"
    chunks = [
        {**HEAD, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {**HEAD, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
    ]
    return b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"


def tool(name: str, body: Callable[[Any], str], ran: list[Any]) -> Tools:
    async def run(arguments: Any, context: ToolContext) -> ToolOutput:
        ran.append(arguments)
        return ToolOutput((TextBlock(body(arguments)),))

    return {name: Tool(ToolSchema(name, "As the case has it.", {"type": "object"}), run)}


async def opened(folder: Path, wire: Wire, tools: Tools | None = None, resume: str | None = None) -> Assembled:
    async def setup(*_: object) -> Tools:
        return tools or {}

    return await assemble(
        settings(folder), transport=wire, setup=setup, resume=None if resume is None else SessionId(resume)
    )


def ends(assembled: Assembled) -> list[str]:
    return [event.payload.reason.kind for event in assembled.agent.log if isinstance(event.payload, TurnEnd)]


def results(messages: list[dict[str, Any]]) -> dict[str, str]:
    return {each["tool_call_id"]: each["content"] for each in messages if each["role"] == "tool"}


async def reopened_equal(folder: Path, first: Assembled, tools: Tools | None = None) -> tuple[Assembled, Wire]:
    """Close a session, look at its file, open it again and see that it reads as what the running one went on with."""
    before = list(first.agent.log)
    await first.close()
    (path,) = logs(folder)
    for line in path.read_text(encoding="utf-8").splitlines():
        json.loads(line)
    wire = Wire(answer("and on"))
    again = await opened(folder, wire, tools, resume=str(first.agent.log.header.id))
    assert (list(again.agent.log)[: len(before)], again.writer.damage) == (before, None)
    return again, wire


async def test_case_B02_both_calls_under_one_index_run_and_give_two_results(tmp_path: Path) -> None:
    ran: list[Any] = []
    tools = tool("read_text", lambda arguments: f"the text of {arguments['path']}", ran)
    wire = Wire((CASES / "sse/B02-one-index-two-ids.sse").read_bytes(), answer("done"))
    assembled = await opened(tmp_path, wire, tools)
    assert await ask(assembled, "read both") == "done"
    assert sorted(each["path"] for each in ran) == ["north.txt", "south.txt"]
    assert results(wire.last) == {"call_north": "the text of north.txt", "call_south": "the text of south.txt"}
    again, _ = await reopened_equal(tmp_path, assembled, tools)
    await again.close()


async def test_case_B02_a_repeated_id_runs_once(tmp_path: Path) -> None:
    ran: list[Any] = []
    tools = tool("read_text", lambda arguments: "east", ran)
    wire = Wire((CASES / "sse/B02-control-id-repeated.sse").read_bytes(), answer("done"))
    assembled = await opened(tmp_path, wire, tools)
    await ask(assembled, "read it")
    await assembled.close()
    assert (ran, results(wire.last)) == ([{"path": "east.txt"}], {"call_east": "east"})


@pytest.mark.parametrize("name", SURROGATES)
async def test_case_B16_a_streamed_half_character_is_written_reopens_and_is_sent_on(tmp_path: Path, name: str) -> None:
    stream = (CASES / "sse" / name).read_bytes()
    chunks = [json.loads(line[6:]) for line in stream.splitlines() if line.startswith(b"data: {")]
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    called = [call["function"] for delta in deltas for call in delta.get("tool_calls") or ()]
    names = {function["name"] for function in called if function.get("name")}
    streamed = "".join(delta.get("content") or "" for delta in deltas)
    arguments = "".join(function.get("arguments") or "" for function in called)
    tools: Tools = {}
    for each in names:
        tools |= tool(each, lambda arguments: "kept", [])
    wire = Wire(stream, answer("done"))
    assembled = await opened(tmp_path, wire, tools)
    await ask(assembled, "say it")
    again, wire = await reopened_equal(tmp_path, assembled, tools)
    assert await ask(again, "go on") == "and on"
    said = next(each for each in wire.last if each["role"] == "assistant")
    (asked,) = [json.loads(call["function"]["arguments"]) for call in said.get("tool_calls") or ()] or [None]
    assert (said.get("content") or "", asked) == (streamed, json.loads(arguments) if arguments else None)
    assert ends(again) == ["completed"] * 2
    await again.close()


@pytest.mark.parametrize("number", [0, 1])
async def test_case_B20_go_on_after_a_crash_changes_no_file_and_sends_what_is_known(
    tmp_path: Path, number: int
) -> None:
    run = B20["runs"][number]
    given = settings(tmp_path)
    ledger = tmp_path / "work" / "ledger.txt"
    ledger.write_text(B20["world_before"]["ledger.txt"], encoding="utf-8")
    ran: list[Any] = []

    def append(arguments: Any) -> str:
        with ledger.open("a", encoding="utf-8") as file:
            file.write(f"{arguments['line']}\n")
        return "1 line added"

    translated = Translation([json.loads(line) for line in (CASES / run["log"]).read_bytes().splitlines()])
    path = given.session_root / "no-project" / str(translated.log.header.id) / "session.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(translated.data())
    wire = Wire(answer(run["model_replies"][0].removeprefix("text: ")))
    assembled = await opened(tmp_path, wire, tool("append_line", append, ran), resume=str(translated.log.header.id))
    assert await ask(assembled, "go on") == "ok"
    await assembled.close()
    expected = run["expected"]
    assert (ledger.read_text(encoding="utf-8"), len(ran)) == (
        expected["ledger.txt"],
        expected["append_line_executions"],
    )
    said = results(wire.last)
    assert (list(said), wire.last[-1]["content"], len(wire.sent)) == (
        [expected["first_request_has_result_for"]],
        "go on",
        1,
    )
    (known,) = said.values()
    assert ("outcome is unknown" in known) if number == 0 else (known == expected["that_result"])


SHIPPED = {
    "shell": ("shell", "command"),
    "read file": ("read_file", "path"),
    "search in files": ("search_files", "pattern"),
}


async def test_case_B45_the_log_reopens_and_a_strict_reader_takes_the_next_request(tmp_path: Path) -> None:
    settings(tmp_path)
    shutil.copy(CASES / "tools" / B45["file"].removeprefix("tools/"), tmp_path / "work")
    calls = [
        (f"call-{at}", SHIPPED[run["tool"]][0], {SHIPPED[run["tool"]][1]: run["input"]})
        for at, run in enumerate(B45["runs"])
    ]
    wire = Wire(answer(calls=calls), answer("seen"))
    assembled = await opened(tmp_path, wire)
    assert await ask(assembled, "look") == "seen"
    said = results(wire.last)
    assert list(said) == [call_id for call_id, _, _ in calls]
    assert ("head" in said["call-0"], "tail" in said["call-0"], "50 bytes" in said["call-2"]) == (True, True, True)
    assert sum(isinstance(event.payload, ToolCall) for event in assembled.agent.log) == len(calls)
    again, wire = await reopened_equal(tmp_path, assembled)
    assert await ask(again, "go on") == "and on"
    assert results(wire.last) == said
    assert ends(again) == ["completed", "completed"]
    await again.close()
