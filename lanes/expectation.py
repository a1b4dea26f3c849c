"""Expected failures: strict, with an issue and a date, and never silently past it; and failures called passes.

Room: the item hooks come in while items are collected, before one runs, and with the report of each of its phases.
"""

from __future__ import annotations

import unittest
from datetime import date

import pytest

from lanes.errors import compose_message
from lanes.record import EXPECTED_FAILURE

UNDECLARED = "undeclared-failure"
EXPIRED = "the last day of the expected failure is past"
_SKIPS = pytest.skip.Exception | unittest.SkipTest


def expectation_problem(item: pytest.Item) -> str | None:
    """Return what is wrong with the item's expected failure, None when nothing is."""
    for mark in item.iter_markers("xfail"):
        if mark.kwargs.get("strict") is not True:
            return _problem(item, "an expected failure is strict")
        if mark.kwargs.get("run") is False:
            return _problem(item, "an expected failure is run")
        if _expiry(mark) is None:
            return _problem(item, "an expected failure names its issue and its last day")
    return None


def report_problem(
    item: pytest.Item,
    report: pytest.TestReport,
    error: BaseException | None,
    raised: BaseException | None,
    today: date,
) -> tuple[str, str] | None:
    """Return reason code and text when a report calls a failure a pass or a skip, or one that nobody declared expected.

    Shape: None when it does none of it. error is what came out of the phase, raised what went into the hooks around it.
    What a phase raised is a failure, whatever a hook made of it or of its report. A body that
    calls `pytest.xfail`, `unittest.expectedFailure`, and a mark that was added while the test ran are no declarations:
    none of them could fail the day the failure is gone.
    """
    first = error if raised is None else raised
    is_declared = hasattr(report, "wasxfail")
    is_hidden = report.skipped and not is_declared and raised is not error and not isinstance(raised, _SKIPS | None)
    if first is not None and (report.passed or is_hidden):
        words = f"{type(first).__name__}: {first}".partition("\n")[0]
        what = f"its {report.when} raised {words:.200}, and a hook called that a {'pass' if report.passed else 'skip'}"
        return "overruled", compose_message(what, "OVERRULED", where=item.nodeid, fix="let what fails be a failure")
    if not is_declared:
        return None
    if report.passed:
        return "unexpected-pass", _problem(item, "it was expected to fail and passed")
    if isinstance(error, pytest.xfail.Exception):
        return UNDECLARED, _problem(item, f"it calls its failure expected while it runs: {error}")
    problem = expectation_problem(item)
    if problem is not None:
        return UNDECLARED, problem
    return ("failure-expired", _problem(item, EXPIRED)) if is_expired(item, today) else None


def is_expired(item: pytest.Item, today: date) -> bool:
    """Whether the item expects a failure whose last day is past."""
    days = [_expiry(mark) for mark in item.iter_markers("xfail")]
    return any(day is not None and day < today for day in days)


def _expiry(mark: pytest.Mark) -> date | None:
    found = EXPECTED_FAILURE.search(str(mark.kwargs.get("reason", "")))
    try:
        return date.fromisoformat(found.group(1)) if found else None
    except ValueError:
        return None


def _problem(item: pytest.Item, what: str) -> str:
    return compose_message(
        what, "USAGE", where=item.nodeid, expected='xfail(reason="https://ISSUE until YYYY-MM-DD", strict=True)'
    )
