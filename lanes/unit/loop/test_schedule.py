"""The ordered pool."""

from __future__ import annotations

import pytest

from harness.errors import UsageError
from harness.loop.schedule import Mode, Schedule, check_cap, mode_of


def trace(modes: list[Mode], cap: int, finish_order: list[int]) -> list[str]:
    """Start whatever may start, then let the calls finish in the order given."""
    schedule = Schedule(len(modes), cap)
    seen: list[str] = []

    def start() -> None:
        while (position := schedule.next) is not None and schedule.may_start(modes[position]):
            assert schedule.start(modes[position]) == position
            seen.append(f"+{position}")

    start()
    for position in finish_order:
        assert position in schedule.running
        schedule.finish(position)
        seen.append(f"-{position}")
        start()
    assert (schedule.next, schedule.running) == (None, frozenset())
    return seen


@pytest.mark.parametrize(
    ("modes", "cap", "finish_order", "expected"),
    [
        ("ppp", 10, [2, 0, 1], "+0 +1 +2 -2 -0 -1"),
        ("pppp", 2, [1, 0, 3, 2], "+0 +1 -1 +2 -0 +3 -3 -2"),
        ("ppp", 1, [0, 1, 2], "+0 -0 +1 -1 +2 -2"),
        ("ppep", 10, [1, 0, 2, 3], "+0 +1 -1 -0 +2 -2 +3 -3"),
        ("ee", 10, [0, 1], "+0 -0 +1 -1"),
        ("epp", 10, [0, 2, 1], "+0 -0 +1 +2 -2 -1"),
        ("", 10, [], ""),
    ],
)
def test_X04_X05_calls_start_in_order_within_cap_and_barriers(
    modes: str, cap: int, finish_order: list[int], expected: str
) -> None:
    named: list[Mode] = ["parallel" if letter == "p" else "exclusive" for letter in modes]
    assert " ".join(trace(named, cap, finish_order)) == expected


@pytest.mark.parametrize("cap", [0, -1, 1.5, 2.0, "3", True, None])
def test_X05_a_cap_that_is_no_number_of_calls_is_refused(cap: object) -> None:
    with pytest.raises(UsageError, match="parallel_cap"):
        check_cap(cap)


def test_X05_a_cap_of_one_is_the_least() -> None:
    assert check_cap(1) == 1


def _raise() -> object:
    raise ValueError


@pytest.mark.parametrize(
    ("classifier", "mode"),
    [
        (lambda: True, "parallel"),
        (lambda: False, "exclusive"),
        (lambda: 1, "exclusive"),
        (lambda: "yes", "exclusive"),
        (_raise, "exclusive"),
        (None, "exclusive"),
    ],
    ids=["true", "false", "one", "text", "raising", "missing"],
)
def test_X06_only_exactly_true_is_parallel(classifier: object, mode: Mode) -> None:
    assert mode_of(classifier) == mode  # type: ignore[arg-type] # the point of the test
