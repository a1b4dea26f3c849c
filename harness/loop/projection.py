"""What the loop needs to know of its log, kept up to date by reading only what is new.

Room: pure; agent, driver, attempt and dispatch read it. It holds nothing a fold over the log would not give.
"""

from __future__ import annotations

from harness.log.events import (
    AssistantChunk,
    AssistantMessage,
    EndSeed,
    Event,
    Header,
    InboxSpliced,
    Replace,
    RequestContext,
    RequestHeader,
    ToolCall,
)
from harness.log.inbox import Inbox, apply
from harness.log.session_log import SessionLog
from harness.loop.decide import TurnState, advance
from harness.model.chunks import Finish
from harness.model.messages import CallId, tool_calls_of


class Projection:
    """The inbox, the turn, the last header and context, and the call ids of one log.

    Shape: every property first reads the events it has not seen, so it is right even inside an observer.
    Limits: reading costs what is new since the last read.
    """

    def __init__(self, log: SessionLog) -> None:
        self._log = log
        self._seen = 0
        self._seed_length = log.header.seed_length or 0
        self._inbox = Inbox()
        self._state = TurnState()
        self._header: Header | None = None
        self._context: RequestContext | None = None
        self._calls: set[CallId] = set()
        self._rewrites = 0

    @property
    def inbox(self) -> Inbox:
        """Both queues as the log has them now."""
        self._catch_up()
        return self._inbox

    @property
    def state(self) -> TurnState:
        """Where the last turn stands."""
        self._catch_up()
        return self._state

    @property
    def header(self) -> Header | None:
        """The header of the last request."""
        self._catch_up()
        return self._header

    @property
    def context(self) -> RequestContext | None:
        """The route and capacity that were logged last."""
        self._catch_up()
        return self._context

    @property
    def call_ids(self) -> set[CallId]:
        """Every call id of the session so far."""
        self._catch_up()
        return self._calls

    @property
    def rewrites(self) -> int:
        """How often messages the model has seen were replaced."""
        self._catch_up()
        return self._rewrites

    def _catch_up(self) -> None:
        if self._seen == len(self._log):
            return
        if self._seen == 0 and (ended := self._log.last(EndSeed)) is not None:
            self._take_ended_lifetimes(ended.seq)
        for event in self._log.since(self._seen):
            self._take(event)

    def _take_ended_lifetimes(self, last: int) -> None:
        """Read up to that seq without the stream pieces: they say how a step finished, and those turns are over."""
        for event in self._log.without_chunks():
            if event.seq > last:
                break
            self._take(event)

    def _take(self, event: Event) -> None:
        payload = event.payload
        if type(payload) is AssistantChunk and type(payload.chunk) is not Finish:
            self._seen = event.seq + 1
            return  # most of a log is this, and none of it matters here
        self._state = advance(self._state, event)
        if isinstance(payload, InboxSpliced):
            if event.seq >= self._seed_length:
                self._inbox = apply(self._inbox, payload)
        elif isinstance(payload, RequestHeader):
            self._header = payload.header
        elif isinstance(payload, RequestContext):
            self._context = payload
        elif isinstance(payload, AssistantMessage):
            self._calls.update(call.id for call in tool_calls_of(payload.message))
        elif isinstance(payload, ToolCall):
            self._calls.add(payload.call_id)
        if isinstance(event.surface_op, Replace):
            self._rewrites += 1
        self._seen = event.seq + 1
