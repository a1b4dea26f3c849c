"""What live answers cost, on every output; what is not known is never shown as less."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from lanes.bundle import Bundle, BundleTrailer
from lanes.record import Attempt, Json, JsonObject, Record
from reports.board import Board
from reports.costs import Cost, cost_lines, cost_of_record, sum_costs
from reports.render.json_board import render_json
from reports.render.markdown import render_markdown
from reports.render.text import render_text

if TYPE_CHECKING:
    from lanes.unit.reports.conftest import Evidence

COST: JsonObject = {"in": 1200, "cached": 200, "out": 60, "reasoning": 0, "usd": "0.001320", "price_table": "acme 2031"}


def board_of(evidence: Evidence, *costs: JsonObject | None) -> Board:
    records = [
        replace(evidence.live_record(number, f"lanes/real/test_a.py::test_{number}"), cost=cost)
        for number, cost in enumerate(costs, start=1)
    ]
    return evidence.fold(evidence.bundle(*records))


def test_the_costs_of_a_claim_add_up_over_its_tests(evidence: Evidence) -> None:
    assert cost_lines(board_of(evidence, COST, COST)) == (
        "journey.fix-test, Real API: 2400 tokens in (400 cached), 120 out, about $0.002640 by the prices of acme 2031",
    )


@pytest.mark.parametrize(
    "usd",
    [None, "free", "NaN", "-1", 3, "9" * 50],
    ids=["none", "word", "no-number", "negative", "number", "too-long"],
)
def test_one_cost_that_is_not_known_leaves_the_sum_unknown(evidence: Evidence, usd: Json) -> None:
    (line,) = cost_lines(board_of(evidence, COST, {**COST, "usd": usd}))

    assert line.endswith("120 out, at a cost that is not known")


def test_what_was_tried_before_counts_too(evidence: Evidence) -> None:
    tried = Attempt(1, "failed", 5, 1, extra={"seen": {"cost": COST}})
    record = replace(evidence.live_record(), cost=COST, attempts=(tried, Attempt(2, "passed", 5, 1)))

    assert cost_of_record(record) == Cost(2400, 400, 120, Decimal("0.002640"), ("acme 2031",))


def test_a_record_that_tells_no_cost_has_none(evidence: Evidence) -> None:
    assert (cost_of_record(evidence.record()), sum_costs([])) == (None, Cost())


def spent(evidence: Evidence, record: Record) -> Bundle:
    bundle = evidence.bundle(record)
    assert bundle.trailer is not None
    budget: JsonObject = {
        "limit_usd": "0.5",
        "spent_usd": "0.001760",
        "reserved_usd": "0.000000",
        "requests": 4,
        "is_known": True,
        "dearest": [{"test": "lanes/real/test_a.py::test_one", "usd": "0.001320"}],
    }
    trailer: BundleTrailer = replace(bundle.trailer, extra={"hosted": {"budget": budget}})
    return replace(bundle, trailer=trailer)


def test_text_markdown_and_json_show_cost_and_budget(evidence: Evidence) -> None:
    board = evidence.fold(spent(evidence, replace(evidence.live_record(), cost=COST)))
    line = "journey.fix-test, Real API: 1200 tokens in (200 cached), 60 out, about $0.001320"
    budget = (
        "budget $0.5: $0.001760 spent, $0.000000 reserved, 4 requests, an estimate; the dearest: "
        "lanes/real/test_a.py::test_one $0.001320"
    )

    text, page = render_text(board, width=400), render_markdown(board).replace("\\", "")

    assert [(line in document, budget in document) for document in (text, page)] == [(True, True)] * 2
    assert json.loads(render_json(board))["costs"] == [
        {
            "claim": "journey.fix-test",
            "column": "real",
            "in": 1200,
            "cached": 200,
            "out": 60,
            "usd": "0.001320",
            "usd_is_estimate": True,
            "price_tables": ["acme 2031"],
        }
    ]


def test_what_a_witness_saw_of_each_attempt_stays_in_the_evidence_and_off_the_board(evidence: Evidence) -> None:
    tried = Attempt(1, "failed", 5, 1, extra={"seen": {"cost": COST}, "other": 1})
    record = replace(evidence.live_record(), attempts=(tried, Attempt(2, "passed", 5, 1)))

    (item,) = evidence.fold(evidence.bundle(record)).column("real").items

    assert [dict(each.extra) for each in item.attempts] == [{"other": 1}, {}]
