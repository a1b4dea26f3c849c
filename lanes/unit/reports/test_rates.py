"""A pass rate and what it lets one expect."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.rates import Rate


@pytest.mark.parametrize(
    ("passed", "total", "low", "high"),
    [
        pytest.param(4, 5, 0.3755, 0.9638, id="four-of-five"),
        pytest.param(0, 10, 0.0, 0.2775, id="none-of-ten"),
        pytest.param(10, 10, 0.7225, 1.0, id="all-of-ten"),
        pytest.param(50, 100, 0.4038, 0.5962, id="half-of-a-hundred"),
    ],
)
def test_the_interval_is_that_of_the_published_formula(passed: int, total: int, low: float, high: float) -> None:
    found = Rate(passed, total).interval

    assert (round(found[0], 4), round(found[1], 4)) == (low, high)


def test_the_words_round_outward() -> None:
    assert Rate(4, 5).words == "4/5, 95 % interval 37 % to 97 %"
    assert Rate(5, 5).words == "5/5, 95 % interval 56 % to 100 %"
    assert Rate(0, 0).words == "0/0"


@given(total=st.integers(1, 500), data=st.data())
def test_the_rate_lies_inside_its_interval_and_the_interval_inside_nought_and_one(
    total: int, data: st.DataObject
) -> None:
    passed = data.draw(st.integers(0, total))
    low, high = Rate(passed, total).interval

    assert 0 <= low <= passed / total + 1e-9
    assert passed / total - 1e-9 <= high <= 1
