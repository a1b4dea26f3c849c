"""The order events keep among themselves: turns, steps, calls and queues that fit together.

Room: pure; test builds hand it to a log as its check, and audits read stored logs with it. validate says whether one
event may stand in a log at all; this says whether the loop that wrote it keeps its promises.
"""

from __future__ import annotations

from typing import NoReturn

from harness.errors import InvalidEventError
from harness.log.events import (
    AssistantChunk,
    AssistantMessage,
    EndSeed,
    Event,
    InboxSpliced,
    LlmRetry,
    LlmRetryStarted,
    RequestContext,
    RequestHeader,
    StepEnd,
    StepStart,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
)
from harness.log.inbox import Inbox, apply
from harness.log.repair import TOOL_NOT_STARTED
from harness.log.session_log import SessionLog
from harness.model.messages import CallId, ToolSource, tool_calls_of

_IN_STEP = (AssistantChunk, AssistantMessage, ToolCall, ToolResult, LlmRetry, LlmRetryStarted)


class Invariants:
    """A check for one log, fed with each event before it is committed.

    Shape: turns count 1, 2, 3 and never nest, steps likewise inside a turn; what belongs to a step names the open one;
    a step ends with every call of its message answered once; request events stand inside a turn; a splice removes
    what waits at its place and inserts no waiting id.
    Raises: InvalidEventError with code LOG_INVARIANT.
    """

    def __init__(self) -> None:
        self._seen = 0
        self._turn = 0
        self._turn_open = False
        self._step = 0
        self._step_open = False
        self._wanted: dict[CallId, bool] = {}  # the calls of the open step's message: answered or not
        self._started: dict[CallId, int] = {}
        self._inbox = Inbox()

    def __call__(self, log: SessionLog, event: Event) -> None:
        """Judge the next event, after catching up with what entered the log unseen."""
        while self._seen < min(len(log), event.seq):
            self.take(log, log[self._seen])
        self.take(log, event)

    def take(self, log: SessionLog, event: Event) -> None:
        """Judge the event that comes right after the last one judged."""
        payload = event.payload
        match payload:
            case TurnStart():
                if self._turn_open or payload.turn != self._turn + 1:
                    _broken(event, f"turn {payload.turn} starts after {self._position()}")
                self._turn, self._turn_open, self._step = payload.turn, True, 0
            case TurnEnd():
                if not self._turn_open or self._step_open or payload.turn != self._turn:
                    _broken(event, f"turn {payload.turn} ends in {self._position()}")
                self._turn_open = False
            case StepStart():
                expected = (self._turn, self._step + 1)
                if not self._turn_open or self._step_open or (payload.turn, payload.step) != expected:
                    _broken(event, f"step {payload.turn}.{payload.step} starts in {self._position()}")
                self._step, self._step_open = payload.step, True
                self._wanted, self._started = {}, {}
            case StepEnd():
                self._check_in_step(event, payload.turn, payload.step)
                missing = [call_id for call_id, answered in self._wanted.items() if not answered]
                if missing:
                    _broken(event, f"the step ends while calls {missing} have no result")
                self._step_open = False
            case RequestHeader() | RequestContext():
                if not self._turn_open:
                    _broken(event, "a request stands outside a turn")
            case EndSeed():
                if self._turn_open:
                    _broken(event, f"a lifetime ends in {self._position()}")
            case InboxSpliced():
                if event.seq >= (log.header.seed_length or 0):
                    self._take_splice(event, payload)
            case _ if isinstance(payload, _IN_STEP) and event.surface_op in (None, "append"):
                self._check_in_step(event, payload.turn, payload.step)
                self._take_step_event(log, event)
        self._seen = event.seq + 1

    def _take_step_event(self, log: SessionLog, event: Event) -> None:
        payload = event.payload
        if isinstance(payload, AssistantMessage):
            for seq in event.source_event_seqs or ():
                cited = log[seq].payload
                if not isinstance(cited, AssistantChunk) or (cited.turn, cited.step) != (payload.turn, payload.step):
                    _broken(event, f"cites seq {seq}, which is no chunk of its step")
            self._wanted = {call.id: False for call in tool_calls_of(payload.message)}
        elif isinstance(payload, ToolCall):
            if payload.call_id not in self._wanted or payload.call_id in self._started:
                _broken(event, f"call {payload.call_id!r} starts twice, or nobody asked for it in this step")
            self._started[payload.call_id] = event.seq
        elif isinstance(payload, ToolResult):
            assert isinstance(payload.message.source, ToolSource)  # noqa: S101 - validate has proved it
            call_id = payload.message.source.call_id
            if self._wanted.get(call_id, True):
                _broken(event, f"call {call_id!r} is answered twice, or nobody asked for it in this step")
            if call_id in self._started:
                if event.source_event_seqs != (self._started[call_id],):
                    _broken(event, f"does not cite seq {self._started[call_id]}, the call it answers")
            elif payload.error is None or payload.error.code != TOOL_NOT_STARTED:
                _broken(event, f"call {call_id!r} is answered and never started")
            self._wanted[call_id] = True

    def _take_splice(self, event: Event, payload: InboxSpliced) -> None:
        items = self._inbox.items(payload.target)
        found = tuple(message.id for message in items[payload.start : payload.start + len(payload.removed)])
        if payload.start > len(items) or found != tuple(item.id for item in payload.removed):
            _broken(event, f"removes {[item.id for item in payload.removed]} where {list(found)} waits")
        for item in payload.removed:
            if item.fate == "claimed" and not (self._turn_open and item.turn == self._turn):
                _broken(event, f"turn {item.turn} claims in {self._position()}")
        after = apply(self._inbox, payload)
        ids = [message.id for message in after.next_turn + after.next_step]
        if len(set(ids)) != len(ids):
            _broken(event, "inserts an id that already waits")
        self._inbox = after

    def _check_in_step(self, event: Event, turn: int, step: int) -> None:
        if not self._step_open or (turn, step) != (self._turn, self._step):
            _broken(event, f"belongs to step {turn}.{step} and stands in {self._position()}")

    def _position(self) -> str:
        if self._step_open:
            return f"step {self._turn}.{self._step}"
        return f"turn {self._turn}" if self._turn_open else f"the pause after turn {self._turn}"


def check_invariants(log: SessionLog) -> None:
    """Audit a whole log.

    Raises: InvalidEventError with code LOG_INVARIANT, naming the first event that breaks the order.
    """
    check = Invariants()
    for event in log:
        check.take(log, event)


def _broken(event: Event, what: str) -> NoReturn:
    raise InvalidEventError(what, where=f"event {event.seq} ({event.type})", code="LOG_INVARIANT")
