"""The arithmetic of a budget, and the ledger that several processes share."""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanes.budget import RUN, Ask, Entry, Limits, Total, settle, total_of, why_refused
from lanes.ledger import BudgetError, Ledger

CENT = Decimal("0.01")


def entry(usd: str, *, settled: bool = False, known: bool = True, scopes: tuple[str, ...] = (RUN,)) -> Entry:
    return Entry("r1", scopes, Decimal(usd), 10, settled, known)


def ask(usd: str | None, *, tokens: int = 10, wall_s: float = 0.0, scopes: tuple[str, ...] = (RUN,)) -> Ask:
    return Ask(scopes, None if usd is None else Decimal(usd), tokens, wall_s)


@pytest.mark.parametrize(
    ("limits", "entries", "asked", "expected"),
    [
        pytest.param(Limits(usd=CENT), [], ask("0.01"), "", id="the-last-cent"),
        pytest.param(
            Limits(usd=CENT), [], ask("0.011"), "run: $0.011000 with this request, the limit is $0.01", id="too-dear"
        ),
        pytest.param(
            Limits(usd=CENT),
            [entry("0.006")],
            ask("0.005"),
            "run: $0.011000 with this request, the limit is $0.01",
            id="reserved-counts",
        ),
        pytest.param(
            Limits(usd=CENT),
            [entry("0.006", settled=True)],
            ask("0.005"),
            "run: $0.011000 with this request, the limit is $0.01",
            id="spent-counts",
        ),
        pytest.param(
            Limits(usd=CENT),
            [],
            ask(None),
            "run: the price of this model is not known, so it would exceed any limit",
            id="unknown-price",
        ),
        pytest.param(
            Limits(usd=CENT),
            [entry("0", settled=True, known=False)],
            ask("0.001"),
            "run: an answer did not say what it used, which counts as all that was left",
            id="unknown-usage",
        ),
        pytest.param(Limits(), [entry("9")], ask(None), "", id="no-limit"),
        pytest.param(
            Limits(tokens=15), [entry("0")], ask("0"), "run: 20 tokens with this request, the limit is 15", id="tokens"
        ),
        pytest.param(
            Limits(requests=1),
            [entry("0")],
            ask("0"),
            "run: 2 requests with this one, the limit is 1",
            id="requests",
        ),
        pytest.param(
            Limits(wall_s=60),
            [],
            ask("0", wall_s=61),
            "run: 61 s since the run began, the limit is 60 s",
            id="wall-time",
        ),
    ],
)
def test_a_request_fits_or_it_is_said_why_not(limits: Limits, entries: list[Entry], asked: Ask, expected: str) -> None:
    assert why_refused({RUN: limits}, entries, asked) == expected


def test_each_scope_of_a_request_has_its_own_limit() -> None:
    limits = {RUN: Limits(usd=Decimal(1)), "provider acme": Limits(usd=CENT), "claim a.b": Limits(requests=1)}
    spent = [entry("0.009", scopes=(RUN, "provider acme"))]

    assert [
        why_refused(limits, spent, ask("0.005", scopes=(RUN, each))).partition(":")[0]
        for each in ("provider acme", "provider lab", "claim a.b")
    ] == ["provider acme", "", ""]


def test_a_reservation_that_nobody_settled_stays_spent() -> None:
    entries = [entry("0.4"), entry("0.1", settled=True)]

    assert total_of(entries, RUN) == Total(Decimal("0.1"), Decimal("0.4"), 20, 2)


def test_a_settled_request_costs_what_it_cost_and_an_untold_one_its_worst_case() -> None:
    assert settle(entry("0.4"), Decimal("0.1"), 3) == Entry("r1", (RUN,), Decimal("0.1"), 3, is_settled=True)
    assert settle(entry("0.4"), None, 3) == Entry("r1", (RUN,), Decimal("0.4"), 10, is_settled=True, is_known=False)


costs = st.decimals(min_value=0, max_value=2, places=4)


@given(limit=costs, worst=st.lists(st.tuples(costs, costs), max_size=12))
def test_whatever_is_asked_in_whatever_order_no_more_than_the_limit_is_ever_spent(
    limit: Decimal, worst: list[tuple[Decimal, Decimal]]
) -> None:
    entries: list[Entry] = []
    for most, share in worst:
        if not why_refused({RUN: Limits(usd=limit)}, entries, Ask((RUN,), most, 1)):
            entries.append(
                settle(Entry("r", (RUN,), most, 1), min(most, share), 1) if share else Entry("r", (RUN,), most, 1)
            )

    total = total_of(entries, RUN)
    assert total.usd + total.reserved_usd <= limit


RACER = """
import sys
from decimal import Decimal
from pathlib import Path
from lanes.budget import RUN, Ask, Limits
from lanes.ledger import BudgetError, Ledger

ledger = Ledger(Path(sys.argv[1]), {RUN: Limits(usd=Decimal("0.01"))})
sys.stdin.readline()
try:
    sys.stdout.write(ledger.reserve(Ask((RUN,), Decimal("0.01"), 1)))
except BudgetError:
    sys.stdout.write("refused")
"""


def test_budget_63_of_two_processes_that_race_for_the_last_cent_exactly_one_reserves(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]

    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    said = sorted(racer.communicate(timeout=60)[0] for racer in racers)

    assert said == ["r1", "refused", "refused", "refused"]


def test_a_torn_line_of_a_process_that_died_is_no_reservation(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl", {RUN: Limits(usd=CENT)})
    ledger.path.write_bytes(b'{"reserve": "r1", "sco')

    before = ledger.entries()
    ledger.reserve(ask("0.01"))

    assert (before, [each.usd for each in ledger.entries()]) == ((), [CENT])


def test_a_refusal_says_what_was_asked_and_how_to_raise_it(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl", {RUN: Limits(usd=CENT)})

    with pytest.raises(BudgetError) as caught:
        ledger.reserve(ask("0.02"))

    assert str(caught.value) == (
        "budget: the request was not made: run: $0.020000 with this request, the limit is $0.01 [BUDGET]\n"
        "  fix: raise it with --budget-usd AMOUNT, or ask for fewer tests with -k"
    )
