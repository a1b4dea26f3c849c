"""The order of a log: each rule can be broken and is named when it is."""

from __future__ import annotations

import pytest

from harness.errors import InternalError
from harness.log.events import (
    AssistantChunk,
    AssistantMessage,
    EndSeed,
    Header,
    LlmRetry,
    LlmRetryStarted,
    Payload,
    Replace,
    RequestConfig,
    RequestContext,
    RequestHeader,
    SessionHeader,
    StepEnd,
    StepStart,
    ToolCall,
    ToolErrorInfo,
    ToolResult,
    TurnEnd,
    TurnReason,
    TurnStart,
    UserMessage,
)
from harness.log.session_log import SessionLog
from harness.loop.invariants import InvariantChecker
from harness.model.chunks import Failure, Finish
from harness.model.messages import (
    CallId,
    Message,
    MessageId,
    ModelSource,
    SessionId,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    ToolSource,
)
from lanes.unit.loop.rig import message

DONE = TurnReason("completed")
CALLS = AssistantMessage(
    1,
    1,
    Message(
        MessageId("m"),
        "assistant",
        (ToolCallBlock(CallId("a"), "look", "{}"), ToolCallBlock(CallId("b"), "look", "{}")),
        ModelSource("p", "m"),
    ),
)


def call(call_id: str, step: int = 1) -> ToolCall:
    return ToolCall(1, step, CallId(call_id), "look", "{}")


def result(call_id: str, *, code: str | None = None, step: int = 1) -> ToolResult:
    block = ToolResultBlock(CallId(call_id), (TextBlock("ok"),), is_error=code is not None)
    error = ToolErrorInfo("ToolError", code) if code is not None else None
    return ToolResult(1, step, Message(MessageId("r"), "user", (block,), ToolSource(CallId(call_id))), error)


def log_of(*payloads: Payload) -> SessionLog:
    """A checked log; each result cites the last call of its id."""
    log = SessionLog(SessionHeader(SessionId("s"), 0), clock=lambda: 0, check=InvariantChecker())
    started: dict[CallId, int] = {}
    for payload in payloads:
        sources: tuple[int, ...] | None = None
        if isinstance(payload, ToolResult) and isinstance(payload.message.source, ToolSource):
            seq = started.get(payload.message.source.call_id)
            sources = None if seq is None else (seq,)
        event = log.append(payload, source_event_seqs=sources)
        if isinstance(payload, ToolCall):
            started[payload.call_id] = event.seq
    return log


OPEN = (TurnStart(1), StepStart(1, 1))
ASKED = (*OPEN, CALLS)


@pytest.mark.parametrize(
    "payloads",
    [
        (TurnStart(1), TurnEnd(1, DONE), TurnStart(2), TurnEnd(2, DONE)),
        (*OPEN, StepEnd(1, 1), StepStart(1, 2), StepEnd(1, 2), TurnEnd(1, DONE)),
        (*ASKED, call("a"), call("b"), result("a"), result("b"), StepEnd(1, 1)),
        (*ASKED, call("a"), result("a"), result("b", code="TOOL_NOT_STARTED"), StepEnd(1, 1)),
        (UserMessage(message("anywhere")), EndSeed()),
    ],
    ids=["turns", "steps", "calls", "not-started", "outside"],
)
def test_a_log_in_order_passes(payloads: tuple[Payload, ...]) -> None:
    assert len(log_of(*payloads)) == len(payloads)


@pytest.mark.parametrize(
    ("payloads", "rule"),
    [
        ((TurnStart(2),), "turn 2 after turn 0"),
        ((TurnStart(1), TurnStart(2)), "turn 1 is still open"),
        ((TurnEnd(1, DONE),), "turn 1 is not open"),
        ((TurnStart(1), TurnEnd(2, DONE)), "turn 2 is not open"),
        ((*OPEN, TurnEnd(1, DONE)), "step 1 is still open"),
        ((StepStart(1, 1),), "turn 1 is not open"),
        ((TurnStart(1), StepStart(1, 2)), "step 2 after step 0"),
        ((*OPEN, StepStart(1, 2)), "step 1 is still open"),
        ((TurnStart(1), StepEnd(1, 1)), "step 1 of turn 1 is not open"),
        ((*ASKED, StepEnd(1, 1)), r"calls \['a', 'b'\] are not answered"),
        ((TurnStart(1), AssistantChunk(1, 1, Finish("stop"))), "step 1 of turn 1 is not open"),
        ((*OPEN, AssistantChunk(1, 2, Finish("stop"))), "step 2 of turn 1 is not open"),
        ((TurnStart(1), CALLS), "step 1 of turn 1 is not open"),
        ((*OPEN, call("a")), "nobody asked for call 'a'"),
        ((*ASKED, call("a"), call("a")), "call 'a' started twice"),
        ((*ASKED, call("a", step=2)), "step 2 of turn 1 is not open"),
        ((*ASKED, result("a")), "call 'a' was never started"),
        ((*ASKED, call("a"), result("a"), result("a")), "call 'a' is not open"),
        ((*OPEN, result("a")), "call 'a' is not open"),
        ((RequestHeader(Header(RequestConfig("p", "m")), "initial"),), "no turn is open"),
        ((RequestContext("p", "m"),), "no turn is open"),
        ((LlmRetry("r", 1, 1, "p", "normal", "k", 1, 0, Failure("x", "SERVER")),), "step 1 of turn 1 is not open"),
        ((LlmRetryStarted("r", 1, 1, 1),), "step 1 of turn 1 is not open"),
    ],
)
def test_an_event_out_of_order_is_refused_with_the_rule(payloads: tuple[Payload, ...], rule: str) -> None:
    with pytest.raises(InternalError, match=rule) as refused:
        log_of(*payloads)
    assert refused.value.error_code == "INVARIANT"


def test_a_result_has_to_cite_its_call() -> None:
    log = log_of(*ASKED, call("a"))
    with pytest.raises(InternalError, match="does not cite its tool/call 3"):
        log.append(result("a"))


def test_a_rewrite_of_history_belongs_to_no_open_step() -> None:
    log = log_of(*ASKED, call("a"), result("a"), result("b", code="TOOL_NOT_STARTED"), StepEnd(1, 1), TurnEnd(1, DONE))
    log.append(result("a"), surface_op=Replace(4, 4), source_event_seqs=(4,))
    assert len(log.surface()) == 3
