"""The history of nights, its chain, its trend, and what is done about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanes.bundle import Bundle
from lanes.record import Json, JsonObject
from reports.issues import MISSED, Act, issue_title, night_acts
from reports.nights import Night, chain, chain_problems, hosted_targets, last_digest, night_lines
from reports.trend import GAP, NEVER, cost_notes, missed_nights, missed_now, promotion_problems, trend_lines, trends

if TYPE_CHECKING:
    from lanes.unit.reports.conftest import Evidence

CLAIM = "journey.fix-test"
START = datetime(2031, 3, 1, 3, 17, tzinfo=UTC)
NIGHT = Night("2031-03-04", "2031-03-04T03:20:00Z", {"acme": ("drift-7",)})
COST: JsonObject = {"in": 1200, "cached": 200, "out": 60, "usd": "0.001320", "price_table": "acme 2031"}


def asked(evidence: Evidence, *bundles: Bundle) -> list[Bundle]:
    """The bundles with the trailer of a run that asked one provider."""
    hosted: JsonObject = {"targets": [{"provider": "acme", "model": "m-large"}]}
    return [replace(each, trailer=replace(each.trailer, extra={"hosted": hosted})) for each in bundles if each.trailer]


def test_a_night_is_one_line_a_claim_and_provider(evidence: Evidence) -> None:
    record = replace(evidence.live_record(node_id="lanes/real/test_a.py::test_one[acme]"), cost=COST)
    bundles = asked(evidence, evidence.bundle(record))

    (line,) = night_lines(
        evidence.fold(*bundles),
        hosted_targets(bundles),
        NIGHT,
        {record.record_id: ("sha256:1", "sha256:2")},
        {record.record_id: ("sha256:3",)},
    )

    assert {name: value for name, value in line.items() if name != "bundles"} == {
        "schema": "history/1",
        "night": "2031-03-04",
        "at": "2031-03-04T03:20:00Z",
        "claim": CLAIM,
        "provider": "acme",
        "model": "m-large-0221",
        "host": "api.acme.example",
        "commit": evidence.subject.commit,
        "status": "passed",
        "reasons": [],
        "live": True,
        "passed": 1,
        "attempts": 1,
        "ttfb_ms": 640,
        "in": 1200,
        "out": 60,
        "usd": "0.001320",
        "drift": ["drift-7"],
        "provider_ids": ["sha256:1", "sha256:2"],
        "answers": ["sha256:3"],
    }
    assert len(line["bundles"]) == 1  # type: ignore[arg-type]


def test_a_night_without_a_key_says_not_run_and_names_no_provider(evidence: Evidence) -> None:
    board = evidence.fold(evidence.bundle(lane="real", not_run_code="no-key", not_run_text="set KEY", canary_start=""))

    (line,) = night_lines(board, (), NIGHT, {}, {})

    assert (line["provider"], line["status"], line["live"], line["usd"]) == ("", "not run", False, None)


def lines_of(*statuses: str, claim: str = CLAIM, live: bool = True, **more: Json) -> list[dict[str, Json]]:
    """One line a night from the first of March on; an empty word leaves a night out."""
    found: list[dict[str, Json]] = []
    for number, status in enumerate(statuses):
        at = START + timedelta(days=number)
        line: dict[str, Json] = {
            "night": at.date().isoformat(),
            "at": at.isoformat(),
            "claim": claim,
            "provider": "acme",
            "model": "m",
            "status": status,
            "live": live and status == "passed",
            "ttfb_ms": 500 + number,
            "usd": "0.01",
            **more,
        }
        found += [line] if status else []
    return found


@given(st.integers(2, 8), st.data())
def test_history_67_a_line_that_is_taken_out_or_changed_breaks_the_chain(count: int, data: st.DataObject) -> None:
    history: list[JsonObject] = [*chain(lines_of(*["passed"] * count), "")]
    at = data.draw(st.integers(0, count - 2))

    without, changed = [*history], [*history]
    del without[at]
    changed[at] = {**changed[at], "status": "failed"}

    assert chain_problems(history) == ()
    assert chain_problems(without) == (
        f"line {at + 1} of the history does not follow the one before it: a line was changed or taken out",
    )
    assert chain_problems(changed) == (
        f"line {at + 2} of the history does not follow the one before it: a line was changed or taken out",
    )


def test_a_later_night_goes_on_from_the_last_line() -> None:
    first = chain(lines_of("passed"), "")
    second = chain(lines_of("failed"), last_digest(first))

    assert chain_problems([*first, *second]) == ()
    assert chain_problems([*first, None, *second])[0] == "line 2 of the history is no JSON object"


def test_history_66_an_outage_is_a_gap_and_neither_lowers_nor_raises_the_share() -> None:
    history = lines_of("passed", "blocked", "failed", "", "passed", "not run")

    (trend,) = trends(history, START + timedelta(days=6))

    assert trend.strip == ("passed", GAP, "failed", GAP, "passed", GAP)
    assert (trend.rate.passed, trend.rate.total) == (2, 3)


def test_the_trend_tells_the_last_live_pass_the_median_first_byte_and_the_cost() -> None:
    (trend,) = trends(lines_of("passed", "passed", "failed"), START + timedelta(days=5))

    assert (trend.days_since_live, trend.ttfb_ms, trend.usd) == (4, 501, Decimal("0.03"))


def test_one_cost_that_is_not_known_leaves_the_sum_unknown() -> None:
    (trend,) = trends([*lines_of("passed"), *lines_of("", "passed", usd=None)], START)

    assert trend.usd is None


@pytest.mark.parametrize(
    ("statuses", "clean"),
    [
        pytest.param(["passed"] * 14, 14, id="fourteen"),
        pytest.param(["passed"] * 13, 13, id="one-short"),
        pytest.param(["passed"] * 10 + ["blocked", "", "not run"] + ["passed"] * 4, 14, id="gaps-count-for-nothing"),
        pytest.param(["passed"] * 13 + ["flaky", "passed"], 1, id="a-flaky-night-begins-anew"),
        pytest.param(["passed"] * 14 + ["failed"], 0, id="a-failed-one-too"),
    ],
)
def test_a_claim_may_be_required_after_fourteen_clean_nights(statuses: Sequence[str], clean: int) -> None:
    (trend,) = trends(lines_of(*statuses), START)

    assert (trend.clean_nights, trend.is_promoted) == (clean, clean >= 14)


def test_a_pass_without_live_proof_promotes_nothing() -> None:
    (trend,) = trends(lines_of(*["passed"] * 20, live=False), START)

    assert trend.is_promoted is False


def test_a_claim_that_is_required_live_without_having_earned_it_is_named(evidence: Evidence) -> None:
    claims = evidence.claims(evidence.claim(required=("unit", "real"), optional=()))

    early = promotion_problems(claims, trends(lines_of(*["passed"] * 13), START))

    assert early == (f"claim {CLAIM} is required in lane 'real' without 14 clean nights with live proof",)
    assert promotion_problems(claims, trends(lines_of(*["passed"] * 14), START)) == ()


@pytest.mark.parametrize(
    ("costs", "is_told"),
    [
        pytest.param(["0.05", "0.05", "0.05"], True, id="three-nights"),
        pytest.param(["0.05", None, "0.05"], True, id="not-known-is-no-less"),
        pytest.param(["0.05", "0.04", "0.05"], False, id="twice-is-not-beyond"),
        pytest.param(["0.05", "0.05"], False, id="two-nights"),
        pytest.param(["0.05", "0.05", "0.05", "0.01"], False, id="over-again"),
    ],
)
def test_three_nights_beyond_twice_the_expected_cost_raise_a_note(
    evidence: Evidence, costs: list[str | None], is_told: bool
) -> None:
    claims = evidence.claims(evidence.claim(expected_usd="0.02"))
    history = [{**line, "usd": usd} for line, usd in zip(lines_of(*["passed"] * len(costs)), costs, strict=True)]

    assert bool(cost_notes(claims, history)) is is_told
    assert cost_notes(evidence.claims(), history) == ()


@pytest.mark.parametrize(
    ("hours", "expected"),
    [(47, ""), (48, ""), (49, "no night since 2031-03-01, 49 hours")],
    ids=["in-time", "just", "missed"],
)
def test_a_night_that_does_not_come_is_a_finding_after_48_hours(hours: int, expected: str) -> None:
    assert missed_now(lines_of("passed"), START + timedelta(hours=hours)) == expected


def test_gaps_of_the_past_are_told_too() -> None:
    assert missed_nights(lines_of("passed", "", "", "passed"), START + timedelta(days=4)) == (
        "no night between 2031-03-01 and 2031-03-04, 72 hours",
    )
    assert missed_nights([], START) == (NEVER,)


def test_lines_of_another_form_say_nothing() -> None:
    odd: list[JsonObject] = [{}, {"night": "yesterday", "provider": "acme"}, {"night": 7}, {"at": "late"}]

    assert (trends(odd, START), missed_now(odd, START)) == ((), NEVER)


def test_the_trend_is_a_table_in_words_that_no_text_can_break() -> None:
    odd = lines_of("passed", claim="a|b\n<script>")

    head, rule, row = trend_lines(trends(odd, START))

    assert (head.count("|"), rule.count("|"), row.count("|") - row.count("\\|")) == (9, 9, 9)
    assert "<script>" not in row
    assert trend_lines(()) == ("No night has been judged.",)


TITLE = issue_title(CLAIM, "acme")


@pytest.mark.parametrize(
    ("status", "live", "issues", "deeds"),
    [
        pytest.param("failed", True, {}, [("open", 0)], id="a-failure-opens-one"),
        pytest.param("flaky", True, {}, [("open", 0)], id="a-flaky-night-too"),
        pytest.param("failed", True, {TITLE: 7}, [("comment", 7)], id="a-second-one-updates-it"),
        pytest.param("passed", True, {TITLE: 7}, [("close", 7)], id="an-honest-pass-closes-it"),
        pytest.param("passed", False, {TITLE: 7}, [], id="a-pass-without-proof-does-not"),
        pytest.param("blocked", False, {TITLE: 7}, [], id="an-outage-does-nothing"),
        pytest.param("not run", False, {}, [], id="no-key-opens-nothing"),
        pytest.param("passed", True, {}, [], id="nothing-to-close"),
    ],
)
def test_one_issue_a_failing_claim_closed_by_the_next_honest_pass(
    status: str, live: bool, issues: dict[str, int], deeds: list[tuple[str, int]]
) -> None:
    tonight = [{**each, "live": live} for each in lines_of(status)]

    assert [(act.deed, act.number) for act in night_acts(tonight, issues, "")] == deeds


def test_a_missed_night_is_an_issue_of_its_own_until_one_is_run() -> None:
    late = "no night since 2031-03-01, 60 hours"

    assert night_acts([], {}, late, "run 7") == (Act("open", MISSED, f"{late}\nrun 7"),)
    assert night_acts([], {MISSED: 3}, late) == ()
    assert [(act.deed, act.number) for act in night_acts([], {MISSED: 3}, "")] == [("close", 3)]
