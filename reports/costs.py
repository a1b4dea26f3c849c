"""Costs: what live answers took, by record, item and claim; an estimate by the prices of the provider table.

Room: pure. Items carry a cost, the renderers show it. What is not known makes a sum not known, and never smaller.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from lanes.bundle import Bundle
from lanes.record import Json, JsonObject, Record
from reports.tries import attempt_records

if TYPE_CHECKING:  # a board is only looked at here; its items carry a cost
    from reports.board import Board

TITLE = "What live answers cost, an estimate"


@dataclass(frozen=True, slots=True)
class Cost:
    """Tokens and money of some answers.

    Shape: usd is None when the price or the usage of one of them is not known; tables name where prices are from.
    """

    sent: int = 0
    cached: int = 0
    out: int = 0
    usd: Decimal | None = Decimal(0)
    tables: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """The cost for a reader."""
        money = "at a cost that is not known" if self.usd is None else f"about ${self.usd:f}"
        by = f" by the prices of {', '.join(self.tables)}" if self.usd is not None and self.tables else ""
        return f"{self.sent} tokens in ({self.cached} cached), {self.out} out, {money}{by}"


def cost_of_record(record: Record) -> Cost | None:
    """What all attempts of a record took; None when none of them says."""
    if record.cost is None and not any(each.extra for each in record.attempts):
        return None  # most records: no model was asked for money
    told = [each.cost for each in attempt_records(record) or (record,) if each.cost is not None]
    return sum_costs(_read(each) for each in told) if told else None


def sum_costs(costs: Iterable[Cost]) -> Cost:
    """Some costs together."""
    whole = Cost()
    for each in costs:
        whole = Cost(
            whole.sent + each.sent,
            whole.cached + each.cached,
            whole.out + each.out,
            None if whole.usd is None or each.usd is None else whole.usd + each.usd,
            tuple(sorted({*whole.tables, *each.tables})),
        )
    return whole


def claim_costs(board: Board) -> tuple[tuple[str, str, Cost], ...]:
    """Claim, column and cost of every claim that a model answered for."""
    found: list[tuple[str, str, Cost]] = []
    for column in board.columns:
        if not column.is_live:
            continue
        by_claim: dict[str, list[Cost]] = {}
        for item in column.items:
            if item.cost is not None:
                for claim_id in item.claim_ids:
                    by_claim.setdefault(claim_id, []).append(item.cost)
        for row in board.rows:
            if costs := by_claim.get(row.claim.id):
                found.append((row.claim.id, column.id, sum_costs(costs)))
    return tuple(found)


def cost_lines(board: Board) -> tuple[str, ...]:
    """One line a claim that a model answered for."""
    headings = {column.id: column.heading for column in board.columns}
    return tuple(f"{claim_id}, {headings[column]}: {cost.words}" for claim_id, column, cost in claim_costs(board))


def costs_to_json(board: Board) -> list[Json]:
    """The same for programs; usd is a text, or null when it is not known."""
    return [
        {
            "claim": claim_id,
            "column": column,
            "in": cost.sent,
            "cached": cost.cached,
            "out": cost.out,
            "usd": None if cost.usd is None else f"{cost.usd:f}",
            "usd_is_estimate": True,
            "price_tables": list(cost.tables),
        }
        for claim_id, column, cost in claim_costs(board)
    ]


def budget_words(bundle: Bundle) -> str:
    """What a run against hosted models had to spend and spent, with the dearest tests; empty for every other run."""
    hosted = None if bundle.trailer is None else bundle.trailer.extra.get("hosted")
    budget = hosted.get("budget") if isinstance(hosted, Mapping) else None
    if not isinstance(budget, Mapping):
        return ""
    dearest = budget.get("dearest")
    named = [
        f"{each.get('test')} ${each.get('usd')}"
        for each in (dearest if isinstance(dearest, list) else ())
        if isinstance(each, Mapping)
    ]
    unknown = "" if budget.get("is_known") is True else "; an answer did not say what it used"
    return (
        f"budget ${budget.get('limit_usd')}: ${budget.get('spent_usd')} spent, ${budget.get('reserved_usd')} reserved, "
        f"{budget.get('requests')} requests, an estimate{unknown}"
        + (f"; the dearest: {', '.join(named)}" if named else "")
    )


def _read(facts: JsonObject) -> Cost:
    table = facts.get("price_table")
    return Cost(
        _count(facts.get("in")),
        _count(facts.get("cached")),
        _count(facts.get("out")),
        _amount(facts.get("usd")),
        (table,) if isinstance(table, str) and table else (),
    )


def _count(value: Json) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0


def _amount(value: Json) -> Decimal | None:
    try:
        found = Decimal(value) if isinstance(value, str) and len(value) <= 40 else None
    except InvalidOperation:
        return None
    return found if found is not None and found.is_finite() and found >= 0 else None
