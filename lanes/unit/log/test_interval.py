"""Intervals of a log."""

from __future__ import annotations

import pytest

from harness.log.events import (
    AssistantChunk,
    Cause,
    EndSeed,
    StepEnd,
    StepStart,
    TurnEnd,
    TurnReason,
    TurnStart,
)
from harness.log.inbox import (
    Inbox,
    apply,
    cancel_payloads,
    claim_payloads,
    insert_payload,
    move_payloads,
    remove_payload,
)
from harness.log.interval import (
    Interval,
    add_usage,
    final_message,
    final_text,
    finish_reason,
    fold_usage,
    receipt_interval,
    streamed_text,
)
from harness.model.chunks import Failure, Finish, ReasoningDelta, TextDelta, Usage, UsageChunk
from harness.model.messages import MessageId, ReasoningBlock, TextBlock


class Story:
    """A log told in verbs, with its inbox kept beside it."""

    def __init__(self, make):
        self.make, self.log, self.inbox, self.turns = make, make.log(), Inbox(), 0

    def queue(self, name, target="next-turn", wakes=True):
        return self.write(insert_payload(self.inbox, self.make.user(name, name), target, wakes=wakes))

    def write(self, *payloads):
        for payload in payloads:
            self.log.append(payload)
            self.inbox = apply(self.inbox, payload)
        return len(self.log) - 1

    def turn(self, reason=None, inside=lambda: None, *, steps=1):
        self.turns += 1
        self.log.append(TurnStart(self.turns))
        self.write(*(payload for payload, _ in claim_payloads(self.inbox, self.turns, True)))
        for step in range(1, steps + 1):
            self.log.append(StepStart(self.turns, step))
            self.log.append(StepEnd(self.turns, step))
        inside()
        return self.log.append(TurnEnd(self.turns, reason or TurnReason("completed"))).seq

    def of(self, name):
        return receipt_interval(self.log, MessageId(name))


FAILED = TurnReason("error", failure=Failure("m", "UNKNOWN"))
ABORTED = TurnReason("aborted", cause=Cause("user"))


def test_an_interval_begins_at_the_receipt_and_ends_with_the_turn_that_empties_the_inbox(make):
    story = Story(make)
    story.log.append(EndSeed())
    first = story.queue("a")
    last = story.turn()
    assert (story.of("a"), story.of("nobody")) == (Interval(first, last), None)


def test_an_interval_is_open_until_its_turn_ends(make):
    story = Story(make)
    first = story.queue("a")
    story.log.append(TurnStart(1))
    assert story.of("a") == Interval(first, None)


def test_two_prompts_in_one_activity_end_together(make):
    story = Story(make)
    a, b = story.queue("a"), story.queue("b")
    story.turn()
    last = story.turn()
    assert (story.of("a"), story.of("b")) == (Interval(a, last), Interval(b, last))


def test_a_prompt_that_comes_during_the_turn_lengthens_the_interval(make):
    story = Story(make)
    first = story.queue("a")
    story.turn(inside=lambda: story.queue("b"))
    last = story.turn()
    assert story.of("a") == Interval(first, last)


def test_a_quiet_message_that_waits_does_not_lengthen_it(make):
    story = Story(make)
    first = story.queue("a")
    last = story.turn(inside=lambda: story.queue("n", "next-step", wakes=False))
    assert story.of("a") == Interval(first, last)


def test_a_message_taken_out_unclaimed_ends_its_interval_there(make):
    story = Story(make)
    a, b = story.queue("a"), story.queue("b")
    removal = story.write(remove_payload(story.inbox, MessageId("b")))
    last = story.turn()
    assert (story.of("a"), story.of("b")) == (Interval(a, last), Interval(b, removal))


def test_a_message_moved_to_the_other_list_keeps_its_interval(make):
    story = Story(make)
    first = story.queue("a")
    story.write(*move_payloads(story.inbox, MessageId("a"), "next-step"))
    last = story.turn()
    assert story.of("a") == Interval(first, last)


STOPPING = {"error": FAILED, "blocked": TurnReason("blocked"), "interrupted": TurnReason("interrupted")}


@pytest.mark.parametrize("reason", STOPPING.values(), ids=STOPPING.keys())
def test_an_end_that_stops_the_driver_ends_the_interval_although_something_waits(make, reason):
    story = Story(make)
    first = story.queue("a")
    story.queue("b")
    last = story.turn(reason)
    story.queue("c")
    story.turn()
    assert story.of("a") == Interval(first, last)


def test_CL11_a_turn_without_a_step_stops_the_driver_and_ends_the_interval_although_something_waits(make):
    story = Story(make)
    first = story.queue("a")
    story.queue("b")
    last = story.turn(steps=0)
    story.queue("c")
    assert (story.of("a"), story.of("b")) == (Interval(first, last), Interval(first + 1, last))
    story.turn()
    end = story.turn()
    assert (story.of("a"), story.of("c")) == (Interval(first, last), Interval(last + 1, end))


def test_an_abort_that_parks_the_rest_ends_the_interval(make):
    story = Story(make)
    first = story.queue("a")
    story.queue("b")
    last = story.turn(ABORTED)
    assert story.of("a") == Interval(first, last)
    story.queue("c")
    story.turn()
    assert story.of("a") == Interval(first, last)


def test_a_wake_between_abort_and_end_goes_on_in_the_same_interval(make):
    story = Story(make)
    first = story.queue("a")
    story.turn(ABORTED, inside=lambda: story.queue("b"))
    last = story.turn()
    assert story.of("a") == Interval(first, last)


def test_a_cleared_inbox_ends_the_interval_of_what_was_cleared(make):
    story = Story(make)
    first = story.queue("a")
    cleared = story.write(*cancel_payloads(story.inbox))
    assert story.of("a") == Interval(first, cleared)


def test_the_end_of_a_lifetime_ends_an_interval(make):
    story = Story(make)
    first = story.queue("a")
    end = story.log.append(EndSeed()).seq
    assert story.of("a") == Interval(first, end)


def test_an_interval_cuts_its_events_out_of_the_log(make):
    log = make.log()
    make.turn(log)
    assert (Interval(2, 4).events(log), Interval(9, None).events(log)) == (log[2:5], log[9:])


def test_the_final_text_is_the_last_that_is_not_empty(make):
    log = make.log()
    log.append(TurnStart(1))
    log.append(make.says("first", message_id="a1"))
    log.append(make.assistant(TextBlock("sec"), ReasoningBlock("hm"), TextBlock("ond"), message_id="a2"))
    log.append(make.assistant(message_id="a3"))
    log.append(make.assistant(ReasoningBlock("thought"), message_id="a4"))
    assert final_text(log) == "second"


def test_the_final_message_is_the_one_the_final_text_is_of(make):
    log = make.log()
    log.append(TurnStart(1))
    log.append(make.assistant(TextBlock("said"), ReasoningBlock("hm"), message_id="a1"))
    log.append(make.assistant(ReasoningBlock("thought"), message_id="a2"))
    found = final_message(log)
    assert (found and found.id, found and found.content, final_message(log, len(log))) == (
        MessageId("a1"),
        (TextBlock("said"), ReasoningBlock("hm")),
        None,
    )


def test_the_streamed_text_is_that_of_the_last_attempt_that_said_something(make):
    log = make.log()
    make.open_step(log)
    for chunk in (TextDelta(0, "a"), TextDelta(0, "b"), Finish("error", Failure("m", "SERVER")), TextDelta(0, "c")):
        log.append(AssistantChunk(1, 1, chunk))
    log.append(AssistantChunk(1, 1, ReasoningDelta(1, "hm")))
    log.append(AssistantChunk(1, 1, TextDelta(2, "d")))
    cut_off = streamed_text(log)
    log.append(StepEnd(1, 1))
    log.append(StepStart(1, 2))
    silent = streamed_text(log)
    log.append(AssistantChunk(1, 2, TextDelta(0, "")))
    log.append(AssistantChunk(1, 2, TextDelta(0, "e")))
    assert (cut_off, silent, streamed_text(log), streamed_text(log, len(log))) == ("cd", "cd", "e", "")


def test_text_before_the_first_turn_of_the_interval_is_passed_over(make):
    log = make.log()
    make.turn(log, 1, "old")
    log.append(make.says("stray", message_id="s"))
    boundary = len(log) - 1
    make.turn(log, 2, "new")
    assert [final_text(log), final_text(log, boundary), final_text(log[: boundary + 1], boundary)] == ["new", "new", ""]


def test_the_reason_is_that_of_the_last_turn(make):
    log = make.log()
    make.turn(log, 1)
    boundary = len(log)
    log.append(TurnStart(2))
    log.append(TurnEnd(2, FAILED))
    assert [finish_reason(log), finish_reason(log[:boundary]), finish_reason(log, len(log))] == [
        FAILED,
        TurnReason("completed"),
        None,
    ]


def _usage_log(make, *, message_usage):
    log = make.log()
    make.open_step(log)
    log.append(AssistantChunk(1, 1, UsageChunk(Usage(100, 10))))
    good = log.append(AssistantChunk(1, 1, UsageChunk(Usage(200, 20, reasoning_tokens=5)))).seq
    log.append(make.says("x", usage=message_usage), source_event_seqs=(good,))
    log.append(StepEnd(1, 1))
    return log


def test_usage_of_a_failed_attempt_counts_and_that_of_the_message_replaces_its_chunks(make):
    log = _usage_log(make, message_usage=Usage(201, 21, reasoning_tokens=6))
    assert fold_usage(log) == Usage(301, 31, reasoning_tokens=6)


def test_usage_of_chunks_counts_while_the_message_has_none(make):
    assert fold_usage(_usage_log(make, message_usage=None)) == Usage(300, 30, reasoning_tokens=5)


def test_nothing_reported_is_no_usage(make):
    log = make.log()
    make.turn(log)
    assert fold_usage(log) is None


def test_usage_before_the_interval_is_not_counted(make):
    log = _usage_log(make, message_usage=None)
    assert fold_usage(log, len(log)) is None


def test_a_count_nobody_reported_stays_absent():
    assert add_usage(Usage(1, 2, cache_read_tokens=3), Usage(1, 2, cache_read_tokens=4, cache_write_tokens=0)) == Usage(
        2, 4, 7, 0, None
    )
