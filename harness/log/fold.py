"""Read facts out of a run of events: messages, header, turns.

Room: pure; anyone above the log may ask. Nothing here remembers anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from harness.log.events import (
    AssistantMessage,
    Event,
    Header,
    Replace,
    RequestContext,
    RequestHeader,
    StepEnd,
    StepStart,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnReason,
    TurnStart,
    UserMessage,
)
from harness.model.messages import CallId, Message, ToolCallBlock, ToolSource, tool_calls_of


class OpenTurn(NamedTuple):
    """A turn without its end; step is the open step, or None between steps."""

    turn: int
    step: int | None


def message_of(event: Event) -> Message | None:
    """What the model sees of one event; an assistant message without content exists only to carry usage."""
    payload = event.payload
    if isinstance(payload, UserMessage | ToolResult):
        return payload.message
    if isinstance(payload, AssistantMessage):
        return payload.message if payload.message.content else None
    return None


def fold_surface(events: Iterable[Event]) -> tuple[int, ...]:
    """The seqs the model sees, in the order it sees them, from scratch."""
    nodes: list[int] = []
    for event in events:
        operation = event.surface_op
        if operation == "append":
            nodes.append(event.seq)
        elif isinstance(operation, Replace):
            nodes[nodes.index(operation.start) : nodes.index(operation.end) + 1] = [event.seq]
    return tuple(nodes)


def fold_messages(events: Sequence[Event]) -> tuple[Message, ...]:
    """The messages a model sees of this log, from scratch; SessionLog.messages answers the same from its cache."""
    seen = (message_of(events[seq]) for seq in fold_surface(events))
    return tuple(message for message in seen if message is not None)


def latest_header(events: Sequence[Event]) -> Header | None:
    """The header of the last request, or None before the first."""
    for event in reversed(events):
        if isinstance(event.payload, RequestHeader):
            return event.payload.header
    return None


def latest_context(events: Sequence[Event]) -> RequestContext | None:
    """The last route and capacity that were logged."""
    for event in reversed(events):
        if isinstance(event.payload, RequestContext):
            return event.payload
    return None


def highest_turn(events: Sequence[Event]) -> int:
    """The number of the last turn that started; 0 before the first."""
    for event in reversed(events):
        if isinstance(event.payload, TurnStart):
            return event.payload.turn
    return 0


def open_turn(events: Sequence[Event]) -> OpenTurn | None:
    """The turn that has no end yet, with its open step, or None when the log is balanced."""
    step: int | None = None
    step_seen = False
    for event in reversed(events):
        payload = event.payload
        if isinstance(payload, TurnEnd):
            return None
        if isinstance(payload, StepEnd):
            step_seen = True
        elif isinstance(payload, StepStart) and not step_seen:
            step, step_seen = payload.step, True
        elif isinstance(payload, TurnStart):
            return OpenTurn(payload.turn, step)
    return None


def highest_step(events: Sequence[Event]) -> int:
    """The number of the last step of the last turn; 0 while it has none."""
    for event in reversed(events):
        if isinstance(event.payload, StepStart):
            return event.payload.step
        if isinstance(event.payload, TurnStart):
            return 0
    return 0


def turn_end_reason(events: Sequence[Event], turn: int) -> TurnReason | None:
    """How that turn ended, or None while it runs or when there is no such turn."""
    for event in reversed(events):
        payload = event.payload
        if isinstance(payload, TurnEnd) and payload.turn == turn:
            return payload.reason
        if isinstance(payload, TurnStart) and payload.turn <= turn:
            return None
    return None


def unanswered_calls(events: Sequence[Event], turn: int, step: int) -> tuple[ToolCallBlock, ...]:
    """The calls of that step's assistant message without a result, in the order the model wrote them."""
    calls: tuple[ToolCallBlock, ...] = ()
    answered: set[CallId] = set()
    for event in reversed(events):
        payload = event.payload
        if isinstance(payload, ToolResult) and (payload.turn, payload.step) == (turn, step):
            if isinstance(payload.message.source, ToolSource):
                answered.add(payload.message.source.call_id)
        elif isinstance(payload, AssistantMessage) and (payload.turn, payload.step) == (turn, step):
            calls = tool_calls_of(payload.message)
            break
        elif isinstance(payload, TurnStart) and payload.turn <= turn:
            break
    return tuple(call for call in calls if call.id not in answered)


def call_seq(events: Sequence[Event], turn: int, step: int, call_id: CallId) -> int | None:
    """The seq of that step's tool/call for that id, or None when the call was not started."""
    for event in reversed(events):
        payload = event.payload
        if isinstance(payload, ToolCall) and (payload.turn, payload.step, payload.call_id) == (turn, step, call_id):
            return event.seq
        if isinstance(payload, TurnStart) and payload.turn <= turn:
            return None
    return None


def last_turn_end(events: Sequence[Event]) -> int | None:
    """The seq of the last turn/end, or None."""
    for event in reversed(events):
        if isinstance(event.payload, TurnEnd):
            return event.seq
    return None
