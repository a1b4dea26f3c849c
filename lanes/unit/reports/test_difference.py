"""The difference of two boards: what was won, what was lost, and nothing passed over."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from lanes.errors import EvidenceError
from lanes.record import Attempt
from reports.board import Board
from reports.difference import BoardRead, compare_boards, difference_text, parse_board
from reports.render.json_board import render_json

if TYPE_CHECKING:
    from lanes.unit.reports.conftest import Evidence


def read(board: Board, name: str = "board.json") -> BoardRead:
    return parse_board(render_json(board).encode("ascii"), name)


@pytest.fixture
def boards(evidence: Evidence) -> dict[str, Board]:
    """A board for each status that the offline cell of the one claim can read."""
    flaky = evidence.record(attempts=(Attempt(1, "failed"), Attempt(2, "passed")))
    stale = evidence.record("replay", cassette={"age_days": 103, "entries": 1, "consumed": 1})
    return {
        "passed": evidence.fold(evidence.bundle(evidence.record())),
        "failed": evidence.fold(evidence.bundle(evidence.record(verdict="failed"))),
        "flaky": evidence.fold(evidence.bundle(flaky)),
        "blocked": evidence.fold(evidence.bundle(evidence.record(verdict="blocked", reason_code="outage"))),
        "not run": evidence.fold(),
        "stale": evidence.fold(evidence.bundle(stale)),
        "replayed": evidence.fold(evidence.bundle(evidence.record("replay"))),
    }


@pytest.mark.parametrize(
    ("before", "after", "kind", "column"),
    [
        pytest.param("not run", "passed", "newly proven", "Offline", id="newly-proven"),
        pytest.param("passed", "not run", "lost", "Offline", id="lost"),
        pytest.param("passed", "blocked", "lost", "Offline", id="lost-to-an-outage"),
        pytest.param("passed", "failed", "failed", "Offline", id="failed"),
        pytest.param("passed", "flaky", "flaky", "Offline", id="flaky"),
        pytest.param("replayed", "stale", "stale", "Replay", id="stale"),
        pytest.param("blocked", "not run", "changed", "Offline", id="changed"),
    ],
)
def test_each_change_of_a_cell_has_its_kind(
    boards: dict[str, Board], before: str, after: str, kind: str, column: str
) -> None:
    changes = compare_boards(read(boards[before]), read(boards[after]))

    assert [(each.kind, each.claim_id, each.column) for each in changes] == [(kind, "journey.fix-test", column)]


def test_equal_boards_differ_in_nothing(boards: dict[str, Board]) -> None:
    board = read(boards["passed"])

    assert compare_boards(board, board) == ()
    assert difference_text(board, board, ()).endswith("0 cells read otherwise, 5 read as before\n")


def test_a_claim_that_is_gone_is_lost_where_it_had_passed(evidence: Evidence, boards: dict[str, Board]) -> None:
    other = evidence.fold(claims=evidence.claims(evidence.claim("loop.other")))

    changes = compare_boards(read(boards["passed"]), read(other))

    lost = [each for each in changes if each.kind == "lost"]
    assert [(each.claim_id, each.before, each.after) for each in lost] == [
        ("journey.fix-test", "passed 1", "not on this board")
    ]


def test_the_difference_names_both_subjects_and_what_was_worst_first(boards: dict[str, Board]) -> None:
    before, after = read(boards["passed"], "a"), read(boards["failed"], "b")

    lines = difference_text(before, after, compare_boards(before, after)).splitlines()

    assert lines[0] == "before: a, about 4f0c2a100000"
    assert lines[5:7] == ["Failed, and did not before (1):", "  journey.fix-test, Offline: passed 1 -> failed 1"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param(json.dumps({"schema": "board/9"}), "schema is 'board/9'", id="newer"),
        pytest.param("[]", "schema is None", id="no-object"),
        pytest.param("{", "is no JSON", id="torn"),
        pytest.param(json.dumps({"schema": "board/1"}), "a part of the board has another form", id="bare"),
    ],
)
def test_what_is_no_board_of_this_version_is_refused_in_words(text: str, told: str) -> None:
    with pytest.raises(EvidenceError) as raised:
        parse_board(text.encode("ascii"), "board.json")

    assert (raised.value.what.startswith(told), raised.value.where) == (True, "board.json")
