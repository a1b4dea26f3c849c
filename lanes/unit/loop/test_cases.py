"""Known faults from the field that live in the loop, with the files that describe them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.log.events import AssistantChunk, AssistantMessage, Event, LlmRetry
from harness.log.interval import final_text
from harness.loop.retry import RetryPolicy
from harness.loop.tools import ToolOutput
from harness.model.chunks import BlockEnd, BlockStart, Chunk, Failure, Finish, TextDelta, ToolCallDelta
from harness.model.messages import CallId, TextBlock, ToolCallBlock
from lanes.unit.loop.rig import Rig, output, texts, tool
from lanes.unit.loop.scripted_model import calls, failing, text

Make = Callable[..., Rig]
FLOWS = Path(__file__).parents[2] / "cases" / "flows"


class LiveReader:
    """What a person sees who follows the log: text as it comes, dropped when the log says so."""

    def __init__(self) -> None:
        self.shown = ""
        self.frames: list[str] = []
        self._attempt = ""

    def __call__(self, event: Event) -> None:
        payload = event.payload
        if isinstance(payload, AssistantChunk) and isinstance(payload.chunk, TextDelta):
            self._attempt += payload.chunk.text
            self.shown += payload.chunk.text
            self.frames.append(self.shown)
        elif isinstance(payload, LlmRetry):
            self.shown = self.shown.removesuffix(self._attempt)
            self._attempt = ""
        elif isinstance(payload, AssistantMessage):
            self._attempt = ""


def load(name: str) -> dict[str, Any]:
    case: dict[str, Any] = json.loads((FLOWS / name).read_bytes())
    return case


def attempt_chunks(attempt: dict[str, Any]) -> list[Chunk]:
    """The chunks the case says were sent, then a reset or a proper end."""
    chunks: list[Chunk] = []
    for index, sent in enumerate(attempt["sends"]):
        if "text" in sent:
            chunks += [
                BlockStart(index, "text"),
                TextDelta(index, sent["text"]),
                BlockEnd(index, TextBlock(sent["text"])),
            ]
        else:
            call = sent["tool_call_fragment"]
            call_id = CallId(call["id"])
            chunks += [
                BlockStart(index, "tool-call"),
                ToolCallDelta(index, call_id, call["arguments"], call["name"]),
                BlockEnd(index, ToolCallBlock(call_id, call["name"], call["arguments"])),
            ]
    is_reset = attempt["then"].startswith("reset")
    return [*chunks, Finish("error", Failure("connection reset", "TRANSPORT")) if is_reset else Finish("stop")]


def append_line(path: Path, executions: list[str]) -> Callable[[Any, Any], Any]:
    async def body(arguments: Any, context: Any) -> ToolOutput:
        executions.append(context.call_id)
        with path.open("a", encoding="utf-8") as file:
            file.write(f"{arguments['line']}\n")
        return output("1 line added")

    return body


async def test_case_B21_a_retry_after_visible_output_shows_and_keeps_only_the_whole_answer(
    make_rig: Make, tmp_path: Path
) -> None:
    case = load("B21-retry-after-partial.json")
    expected, executions = case["expected"], []
    rig = make_rig(
        *[attempt_chunks(attempt) for attempt in case["attempts"]],
        tools=[tool("append_line", append_line(tmp_path / "out.txt", executions))],
        retry=RetryPolicy(max_retries=case["retry_allowed"]),
    )
    reader = LiveReader()
    rig.log.observe(reader)
    await rig.run("go")
    requests = rig.model.requests
    assert len(requests) == expected["provider_requests"]
    assert (requests[0] == requests[1]) is expected["request_2_equals_request_1"]
    assert len(executions) == expected["append_line_executions"]
    assert final_text(rig.log) == expected["final_text"]
    assert reader.shown == expected["text_seen_by_a_live_reader_after_all_events"]
    assert "Step one: " in reader.frames
    (committed,) = [event for event in rig.log if isinstance(event.payload, AssistantMessage)]
    retry = rig.log.last(LlmRetry)
    assert retry is not None
    assert min(committed.source_event_seqs or ()) > retry.seq
    rig.model.add(text("next"))
    await rig.run("and now")
    assert texts(rig.model.requests[-1]) == ["go", expected["final_text"], "and now"]


async def test_case_B21_used_up_retries_end_in_error_and_not_as_success(make_rig: Make) -> None:
    case = load("B21-retry-after-partial.json")
    broken = attempt_chunks(case["attempts"][0])
    rig = make_rig(*[broken] * (case["retry_allowed"] + 1), retry=RetryPolicy(max_retries=case["retry_allowed"]))
    await rig.run("go")
    assert (rig.outcomes, rig.payloads(AssistantMessage)) == (["error"], [])


async def test_case_B20_run_3_a_finished_tool_is_not_run_again_after_failed_requests(
    make_rig: Make, tmp_path: Path
) -> None:
    case = load("B20-resume.json")
    run = case["runs"][2]
    assert run["log"] == "none: live run"
    ledger = tmp_path / "ledger.txt"
    executions: list[str] = []
    rig = make_rig(
        calls(("call_led", "append_line", '{"path": "ledger.txt", "line": "paid 10"}')),
        *[failing("SERVER", status=503)] * 3,
        text("ok"),
        tools=[tool("append_line", append_line(ledger, executions))],
    )
    await rig.run("add one line")
    await rig.run("go on")
    assert rig.outcomes == ["error", "completed"]
    assert len(executions) == run["expected"]["append_line_executions"]
    assert ledger.read_text(encoding="utf-8") == "paid 10\n"
    assert texts(rig.model.requests[-1]) == ["add one line", "", "1 line added", "go on"]
    assert run["expected"]["request_after_go_on"] == "carries the stored result 1 line added"
