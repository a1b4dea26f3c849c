"""Closing an interrupted log."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.log.events import StepEnd, StepStart, ToolErrorInfo, TurnEnd, TurnReason, TurnStart, UserMessage
from harness.log.fold import open_turn
from harness.log.inbox import Inbox, apply, claim_payloads, fold_inbox, insert_payload
from harness.log.interval import final_text, fold_usage
from harness.log.invariants import Invariants, check_invariants
from harness.log.repair import TOOL_NOT_STARTED, TOOL_OUTCOME_UNKNOWN, closers, repair
from harness.model.chunks import Usage
from harness.model.messages import MessageId, TextBlock, tool_calls_of


def _close(log):
    added = closers(log, log.header.seed_length)
    for event in added:
        log.restore(event)
    return added


def _tool_step(make, *call_ids, started=(), answered=()):
    log = make.log(check=Invariants())
    make.open_step(log)
    calls = [make.call(call_id) for call_id in call_ids]
    log.append(make.assistant(*calls), source_event_seqs=())
    for call in calls:
        if call.id in started:
            seq = log.append(make.started(call)).seq
            if call.id in answered:
                log.append(make.result(call.id), source_event_seqs=(seq,))
    return log


def test_P05_an_open_turn_is_closed_in_order_results_step_turn(make):
    log = _tool_step(make, "c1", "c2", started=["c1"])
    added = _close(log)
    assert make.types(added) == ["tool/result", "tool/result", "step/end", "turn/end"]
    assert (added[-1].payload, {event.time for event in added}, added[0].seq) == (
        TurnEnd(1, TurnReason("interrupted")),
        {added[0].time},
        log[-len(added)].seq,
    )


def test_P05_the_time_of_a_closer_is_that_of_the_last_real_event(make):
    log = _tool_step(make, "c1")
    last = log[-1].time
    assert {event.time for event in closers(log)} == {last}


def test_P05_closing_twice_adds_nothing(make):
    log = _tool_step(make, "c1")
    _close(log)
    assert closers(log) == ()


def test_P05_a_balanced_or_empty_log_needs_no_closer(make):
    log = make.log()
    assert closers(log) == ()
    make.turn(log)
    assert closers(log) == ()


def test_P05_an_open_turn_without_step_gets_its_end_only(make):
    log = make.log()
    log.append(TurnStart(1))
    assert make.types(closers(log)) == ["turn/end"]


def test_P05_a_turn_between_two_steps_gets_its_end_only(make):
    log = make.log()
    make.open_step(log)
    log.append(StepEnd(1, 1))
    assert make.types(closers(log)) == ["turn/end"]


def test_P06_unanswered_calls_are_closed_in_the_order_of_the_transcript(make):
    log = _tool_step(make, "c3", "c1", "c2", "c4", started=["c3", "c1", "c4"], answered=["c1"])
    added = _close(log)
    seqs = {event.payload.call_id: event.seq for event in log if event.type == "tool/call"}
    assert [
        (event.payload.message.source.call_id, event.payload.error.code, event.source_event_seqs)
        for event in added
        if event.type == "tool/result"
    ] == [
        ("c3", TOOL_OUTCOME_UNKNOWN, (seqs["c3"],)),
        ("c2", TOOL_NOT_STARTED, None),
        ("c4", TOOL_OUTCOME_UNKNOWN, (seqs["c4"],)),
    ]


def test_P06_the_texts_say_what_is_known(make):
    log = _tool_step(make, "c1", "c2", started=["c1"])
    unknown, not_started = (event.payload.message.content[0] for event in _close(log)[:2])
    assert ("outcome is unknown" in unknown.content[0].text, "Check for side effects" in unknown.content[0].text) == (
        True,
        True,
    )
    assert ("safe to ask again" in not_started.content[0].text, not_started.is_error) == (True, True)


def test_a_call_of_an_earlier_step_with_the_same_id_does_not_answer(make):
    log = _tool_step(make, "c1", started=["c1"], answered=["c1"])
    log.append(StepEnd(1, 1))
    log.append(StepStart(1, 2))
    log.append(make.assistant(make.call("c1"), step=2, message_id="a2"), source_event_seqs=())
    added = _close(log)
    assert [event.payload.error.code for event in added if event.type == "tool/result"] == [TOOL_NOT_STARTED]


def test_input_claimed_and_never_seen_goes_back_to_the_head_of_its_queue(make):
    log, inbox = make.log(check=Invariants()), Inbox()
    for name in ("a", "b"):
        payload = insert_payload(inbox, make.user(name, name), "next-turn")
        log.append(payload)
        inbox = apply(inbox, payload)
    log.append(TurnStart(1))
    for payload, _ in claim_payloads(inbox, 1, at_turn_boundary=True):
        log.append(payload)
    added = _close(log)
    assert (make.types(added), [message.id for message in fold_inbox(log).next_turn]) == (
        ["agent/inbox/spliced", "turn/end"],
        ["a", "b"],
    )
    assert closers(log) == ()


def test_a_crash_between_the_closers_is_closed_to_the_same_end(make):
    """Closers are themselves written and can be cut; every prefix of them closes to an equal history."""
    log = _tool_step(make, "c1", "c2", started=["c1"])
    whole = make.log()
    added = closers(log)
    for event in (*log, *added):
        whole.restore(event)
    for kept in range(len(added) + 1):
        cut = make.log(check=Invariants())
        for event in (*log, *added[:kept]):
            cut.restore(event)
        _close(cut)
        assert list(cut) == list(whole)


@pytest.mark.parametrize("tool_calls", [0, 1, 3])
@settings(deadline=None)
@given(data=st.data())
def test_a_log_cut_at_any_event_closes_to_a_balanced_one(make, tool_calls, data):
    log = make.log(check=Invariants())
    make.turn(log)
    make.open_step(log, 2)
    calls = [make.call(f"c{at}") for at in range(tool_calls)]
    log.append(make.header())
    log.append(make.assistant(*calls, turn=2, message_id="a2"), source_event_seqs=())
    for call in calls:
        seq = log.append(make.started(call, turn=2)).seq
        error = ToolErrorInfo("ToolError", "FAILED") if data.draw(st.booleans()) else None
        log.append(make.result(call.id, turn=2, error=error), source_event_seqs=(seq,))
    log.append(StepEnd(2, 1))
    log.append(make.end(2))
    cut = make.log(check=Invariants())
    for event in log[: data.draw(st.integers(0, len(log)))]:
        cut.restore(event)
    _close(cut)
    check_invariants(cut)
    assert (open_turn(cut), closers(cut)) == (None, ())
    waiting = {message.id for message in fold_inbox(cut).next_turn}
    entered = {event.payload.message.id for event in cut if isinstance(event.payload, UserMessage)}
    queued = {"m1", "m2"} & {
        message.id for event in cut if event.type == "agent/inbox/spliced" for message in event.payload.inserted
    }
    assert {MessageId(name) for name in queued} == waiting | entered


def _orphaned(make, *, text=""):
    """A closed step one of whose calls was never answered."""
    log = make.log()
    make.open_step(log)
    blocks = [TextBlock(text)] if text else []
    log.append(make.assistant(*blocks, make.call("c1"), make.call("c2")), source_event_seqs=())
    seq = log.append(make.started(make.call("c2"))).seq
    log.append(make.result("c2"), source_event_seqs=(seq,))
    log.append(StepEnd(1, 1))
    log.append(make.end())
    return log


def test_a_call_orphaned_in_a_closed_step_leaves_the_models_sight_and_stays_in_the_log(make):
    log = _orphaned(make, text="let me see")
    before = len(log)
    added = repair(log)
    assert (make.types(added), [call.id for message in log.messages() for call in tool_calls_of(message)]) == (
        ["assistant/message"],
        ["c2"],
    )
    assert [message.id for message in log.messages()] == ["m1", "a1", "r-1-1-c2"]
    assert ([call.id for call in tool_calls_of(log[5].payload.message)], len(log)) == (["c1", "c2"], before + 1)
    assert (repair(log), final_text(log)) == ((), "let me see")


def test_a_message_of_nothing_but_orphans_leaves_the_models_sight(make):
    log = make.log()
    make.open_step(log)
    log.append(make.assistant(make.call("c1")), source_event_seqs=())
    log.append(StepEnd(1, 1))
    log.append(make.end())
    repair(log)
    assert [message.id for message in log.messages()] == ["m1"]


def test_a_log_with_every_call_answered_needs_no_repair(make):
    log = _tool_step(make, "c1", started=["c1"], answered=["c1"])
    log.append(StepEnd(1, 1))
    log.append(make.end())
    assert repair(log) == ()


def test_usage_is_not_counted_again_by_a_copy_without_orphans(make):
    log = make.log()
    make.open_step(log)
    log.append(make.assistant(make.call("c1"), usage=Usage(3, 4)), source_event_seqs=())
    log.append(StepEnd(1, 1))
    log.append(make.end())
    repair(log)
    assert fold_usage(log) == Usage(3, 4)
