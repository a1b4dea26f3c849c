"""What tokens cost; what is not known is None and never zero."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanes.prices import Price, Tokens, cost_facts, cost_of, read_tokens, usd_text, worst_cost
from lanes.record import Json

PRICE = Price(Decimal("0.30"), Decimal("0.006"), Decimal("1.20"))


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        pytest.param({"prompt_tokens": 100, "completion_tokens": 7}, Tokens(100, 0, 7), id="chat"),
        pytest.param(
            {
                "prompt_tokens": 100,
                "prompt_tokens_details": {"cached_tokens": 60},
                "completion_tokens": 7,
                "completion_tokens_details": {"reasoning_tokens": 5},
            },
            Tokens(40, 60, 7, 5),
            id="chat-with-details",
        ),
        pytest.param(
            {"prompt_tokens": 100, "prompt_cache_hit_tokens": 64, "completion_tokens": 7},
            Tokens(36, 64, 7),
            id="deepseek",
        ),
        pytest.param(
            {
                "input_tokens": 10,
                "cache_read_input_tokens": 80,
                "cache_creation_input_tokens": 5,
                "output_tokens": 7,
            },
            Tokens(20, 80, 7),
            id="messages",
        ),
        pytest.param({"prompt_tokens": 100}, None, id="nothing-written"),
        pytest.param({"total_tokens": 100}, None, id="only-a-total"),
        pytest.param({"prompt_tokens": True, "completion_tokens": 7}, None, id="true-is-no-number"),
        pytest.param({"prompt_tokens": -1, "completion_tokens": 7}, None, id="negative"),
        pytest.param({}, None, id="empty"),
        pytest.param(None, None, id="none"),
    ],
)
def test_usage_is_read_in_the_words_of_either_dialect(usage: Json, expected: Tokens | None) -> None:
    assert read_tokens(usage) == expected


def test_a_cost_is_exact() -> None:
    assert cost_of(Tokens(40, 60, 7), PRICE) == Decimal("0.00002076")


@pytest.mark.parametrize(("tokens", "price"), [(None, PRICE), (Tokens(1), None)], ids=["usage", "price"])
def test_an_unknown_usage_or_price_is_no_cost_of_zero(tokens: Tokens | None, price: Price | None) -> None:
    assert cost_of(tokens, price) is None


@given(sent=st.integers(0, 10**6), cached=st.integers(0, 10**6), out=st.integers(0, 1000), more=st.integers(0, 1000))
def test_no_answer_costs_more_than_the_worst_case_of_its_request(sent: int, cached: int, out: int, more: int) -> None:
    real = cost_of(Tokens(sent, cached, out), PRICE)
    worst = worst_cost(sent + cached, out + more, PRICE)

    assert real is not None
    assert worst is not None
    assert real <= worst


def test_the_cost_of_a_record_adds_up_its_answers() -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "prompt_cache_hit_tokens": 50}

    assert cost_facts([usage, usage], PRICE, "acme 2031-03-04") == {
        "in": 200,
        "cached": 100,
        "out": 20,
        "reasoning": 0,
        "usd": "0.000055",
        "usd_is_estimate": True,
        "price_table": "acme 2031-03-04",
    }


def test_one_answer_without_usage_leaves_the_whole_cost_unknown() -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 10}

    assert cost_facts([usage, None], PRICE, "")["usd"] is None
    assert cost_facts([usage], None, "")["usd"] is None


@pytest.mark.parametrize(
    ("usd", "text"),
    [("0.0000001", "0.000001"), ("0", "0.000000"), ("1.25", "1.250000"), ("0.1234561", "0.123457")],
)
def test_an_amount_is_rounded_up_so_that_nothing_reads_as_free(usd: str, text: str) -> None:
    assert usd_text(Decimal(usd)) == text
