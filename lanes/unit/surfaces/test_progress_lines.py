"""The line that tells of each event while the agent works."""

from __future__ import annotations

import pytest

from harness.log.events import (
    AssistantMessage,
    Event,
    LlmRetry,
    Payload,
    StepStart,
    ToolCall,
    ToolErrorInfo,
    ToolResult,
    TurnStart,
)
from harness.model.chunks import Failure, Usage
from harness.model.messages import CallId, Message, MessageId, ModelSource, TextBlock, ToolResultBlock, ToolSource
from harness.surfaces.progress import MAX_ARGUMENTS, progress_line

ANSWER = Message(MessageId("a"), "assistant", (TextBlock("so"),), ModelSource("mock", "m"))
LIMITED = Failure("slow down", "RATE_LIMIT", 429)


def call(arguments: str) -> ToolCall:
    return ToolCall(1, 1, CallId("c"), "read_file", arguments)


def result(*, is_error: bool, error: ToolErrorInfo | None = None) -> ToolResult:
    block = ToolResultBlock(CallId("c"), (TextBlock("text"),), is_error)
    return ToolResult(1, 1, Message(MessageId("r"), "user", (block,), ToolSource(CallId("c"))), error)


@pytest.mark.parametrize(
    ("payload", "line"),
    [
        pytest.param(StepStart(1, 2), "step 2", id="step"),
        pytest.param(call('{"path":\n"a\x1b[2J"}'), '  read_file {"path": "a [2J"}', id="call-on-one-line"),
        pytest.param(call("x" * MAX_ARGUMENTS), f"  read_file {'x' * MAX_ARGUMENTS}", id="call-that-fits"),
        pytest.param(call("x" * 101), f"  read_file {'x' * MAX_ARGUMENTS}…", id="long-call"),
        pytest.param(result(is_error=False), None, id="result"),
        pytest.param(result(is_error=True), "    failed", id="failure"),
        pytest.param(
            result(is_error=True, error=ToolErrorInfo("ToolError", "TOOL_TIMEOUT")),
            "    failed: TOOL_TIMEOUT",
            id="failure-with-code",
        ),
        pytest.param(AssistantMessage(1, 1, ANSWER, Usage(5, 7)), "  5 tokens in, 7 out", id="usage"),
        pytest.param(AssistantMessage(1, 1, ANSWER), None, id="no-usage"),
        pytest.param(
            LlmRetry("r", 1, 1, "mock", "normal", "default", 1, 1500, LIMITED, 2),
            "  RATE_LIMIT, trying again in 1.5 s",
            id="retry",
        ),
        pytest.param(TurnStart(1), None, id="nothing-to-wait-for"),
    ],
)
def test_each_event_that_somebody_waits_for_has_one_line(payload: Payload, line: str | None) -> None:
    assert progress_line(Event(0, 0, payload)) == line
