"""Refuse an event that breaks the order every log of a loop keeps.

Room: pure; test builds hand a checker to the log, which asks before it commits. Field rules live in log.validate.
"""

from __future__ import annotations

from typing import NoReturn

from harness.errors import InternalError
from harness.log.events import (
    AssistantChunk,
    AssistantMessage,
    Event,
    LlmRetry,
    LlmRetryStarted,
    Replace,
    RequestContext,
    RequestHeader,
    StepEnd,
    StepStart,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
)
from harness.log.repair import TOOL_NOT_STARTED
from harness.log.session_log import SessionLog
from harness.loop.decide import TurnState, advance
from harness.model.messages import CallId, ToolSource, tool_calls_of


class InvariantChecker:
    """One log's order, checked event by event.

    Shape: use one checker for one log, as its check. Turns and steps count 1, 2, 3 and never nest; what belongs to a
    step names the open one; requests happen inside turns; each call is answered once, in its own step.
    Raises: InternalError naming the rule.
    """

    def __init__(self) -> None:
        self._state = TurnState()
        self._asked: set[CallId] = set()  # calls of the open step's message that have no result yet
        self._started: dict[CallId, int] = {}  # the seq of each tool/call of the open step

    def __call__(self, log: SessionLog, event: Event) -> None:
        """Refuse the event or take note of it."""
        if not isinstance(event.surface_op, Replace):  # a rewrite of history belongs to no open step
            self._check(event)
        self._state = advance(self._state, event)

    def _check(self, event: Event) -> None:
        state, payload = self._state, event.payload
        match payload:
            case TurnStart():
                self._require(not state.turn_open, event, f"turn {state.turn} is still open")
                self._require(payload.turn == state.turn + 1, event, f"turn {payload.turn} after turn {state.turn}")
            case TurnEnd():
                self._require(state.turn_open and payload.turn == state.turn, event, f"turn {payload.turn} is not open")
                self._require(not state.step_open, event, f"step {state.step} is still open")
            case StepStart():
                self._require(state.turn_open and payload.turn == state.turn, event, f"turn {payload.turn} is not open")
                self._require(not state.step_open, event, f"step {state.step} is still open")
                self._require(payload.step == state.step + 1, event, f"step {payload.step} after step {state.step}")
                self._asked.clear()
                self._started.clear()
            case StepEnd():
                self._in_step(event, payload.turn, payload.step)
                self._require(not self._asked, event, f"calls {sorted(self._asked)} are not answered")
            case AssistantChunk() | LlmRetry() | LlmRetryStarted():
                self._in_step(event, payload.turn, payload.step)
            case AssistantMessage():
                self._in_step(event, payload.turn, payload.step)
                self._asked.update(call.id for call in tool_calls_of(payload.message))
            case ToolCall():
                self._in_step(event, payload.turn, payload.step)
                self._require(payload.call_id in self._asked, event, f"nobody asked for call {payload.call_id!r}")
                self._require(payload.call_id not in self._started, event, f"call {payload.call_id!r} started twice")
                self._started[payload.call_id] = event.seq
            case ToolResult():
                self._in_step(event, payload.turn, payload.step)
                self._check_result(event, payload)
            case RequestHeader() | RequestContext():
                self._require(state.turn_open, event, "no turn is open")
            case _:
                pass

    def _check_result(self, event: Event, payload: ToolResult) -> None:
        source = payload.message.source
        call_id = source.call_id if isinstance(source, ToolSource) else CallId("")
        self._require(call_id in self._asked, event, f"call {call_id!r} is not open")
        self._asked.discard(call_id)
        if payload.error is not None and payload.error.code == TOOL_NOT_STARTED:
            return
        started = self._started.get(call_id)
        self._require(started is not None, event, f"call {call_id!r} was never started")
        self._require(event.source_event_seqs == (started,), event, f"does not cite its tool/call {started}")

    def _in_step(self, event: Event, turn: int, step: int) -> None:
        state = self._state
        is_open = state.step_open and (state.turn, state.step) == (turn, step)
        self._require(is_open, event, f"step {step} of turn {turn} is not open")

    def _require(self, holds: bool, event: Event, what: str) -> None:
        if not holds:
            self._refuse(event, what)

    def _refuse(self, event: Event, what: str) -> NoReturn:
        raise InternalError(what, where=f"log[{event.seq}] {event.type}", code="INVARIANT")
