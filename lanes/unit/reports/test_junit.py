"""JUnit: one file a column, and nothing that did not run counts as passed."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as Xml

import pytest

from lanes.record import Attempt, Record
from reports.board import Board
from reports.render.junit import render_junit, split_node_id

if TYPE_CHECKING:
    from lanes.unit.reports.conftest import Evidence


def suite_of(board: Board, column: str) -> Xml.Element:
    suite = Xml.fromstring(render_junit(board)[column]).find("testsuite")  # noqa: S314 - our own document
    assert suite is not None
    return suite


def counts_of(suite: Xml.Element) -> dict[str, int]:
    return {name: int(suite.get(name, "-1")) for name in ("tests", "failures", "errors", "skipped")}


def one_case(
    evidence: Evidence, record: Record
) -> tuple[dict[str, int], list[tuple[str, str | None, str | None, str | None]]]:
    suite = suite_of(evidence.fold(evidence.bundle(record)), record.lane)
    case = suite.findall("testcase")[0]
    children = [
        (child.tag, child.get("type"), child.get("message"), child.text) for child in case if child.tag != "properties"
    ]
    return counts_of(suite), children


def test_a_pass_is_a_bare_case(evidence: Evidence) -> None:
    assert one_case(evidence, evidence.record()) == ({"tests": 1, "failures": 0, "errors": 0, "skipped": 0}, [])


def test_not_run_is_skipped_with_its_code(evidence: Evidence) -> None:
    record = evidence.record(verdict="not run", reason_code="platform", reason_text="no fork here")

    assert one_case(evidence, record) == (
        {"tests": 1, "failures": 0, "errors": 0, "skipped": 1},
        [("skipped", "platform", "not run: not on this platform: no fork here", None)],
    )


def test_stale_is_skipped_and_says_stale(evidence: Evidence) -> None:
    record = evidence.record("replay", cassette={"age_days": 103, "entries": 1, "consumed": 1})

    assert one_case(evidence, record) == (
        {"tests": 1, "failures": 0, "errors": 0, "skipped": 1},
        [("skipped", "stale", "stale: 103 d", None)],
    )


def test_blocked_is_an_error(evidence: Evidence) -> None:
    record = evidence.record(verdict="blocked", reason_code="worker-lost", reason_text="it died")

    assert one_case(evidence, record) == (
        {"tests": 1, "failures": 0, "errors": 1, "skipped": 0},
        [("error", "worker-lost", "blocked: worker lost: it died", None)],
    )


def test_failed_is_a_failure_with_its_text(evidence: Evidence) -> None:
    record = evidence.record(verdict="failed", failure="first\nE  assert 1 == 2\n")

    assert one_case(evidence, record) == (
        {"tests": 1, "failures": 1, "errors": 0, "skipped": 0},
        [("failure", "failed", "E  assert 1 == 2", "first\nE  assert 1 == 2\n")],
    )


def test_a_known_failure_is_neither_passed_nor_a_failure(evidence: Evidence) -> None:
    reason = {"reason_code": "known-failure", "reason_text": "https://example.com/7 until 2999-01-01"}
    record = evidence.record(verdict="failed", failure="x", **reason)

    assert one_case(evidence, record) == (
        {"tests": 1, "failures": 0, "errors": 0, "skipped": 1},
        [("skipped", "known-failure", "failed (known): https://example.com/7 until 2999-01-01", None)],
    )


def test_flaky_passes_with_the_earlier_failure_attached(evidence: Evidence) -> None:
    record = evidence.record(attempts=(Attempt(1, "failed", failure="boom"), Attempt(2, "passed")))

    assert one_case(evidence, record) == (
        {"tests": 1, "failures": 0, "errors": 0, "skipped": 0},
        [("flakyFailure", "flaky", "boom", "boom")],
    )


def test_the_suite_is_named_after_its_lane_and_who_answers(evidence: Evidence) -> None:
    board = evidence.fold(evidence.bundle(evidence.record()))

    assert {column.id: suite_of(board, column.id).get("name") for column in board.columns} == {
        "unit": "unit (stand-ins)",
        "snapshot": "snapshot (scripted)",
        "replay": "replay (recorded)",
        "offline": "offline (scripted)",
        "real": "real (live)",
    }


def test_attempts_and_facts_are_properties(evidence: Evidence) -> None:
    suite = suite_of(evidence.fold(evidence.bundle(evidence.record())), "offline")
    case = suite.findall("testcase")[0]

    found = {each.get("name"): each.get("value") for each in case.iter("property")}
    told = {each.get("name"): each.get("value") for each in suite.findall("properties/property")}
    assert (found["status"], found["class"], found["attempt.1"], found["claim"], found["guard.depth"]) == (
        "passed",
        "scripted",
        "passed, 5 ms, 0 answers",
        "journey.fix-test",
        "D3",
    )
    assert (told["does not prove"], told["subject.dirty"]) == (
        "that the provider behaves like the mock; cost, latency or quality of a real model",
        "false",
    )


def test_a_live_proof_is_a_property_of_its_case(evidence: Evidence) -> None:
    suite = suite_of(evidence.fold(evidence.bundle(evidence.live_record())), "real")

    found = {each.get("name"): each.get("value") for each in suite.findall("testcase")[0].iter("property")}

    assert str(found["live proof"]).startswith("LiveProof(hosted m-large-0221 at api.acme.example")


def test_a_claim_without_any_item_is_a_skipped_case_of_its_own(evidence: Evidence) -> None:
    empty = evidence.bundle(lane="real", not_run_code="no-key", canary_start="")
    suite = suite_of(evidence.fold(empty), "real")

    found = [(case.get("classname"), case.get("name"), case[1].get("type")) for case in suite.findall("testcase")]
    assert (counts_of(suite), found) == (
        {"tests": 1, "failures": 0, "errors": 0, "skipped": 1},
        [("claims.real", "journey.fix-test", "no-key")],
    )


@pytest.mark.parametrize(
    ("node_id", "expected"),
    [
        ("lanes/unit/wire/test_sse.py::test_a", ("lanes.unit.wire.test_sse", "test_a")),
        ("lanes/unit/test_a.py::TestB::test_c[x::y/z.py]", ("lanes.unit.test_a.TestB", "test_c[x::y/z.py]")),
        ("t_core::test_adds", ("t_core", "test_adds")),
        ("lonely", ("", "lonely")),
    ],
)
def test_a_test_id_is_split_as_junit_spells_it(node_id: str, expected: tuple[str, str]) -> None:
    assert split_node_id(node_id) == expected
