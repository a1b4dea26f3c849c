"""Explanations: why a cell says what it says, with the records it stands on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanes.record import Attempt
from reports.explain import PASSED_SHOWN, explain_claim

if TYPE_CHECKING:
    from lanes.unit.reports.conftest import Evidence

CLAIM = "journey.fix-test"


def test_the_worst_part_and_all_counts_are_told_with_attempts_failure_and_record(evidence: Evidence) -> None:
    failed = evidence.record(
        node_id="lanes/offline/test_a.py::test_two",
        verdict="failed",
        attempts=(Attempt(1, "failed", 12, answers=2),),
        failure="first\nE  assert 1 == 2",
    )
    board = evidence.fold(evidence.bundle(evidence.record(), failed))

    text = explain_claim(board, CLAIM, lanes=("offline",))

    assert [line in text for line in ("Unit (", "Offline (scripted): failed 1, passed 1")] == [False, True]
    for told in (
        "it reads 'failed' because the last attempt of at least one part failed",
        "a cell is the worst of its parts: failed 1, passed 1",
        "attempt 1 failed, 12 ms, 2 answers",
        "| E  assert 1 == 2",
        f"record {failed.record_id}",
        "does not prove: that the provider behaves like the mock",
    ):
        assert told in text


def test_a_cell_without_evidence_is_explained_by_its_reason(evidence: Evidence) -> None:
    text = explain_claim(evidence.fold(evidence.bundle(lane="real", not_run_code="no-key", canary_start="")), CLAIM)

    assert "Real API (live): not run: no key\n  it reads 'not run' because for at least one part nothing was" in text


def test_a_lane_that_the_claim_does_not_ask_for_is_said_to_be_none(evidence: Evidence) -> None:
    claims = evidence.claims(evidence.claim(required=("unit",), optional=()))

    text = explain_claim(evidence.fold(claims=claims), CLAIM, lanes=("offline",))

    assert "the claim does not ask for this lane" in text


def test_of_many_that_passed_the_first_are_named_and_the_others_counted(evidence: Evidence) -> None:
    records = [
        evidence.record(node_id=f"lanes/offline/test_a.py::test_{number:02}") for number in range(PASSED_SHOWN + 3)
    ]
    board = evidence.fold(evidence.bundle(*records))

    some, every = explain_claim(board, CLAIM), explain_claim(board, CLAIM, everything=True)

    assert (some.count("  passed: lanes/"), "and 3 more passed; --all names them" in some) == (PASSED_SHOWN, True)
    assert every.count("  passed: lanes/") == PASSED_SHOWN + 3


def test_void_evidence_of_its_tests_is_named(evidence: Evidence) -> None:
    board = evidence.fold(evidence.bundle(evidence.record(stored_class="live")))

    assert "void (self-graded, §3.4): lane offline" in explain_claim(board, CLAIM)


def test_edge68_texts_of_tests_are_inert_on_a_terminal(evidence: Evidence) -> None:
    record = evidence.record(verdict="failed", failure="\x1b]0;mine\x07\u202eevil", reason_text="\x1b[2J")

    text = explain_claim(evidence.fold(evidence.bundle(record)), CLAIM)

    assert ("\x1b" in text, "\u202e" in text, "<U+001B>]0;mine<U+0007><U+202E>evil" in text) == (False, False, True)
