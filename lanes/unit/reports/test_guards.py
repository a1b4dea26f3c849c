"""The Guards section: proofs are judged anew, fill no cell, and count for their own subject alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from lanes.bundle import Bundle
from lanes.bundle_reading import read_bundle
from lanes.proof_declaration import Edit, Proof
from lanes.proof_record import GROUP, Result, find_proof_bundles, save_result
from lanes.proof_verdict import Observation
from lanes.record import Json, Subject
from reports.board import Board, fold
from reports.guards import UNPROVEN
from reports.render.json_board import render_json
from reports.render.markdown import render_markdown
from reports.render.text import render_text

if TYPE_CHECKING:
    from lanes.unit.reports.conftest import Evidence

RED = "lanes/unit/test_a.py::test_one"
OTHER = "lanes/unit/test_a.py::test_two"
DIFF = "--- a/shop.py\n+++ b/shop.py\n@@ -1 +1 @@\n-if age < 18:\n+if age < 0:"
PROVEN = Observation(frozenset({RED}), red=(frozenset({RED}),), is_reached=True)
WIDER = replace(PROVEN, red=(frozenset({RED, OTHER}),))


def result(seen: Observation = PROVEN, proof_id: str = "limit") -> Result:
    proof = Proof(
        proof_id,
        "journey.fix-test",
        "children buy nothing",
        (Edit("shop.py", "18", "0"),),
        (RED,),
        scope=("lanes/unit",),
    )
    return Result(proof, seen, "2 passed", "1 failed, 1 passed", "2 passed", {"shop.py": DIFF}, 4200)


def bundles_of(out: Path, subject: Subject, *results: Result) -> list[Bundle]:
    for each in results:
        save_result(each, out, subject)
    return [read_bundle(folder) for folder in find_proof_bundles(out)]


def board_of(
    evidence: Evidence, proofs: list[Bundle], *, guarded: bool = True, declared: tuple[str, ...] = ("limit",)
) -> Board:
    return fold(
        [],
        evidence.claims(evidence.claim(guarded=guarded)),
        admission=evidence.admission(),
        proofs=proofs,
        declared=declared,
    )


def section(board: Board) -> list[str]:
    lines = render_text(board).splitlines()
    start = lines.index("Guards (break-it proofs):")
    return [line.strip() for line in lines[start + 1 : lines.index("", start)]]


@pytest.mark.parametrize(
    ("results", "lines"),
    [
        pytest.param((result(),), ["1 proven", "proven: limit"], id="proven"),
        pytest.param(
            (result(WIDER),),
            [
                "1 wider",
                f"wider: limit, 2 passed; 1 failed, 1 passed; 2 passed: also red: {OTHER}",
                f"{UNPROVEN}: journey.fix-test",
            ],
            id="wider",
        ),
        pytest.param(
            (result(), result(WIDER, "other")),
            [
                "1 proven, 1 wider",
                "proven: limit",
                f"wider: other, 2 passed; 1 failed, 1 passed; 2 passed: also red: {OTHER}",
                f"{UNPROVEN}: journey.fix-test",
            ],
            id="one-of-two",
        ),
        pytest.param((), ["1 not run", "not run: limit", f"{UNPROVEN}: journey.fix-test"], id="not-run"),
    ],
)
def test_the_section_names_every_proof_and_the_claims_without_one(
    evidence: Evidence, tmp_path: Path, results: tuple[Result, ...], lines: list[str]
) -> None:
    assert section(board_of(evidence, bundles_of(tmp_path, evidence.subject, *results))) == lines


def test_proofs_80_a_proof_of_an_older_commit_is_shown_and_does_not_count(evidence: Evidence, tmp_path: Path) -> None:
    older = replace(evidence.subject, commit="19bd77e" + "0" * 33)
    board = board_of(evidence, bundles_of(tmp_path, older, result()))

    assert section(board) == [
        "1 not run",
        "proven on 19bd77e (not this commit): limit, 2 passed; 1 failed, 1 passed; 2 passed",
        "not run: limit",
        f"{UNPROVEN}: journey.fix-test",
    ]
    assert (board.voids, board.guards.words_of(board.rows[0].claim)) == ((), UNPROVEN)


def test_a_proven_guard_is_said_of_its_claim_and_fills_no_cell(evidence: Evidence, tmp_path: Path) -> None:
    proofs = bundles_of(tmp_path, evidence.subject, result())
    without, board = board_of(evidence, []), board_of(evidence, proofs)

    assert board.guards.words_of(board.rows[0].claim) == "guard proven 1"
    assert (board.columns, board.rows, board.banner) == (without.columns, without.rows, without.banner)


def test_a_claim_that_is_not_flagged_says_nothing_of_a_guard(evidence: Evidence) -> None:
    board = board_of(evidence, [], guarded=False, declared=())

    assert board.guards.words_of(board.rows[0].claim) == ""
    assert "Guards" not in render_text(board)


def changed(bundle: Bundle, **group: Json) -> Bundle:
    """The bundle as somebody would leave it who edits a proof and all its digests."""
    record = bundle.records[0]
    facts = {**cast("Mapping[str, Json]", record.to_json()[GROUP]), **group}
    forged = replace(record, extra={**record.extra, GROUP: facts}, stored_id=None)
    return replace(bundle, records=(forged,))


@pytest.mark.parametrize(
    ("group", "code"),
    [
        pytest.param({"observed_red": [[RED]]}, "self-graded", id="runs-that-say-more"),
        pytest.param({"verdict": "survived"}, "self-graded", id="verdict-against-its-runs"),
        pytest.param({"halt": "tired"}, "damaged", id="unknown-halt"),
        pytest.param({"observed_red": "none"}, "damaged", id="no-list"),
    ],
)
def test_a_proof_that_grades_itself_is_void(
    evidence: Evidence, tmp_path: Path, group: dict[str, Json], code: str
) -> None:
    [bundle] = bundles_of(tmp_path, evidence.subject, result(WIDER))
    board = board_of(evidence, [changed(bundle, **group)])

    assert ([void.code for void in board.voids], board.guards.shown) == ([code], ())


def test_a_proof_whose_file_was_edited_is_void(evidence: Evidence, tmp_path: Path) -> None:
    bundles_of(tmp_path, evidence.subject, result(WIDER))
    records = tmp_path / "proofs" / "limit" / "records.jsonl"
    records.write_bytes(records.read_bytes().replace(b'"wider"', b'"proven"'))
    board = board_of(evidence, [read_bundle(folder) for folder in find_proof_bundles(tmp_path)])

    assert (board.guards.shown, sorted({void.code for void in board.voids})) == ((), ["record-id", "trailer"])


def test_markdown_shows_the_edit_as_a_diff_with_both_red_sets(evidence: Evidence, tmp_path: Path) -> None:
    text = render_markdown(board_of(evidence, bundles_of(tmp_path, evidence.subject, result(WIDER))))

    assert "### Guards: break-it proofs" in text
    assert "supports: these tests can fail, and fail for the stated reason" in text
    assert "  ```diff\n  --- a/shop.py\n" in text
    assert "expected red: lanes/unit/test\\_a.py::test\\_one\n" in text
    assert "observed red: lanes/unit/test\\_a.py::test\\_one, lanes/unit/test\\_a.py::test\\_two\n" in text


def test_json_holds_the_whole_proof(evidence: Evidence, tmp_path: Path) -> None:
    document = json.loads(render_json(board_of(evidence, bundles_of(tmp_path, evidence.subject, result()))))
    [proof] = document["guards"]["proofs"]

    assert (document["claims"][0]["guard"], proof["verdict"], proof["counts_as_proof"]) == (
        "guard proven 1",
        "proven",
        True,
    )
    assert (proof["expected_red"], proof["observed_red"], proof["diffs"]) == ([RED], [RED], {"shop.py": DIFF})
