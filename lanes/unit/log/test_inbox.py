"""The two queues as splices."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import InvalidEventError
from harness.log.events import EndSeed, InboxSpliced, RemovedItem, StepEnd, StepStart, TurnStart, UserMessage
from harness.log.inbox import (
    Fate,
    Inbox,
    apply,
    cancel_payloads,
    claim_payloads,
    fate_of,
    fold_inbox,
    insert_payload,
    move_payloads,
    remove_payload,
    replace_payload,
    requeue_payload,
    splice_index,
    unseen_claims,
)
from harness.log.invariants import Invariants
from harness.model.messages import MessageId


def _filled(make, turn_ids="ab", step_ids="xy", quiet="y"):
    inbox = Inbox()
    for name in turn_ids:
        inbox = apply(inbox, insert_payload(inbox, make.user(name, name), "next-turn"))
    for name in step_ids:
        inbox = apply(inbox, insert_payload(inbox, make.user(name, name), "next-step", wakes=name not in quiet))
    return inbox


def _ids(messages):
    return [message.id for message in messages]


def _write(log, inbox, *payloads):
    for payload in payloads:
        log.append(payload)
        inbox = apply(inbox, payload)
    return inbox


def test_I01_the_insertion_splice_carries_the_callers_message_id(make):
    log = make.log()
    log.append(insert_payload(Inbox(), make.user("hi", "mine"), "next-turn"))
    assert (log[0].type, _ids(log[0].payload.inserted)) == ("agent/inbox/spliced", ["mine"])


@pytest.mark.parametrize("target", ["next-turn", "next-step"])
@pytest.mark.parametrize("waiting", ["a", "x"], ids=["waits_for_turn", "waits_for_step"])
def test_I02_an_id_that_waits_in_either_list_is_refused(make, waiting, target):
    inbox = _filled(make)
    with pytest.raises(InvalidEventError):
        insert_payload(inbox, make.user("again", waiting), target)
    assert (_ids(inbox.next_turn), _ids(inbox.next_step)) == (["a", "b"], ["x", "y"])


def test_I04_a_turn_claims_every_next_step_item_and_then_one_prompt(make):
    claims = claim_payloads(_filled(make), 3, at_turn_boundary=True)
    assert [(payload, _ids(messages)) for payload, messages in claims] == [
        (
            InboxSpliced(
                "next-step",
                0,
                (RemovedItem(MessageId("x"), "claimed", 3), RemovedItem(MessageId("y"), "claimed", 3)),
            ),
            ["x", "y"],
        ),
        (InboxSpliced("next-turn", 0, (RemovedItem(MessageId("a"), "claimed", 3),)), ["a"]),
    ]


def test_I04_inside_a_turn_no_prompt_is_claimed(make):
    claims = claim_payloads(_filled(make), 3, at_turn_boundary=False)
    assert [payload.target for payload, _ in claims] == ["next-step"]


def test_I04_nothing_waiting_is_claimed_by_no_splice(make):
    assert claim_payloads(Inbox(), 1, at_turn_boundary=True) == ()


def test_cancel_clears_next_step_first_and_names_every_id(make):
    payloads = cancel_payloads(_filled(make))
    assert [(payload.target, [item.id for item in payload.removed], payload.outcome) for payload in payloads] == [
        ("next-step", ["x", "y"], "canceled"),
        ("next-turn", ["a", "b"], "canceled"),
    ]


def test_cancel_of_an_empty_inbox_writes_nothing():
    assert cancel_payloads(Inbox()) == ()


@pytest.mark.parametrize("name", ["a", "b", "x", "y"])
def test_I09_a_waiting_message_is_removed_by_id_and_is_gone_afterwards(make, name):
    inbox = _filled(make)
    after = apply(inbox, remove_payload(inbox, MessageId(name)))
    assert (len(after), after.find(MessageId(name)), remove_payload(after, MessageId(name))) == (3, None, None)


@pytest.mark.parametrize("name", ["a", "b", "x", "y"])
def test_I09_a_replacement_keeps_the_place(make, name):
    inbox = _filled(make)
    after = apply(inbox, replace_payload(inbox, MessageId(name), make.user("new", "new")))
    assert (after.find(MessageId("new")), after.find(MessageId(name)), len(after)) == (
        inbox.find(MessageId(name)),
        None,
        4,
    )


def test_I09_a_message_may_be_replaced_by_itself_with_other_words(make):
    inbox = _filled(make)
    after = apply(inbox, replace_payload(inbox, MessageId("a"), make.user("better", "a")))
    assert (after.next_turn[0], _ids(after.next_turn)) == (make.user("better", "a"), ["a", "b"])


def test_I09_a_replacement_may_not_take_an_id_that_waits(make):
    with pytest.raises(InvalidEventError):
        replace_payload(_filled(make), MessageId("a"), make.user("x", "x"))


def test_I09_what_was_claimed_is_neither_removed_nor_replaced(make):
    inbox = _filled(make)
    for payload, _ in claim_payloads(inbox, 1, at_turn_boundary=True):
        inbox = apply(inbox, payload)
    assert (
        remove_payload(inbox, MessageId("a")),
        replace_payload(inbox, MessageId("x"), make.user()),
        move_payloads(inbox, MessageId("a"), "next-step"),
    ) == (None, None, ())


def test_I10_the_fate_of_every_message_is_in_the_log_alone(make):
    log, inbox = make.log(), Inbox()
    for name in ("claimed", "cancelled", "replaced", "moved"):
        inbox = _write(log, inbox, insert_payload(inbox, make.user(name, name), "next-turn"))
    inbox = _write(log, inbox, *(payload for payload, _ in claim_payloads(inbox, 4, at_turn_boundary=True)))
    inbox = _write(log, inbox, remove_payload(inbox, MessageId("cancelled")))
    inbox = _write(log, inbox, replace_payload(inbox, MessageId("replaced"), make.user("new", "new")))
    inbox = _write(log, inbox, *move_payloads(inbox, MessageId("moved"), "next-step"))
    names = ("claimed", "cancelled", "replaced", "new", "moved", "never")
    assert [fate_of(log, MessageId(name)) for name in names] == [
        Fate("claimed", 4),
        Fate("canceled"),
        Fate("replaced"),
        Fate("pending"),
        Fate("pending"),
        None,
    ]


def test_I10_a_claimed_message_put_back_waits_again_at_the_head_under_its_id(make):
    log, inbox = make.log(), Inbox()
    for name in ("a", "b"):
        inbox = _write(log, inbox, insert_payload(inbox, make.user(name, name), "next-turn"))
    ((claim, taken),) = claim_payloads(inbox, 1, at_turn_boundary=True)
    inbox = _write(log, inbox, claim)
    inbox = _write(log, inbox, requeue_payload(inbox, taken, "next-turn"))
    assert (_ids(inbox.next_turn), fate_of(log, MessageId("a"))) == (["a", "b"], Fate("pending"))


def test_putting_nothing_back_writes_nothing():
    assert requeue_payload(Inbox(), (), "next-turn") is None


def test_putting_back_what_waits_is_refused(make):
    inbox = _filled(make)
    with pytest.raises(InvalidEventError):
        requeue_payload(inbox, (make.user("a", "a"),), "next-turn")


def test_only_waking_items_count_as_waking(make):
    inbox = Inbox()
    quiet = apply(inbox, insert_payload(inbox, make.notice(), "next-step", wakes=False))
    both = apply(quiet, insert_payload(quiet, make.user(), "next-turn"))
    claimed = both
    for payload, _ in claim_payloads(both, 1, at_turn_boundary=True):
        claimed = apply(claimed, payload)
    assert [box.has_waking for box in (inbox, quiet, both, claimed)] == [False, False, True, False]
    assert claimed.quiet == frozenset()


def test_a_moved_or_replaced_quiet_message_stays_quiet(make):
    inbox = _filled(make)
    replaced = apply(inbox, replace_payload(inbox, MessageId("y"), make.user("z", "z")))
    moved = replaced
    for payload in move_payloads(replaced, MessageId("z"), "next-turn"):
        moved = apply(moved, payload)
    assert (replaced.quiet, moved.quiet, _ids(moved.next_turn)) == ({"z"}, {"z"}, ["a", "b", "z"])


INDEXES = {
    "zero": (0, 3, 0),
    "inside": (2, 3, 2),
    "beyond": (9, 3, 3),
    "infinite": (math.inf, 3, 3),
    "from_the_end": (-1, 3, 2),
    "before_the_start": (-9, 3, 0),
    "minus_infinite": (-math.inf, 3, 0),
    "nan": (math.nan, 3, 0),
    "fraction": (1.7, 3, 1),
    "negative_fraction": (-1.7, 3, 2),
}


@pytest.mark.parametrize(("start", "length", "index"), INDEXES.values(), ids=INDEXES.keys())
def test_an_index_is_read_the_way_an_array_splice_reads_it(start, length, index):
    assert splice_index(start, length) == index


def test_the_seeds_splices_are_the_parents(make):
    log = make.log()
    inbox = _write(log, Inbox(), insert_payload(Inbox(), make.user("a", "a"), "next-turn"))
    log.append(EndSeed())
    _write(log, inbox, insert_payload(inbox, make.user("b", "b"), "next-turn"))
    assert (_ids(fold_inbox(log).next_turn), _ids(fold_inbox(log, 2).next_turn), fate_of(log, MessageId("a"), 2)) == (
        ["a", "b"],
        ["b"],
        None,
    )


@settings(deadline=None)
@given(data=st.data())
def test_any_run_of_actions_folds_to_the_inbox_that_was_kept(make, data):
    """Splice algebra: applying as one goes, folding the log and the ids one expects agree; no id is lost or doubled."""
    log, inbox, alive = make.log(check=Invariants()), Inbox(), []
    log.append(TurnStart(1))
    for at in range(data.draw(st.integers(0, 12))):
        action = data.draw(st.sampled_from(["insert", "claim", "cancel", "remove", "replace", "move", "back"]))
        known = MessageId(data.draw(st.sampled_from(alive))) if alive else MessageId("none")
        target = data.draw(st.sampled_from(["next-turn", "next-step"]))
        if action == "insert":
            start = data.draw(st.none() | st.integers(-3, 5))
            inbox = _write(log, inbox, insert_payload(inbox, make.user("t", f"m{at}"), target, start=start))
            alive.append(f"m{at}")
        elif action == "claim":
            boundary = data.draw(st.booleans())
            claims = claim_payloads(inbox, 1, at_turn_boundary=boundary)
            inbox = _write(log, inbox, *(payload for payload, _ in claims))
            alive = [name for name in alive if all(name not in _ids(taken) for _, taken in claims)]
        elif action == "cancel":
            inbox = _write(log, inbox, *cancel_payloads(inbox))
            alive = []
        elif action == "remove" and (payload := remove_payload(inbox, known)):
            inbox = _write(log, inbox, payload)
            alive.remove(known)
        elif action == "replace" and (payload := replace_payload(inbox, known, make.user("t", f"m{at}"))):
            inbox = _write(log, inbox, payload)
            alive[alive.index(known)] = f"m{at}"
        elif action == "move":
            inbox = _write(log, inbox, *move_payloads(inbox, known, target))
        elif action == "back":
            inbox = _write(log, inbox, requeue_payload(inbox, (make.user("t", f"m{at}"),), target))
            alive.append(f"m{at}")
        assert sorted(_ids(inbox.next_turn + inbox.next_step)) == sorted(alive)
        assert fold_inbox(log) == inbox


def _claimed_log(make, *after):
    log, inbox = make.log(), Inbox()
    inbox = _write(log, inbox, insert_payload(inbox, make.user("p", "p"), "next-turn"))
    inbox = _write(log, inbox, insert_payload(inbox, make.notice("n", "n"), "next-step"))
    log.append(TurnStart(1))
    _write(log, inbox, *(payload for payload, _ in claim_payloads(inbox, 1, at_turn_boundary=True)))
    for payload in after:
        log.append(payload)
    return log


def test_input_claimed_before_its_step_started_was_seen_by_nobody(make):
    found = unseen_claims(_claimed_log(make), 1)
    assert [(target, _ids(messages)) for target, messages in found] == [("next-step", ["n"]), ("next-turn", ["p"])]


def test_input_that_entered_its_step_is_part_of_the_history(make):
    entered = _claimed_log(make, StepStart(1, 1), UserMessage(make.notice("n", "n")), UserMessage(make.user("p", "p")))
    assert unseen_claims(entered, 1) == ()


def test_input_whose_step_began_its_request_is_not_taken_back(make):
    assert unseen_claims(_claimed_log(make, StepStart(1, 1), make.header()), 1) == ()


def test_input_of_an_earlier_step_is_not_taken_back(make):
    log = _claimed_log(make, StepStart(1, 1), StepEnd(1, 1))
    assert unseen_claims(log, 1) == ()
