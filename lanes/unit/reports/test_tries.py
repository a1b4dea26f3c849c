"""Attempts of a live record: each is judged as a record of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import pytest

from lanes.policy import LANES
from lanes.record import Attempt, Json, JsonObject, Record, Verdict
from reports.admit import Refusal
from reports.judge import Judged, judge
from reports.tries import attempt_records, sample_size

if TYPE_CHECKING:
    from lanes.unit.reports.conftest import Evidence


def seen_of(evidence: Evidence, number: int, **proof: Json) -> JsonObject:
    live = evidence.live_record(number)
    return {
        "answers": [dict(each) for each in live.answers],
        "model": live.model,
        "live_proof": {**(live.live_proof or {}), **proof},
        "cost": None,
    }


def tried(evidence: Evidence, verdicts: Sequence[Verdict], *, sample: bool = True, **proof: Json) -> Record:
    """A record whose attempts came out like this, each with answers of its own."""
    attempts: list[Attempt] = []
    for number, verdict in enumerate(verdicts, start=1):
        seen = seen_of(evidence, number, **(proof if number == 1 else {}))
        attempts.append(Attempt(number, verdict, 5, 1, extra={"seen": seen} if number < len(verdicts) else {}))
    last = evidence.live_record(len(verdicts))
    return replace(
        last,
        verdict=verdicts[-1],
        attempts=tuple(attempts),
        extra=cast("JsonObject", {"sample": len(verdicts)} if sample else {}),
    )


def outcome(evidence: Evidence, record: Record) -> tuple[str, str]:
    found = judge(record, LANES["real"], evidence.admission())
    return (found.rule, found.code) if isinstance(found, Refusal) else (found.status, found.detail)


@pytest.mark.parametrize(
    ("verdicts", "status", "words"),
    [
        pytest.param(["passed"] * 5, "passed", "5/5, 95 % interval 56 % to 100 %", id="all"),
        pytest.param(
            ["passed", "failed", "passed", "passed", "passed"], "flaky", "4/5, 95 % interval 37 % to 97 %", id="most"
        ),
        pytest.param(
            ["passed", "passed", "passed", "passed", "failed"],
            "flaky",
            "4/5, 95 % interval 37 % to 97 %",
            id="the-last-one-is-one-of-them",
        ),
        pytest.param(["failed"] * 3, "failed", "0/3, 95 % interval 0 % to 57 %", id="none"),
        pytest.param(
            ["passed", "passed", "blocked"], "blocked", "2/2, 95 % interval 34 % to 100 %, 1 not judged", id="cut-short"
        ),
        pytest.param(
            ["passed", "failed", "blocked"],
            "flaky",
            "1/2, 95 % interval 9 % to 91 %, 1 not judged",
            id="cut-short-after-a-failure",
        ),
    ],
)
def test_a_sample_reads_its_rate(evidence: Evidence, verdicts: list[Verdict], status: str, words: str) -> None:
    assert outcome(evidence, tried(evidence, verdicts)) == (status, words)


def test_a_sample_of_which_nothing_could_be_judged_is_blocked(evidence: Evidence) -> None:
    record = replace(
        tried(evidence, ["blocked"]), answers=(), live_proof=None, reason_code="quota", reason_text="spent"
    )

    found = judge(record, LANES["real"], evidence.admission())

    assert isinstance(found, Judged)
    assert (found.status, found.reason and found.reason.code) == ("blocked", "quota")


@pytest.mark.parametrize("sample", [True, False], ids=["sample", "retried"])
def test_an_attempt_that_breaks_a_rule_voids_the_whole_record(evidence: Evidence, sample: bool) -> None:
    record = tried(evidence, ["failed", "passed"], sample=sample, peer_ip="127.0.0.1")

    assert outcome(evidence, record) == ("A4", "peer")


@pytest.mark.parametrize("sample", [True, False], ids=["sample", "retried"])
def test_two_attempts_with_one_provider_id_void_the_record(evidence: Evidence, sample: bool) -> None:
    record = tried(evidence, ["failed", "passed"], sample=sample)
    again = replace(record.attempts[0], extra={"seen": seen_of(evidence, 2)})

    assert outcome(evidence, replace(record, attempts=(again, record.attempts[1]))) == ("A8", "id-reuse")


def test_attempts_38_a_pass_after_a_failure_is_flaky_when_it_is_no_sample(evidence: Evidence) -> None:
    assert outcome(evidence, tried(evidence, ["failed", "passed"], sample=False)) == ("flaky", "")


def test_an_attempt_whose_facts_were_not_kept_met_no_model(evidence: Evidence) -> None:
    record = tried(evidence, ["failed", "passed"], sample=False)
    bare = replace(record, attempts=(Attempt(1, "failed"), record.attempts[1]))

    assert [len(each.answers) for each in attempt_records(bare)] == [0, 1]
    assert outcome(evidence, bare) == ("flaky", "")


@pytest.mark.parametrize("value", [None, 0, -1, True, "5", 2.5, [5]])
def test_what_is_no_number_of_attempts_makes_no_sample(evidence: Evidence, value: Json) -> None:
    assert sample_size(replace(evidence.live_record(), extra={"sample": value})) == 0
