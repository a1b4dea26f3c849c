"""One board, six outputs: read back by parsers of others, they tell the same counts (edge 70)."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import junitparser
import pytest
from google.protobuf import json_format
from in_toto_attestation.predicates.test_result.v0 import test_result_pb2
from in_toto_attestation.v1.statement import Statement
from in_toto_attestation.v1.statement_pb2 import Statement as StatementMessage

from lanes.record import Attempt
from reports.board import Board, Column
from reports.cells import STATUSES, status_of
from reports.render.ctrf import render_ctrf
from reports.render.html import render_html
from reports.render.json_board import render_json
from reports.render.junit import render_column
from reports.render.markdown import render_column as render_column_page
from reports.render.markdown import render_markdown
from reports.render.statement import render_statement
from reports.render.text import render_text

if TYPE_CHECKING:
    from lanes.unit.reports.conftest import Evidence

SCHEMAS = Path(__file__).parents[3] / "docs" / "schemas"
CLAIMS = ("journey.fix-test", "loop.other", "log.third", "wire.fourth")
DIGESTS = {"tox.ini": "ab" * 32}
LANES = ("unit", "snapshot", "replay", "offline", "real")


@pytest.fixture(scope="module")
def board(evidence: Evidence) -> Board:
    """A board on which every status occurs, in items and in cells."""
    names = iter(range(100))

    def record(lane: str, *claims: str, **facts: Any) -> Any:
        return evidence.record(lane, f"lanes/{lane}/test_a.py::test_{next(names)}", claim_ids=claims, **facts)

    flaky = (Attempt(1, "failed", failure="boom"), Attempt(2, "passed"))
    known = "https://issues.example/7 until 2099-01-01"
    offline = [
        record("offline", CLAIMS[0]),
        record("offline", CLAIMS[0], verdict="not run", reason_code="platform"),
        record("offline", CLAIMS[1], attempts=flaky),
        record("offline", CLAIMS[2], verdict="failed", failure="E  assert 1 == 2"),
        record("offline", CLAIMS[2], verdict="failed", reason_code="known-failure", reason_text=known),
        record("offline", CLAIMS[3], verdict="blocked", reason_code="outage"),
        record("offline"),
    ]
    replay = [
        record("replay", CLAIMS[0], cassette={"age_days": 103, "entries": 1, "consumed": 1}),
        record("replay", CLAIMS[1]),
    ]
    claims = evidence.claims(*(evidence.claim(claim) for claim in CLAIMS))
    word = evidence.bundle(lane="real", not_run_code="no-key", canary_start="")
    return evidence.fold(evidence.bundle(*offline), evidence.bundle(*replay), word, claims=claims)


def items_of(column: Column) -> dict[str, int]:
    """The items of a column by status, as the board holds them."""
    return {status: count for status in STATUSES if (count := column.item_tally.of(status))}


def cells_of(board: Board, column: Column) -> dict[str, int]:
    """The cells of a column by status, as the board holds them."""
    return dict(Counter(status_of(cell) for row in board.rows if (cell := row.cells[column.id]) is not None))


def test_every_status_occurs_in_what_the_outputs_are_held_against(board: Board) -> None:
    items = Counter[str]()
    cells = Counter[str]()
    for column in board.columns:
        items.update(items_of(column))
        cells.update(cells_of(board, column))

    assert (set(items), set(cells)) == (set(STATUSES), set(STATUSES))


def outcome_of(case: junitparser.TestCase) -> str:
    """What a case of a JUnit file came to, as a parser of others has it."""
    for result in case.result:
        match result:
            case junitparser.Skipped():
                return str(result.message).partition(":")[0]
            case junitparser.Error():
                return "blocked"
            case junitparser.Failure():
                return "failed"
    return "passed"


@pytest.mark.parametrize("lane", LANES)
def test_edge70_junit_read_back_by_its_parser_counts_as_the_board_does(board: Board, lane: str) -> None:
    column = board.column(lane)
    (suite,) = junitparser.JUnitXml.fromstring(render_column(board, column).encode("utf-8"))
    cases = list(suite)
    items = [case for case in cases if not (case.classname or "").startswith("claims.")]
    without_item = len(cases) - len(items)

    told, tally = Counter(outcome_of(case) for case in items), column.item_tally
    assert {outcome_of(case) for case in cases if case not in items} <= {"not run"}
    assert told == Counter(
        {
            "passed": tally.passed + tally.flaky,
            "failed": tally.failed - tally.known,
            "failed (known)": tally.known,
            "not run": tally.not_run,
            "stale": tally.stale,
            "blocked": tally.blocked,
        }
    )
    assert (suite.tests, suite.failures, suite.errors, suite.skipped - without_item) == (
        len(cases),
        tally.failed - tally.known,
        tally.blocked,
        tally.not_run + tally.stale + tally.known,
    )


@pytest.mark.parametrize("lane", LANES)
def test_edge70_ctrf_fits_its_schema_and_counts_as_the_board_does(board: Board, lane: str) -> None:
    column = board.column(lane)
    document = json.loads(render_ctrf(board, column))
    schema = json.loads((SCHEMAS / "ctrf-column-1.json").read_text("utf-8"))

    jsonschema.validate(document, schema)

    summary, tally = document["results"]["summary"], column.item_tally
    raw = Counter(test["rawStatus"] for test in document["results"]["tests"])
    assert raw == items_of(column)
    assert (summary["passed"], summary["flaky"], summary["failed"], summary["skipped"], summary["other"]) == (
        tally.passed + tally.flaky,
        tally.flaky,
        tally.failed,
        tally.not_run,
        tally.blocked + tally.stale,
    )


def test_the_documents_of_one_board_share_a_run_and_those_of_another_do_not(board: Board, evidence: Evidence) -> None:
    ids = {json.loads(render_ctrf(board, column))["runId"] for column in board.columns}
    other = evidence.fold(evidence.bundle(evidence.record()))

    assert len(ids | {json.loads(render_ctrf(other, other.columns[0]))["runId"]}) == 2


@pytest.mark.parametrize("lane", ["unit", "snapshot", "replay", "offline"])
def test_edge70_the_statement_is_one_of_in_toto_and_names_the_claims_as_the_board_has_them(
    board: Board, lane: str
) -> None:
    column = board.column(lane)
    text = render_statement(board, column, DIGESTS)
    assert text is not None

    message = json_format.Parse(text, StatementMessage())
    Statement.copy_from_pb(message).validate()
    result = json_format.ParseDict(json.loads(text)["predicate"], test_result_pb2.TestResult())

    counts = Counter(cells_of(board, column))
    assert (len(result.passed_tests), len(result.warned_tests), len(result.failed_tests)) == (
        counts["passed"],
        counts["not run"] + counts["stale"] + counts["flaky"],
        counts["failed"] + counts["blocked"],
    )
    assert {each.name for each in result.configuration} >= set(DIGESTS)


def test_edge71_of_the_real_column_without_live_proof_there_is_no_statement(board: Board) -> None:
    assert render_statement(board, board.column("real"), DIGESTS) is None


def test_edge70_the_json_board_fits_its_schema_and_counts_as_the_board_does(board: Board) -> None:
    document = json.loads(render_json(board))

    jsonschema.validate(document, json.loads((SCHEMAS / "board-1.json").read_text("utf-8")))

    for column, told in zip(board.columns, document["columns"], strict=True):
        assert Counter(item["status"] for item in told["items"]) == items_of(column)
        cells = Counter(claim["cells"][column.id]["status"] for claim in document["claims"])
        assert {status: count for status, count in cells.items() if status != "not asked"} == cells_of(board, column)


class Cells(HTMLParser):
    """The cells of the table of claims on the page, by column, and the words of every test below them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.cells: dict[str, Counter[str]] = {}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = dict(attrs)
        if tag == "td" and told.get("data-column"):
            self.cells.setdefault(str(told["data-column"]), Counter())[str(told["data-status"])] += 1


def test_edge70_the_page_counts_as_the_board_does(board: Board) -> None:
    read = Cells(render_html(board))

    for number, column in enumerate(board.columns, start=1):
        told = {name.replace("-", " "): count for name, count in read.cells[f"column-{number}"].items()}
        assert {status: count for status, count in told.items() if status != "not asked"} == cells_of(board, column)


@pytest.mark.parametrize("output", [render_text, render_markdown], ids=["text", "markdown"])
def test_edge70_terminal_and_summary_count_as_the_board_does(board: Board, output: Any) -> None:
    text = output(board)

    for column in board.columns:
        cells = Counter(cells_of(board, column))
        order = ("passed", "failed", "flaky", "stale", "blocked", "not run")
        assert "/".join(str(cells[status]) for status in order) in re.sub(r"\s+", " ", text)


DIRTY: dict[str, Any] = {
    "text": lambda board, column: "dirty" in render_text(board),
    "markdown": lambda board, column: "dirty" in render_markdown(board),
    "column": lambda board, column: "dirty" in render_column_page(board, column),
    "page": lambda board, column: "<dt>work tree</dt><dd>dirty, sha256:9</dd>" in render_html(board),
    "json": lambda board, column: json.loads(render_json(board))["subject"]["dirty"],
    "junit": lambda board, column: 'name="subject.dirty" value="true"' in render_column(board, column),
    "ctrf": lambda board, column: json.loads(render_ctrf(board, column))["results"]["extra"]["lanes"]["subject"][
        "dirty"
    ],
    "statement": lambda board, column: "changed in the work tree" in str(render_statement(board, column, {})),
}


@pytest.mark.parametrize("output", DIRTY)
def test_edge51_evidence_of_a_changed_tree_carries_the_mark_through_every_output(
    evidence: Evidence, output: str
) -> None:
    subject = replace(evidence.subject, dirty=True, dirty_digest="sha256:9")
    record = evidence.record("unit", subject=subject)
    dirty = evidence.fold(evidence.bundle(record, subject=subject), admission=evidence.admission(subject=subject))
    clean = evidence.fold(evidence.bundle(evidence.record("unit")))

    told = [bool(DIRTY[output](board, board.column("unit"))) for board in (dirty, clean)]
    assert told == [True, False]


def test_a_statement_about_a_changed_tree_never_says_passed(evidence: Evidence) -> None:
    subject = replace(evidence.subject, dirty=True, dirty_digest="sha256:9")
    claims = evidence.claims(evidence.claim(required=("unit",), optional=()))
    results = []
    for about in (subject, evidence.subject):
        bundle = evidence.bundle(evidence.record("unit", subject=about), subject=about)
        board = evidence.fold(bundle, claims=claims, admission=evidence.admission(subject=about))
        results.append(json.loads(str(render_statement(board, board.column("unit"), {})))["predicate"]["result"])

    assert results == ["WARNED", "PASSED"]
