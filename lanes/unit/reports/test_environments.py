"""Two environments that fill one lane: what one could not try, the other one may have."""

from __future__ import annotations

import itertools

import pytest

from lanes.bundle import Bundle
from reports.board import Board
from reports.cells import NotRun, Proven, Reason, Tally
from reports.verdict import FAILED, PASSED, Asked, exit_code

OFFLINE = Asked(lanes=("offline",))


def lacking(evidence) -> Bundle:
    record = evidence.record(verdict="not run", reason_code="missing-dependency", reason_text="a-package", answers=())
    return evidence.bundle(record)


def having(evidence, **changes) -> Bundle:
    record = evidence.record(run_id="run-clients", **changes)
    return evidence.bundle(record, run_id="run-clients", lane_mark="offline-clients", tox_env="offline-clients")


def cell_of(board: Board, claim_id: str = "journey.fix-test"):
    return next(row.cells["offline"] for row in board.rows if row.claim.id == claim_id)


@pytest.fixture
def optional(evidence):
    return evidence.claims(evidence.claim(required=(), optional=("offline",)))


def test_alone_the_claim_reads_not_run_with_the_missing_package(evidence, optional) -> None:
    other = evidence.record(node_id="lanes/offline/test_a.py::test_two", claim_ids=())
    first = evidence.record(verdict="not run", reason_code="missing-dependency", reason_text="a-package", answers=())
    board = evidence.fold(evidence.bundle(first, other), claims=optional)

    assert cell_of(board) == NotRun(Reason("missing-dependency", "a-package"), Tally(not_run=1))
    assert exit_code(board, OFFLINE) == PASSED


@pytest.mark.parametrize("verdict", ["passed", "failed"])
def test_the_verdict_of_the_environment_that_has_the_package_stands(evidence, optional, verdict: str) -> None:
    bundles = lacking(evidence), having(evidence, verdict=verdict)
    boards = [evidence.fold(*order, claims=optional) for order in itertools.permutations(bundles)]

    for board in boards:
        cell = cell_of(board)
        assert isinstance(cell, Proven)
        assert (cell.verdict, cell.tally.total) == (verdict, 1)
        assert exit_code(board, OFFLINE) == (PASSED if verdict == "passed" else FAILED)


def test_no_other_reason_gives_way(evidence, optional) -> None:
    first = evidence.bundle(evidence.record(verdict="not run", reason_code="budget", reason_text="x", answers=()))

    assert isinstance(cell_of(evidence.fold(first, having(evidence), claims=optional)), NotRun)


def test_a_run_of_a_part_does_not_excuse_a_claim_that_the_whole_lane_has_no_test_for(evidence) -> None:
    claims = evidence.claims(
        evidence.claim(required=("offline",)), evidence.claim("journey.other", required=("offline",))
    )
    whole = evidence.bundle(evidence.record())
    part = having(evidence, node_id="lanes/offline/test_a.py::test_two", claim_ids=())
    filtered = evidence.bundle(
        *part.records,
        run_id="run-clients",
        lane_mark="offline-clients",
        tox_env="offline-clients",
        extra={"filtered": True},
    )

    both, alone = evidence.fold(whole, filtered, claims=claims), evidence.fold(filtered, claims=claims)

    assert (cell_of(both, "journey.other"), exit_code(both, OFFLINE)) == (NotRun(Reason("no-test")), FAILED)
    assert (cell_of(alone, "journey.other"), exit_code(alone, OFFLINE)) == (NotRun(Reason("deselected")), PASSED)
