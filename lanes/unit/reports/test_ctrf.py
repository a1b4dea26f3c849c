"""CTRF: one document a column, in which our statuses keep their words."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from lanes.record import Attempt
from reports.board import Board
from reports.render.ctrf import render_ctrf

if TYPE_CHECKING:
    from lanes.unit.reports.conftest import Evidence


def document(board: Board, column: str) -> Any:
    return json.loads(render_ctrf(board, board.column(column)))


@pytest.mark.parametrize(
    ("facts", "status", "raw"),
    [
        ({}, "passed", "passed"),
        ({"verdict": "failed", "failure": "first\nE  assert 1 == 2\n"}, "failed", "failed"),
        ({"verdict": "not run", "reason_code": "platform", "reason_text": "no fork"}, "skipped", "not run"),
        ({"verdict": "blocked", "reason_code": "worker-lost", "reason_text": "it died"}, "other", "blocked"),
        ({"attempts": (Attempt(1, "failed", failure="boom"), Attempt(2, "passed"))}, "passed", "flaky"),
    ],
    ids=["passed", "failed", "not-run", "blocked", "flaky"],
)
def test_each_status_has_its_word_and_keeps_ours(
    evidence: Evidence, facts: dict[str, Any], status: str, raw: str
) -> None:
    (test,) = document(evidence.fold(evidence.bundle(evidence.record(**facts))), "offline")["results"]["tests"]
    assert (test["status"], test["rawStatus"]) == (status, raw)


def test_stale_is_other(evidence: Evidence) -> None:
    record = evidence.record("replay", cassette={"age_days": 103, "entries": 1, "consumed": 1})
    (test,) = document(evidence.fold(evidence.bundle(record)), "replay")["results"]["tests"]
    assert (test["status"], test["rawStatus"], test["message"]) == ("other", "stale", "stale: 103 d")


def test_a_flaky_test_carries_the_flag_and_its_earlier_attempts_only(evidence: Evidence) -> None:
    record = evidence.record(attempts=(Attempt(1, "failed", failure="boom"), Attempt(2, "passed")))
    (test,) = document(evidence.fold(evidence.bundle(record)), "offline")["results"]["tests"]
    assert (test["flaky"], test["retries"]) == (True, 1)
    assert test["retryAttempts"] == [{"attempt": 1, "status": "failed", "trace": "boom"}]


def test_the_summary_counts_what_the_tests_say(evidence: Evidence) -> None:
    records = [
        evidence.record(node_id=f"lanes/offline/test_a.py::test_{number}", **facts)
        for number, facts in enumerate([{}, {"verdict": "failed"}, {"verdict": "not run", "reason_code": "platform"}])
    ]
    results = document(evidence.fold(evidence.bundle(*records)), "offline")["results"]
    summary = results["summary"]
    assert (summary["tests"], summary["passed"], summary["failed"], summary["skipped"]) == (3, 1, 1, 1)
    assert results["extra"]["lanes"]["does_not_prove"] != ""


def test_the_same_board_gives_the_same_bytes(evidence: Evidence) -> None:
    board = evidence.fold(evidence.bundle(evidence.record()))
    column = board.column("offline")
    assert render_ctrf(board, column) == render_ctrf(board, column)
    assert render_ctrf(board, column).isascii()
