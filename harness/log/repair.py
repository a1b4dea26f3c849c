"""Which events an interrupted log needs before anyone may work on it again.

Room: pure; the store appends what these functions return, the loop uses the same texts for calls it leaves open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from harness.log.events import (
    AssistantMessage,
    Event,
    Replace,
    StepEnd,
    SurfaceOp,
    ToolErrorInfo,
    ToolResult,
    TurnEnd,
    TurnReason,
)
from harness.log.fold import call_seq, open_turn, unanswered_calls
from harness.log.inbox import fold_inbox, requeue_payload, unseen_claims
from harness.log.session_log import SessionLog
from harness.model.messages import (
    CallId,
    Message,
    MessageId,
    ModelSource,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    ToolSource,
)

TOOL_NOT_STARTED = "TOOL_NOT_STARTED"
TOOL_OUTCOME_UNKNOWN = "TOOL_OUTCOME_UNKNOWN"
NOT_STARTED_TEXT = (
    "Error: the session was interrupted before this tool call started. It had no effect; it is safe to ask again."
)
OUTCOME_UNKNOWN_TEXT = (
    "Error: the session was interrupted while this tool call was running. Its outcome is unknown: it may have taken "
    "effect wholly, in part or not at all. Check for side effects before repeating the call."
)


def unanswered_result(call: ToolCallBlock, turn: int, step: int, started: bool) -> ToolResult:
    """The error result of a call nobody answered: not started, or with an outcome nobody knows."""
    code = TOOL_OUTCOME_UNKNOWN if started else TOOL_NOT_STARTED
    text = OUTCOME_UNKNOWN_TEXT if started else NOT_STARTED_TEXT
    message = Message(
        MessageId(f"closed-{turn}-{step}-{call.id}"),
        "user",
        (ToolResultBlock(call.id, (TextBlock(text),), is_error=True),),
        ToolSource(call.id),
    )
    return ToolResult(turn, step, message, ToolErrorInfo("ToolInterruptedError", code))


def orphan_closers(log: SessionLog) -> tuple[Event, ...]:
    """The events that take calls nobody ever answered out of the model's sight; none when every call has its result.

    Shape: for each assistant message of a closed step with such calls, a copy without them stands in its place. The
    calls stay in the log; a provider refuses every request that repeats them.
    """
    asked: list[tuple[tuple[int, int, CallId], Event]] = []
    answered: set[tuple[int, int, CallId]] = set()
    for event in log.surface_events():
        payload = event.payload
        if type(payload) is ToolResult:
            if type(payload.message.source) is ToolSource:
                answered.add((payload.turn, payload.step, payload.message.source.call_id))
        elif type(payload) is AssistantMessage:
            for block in payload.message.content:
                if type(block) is ToolCallBlock:
                    asked.append(((payload.turn, payload.step, block.id), event))
    orphaned = {event.seq: event for call, event in asked if call not in answered}
    added: list[Event] = []
    for event in orphaned.values():
        payload = event.payload
        assert isinstance(payload, AssistantMessage)  # noqa: S101 - only such events were kept
        kept = tuple(
            block
            for block in payload.message.content
            if not isinstance(block, ToolCallBlock) or (payload.turn, payload.step, block.id) in answered
        )
        source = payload.message.source
        if isinstance(source, ModelSource):
            source = replace(source, replay_state=None)  # it may repeat the very calls that are taken out
        copy = replace(payload, message=replace(payload.message, content=kept, source=source), usage=None)
        operation = Replace(event.seq, event.seq)
        added.append(Event(len(log) + len(added), log[-1].time, copy, operation, (event.seq,)))
    return tuple(added)


def repair(log: SessionLog) -> tuple[Event, ...]:
    """Restore into the log whatever it needs before anyone works on it, and give what was added."""
    before = len(log)
    for event in closers(log, log.header.seed_length):
        log.restore(event)
    for event in orphan_closers(log):
        log.restore(event)
    return log[before:]


def closers(events: Sequence[Event], seed_length: int | None = None) -> tuple[Event, ...]:
    """The events that close an open turn at the end of a log, none for a balanced one.

    Shape: one error result for each unanswered call of the open step in the order of the transcript, the end of that
    step, claimed input no model ever saw back at the head of its queue, the end of the turn as interrupted. Seqs go
    on; the time is that of the last event, because nothing happened since.
    """
    tail = open_turn(events)
    if tail is None:
        return ()
    added: list[Event] = []
    time = events[-1].time

    def add(payload: ToolResult | StepEnd | TurnEnd, sources: tuple[int, ...] | None = None) -> None:
        surface: SurfaceOp | None = "append" if isinstance(payload, ToolResult) else None
        added.append(Event(len(events) + len(added), time, payload, surface, sources))

    if tail.step is not None:
        for call in unanswered_calls(events, tail.turn, tail.step):
            started = call_seq(events, tail.turn, tail.step, call.id)
            result = unanswered_result(call, tail.turn, tail.step, started is not None)
            add(result, None if started is None else (started,))
        add(StepEnd(tail.turn, tail.step))
    inbox = fold_inbox(events, seed_length)
    for target, messages in unseen_claims(events, tail.turn, seed_length):
        back = requeue_payload(inbox, tuple(m for m in messages if inbox.find(m.id) is None), target)
        if back is not None:
            added.append(Event(len(events) + len(added), time, back))
    add(TurnEnd(tail.turn, TurnReason("interrupted")))
    return tuple(added)
