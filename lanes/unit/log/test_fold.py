"""Facts read out of events."""

from __future__ import annotations

from harness.log.events import RequestContext, StepEnd, StepStart, TurnReason, TurnStart
from harness.log.fold import (
    OpenTurn,
    call_seq,
    highest_step,
    highest_turn,
    last_turn_end,
    latest_context,
    latest_header,
    message_of,
    open_turn,
    turn_end_reason,
    unanswered_calls,
)
from harness.model.messages import CallId


def test_an_empty_log_has_no_facts(make):
    log = make.log()
    facts = (latest_header(log), latest_context(log), highest_turn(log), highest_step(log), open_turn(log))
    assert (*facts, turn_end_reason(log, 1), last_turn_end(log)) == (None, None, 0, 0, None, None, None)


def test_the_latest_header_and_context_win(make):
    log = make.log()
    log.append(make.header())
    log.append(RequestContext("mock", "one"))
    log.append(RequestContext("mock", "two", 9))
    assert (latest_header(log), latest_context(log)) == (make.header().header, RequestContext("mock", "two", 9))


def test_an_open_turn_is_found_with_its_open_step(make):
    log = make.log()
    make.turn(log)
    seen = [open_turn(log)]
    for payload in (TurnStart(2), StepStart(2, 1), StepEnd(2, 1), StepStart(2, 2)):
        log.append(payload)
        seen.append(open_turn(log))
    assert seen == [None, OpenTurn(2, None), OpenTurn(2, 1), OpenTurn(2, None), OpenTurn(2, 2)]


def test_turns_and_steps_are_counted_from_the_log(make):
    log = make.log()
    make.turn(log)
    make.open_step(log, 2)
    assert (highest_turn(log), highest_step(log), turn_end_reason(log, 1), turn_end_reason(log, 2)) == (
        2,
        1,
        TurnReason("completed"),
        None,
    )


def test_a_turn_without_steps_has_step_zero(make):
    log = make.log()
    make.turn(log)
    log.append(TurnStart(2))
    assert highest_step(log) == 0


def test_the_last_turn_end_is_found_by_its_seq(make):
    log = make.log()
    make.turn(log)
    end = len(log) - 1
    log.append(TurnStart(2))
    assert last_turn_end(log) == end


def test_calls_without_result_are_listed_in_the_order_of_their_message(make):
    log = make.log()
    make.open_step(log)
    calls = [make.call(name) for name in ("c", "a", "b")]
    log.append(make.assistant(*calls), source_event_seqs=())
    started = log.append(make.started(calls[1])).seq
    log.append(make.result("a"), source_event_seqs=(started,))
    assert (unanswered_calls(log, 1, 1), unanswered_calls(log, 1, 2)) == ((calls[0], calls[2]), ())
    assert (call_seq(log, 1, 1, CallId("a")), call_seq(log, 1, 1, CallId("b"))) == (started, None)


def test_only_surface_events_with_content_are_messages(make):
    log = make.log()
    for payload in (make.chunk(), make.assistant(), make.says("x"), make.result()):
        log.append(payload)
    assert [message and message.id for message in map(message_of, log)] == [None, None, "a1", "r-1-1-c1"]
