"""What a stretch of a log amounts to: where a prompt's work begins and ends, its text, its end, its tokens.

Room: pure; surfaces and the client fold what they report with it. "Last text in the interval" is all it promises.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from harness.log.events import (
    AssistantChunk,
    AssistantMessage,
    EndSeed,
    Event,
    InboxSpliced,
    StepStart,
    TurnEnd,
    TurnReason,
    TurnStart,
)
from harness.log.inbox import Inbox, apply
from harness.log.session_log import SessionLog
from harness.model.chunks import Finish, TextDelta, Usage, UsageChunk
from harness.model.messages import Message, MessageId, text_of


@dataclass(frozen=True, slots=True)
class Interval:
    """A range of seqs, both ends included; last is None while the work still runs."""

    first: int
    last: int | None

    def events(self, events: Sequence[Event]) -> Sequence[Event]:
        """The events of this range."""
        return events[self.first :] if self.last is None else events[self.first : self.last + 1]


def receipt_interval(events: Sequence[Event], message_id: MessageId, seed_length: int | None = None) -> Interval | None:
    """The interval that belongs to a receipt, from the log alone; None when the message never came in.

    Shape: begins at the splice that inserted the message. Ends at the first turn end after which nothing waits that
    would open a turn, or after which the driver stopped and left it waiting; or at the splice that took the message
    out unclaimed.
    """
    inbox = Inbox()
    first: int | None = None
    entered = False  # whether the turn at hand came to a step
    for event in events.without_chunks() if isinstance(events, SessionLog) else events:
        payload = event.payload
        if isinstance(payload, InboxSpliced) and event.seq >= (seed_length or 0):
            inbox = apply(inbox, payload)
            if first is None and any(message.id == message_id for message in payload.inserted):
                first = event.seq
            elif first is not None and any(
                item.id == message_id and item.fate in ("canceled", "replaced") for item in payload.removed
            ):
                return Interval(first, event.seq)
        elif isinstance(payload, TurnStart):
            entered = False
        elif isinstance(payload, StepStart):
            entered = True
        elif first is not None and isinstance(payload, TurnEnd):
            if not inbox.has_waking or _stopped(events, event.seq, entered=entered):
                return Interval(first, event.seq)
        elif first is not None and isinstance(payload, EndSeed):
            return Interval(first, event.seq)
    return None if first is None else Interval(first, None)


def _stopped(events: Sequence[Event], turn_end: int, *, entered: bool) -> bool:
    """Whether the driver stopped at that turn end although something waits.

    It goes on by itself after every ordinary end of a turn that came to a step. After the others it stops; only after
    an abort it does not when a wake came before the end was written: the next turn then starts without a new message
    in between.
    """
    payload = events[turn_end].payload
    assert isinstance(payload, TurnEnd)  # noqa: S101 - the caller has seen it; tells the type checker
    if payload.reason.kind in ("error", "blocked", "interrupted"):
        return True
    if payload.reason.kind == "completed":
        return not entered
    if payload.reason.kind != "aborted":
        return False
    for seq in range(turn_end + 1, len(events)):
        following = events[seq].payload
        if isinstance(following, TurnStart):
            return False
        if isinstance(following, InboxSpliced | EndSeed):
            return True
    return True


def _from_first_turn(events: Iterable[Event], first_seq: int) -> Iterator[Event]:
    started = False
    for event in events:
        if event.seq < first_seq:
            continue
        started = started or isinstance(event.payload, TurnStart)
        if started:
            yield event


def final_message(events: Iterable[Event], first_seq: int = 0) -> Message | None:
    """The last assistant message with text from that seq and its first turn on, or None.

    A message that replaces an older one says nothing new and is passed over.
    """
    found: Message | None = None
    for event in _from_first_turn(events, first_seq):
        payload = event.payload
        if isinstance(payload, AssistantMessage) and event.surface_op == "append" and text_of(payload.message):
            found = payload.message
    return found


def final_text(events: Iterable[Event], first_seq: int = 0) -> str:
    """The last text an assistant message carries from that seq and its first turn on; an empty one erases nothing."""
    found = final_message(events, first_seq)
    return "" if found is None else text_of(found)


def streamed_text(events: Iterable[Event], first_seq: int = 0) -> str:
    """The text of the last answer that began to say something, also when it never became a message."""
    text = ""
    is_new = True
    for event in _from_first_turn(events, first_seq):
        payload = event.payload
        if isinstance(payload, StepStart):
            is_new = True
        elif isinstance(payload, AssistantChunk):
            if isinstance(payload.chunk, Finish):
                is_new = True
            elif isinstance(payload.chunk, TextDelta) and payload.chunk.text:
                text = payload.chunk.text if is_new else text + payload.chunk.text
                is_new = False
    return text


def finish_reason(events: Iterable[Event], first_seq: int = 0) -> TurnReason | None:
    """How the last turn from that seq on ended; None when none did."""
    reason: TurnReason | None = None
    for event in _from_first_turn(events, first_seq):
        if isinstance(event.payload, TurnEnd):
            reason = event.payload.reason
    return reason


def fold_usage(events: Iterable[Event], first_seq: int = 0) -> Usage | None:
    """The tokens spent from that seq on, failed attempts included; None when nothing was reported.

    Shape: a usage chunk counts until the message that cites it brings its own figures. A count nobody reported stays
    absent.
    """
    counted: dict[int, Usage] = {}
    for event in events:
        if event.seq < first_seq:
            continue
        payload = event.payload
        if isinstance(payload, AssistantChunk):
            if isinstance(payload.chunk, UsageChunk):
                counted[event.seq] = payload.chunk.usage
        elif isinstance(payload, AssistantMessage) and payload.usage is not None:
            for seq in event.source_event_seqs or ():
                counted.pop(seq, None)
            counted[event.seq] = payload.usage
    total: Usage | None = None
    for usage in counted.values():
        total = usage if total is None else add_usage(total, usage)
    return total


def add_usage(one: Usage, other: Usage) -> Usage:
    """Both counts together; a figure is absent when neither has it."""
    return Usage(
        one.input_tokens + other.input_tokens,
        one.output_tokens + other.output_tokens,
        _sum(one.cache_read_tokens, other.cache_read_tokens),
        _sum(one.cache_write_tokens, other.cache_write_tokens),
        _sum(one.reasoning_tokens, other.reasoning_tokens),
    )


def _sum(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else one + other
