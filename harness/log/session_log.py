"""The session log in memory: a list that only grows, and the one place that lets an event in.

Room: pure; the loop appends, surfaces read and observe, the store restores. Whatever remembers, remembers here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import cast, overload

from harness.errors import InvalidEventError, LogError
from harness.log.chunk_rows import ChunkRow
from harness.log.events import (
    EVENT_TYPES,
    SURFACE_PAYLOADS,
    AssistantChunk,
    EndSeed,
    Event,
    Payload,
    Replace,
    SessionHeader,
    SurfaceOp,
)
from harness.log.fold import message_of
from harness.log.frozen import freeze_payload
from harness.log.surface import shadowed_by
from harness.log.usual_form import is_usual_piece
from harness.log.validate import check_event, check_header
from harness.model.messages import Message
from harness.model.view import MessageView

Check = Callable[["SessionLog", Event], None]
Observer = Callable[[Event], None]


class SessionLog(Sequence[Event]):
    """An append-only list of events with the model's view of it.

    Shape: log[seq], len(log), iteration and since(seq) read; append writes; nothing else changes it.
    Limits: append and log[seq] cost the same however long the log is; messages() costs what is new.
    Raises: InvalidEventError from append, or LogError with code LOG_CLOSED; the log is then as it was.
    """

    def __init__(
        self,
        header: SessionHeader,
        *,
        clock: Callable[[], int],
        check: Check | None = None,
        report: Callable[[Exception], None] | None = None,
    ) -> None:
        check_header(header)
        self.header = header
        self.observer_failures: list[Exception] = []
        self._clock = clock
        self._check = check
        self._report = report if report is not None else self.observer_failures.append
        self._events: list[Event | ChunkRow] = []  # a packed row stands at the place of each event it holds
        self._packed_end = 0  # from this seq on there are only events
        self._last: dict[type[object], int] = {}
        self._last_time: int | None = None
        self._surface: list[int] = []
        self._messages: list[Message] = []
        self._derived = 0  # how many surface nodes _messages covers
        self._observers: list[Observer] = []
        self._unpublished: deque[Event] = deque()
        self._publishing = False
        self._sealed = False

    @classmethod
    def resumed(
        cls,
        header: SessionHeader,
        events: Sequence[Event],
        *,
        clock: Callable[[], int],
        check: Check | None = None,
        report: Callable[[Exception], None] | None = None,
    ) -> SessionLog:
        """A log that begins with these events and marks where the earlier lifetime ends.

        Raises: InvalidEventError when an event does not follow the ones before it.
        """
        log = cls(header, clock=clock, check=check, report=report)
        for event in events:
            log.restore(event)
        log.end_seed()
        return log

    def __len__(self) -> int:
        return len(self._events)

    @overload
    def __getitem__(self, seq: int) -> Event: ...

    @overload
    def __getitem__(self, seq: slice) -> tuple[Event, ...]: ...

    def __getitem__(self, seq: int | slice) -> Event | tuple[Event, ...]:
        if isinstance(seq, slice):
            start, stop, stride = seq.indices(len(self._events))
            if self._packed_end == 0 or (stride > 0 and start >= self._packed_end):
                return cast("tuple[Event, ...]", tuple(self._events[seq]))
            return tuple(self[at] for at in range(start, stop, stride))
        entry = self._events[seq]
        if isinstance(entry, ChunkRow):
            return entry.event((seq if seq >= 0 else len(self._events) + seq) - entry.seq0)
        return entry

    def __iter__(self) -> Iterator[Event]:
        for seq, entry in enumerate(self._events):
            yield entry.event(seq - entry.seq0) if isinstance(entry, ChunkRow) else entry

    def __reversed__(self) -> Iterator[Event]:
        for seq in range(len(self._events) - 1, -1, -1):
            entry = self._events[seq]
            yield entry.event(seq - entry.seq0) if isinstance(entry, ChunkRow) else entry

    def since(self, seq: int) -> tuple[Event, ...]:
        """The events from that seq on, oldest first."""
        return self[max(seq, 0) :]

    def without_chunks(self, first: int = 0) -> Iterator[Event]:
        """The events from that seq on that are no stream pieces, oldest first; a packed run is stepped over whole."""
        seq = max(first, 0)
        while seq < len(self._events):
            entry = self._events[seq]
            if isinstance(entry, ChunkRow):
                seq = entry.seq0 + len(entry)
                continue
            seq += 1
            if type(entry.payload) is not AssistantChunk:
                yield entry

    def last(self, *payload_types: type[object]) -> Event | None:
        """The latest event with one of these payload types, or None."""
        seq = max((self._last.get(kind, -1) for kind in payload_types), default=-1)
        return None if seq < 0 else self[seq]

    def surface(self) -> tuple[int, ...]:
        """The seqs the model sees, in the order it sees them."""
        return tuple(self._surface)

    def surface_events(self) -> Iterator[Event]:
        """The events the model sees, in the order it sees them."""
        events = self._events
        return cast("Iterator[Event]", map(events.__getitem__, self._surface))  # stream pieces are never among them

    def messages(self) -> MessageView:
        """What the model sees of this log now, in order; the same messages as a fold from scratch."""
        if self._derived < len(self._surface):
            for seq in self._surface[self._derived :]:
                message = message_of(self[seq])
                if message is not None:
                    self._messages.append(message)
            self._derived = len(self._surface)
        return MessageView(self._messages)

    def append(
        self,
        payload: Payload,
        *,
        surface_op: SurfaceOp | None = None,
        source_event_seqs: tuple[int, ...] | None = None,
        ignorable: bool = False,
    ) -> Event:
        """Add one event and return it; once this returned, it has happened.

        A payload the model sees goes to the end of the surface unless surface_op says otherwise. Observers hear of
        it after the fact, in the order of the log, also of what they append themselves.
        Raises: InvalidEventError when the event may not enter, LogError with code LOG_CLOSED when nobody would store it
        any more; nothing was changed and nobody was told.
        """
        if self._sealed:
            raise LogError(
                f"no {EVENT_TYPES.get(type(payload), 'event')} can be added, the session was closed",
                where=f"session {self.header.id}",
                expected="nothing more once its writer let go of the file",
                fix="resume the session to go on with it",
                code="LOG_CLOSED",
            )
        kind: type[object] = type(payload)
        if surface_op is None and kind in SURFACE_PAYLOADS:
            surface_op = "append"
        now = self._clock()
        if self._last_time is not None and now < self._last_time:
            now = self._last_time
        if is_usual_piece(payload, now) and surface_op is None and source_event_seqs is None and ignorable is False:
            event = Event(len(self._events), now, payload)
            self.restore_usual(event)
        else:
            event = Event(
                len(self._events),
                now,
                freeze_payload(payload, EVENT_TYPES.get(kind, kind.__name__)),
                surface_op,
                source_event_seqs,
                ignorable,
            )
            self.restore(event)
        if self._observers:
            self._publish(event)
        return event

    def restore(self, event: Event) -> None:
        """Push an event that was stored, checked like a new one; nobody is told.

        Raises: InvalidEventError when it does not follow what is here.
        """
        check_event(event, self, self._surface)
        if self._check is not None:
            self._check(self, event)
        self._events.append(event)
        self._last[type(event.payload)] = event.seq
        self._last_time = event.time
        operation = event.surface_op
        if operation == "append":
            self._surface.append(event.seq)
        elif isinstance(operation, Replace):
            first = self._surface.index(operation.start)
            self._surface[first : first + len(shadowed_by(operation, self._surface))] = [event.seq]
            self._messages = []  # a new list: who holds a view of the old one keeps what it saw
            self._derived = 0

    def restore_usual(self, event: Event) -> None:
        """Push an event that usual_form has read or checked for the end of this log; nobody is told.

        Raises: InvalidEventError when this log's own check refuses it.
        """
        if self._check is not None:
            self.restore(event)
            return
        self._events.append(event)
        self._last[type(event.payload)] = event.seq
        self._last_time = event.time
        if event.surface_op is not None:
            self._surface.append(event.seq)

    def restore_row(self, row: ChunkRow) -> None:
        """Push the events of a packed row, whole or not at all; unpacking has checked them, nobody is told.

        Raises: InvalidEventError when they do not follow what is here.
        """
        if row.seq0 != len(self._events):
            raise InvalidEventError(f"{row.seq0} where {len(self._events)} comes next", where="row.seq0")
        if self._check is not None:
            for event in row:
                self.restore(event)
            return
        self._events.extend([row] * len(row))
        self._packed_end = len(self._events)
        self._last[AssistantChunk] = self._packed_end - 1
        self._last_time = row.last_time

    def adopt(self, other: SessionLog) -> None:
        """Begin with everything that stands in another log; it was checked when it entered there.

        Raises: InvalidEventError when this log is not empty.
        """
        if self._events:
            raise InvalidEventError("a log that has events cannot begin with others", where="log")
        if self._check is not None:
            for event in other:
                self.restore(event)
            return
        self._events = list(other._events)
        self._packed_end = other._packed_end
        self._last = dict(other._last)
        self._last_time = other._last_time
        self._surface = list(other._surface)

    def end_seed(self) -> None:
        """Mark that everything so far belongs to an ended lifetime, unless the last event already says so."""
        if not self._events or not isinstance(self[-1].payload, EndSeed):
            self.append(EndSeed())

    def seal(self) -> None:
        """Refuse every further event: what stores this log has let go of it. Reading goes on."""
        self._sealed = True

    def observe(self, observer: Observer) -> Callable[[], None]:
        """Call the observer with every event from now on, after it was committed; the result stops that.

        An observer that raises is reported and undoes nothing; the others still hear of the event.
        """
        self._observers.append(observer)

        def detach() -> None:
            if observer in self._observers:
                self._observers.remove(observer)

        return detach

    def _publish(self, event: Event) -> None:
        if self._publishing:
            self._unpublished.append(event)
            return  # the loop below is running further up the stack and will come to it
        if self._unpublished:  # an interrupt cut the loop below short
            self._unpublished.append(event)
            event = self._unpublished.popleft()
        self._publishing = True
        try:
            while True:
                for observer in tuple(self._observers):
                    try:
                        observer(event)
                    except Exception as error:  # noqa: BLE001 - an observer may raise anything and may not veto history
                        self._report(error)
                if not self._unpublished:
                    return
                event = self._unpublished.popleft()
        finally:
            self._publishing = False
