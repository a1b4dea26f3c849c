"""Cells: what one claim may read in one column, as a closed union with a worst-first order.

Room: pure. The board makes cells, renderers read them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Literal, TypeAlias

from lanes.record import REASONS
from reports.admit import LiveProof

Status: TypeAlias = Literal["passed", "not run", "stale", "blocked", "flaky", "failed"]
ProvenVerdict: TypeAlias = Literal["passed", "stale", "flaky", "failed"]

STATUSES: tuple[Status, ...] = ("passed", "not run", "stale", "blocked", "flaky", "failed")  # worst last
_RANK = {status: rank for rank, status in enumerate(STATUSES)}


@dataclass(frozen=True, slots=True)
class Reason:
    """Why something was not run, blocked or failed: a code of the closed list, and free text."""

    code: str
    text: str = ""

    @property
    def words(self) -> str:
        """The reason in words for a reader; a code outside the list is shown as it is."""
        known = REASONS.get(self.code, self.code)
        return f"{known}: {self.text}" if self.text else known


@dataclass(frozen=True, slots=True)
class Observed:
    """That a keyless record was seen; it proves nothing about a model and can stand in no real cell."""

    record_id: str


@dataclass(frozen=True, slots=True)
class Tally:
    """How many parts have each status. `known` counts the failed ones that were expected to fail."""

    passed: int = 0
    not_run: int = 0
    stale: int = 0
    blocked: int = 0
    flaky: int = 0
    failed: int = 0
    known: int = 0

    @property
    def total(self) -> int:
        """All parts."""
        return self.passed + self.not_run + self.stale + self.blocked + self.flaky + self.failed

    def of(self, status: Status) -> int:
        """The number of parts with a status."""
        return int(getattr(self, status.replace(" ", "_")))

    def as_dict(self) -> dict[str, int]:
        """The counts by name, without those that are zero: a column that saw nothing does not even name a pass."""
        return {each.name: count for each in fields(self) if (count := getattr(self, each.name))}


@dataclass(frozen=True, slots=True)
class NotRun:
    """Nothing was attempted for at least one part, and no part is worse."""

    reason: Reason
    tally: Tally = Tally()


@dataclass(frozen=True, slots=True)
class Blocked:
    """At least one part could not be judged for reasons outside the subject, and no part is worse."""

    reason: Reason
    tally: Tally = Tally()


@dataclass(frozen=True, slots=True)
class Proven:
    """Every part was judged, or one that was judged is worse than the rest.

    Shape: proofs is never empty; in a real column every proof is a LiveProof, which the board checks as it is made.
    """

    verdict: ProvenVerdict
    proofs: tuple[LiveProof | Observed, ...]
    tally: Tally
    detail: str = ""

    def __post_init__(self) -> None:
        if not self.proofs:
            raise ValueError("a proven cell needs a proof")


Cell: TypeAlias = NotRun | Blocked | Proven


def worst(statuses: Iterable[Status]) -> Status:
    """The worst of some statuses: passed < not run < stale < blocked < flaky < failed."""
    return max(statuses, key=lambda status: _RANK[status])


def status_of(cell: Cell) -> Status:
    """The one status a cell reads."""
    match cell:
        case NotRun():
            return "not run"
        case Blocked():
            return "blocked"
        case Proven():
            return cell.verdict


def count_statuses(statuses: Iterable[Status], *, known: int = 0) -> Tally:
    """The tally of some statuses."""
    counts = dict.fromkeys(STATUSES, 0)
    for status in statuses:
        counts[status] += 1
    return Tally(
        passed=counts["passed"],
        not_run=counts["not run"],
        stale=counts["stale"],
        blocked=counts["blocked"],
        flaky=counts["flaky"],
        failed=counts["failed"],
        known=known,
    )
