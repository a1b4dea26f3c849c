"""The order events keep."""

from __future__ import annotations

import pytest

from harness.errors import InvalidEventError
from harness.log.chunk_rows import is_row, pack, unpack
from harness.log.events import (
    EndSeed,
    Event,
    InboxSpliced,
    RemovedItem,
    Replace,
    RequestContext,
    StepEnd,
    StepStart,
    ToolErrorInfo,
    TurnStart,
)
from harness.log.invariants import Invariants, check_invariants
from harness.model.messages import MessageId


@pytest.fixture
def log(make):
    """A checked log with an open step."""
    log = make.log(check=Invariants())
    make.turn(log, 1, chunks=4)
    make.open_step(log, 2)
    return log


BROKEN = {
    "turn_inside_turn": lambda make: TurnStart(3),
    "step_inside_step": lambda make: StepStart(2, 2),
    "step_end_of_another_step": lambda make: StepEnd(2, 2),
    "turn_end_inside_step": lambda make: make.end(2),
    "chunk_of_another_turn": lambda make: make.chunk(turn=1),
    "chunk_of_another_step": lambda make: make.chunk(turn=2, step=2),
    "call_nobody_asked_for": lambda make: make.started(make.call("ghost"), turn=2),
    "result_nobody_asked_for": lambda make: make.result("ghost", turn=2),
    "seed_end_inside_turn": lambda make: EndSeed(),
    "splice_of_what_does_not_wait": lambda make: InboxSpliced(
        "next-turn", 0, (RemovedItem(MessageId("m9"), "canceled"),), outcome="canceled"
    ),
    "splice_beyond_the_list": lambda make: InboxSpliced("next-turn", 3, inserted=(make.user("x", "x"),)),
}


@pytest.mark.parametrize("build", BROKEN.values(), ids=BROKEN.keys())
def test_an_event_out_of_order_is_vetoed_and_the_log_goes_on(make, log, build):
    before = len(log)
    with pytest.raises(InvalidEventError) as caught:
        log.append(build(make))
    assert (caught.value.error_code, len(log)) == ("LOG_INVARIANT", before)
    log.append(StepEnd(2, 1))
    log.append(make.end(2))
    check_invariants(log)


def test_turns_count_without_gaps(make):
    log = make.log(check=Invariants())
    with pytest.raises(InvalidEventError):
        log.append(TurnStart(2))


def test_a_request_outside_a_turn_is_vetoed(make):
    with pytest.raises(InvalidEventError):
        make.log(check=Invariants()).append(RequestContext("mock", "m"))


def test_a_step_does_not_end_while_a_call_has_no_result(make, log):
    log.append(make.assistant(make.call(), turn=2, message_id="a2"), source_event_seqs=())
    with pytest.raises(InvalidEventError) as caught:
        log.append(StepEnd(2, 1))
    assert "c1" in str(caught.value)


def test_a_call_is_answered_once_and_cites_its_start(make, log):
    log.append(make.assistant(make.call(), turn=2, message_id="a2"), source_event_seqs=())
    with pytest.raises(InvalidEventError, match="never started"):
        log.append(make.result(turn=2))
    seq = log.append(make.started(make.call(), turn=2)).seq
    with pytest.raises(InvalidEventError, match="starts twice"):
        log.append(make.started(make.call(), turn=2))
    with pytest.raises(InvalidEventError, match="does not cite"):
        log.append(make.result(turn=2))
    log.append(make.result(turn=2), source_event_seqs=(seq,))
    with pytest.raises(InvalidEventError, match="answered twice"):
        log.append(make.result(turn=2, message_id="again"), source_event_seqs=(seq,))


def test_a_call_that_never_started_may_get_the_synthetic_result_only(make, log):
    log.append(make.assistant(make.call(), turn=2, message_id="a2"), source_event_seqs=())
    log.append(make.result(turn=2, error=ToolErrorInfo("ToolInterruptedError", "TOOL_NOT_STARTED")))
    log.append(StepEnd(2, 1))


def test_a_message_cites_chunks_of_its_own_step(make, log):
    with pytest.raises(InvalidEventError, match="no chunk of its step"):
        log.append(make.says("x", turn=2, message_id="a2"), source_event_seqs=(1,))


def test_a_replaced_result_is_no_second_answer(make, log):
    log.append(make.assistant(make.call(), turn=2, message_id="a2"), source_event_seqs=())
    seq = log.append(make.started(make.call(), turn=2)).seq
    result = log.append(make.result(turn=2), source_event_seqs=(seq,)).seq
    log.append(StepEnd(2, 1))
    log.append(make.end(2))
    log.append(make.result(text="cleared", turn=2), surface_op=Replace(result, result), source_event_seqs=(result,))
    check_invariants(log)


def test_a_checker_that_comes_late_catches_up_first(make):
    log = make.log()
    make.turn(log, 1, chunks=3)
    check = Invariants()
    with pytest.raises(InvalidEventError, match="turn 5 starts after"):
        check(log, Event(len(log), 1, TurnStart(5)))
    check(log, Event(len(log), 1, TurnStart(2)))


def test_an_id_that_waits_is_not_inserted_again(make, log):
    log.append(InboxSpliced("next-turn", 0, inserted=(make.user("x", "x"),)))
    with pytest.raises(InvalidEventError, match="already waits"):
        log.append(InboxSpliced("next-step", 0, inserted=(make.user("x", "x"),)))


def test_a_claim_names_the_turn_that_makes_it(make, log):
    log.append(InboxSpliced("next-step", 0, inserted=(make.user("x", "x"),)))
    with pytest.raises(InvalidEventError, match=r"turn 1 claims in step 2\.1"):
        log.append(InboxSpliced("next-step", 0, (RemovedItem(MessageId("x"), "claimed", 1),)))


def test_a_packed_run_is_judged_event_by_event(make):
    source = make.log()
    make.turn(source, chunks=4)
    rows = [unpack(row) for row in pack(source.since(0)) if is_row(row)]
    checked = make.log(check=Invariants())
    for event in source[: rows[0].seq0]:
        checked.restore(event)
    checked.restore_row(rows[0])
    assert list(checked) == list(source[: len(checked)])
    again = make.log(check=Invariants())
    again.append(TurnStart(1))
    with pytest.raises(InvalidEventError, match="comes next"):
        again.restore_row(rows[0])


def test_adopting_a_log_judges_it_too(make):
    source = make.log()
    source.append(TurnStart(5))
    with pytest.raises(InvalidEventError, match="turn 5 starts"):
        make.log(check=Invariants()).adopt(source)
    with pytest.raises(InvalidEventError, match="has events"):
        source.adopt(make.log())
