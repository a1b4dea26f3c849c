"""Expected failures: strict, with an issue and a date, and never silently past it.

Room: the item hooks come in while items are collected.
"""

from __future__ import annotations

import re
from datetime import date

import pytest

from lanes.errors import compose_message

_REASON = re.compile(r"https?://\S+ until (\d{4}-\d{2}-\d{2})\b")


def expectation_problem(item: pytest.Item) -> str | None:
    """Return what is wrong with the item's expected failure, None when nothing is."""
    for mark in item.iter_markers("xfail"):
        if mark.kwargs.get("strict") is False:
            return _problem(item, "an expected failure is strict")
        if _expiry(mark) is None:
            return _problem(item, "an expected failure names its issue and its last day")
    return None


def is_expired(item: pytest.Item, today: date) -> bool:
    """Whether the item expects a failure whose last day is past."""
    days = [_expiry(mark) for mark in item.iter_markers("xfail")]
    return any(day is not None and day < today for day in days)


def _expiry(mark: pytest.Mark) -> date | None:
    found = _REASON.search(str(mark.kwargs.get("reason", "")))
    try:
        return date.fromisoformat(found.group(1)) if found else None
    except ValueError:
        return None


def _problem(item: pytest.Item, what: str) -> str:
    return compose_message(
        what, "USAGE", where=item.nodeid, expected='xfail(reason="https://ISSUE until YYYY-MM-DD", strict=True)'
    )
