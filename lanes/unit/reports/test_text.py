"""The board on a terminal."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from lanes.claims import Claims
from lanes.record import JsonObject
from reports.board import Board, LastSeen, fold
from reports.render.text import MIN_WIDTH, render_text

if TYPE_CHECKING:
    from lanes.unit.reports.conftest import Evidence

REPLAYED: JsonObject = {"channel": "session-log", "class": "scripted"}
CONSUMED: JsonObject = {"entries": 1, "consumed": 1}


@pytest.fixture
def board(evidence: Evidence) -> Board:
    claims = evidence.claims(evidence.claim(), evidence.claim("loop.late", required=("unit", "offline"), optional=()))
    failed = evidence.record(
        node_id="lanes/offline/test_a.py::test_late", verdict="failed", claim_ids=("loop.late",), failure="boom\nE  no"
    )
    return evidence.fold(
        evidence.bundle(evidence.record("unit", claim_ids=("loop.late",)), keys_removed=2),
        evidence.bundle(evidence.record("replay", answers=(REPLAYED,), cassette={**CONSUMED, "age_days": 103})),
        evidence.bundle(evidence.record(), failed),
        evidence.bundle(
            lane="real", not_run_code="no-key", not_run_text="set ACME_API_KEY", guard_depth="", canary_start=""
        ),
        claims=claims,
        last_seen=[LastSeen("journey.fix-test", "19bd77e" + "0" * 33, 3, "m-large-0221", "api.acme.example")],
    )


GOLDEN = """\
No claim on this board has been observed against a real model.
subject 4f0c2a1  clean  guard D3

claim              Unit               Snapshot   Replay            Offline    Real API
                   stand-ins          scripted   scripted          scripted   live
journey.fix-test   not run: no test   not run    stale 1 (103 d)   passed 1   not run: no key
loop.late          passed 1           -          -                 failed 1   not required
claims per column, passed/failed/flaky/stale/blocked/not run:  Unit 1/0/0/0/0/1  Snapshot 0/0/0/0/0/1
  Replay 0/0/0/1/0/0  Offline 1/1/0/0/0/0  Real API 0/0/0/0/0/1
Last seen live: journey.fix-test on 19bd77e (not this commit), 3 days ago, m-large-0221 at api.acme.example

Why cells are not run or blocked:
  Unit, no test: journey.fix-test
  Snapshot: not run: lane not run
  Real API: not run: no key: set ACME_API_KEY

Offline, failed: lanes/offline/test_a.py::test_late
    boom
    E  no

Keys removed before the start:
  Unit: 2

What each column may claim:
  Unit: parts in isolation; stand-in answers, if any
    supports: these functions and state machines do what their tests say
    does not prove: that the parts are wired together; anything about a model or a wire
"""


def test_the_board_reads_as_written_here(board: Board) -> None:
    assert render_text(board, width=110).startswith(GOLDEN)


def test_each_heading_has_its_texts_beside_it(board: Board) -> None:
    text = render_text(board, width=400)

    told = [
        (column.sub_heading in text, column.supports in text, column.does_not_prove in text) for column in board.columns
    ]
    assert told == [(True, True, True)] * 5


@pytest.mark.parametrize("width", [1, 40, 60, 80, 100, 132])
def test_a_narrow_terminal_stacks_columns_and_drops_none(board: Board, width: int) -> None:
    lines = render_text(board, width=width).splitlines()

    too_wide = [line for line in lines if len(line) > max(width, MIN_WIDTH)]
    headings = [
        line.split("  ")[1] for line in lines if line.startswith("  ") and line.endswith(("no key", "not required"))
    ]
    assert (too_wide, width >= 80 or len(headings) >= 2) == ([], True)
    assert "\n".join(lines).replace("\n", " ").count("not run: no key") >= 2


def test_colours_stand_beside_the_words_and_change_none(board: Board) -> None:
    plain, coloured = (render_text(board, width=110, colour=colour) for colour in (False, True))

    assert ("\x1b" in plain, "\x1b[32mpassed\x1b[0m 1" in coloured) == (False, True)
    assert re.sub(r"\x1b\[\d*m", "", coloured) == plain


def test_edge51_a_dirty_tree_is_marked(evidence: Evidence) -> None:
    dirty = replace(evidence.subject, dirty=True, dirty_digest="sha256:1")
    board = evidence.fold(admission=evidence.admission(subject=dirty))

    assert "subject 4f0c2a1  dirty" in render_text(board)


def test_a_tree_without_a_commit_is_named_by_its_files(evidence: Evidence) -> None:
    bare = replace(evidence.subject, commit="", tree="sha256:0123456789abcdef")

    text = render_text(evidence.fold(admission=evidence.admission(subject=bare)))

    assert text.splitlines()[1].strip() == "subject tree 0123456789ab"


def test_depths_of_the_guard_that_differ_are_told_apart(evidence: Evidence) -> None:
    board = evidence.fold(
        evidence.bundle(evidence.record("unit"), guard_depth="D2"), evidence.bundle(evidence.record())
    )

    assert "guard Unit D2, Offline D3" in render_text(board)


def test_what_stands_beside_the_cells_is_printed(evidence: Evidence) -> None:
    void = replace(evidence.record("unit"), stored_class="live")
    board = evidence.fold(
        evidence.bundle(void),
        evidence.bundle(
            evidence.record(claim_ids=()), breaches=("tracked file changed: a.py",), marker="self", tox_env=""
        ),
    )

    text = render_text(board, width=200)

    wanted = [
        "  void (self-graded, §3.4): lane unit, lanes/unit/test_a.py::test_one: the record says class 'live'",
        "  offline, breach: tracked file changed: a.py",
        "Items that speak for no claim:\n  Offline: passed 1",
        "Started outside tox, marker set by the lane itself:\n  Offline",
    ]
    assert [piece for piece in wanted if piece not in text] == []


def test_a_long_failure_keeps_its_end_and_says_how_much_is_missing(evidence: Evidence) -> None:
    failure = "\n".join(f"line {number}" for number in range(100))
    board = evidence.fold(evidence.bundle(evidence.record(verdict="failed", failure=failure)))

    text = render_text(board)

    assert ("    (88 lines before)\n    line 88\n" in text, "line 99" in text, "line 87" in text) == (True, True, False)


def test_a_board_without_claims_says_so(evidence: Evidence) -> None:
    board = fold((), Claims(), admission=evidence.admission())

    assert "No claims.\n" in render_text(board)
