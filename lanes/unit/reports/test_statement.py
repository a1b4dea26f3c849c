"""In-toto statements: what a column proves, and none where nothing live was seen."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from reports.board import Board
from reports.render.statement import render_statement

if TYPE_CHECKING:
    from lanes.unit.reports.conftest import Evidence

DIGESTS = {"tox.ini": "ab" * 32}


def predicate(board: Board, column: str) -> Any:
    text = render_statement(board, board.column(column), DIGESTS)
    assert text is not None
    return json.loads(text)["predicate"]


def test_a_statement_is_about_the_commit_and_names_what_configured_it(evidence: Evidence) -> None:
    board = evidence.fold(evidence.bundle(evidence.record()))
    text = render_statement(board, board.column("offline"), DIGESTS)
    assert text is not None
    statement = json.loads(text)
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == "https://in-toto.io/attestation/test-result/v0.1"
    assert statement["subject"][0]["digest"] == {"gitCommit": board.subject.commit}
    (bundle,) = board.column("offline").bundles
    assert statement["predicate"]["configuration"] == [
        {"name": "tox.ini", "digest": {"sha256": "ab" * 32}},
        {"name": "bundle 1", "digest": {"sha256": bundle.removeprefix("sha256:")}},
    ]


def test_a_column_in_which_something_required_was_not_seen_only_warns(evidence: Evidence) -> None:
    board = evidence.fold()
    stated = predicate(board, "offline")
    assert (stated["result"], stated["passedTests"], stated["failedTests"]) == ("WARNED", [], [])


def test_a_failed_claim_fails_the_statement_by_name(evidence: Evidence) -> None:
    board = evidence.fold(evidence.bundle(evidence.record(verdict="failed")))
    stated = predicate(board, "offline")
    assert stated["result"] == "FAILED"
    assert stated["failedTests"] != []


def test_a_real_column_without_live_proof_states_nothing(evidence: Evidence) -> None:
    board = evidence.fold(evidence.bundle(lane="real", not_run_code="no-key", canary_start=""))
    assert render_statement(board, board.column("real"), DIGESTS) is None


def test_a_real_column_with_live_proof_states_what_it_saw(evidence: Evidence) -> None:
    board = evidence.fold(evidence.bundle(evidence.live_record()))
    assert render_statement(board, board.column("real"), DIGESTS) is not None
