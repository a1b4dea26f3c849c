"""Laws of the queues' splices, for any queues: what undoes what, what keeps the order, and what nothing can change."""

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.log.inbox import (
    TARGETS,
    Inbox,
    apply,
    cancel_payloads,
    claim_payloads,
    insert_payload,
    move_payloads,
    remove_payload,
    replace_payload,
    requeue_payload,
    splice_index,
)
from harness.model.messages import Message, MessageId, TextBlock, UserSource

LAWS = settings(max_examples=80, deadline=None, derandomize=True)
TARGET = st.sampled_from(TARGETS)
PLACES = st.integers(-9, 9) | st.floats(allow_nan=False) | st.sampled_from([math.nan, math.inf, -math.inf])


def message(name: str) -> Message:
    return Message(MessageId(name), "user", (TextBlock(name),), UserSource())


NEW = message("new")


@st.composite
def inboxes(draw: st.DrawFn, least: int = 0) -> Inbox:
    names = draw(st.lists(st.sampled_from("abcdefgh"), unique=True, min_size=least, max_size=6))
    cut = draw(st.integers(0, len(names)))
    quiet = frozenset(MessageId(name) for name in names if draw(st.booleans()))
    first, second = (tuple(message(name) for name in part) for part in (names[:cut], names[cut:]))
    return Inbox(first, second, quiet)


def after(inbox: Inbox, *payloads: object) -> Inbox:
    for payload in payloads:
        inbox = apply(inbox, payload)  # type: ignore[arg-type] # splices, as the functions under test gave them
    return inbox


@LAWS
@given(inbox=inboxes(), target=TARGET, start=PLACES, wakes=st.booleans())
def test_a_message_goes_where_a_list_would_put_it_and_taking_it_out_undoes_that(
    inbox: Inbox, target: str, start: float, wakes: bool
) -> None:
    items = list(inbox.items(target))  # type: ignore[arg-type]
    at = 0 if math.isnan(start) else int(max(-len(items), min(start, len(items))))
    expected = [*items]
    expected.insert(at, NEW)
    found = after(inbox, insert_payload(inbox, NEW, target, start=start, wakes=wakes))  # type: ignore[arg-type]
    assert (list(found.items(target)), NEW.id in found.quiet) == (expected, not wakes)  # type: ignore[arg-type]
    assert splice_index(start, len(items)) == expected.index(NEW)
    assert after(found, remove_payload(found, NEW.id)) == inbox


@LAWS
@given(inbox=inboxes(), boundary=st.booleans())
def test_a_claim_takes_every_steering_and_at_a_boundary_one_prompt_and_putting_it_back_restores_the_order(
    inbox: Inbox, boundary: bool
) -> None:
    claims = claim_payloads(inbox, 1, boundary)
    left = after(inbox, *(payload for payload, _ in claims))
    taken = [each for _, messages in claims for each in messages]
    assert taken == [*inbox.next_step, *(inbox.next_turn[:1] if boundary else ())]
    assert (left.next_step, left.next_turn) == ((), inbox.next_turn[1:] if boundary else inbox.next_turn)
    back = left
    for payload, messages in claims:
        back = after(back, requeue_payload(back, messages, payload.target))
    assert (back.next_step, back.next_turn) == (inbox.next_step, inbox.next_turn)


@LAWS
@given(inbox=inboxes(least=1), data=st.data())
def test_a_replacement_keeps_place_and_wake_and_a_move_goes_to_the_end_of_the_other_list(
    inbox: Inbox, data: st.DataObject
) -> None:
    chosen = data.draw(st.sampled_from([*inbox.next_turn, *inbox.next_step]))
    place = inbox.find(chosen.id)
    replaced = after(inbox, replace_payload(inbox, chosen.id, NEW))
    assert (replaced.find(NEW.id), replaced.find(chosen.id)) == (place, None)
    assert (NEW.id in replaced.quiet) == (chosen.id in inbox.quiet)
    assert place is not None
    (other,) = set(TARGETS) - {place[0]}
    moved = after(inbox, *move_payloads(inbox, chosen.id, other))  # type: ignore[arg-type]
    assert moved.items(other) == (*inbox.items(other), chosen)  # type: ignore[arg-type]
    assert (moved.quiet, len(moved)) == (inbox.quiet, len(inbox))
    assert move_payloads(moved, chosen.id, other) == ()  # type: ignore[arg-type]


@LAWS
@given(inbox=inboxes())
def test_a_cancel_empties_both_lists_and_a_second_one_writes_nothing(inbox: Inbox) -> None:
    empty = after(inbox, *cancel_payloads(inbox))
    assert (empty, cancel_payloads(empty)) == (Inbox(), ())


@LAWS
@given(inbox=inboxes())
def test_what_does_not_wait_can_be_neither_taken_out_nor_replaced_nor_moved(inbox: Inbox) -> None:
    gone = MessageId("gone")
    assert (remove_payload(inbox, gone), replace_payload(inbox, gone, NEW)) == (None, None)
    assert move_payloads(inbox, gone, "next-turn") == ()
    assert requeue_payload(inbox, (), "next-turn") is None
