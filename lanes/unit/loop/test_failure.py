"""What an exception becomes in the log."""

from __future__ import annotations

from harness.errors import LogBusyError, LogError, LogWriteError, ProviderError
from harness.log.events import Cause, TurnReason
from harness.loop.failure import TURN_TIMEOUT, failure_of, finish_for, render_chain, stopped
from harness.model.chunks import Failure, Finish


def test_a_cause_chain_is_rendered_outermost_first() -> None:
    error = ValueError("outer")
    error.__cause__ = KeyError("inner")
    assert failure_of(error) == Failure("ValueError: outer caused by KeyError: 'inner'", "UNKNOWN")


def test_a_suppressed_context_is_left_out_and_a_cycle_ends() -> None:
    one, two = ValueError("one"), ValueError("two")
    one.__cause__, two.__cause__ = two, one
    assert render_chain(one) == "ValueError: one caused by ValueError: two"
    three = ValueError("three")
    three.__context__ = one
    three.__suppress_context__ = True
    assert render_chain(three) == "ValueError: three"


def test_facts_of_a_provider_are_kept_when_valid_and_dropped_when_not() -> None:
    good = ProviderError("slow down", code="RATE_LIMIT", status=429, retry_after_ms=5, request_id="r")
    assert failure_of(good) == Failure("slow down", "RATE_LIMIT", 429, 5, "r")
    bad = ProviderError("", code="SERVER", status=1000, retry_after_ms=-5)
    assert failure_of(bad) == Failure("SERVER", "SERVER")


def test_a_log_that_cannot_be_written_keeps_its_code_its_place_and_what_to_do() -> None:
    full = LogWriteError("could not write: No space left on device", where="session.jsonl", fix="free space")
    full.__cause__ = OSError(28, "No space left on device")
    taken = LogBusyError("another writer holds this log", expected="one writer")
    assert failure_of(full) == Failure(
        "session.jsonl: could not write: No space left on device; fix: free space", "LOG_WRITE_FAILED"
    )
    assert failure_of(taken) == Failure("another writer holds this log; expected: one writer", "LOG_BUSY")
    assert failure_of(LogError("gone", code="LOG_CLOSED")) == Failure("gone", "LOG_CLOSED")


def test_an_aborted_failure_is_an_aborted_finish() -> None:
    assert finish_for(Failure("x", "ABORTED")) == Finish("aborted", Failure("x", "ABORTED"))
    assert finish_for(Failure("x", "SERVER")).kind == "error"


def test_a_stop_keeps_its_cause_and_a_turn_out_of_time_is_a_limit() -> None:
    assert stopped(Cause("user")) == TurnReason("aborted", cause=Cause("user"))
    assert stopped(TURN_TIMEOUT) == TurnReason("step-limit")
    assert stopped(Cause("hook", "turn timeout")).kind == "aborted"
    assert stopped(None) == TurnReason("aborted", cause=Cause("disposed"))
