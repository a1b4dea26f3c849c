"""Drift as the command sees it after runs over real TLS: usual answers, reshaped ones, and none at all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from lanes.unit.lanes.conftest import Ended
from lanes.unit.lanes.stand_in import LiveCopy, copy_project, open_stand_in

RUN = ("-k", "fixes_the_failing", "--attempts", "2")  # three answers an attempt
REPORT = "reports/drift.json"


@dataclass(frozen=True, slots=True)
class Seen:
    """What `lanes drift` said after a run, and the ids of the findings that its report holds of live answers."""

    ended: Ended
    findings: frozenset[str]
    report: bytes
    answers: int


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveCopy]:
    folder = tmp_path_factory.mktemp("drift")
    with open_stand_in(folder) as stand_in:
        yield LiveCopy(copy_project(folder / "project", stand_in.authority, stand_in.port), stand_in)


def look(live: LiveCopy, mood: str) -> Seen:
    """Run a journey against the stand-in in a mood, then hold its answers against what is expected."""
    live.stand_in.be(mood)
    live.run(*RUN)
    ended = live.project.run("drift", PYTHONPATH=str(live.project.root))
    report = (live.project.root / REPORT).read_bytes()
    rows = [each for each in json.loads(report)["comparisons"] if each["source"] == "live"]
    findings = {found["id"] for row in rows for verdict in row["verdicts"] for found in verdict["findings"]}
    return Seen(ended, frozenset(findings), report, len(rows[0]["answers"]))


@pytest.fixture(scope="module")
def usual(live: LiveCopy) -> Seen:
    return look(live, "well")


@pytest.fixture(scope="module")
def reshaped(live: LiveCopy, usual: Seen) -> Seen:
    return look(live, "reshaped")


@pytest.fixture(scope="module")
def down(live: LiveCopy, reshaped: Seen) -> Seen:
    return look(live, "busy")


def test_drift_rests_on_the_answers_of_every_attempt(usual: Seen) -> None:
    assert (usual.answers, "stand-in: 6 live answers against the catalogue" in usual.ended.stdout) == (6, True)


def test_drift_65_live_answers_of_another_shape_break_and_a_new_field_is_a_note(usual: Seen, reshaped: Seen) -> None:
    new = reshaped.findings - usual.findings

    assert new != set()
    assert {each.partition(":")[2].partition(":")[0] for each in new} == {"retyped", "added"}
    assert {each.rpartition(".")[2] for each in new} == {"created", "tier"}
    assert reshaped.ended.exit_code == 1


def test_an_outage_is_blocked_and_takes_no_finding_back(reshaped: Seen, down: Seen) -> None:
    assert (down.ended.exit_code, down.report == reshaped.report) == (0, True)
    assert "stand-in: blocked (outage: the provider answered 503), which says nothing of drift" in down.ended.stdout
    assert "no drift" not in down.ended.stdout
