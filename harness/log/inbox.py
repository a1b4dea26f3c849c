"""Both queues of an agent, as a fold over the splices in its log, and the splices that change them.

Room: pure; the agent appends what these functions build, then applies it. Nothing here writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from harness.errors import InvalidEventError
from harness.log.events import (
    AssistantChunk,
    AssistantMessage,
    Event,
    InboxSpliced,
    InboxTarget,
    RemovedItem,
    RequestContext,
    RequestHeader,
    StepEnd,
    TurnStart,
    UserMessage,
)
from harness.log.session_log import SessionLog
from harness.model.messages import Message, MessageId

_BEGUN = (TurnStart, StepEnd, RequestHeader, RequestContext, AssistantChunk, AssistantMessage)
TARGETS: tuple[InboxTarget, InboxTarget] = ("next-step", "next-turn")  # the order they are claimed and cleared in


@dataclass(frozen=True, slots=True)
class Inbox:
    """What waits: prompts for turns of their own, and messages for the next step.

    Shape: an id stands once in both lists together; quiet names the waiting messages that open no turn.
    """

    next_turn: tuple[Message, ...] = ()
    next_step: tuple[Message, ...] = ()
    quiet: frozenset[MessageId] = frozenset()

    def __len__(self) -> int:
        return len(self.next_turn) + len(self.next_step)

    @property
    def has_waking(self) -> bool:
        """Whether anything that waits would open a turn by itself."""
        return len(self) > len(self.quiet)

    def items(self, target: InboxTarget) -> tuple[Message, ...]:
        """The list of that name."""
        return self.next_turn if target == "next-turn" else self.next_step

    def find(self, message_id: MessageId) -> tuple[InboxTarget, int] | None:
        """Where the message waits, or None when it does not."""
        for target in TARGETS:
            for at, message in enumerate(self.items(target)):
                if message.id == message_id:
                    return target, at
        return None


@dataclass(frozen=True, slots=True)
class Fate:
    """What the log says became of a message; turn is set for claimed."""

    kind: Literal["pending", "claimed", "canceled", "replaced", "requeued"]
    turn: int | None = None


def apply(inbox: Inbox, payload: InboxSpliced) -> Inbox:
    """The inbox after the splice; the one that was passed in stays as it is."""
    items = inbox.items(payload.target)
    start = min(payload.start, len(items))
    end = min(start + len(payload.removed), len(items))
    spliced = items[:start] + payload.inserted + items[end:]
    quiet = inbox.quiet
    if quiet:
        quiet = quiet.difference(message.id for message in items[start:end])
    if not payload.wakes:
        quiet = quiet.union(message.id for message in payload.inserted)
    if payload.target == "next-turn":
        return Inbox(spliced, inbox.next_step, quiet)
    return Inbox(inbox.next_turn, spliced, quiet)


def fold_inbox(events: Iterable[Event], seed_length: int | None = None) -> Inbox:
    """The inbox of a log. Splices inside an inherited seed are the parent's and are passed over."""
    inbox = Inbox()
    for splice in _splices(events, seed_length):
        inbox = apply(inbox, splice)
    return inbox


def splice_index(start: float, length: int) -> int:
    """Where a splice begins, the way an array splice reads it: negative from the end, cut to the list, NaN is 0."""
    if start != start:  # NaN is the one number that differs from itself
        return 0
    if start < 0:
        return max(0, length + int(max(start, -length)))
    return int(min(start, length))


def insert_payload(
    inbox: Inbox,
    message: Message,
    target: InboxTarget,
    *,
    wakes: bool = True,
    start: float | None = None,
) -> InboxSpliced:
    """The splice that puts a message into a list, at its end unless start says where.

    Raises: InvalidEventError when a message of that id already waits, in either list.
    """
    _check_new(inbox, (message,))
    length = len(inbox.items(target))
    at = length if start is None else splice_index(start, length)
    return InboxSpliced(target, at, inserted=(message,), wakes=wakes)


def claim_payloads(
    inbox: Inbox, turn: int, at_turn_boundary: bool
) -> tuple[tuple[InboxSpliced, tuple[Message, ...]], ...]:
    """The splices by which a turn takes its input, each with the messages it takes, in the order a step sees them.

    All of next-step, then, at a turn boundary only, exactly one prompt.
    """
    claims: list[tuple[InboxSpliced, tuple[Message, ...]]] = []
    if inbox.next_step:
        claims.append((_removal("next-step", 0, inbox.next_step, "claimed", turn), inbox.next_step))
    if at_turn_boundary and inbox.next_turn:
        taken = inbox.next_turn[:1]
        claims.append((_removal("next-turn", 0, taken, "claimed", turn), taken))
    return tuple(claims)


def cancel_payloads(inbox: Inbox) -> tuple[InboxSpliced, ...]:
    """The splices that clear both lists, next-step first; none for an empty inbox."""
    return tuple(_removal(target, 0, inbox.items(target), "canceled") for target in TARGETS if inbox.items(target))


def remove_payload(inbox: Inbox, message_id: MessageId) -> InboxSpliced | None:
    """The splice that takes one waiting message out, or None when it does not wait any more."""
    found = inbox.find(message_id)
    if found is None:
        return None
    target, at = found
    return _removal(target, at, inbox.items(target)[at : at + 1], "canceled")


def replace_payload(inbox: Inbox, message_id: MessageId, message: Message) -> InboxSpliced | None:
    """The splice that puts a message in the place of a waiting one, or None when that does not wait any more.

    Raises: InvalidEventError when the new message's id belongs to another waiting message.
    """
    found = inbox.find(message_id)
    if found is None:
        return None
    if message.id != message_id:
        _check_new(inbox, (message,))
    target, at = found
    return InboxSpliced(
        target,
        at,
        removed=(RemovedItem(message_id, "replaced"),),
        inserted=(message,),
        outcome="canceled",
        wakes=message_id not in inbox.quiet,
    )


def move_payloads(inbox: Inbox, message_id: MessageId, target: InboxTarget) -> tuple[InboxSpliced, ...]:
    """The splices that take a waiting message out of its list and put it at the end of the other.

    Nothing when it does not wait, or already waits there.
    """
    found = inbox.find(message_id)
    if found is None or found[0] == target:
        return ()
    source, at = found
    message = inbox.items(source)[at]
    removal = _removal(source, at, (message,), "requeued")
    return removal, insert_payload(apply(inbox, removal), message, target, wakes=message_id not in inbox.quiet)


def requeue_payload(inbox: Inbox, messages: tuple[Message, ...], target: InboxTarget) -> InboxSpliced | None:
    """The splice that puts claimed messages no model ever saw back at the head of a list, under their own ids.

    They wait for the next wake. None for no messages.
    Raises: InvalidEventError when one of them waits already.
    """
    if not messages:
        return None
    _check_new(inbox, messages)
    return InboxSpliced(target, 0, inserted=messages)


def unseen_claims(
    events: Sequence[Event], turn: int, seed_length: int | None = None
) -> tuple[tuple[InboxTarget, tuple[Message, ...]], ...]:
    """What that turn, the last one, claimed for a step whose request never began, list by list in claim order.

    No model saw these messages: they were claimed after the last step ended, or their step holds nothing but input.
    """
    claims: list[InboxSpliced] = []
    entered: set[MessageId] = set()
    for event in reversed(events):
        payload = event.payload
        if isinstance(payload, InboxSpliced):
            if any(item.fate == "claimed" and item.turn == turn for item in payload.removed):
                claims.append(payload)
        elif isinstance(payload, UserMessage):
            entered.add(payload.message.id)
        elif isinstance(payload, _BEGUN):
            break
    if not claims:
        return ()
    wanted = {item.id for claim in claims for item in claim.removed if item.id not in entered}
    known: dict[MessageId, Message] = {}
    for splice in _splices(events, seed_length):
        known.update((message.id, message) for message in splice.inserted if message.id in wanted)
    found = (
        (claim.target, tuple(known[item.id] for item in claim.removed if item.id in known))
        for claim in reversed(claims)
    )
    return tuple((target, messages) for target, messages in found if messages)


def fate_of(events: Iterable[Event], message_id: MessageId, seed_length: int | None = None) -> Fate | None:
    """What became of a message, from the log alone; None when it never was in the inbox."""
    fate: Fate | None = None
    for splice in _splices(events, seed_length):
        for item in splice.removed:
            if item.id == message_id:
                fate = Fate(item.fate, item.turn)
        for message in splice.inserted:
            if message.id == message_id:
                fate = Fate("pending")
    return fate


def _splices(events: Iterable[Event], seed_length: int | None) -> Iterator[InboxSpliced]:
    first = seed_length or 0
    for event in events.without_chunks(first) if isinstance(events, SessionLog) else events:
        if isinstance(event.payload, InboxSpliced) and event.seq >= first:
            yield event.payload


def _removal(
    target: InboxTarget,
    start: int,
    messages: tuple[Message, ...],
    fate: Literal["claimed", "canceled", "requeued"],
    turn: int | None = None,
) -> InboxSpliced:
    return InboxSpliced(
        target,
        start,
        removed=tuple(RemovedItem(message.id, fate, turn) for message in messages),
        outcome=None if fate == "claimed" else "canceled",
    )


def _check_new(inbox: Inbox, messages: tuple[Message, ...]) -> None:
    seen: set[MessageId] = set()
    for message in messages:
        if message.id in seen or inbox.find(message.id) is not None:
            raise InvalidEventError(
                f"message id {message.id!r} already waits",
                where="inbox",
                expected="an id of its own for each message",
            )
        seen.add(message.id)
