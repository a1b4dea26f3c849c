"""JUnit files of other runners: what did not run never counts as passed (case B39)."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as Xml

import pytest

from lanes.bundle import Bundle
from lanes.claims import Claims
from lanes.policy import LANES, LanePolicy
from reports.board import Board, Column
from reports.items import Item
from reports.junit_input import read_junit
from reports.render.json_board import render_json
from reports.render.junit import render_junit
from reports.render.markdown import render_markdown
from reports.render.text import render_text
from reports.verdict import PASSED, exit_code
from reports.words import counted_words

if TYPE_CHECKING:
    from lanes.unit.reports.conftest import Evidence

CASES = Path(__file__).parents[2] / "cases" / "reports"
EXPECTED = json.loads((CASES / "B39-expected.json").read_text(encoding="utf-8"))
POLICY: dict[str, LanePolicy] = {
    row["lane"]: replace(LANES["unit"], name=row["lane"], text=replace(LANES["unit"].text, heading=row["lane"]))
    for row in EXPECTED["lanes"]
}


def b39_board(evidence: Evidence) -> Board:
    bundles = []
    for row in EXPECTED["lanes"]:
        if row["junit"] is not None:
            data = (CASES / Path(row["junit"]).name).read_bytes()
            bundles.append(read_junit(data, lane=row["lane"], subject=evidence.subject, name=row["junit"]))
    claims = Claims({"any.claim": evidence.claim("any.claim", required=tuple(POLICY))})
    return evidence.fold(*bundles, claims=claims, policy=POLICY)


def b39_cell(item: Item | None, column: Column) -> str:
    """What our words for an item are called in the case."""
    if item is None:
        return "not run" if column.not_run is not None and column.not_run.code == "lane-not-run" else "absent"
    text = item.reason.text if item.reason is not None else ""
    if item.status == "not run":
        return f"skipped ({text})"
    return f"expected failure ({text})" if item.is_known else item.status


def test_case_B39_counts_are_those_of_the_files(evidence: Evidence) -> None:
    board = b39_board(evidence)

    found = {}
    for column in board.columns:
        tally = column.item_tally
        counts = {"passed": tally.passed, "skipped": tally.not_run, "failed": tally.failed - tally.known}
        found[column.id] = counts | ({"expected_failure": tally.known} if tally.known else {})

    assert found == {
        row["lane"]: row["counts"] or {"passed": 0, "skipped": 0, "failed": 0} for row in EXPECTED["lanes"]
    }


def test_case_B39_each_test_reads_as_it_should_in_each_lane(evidence: Evidence) -> None:
    board = b39_board(evidence)

    found = []
    for cell in EXPECTED["cells"]:
        read = {"test": cell["test"]}
        for column in board.columns:
            item = next((each for each in column.items if each.node_id == cell["test"]), None)
            read[column.id] = b39_cell(item, column)
        found.append(read)

    assert found == EXPECTED["cells"]


def test_case_B39_a_lane_that_proved_nothing_says_why_and_the_whole_is_not_green(evidence: Evidence) -> None:
    board = b39_board(evidence)

    found = {
        column.id: column.not_run.words if column.not_run is not None else counted_words(column.item_tally)
        for column in board.columns
    }

    assert found == {
        "unit": "passed 1, not run 1, failed (known) 1",
        "snapshot": "not run 2",
        "replay": "no tests",
        "live": "lane not run",
        "other-python": "lane not run",
    }
    assert exit_code(board) != PASSED


def test_case_B39_all_outputs_agree_and_no_cell_that_did_not_run_reads_passed(evidence: Evidence) -> None:
    board = b39_board(evidence)

    document = json.loads(render_json(board))
    from_json = {column["id"]: column["item_counts"].get("passed", 0) for column in document["columns"]}
    from_junit = {}
    for lane, text in render_junit(board).items():
        cases = Xml.fromstring(text).findall(".//testcase")  # noqa: S314 - our own document
        outcomes = {"failure", "error", "skipped"}
        from_junit[lane] = sum(1 for case in cases if not outcomes.intersection(child.tag for child in case))
    said = [
        line
        for text in (render_text(board), render_markdown(board))
        for line in text.splitlines()
        if "any.claim" in line and "passed" in line
    ]

    assert (from_json, from_junit, said) == (
        {"unit": 1, "snapshot": 0, "replay": 0, "live": 0, "other-python": 0},
        {"unit": 1, "snapshot": 0, "replay": 0, "live": 0, "other-python": 0},
        [],
    )


def read(evidence: Evidence, text: str, lane: str = "unit") -> Bundle:
    return read_junit(text.encode("utf-8"), lane=lane, subject=evidence.subject, name="a.xml")


@pytest.mark.parametrize(
    ("inner", "verdict", "code", "text"),
    [
        pytest.param("", "passed", None, "", id="passed"),
        pytest.param('<failure message="m">t</failure>', "failed", None, "", id="failure"),
        pytest.param('<error message="m"/>', "failed", None, "", id="error"),
        pytest.param("<skipped>why</skipped>", "not run", "unclassified-skip", "why", id="skipped"),
        pytest.param('<skipped/><failure message="m"/>', "failed", None, "", id="skipped-and-failed"),
        pytest.param('<skipped type="pytest.xfail" message="limit"/>', "failed", "known-failure", "limit", id="xfail"),
    ],
)
def test_a_case_reads_as_its_worst_child(
    evidence: Evidence, inner: str, verdict: str, code: str | None, text: str
) -> None:
    bundle = read(
        evidence, f'<testsuite><testcase classname="a" name="b" time="1,000.5">{inner}</testcase></testsuite>'
    )

    record = bundle.records[0]
    assert (record.verdict, record.reason_code, record.reason_text, record.node_id, record.duration_ms) == (
        verdict,
        code,
        text,
        "a::b",
        1_000_500,
    )


@pytest.mark.parametrize("status", ["notrun", "disabled", "SKIPPED"])
def test_a_case_that_says_it_did_not_run_did_not_run(evidence: Evidence, status: str) -> None:
    bundle = read(evidence, f'<testsuite><testcase name="b" status="{status}"/></testsuite>')

    assert bundle.records[0].verdict == "not run"


def test_a_case_names_its_claims_by_properties(evidence: Evidence) -> None:
    text = '<testcase name="b"><properties><property name="claim" value="journey.fix-test"/></properties></testcase>'

    assert read(evidence, f"<testsuite>{text}</testsuite>").records[0].claim_ids == ("journey.fix-test",)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        pytest.param("", "unreadable", id="empty"),
        pytest.param('{"reportFormat": "CTRF"}', "unreadable", id="ctrf"),
        pytest.param("<testsuite>", "unreadable", id="cut-off"),
        pytest.param("<html/>", "unreadable", id="other-root"),
        pytest.param('<!DOCTYPE a [<!ENTITY b "c">]><testsuite/>', "unreadable", id="entities"),
        pytest.param('<testsuite tests="3"><testcase name="a"/></testsuite>', "damaged", id="miscounted"),
    ],
)
def test_a_file_that_cannot_be_believed_is_void_and_never_absent(evidence: Evidence, text: str, code: str) -> None:
    board = evidence.fold(read(evidence, text))

    assert [void.code for void in board.voids] == [code]


def test_a_file_from_outside_cannot_enter_the_real_column(evidence: Evidence) -> None:
    board = evidence.fold(read(evidence, '<testsuite><testcase name="a"/></testsuite>', lane="real"))

    assert ([void.code for void in board.voids], board.column("real").items) == (["marker"], ())
