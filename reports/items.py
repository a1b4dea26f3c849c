"""Items: one test in one column after all its records were judged, and what was found beside them.

Room: pure. gather makes them, the board and the renderers read them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from lanes.record import Attempt
from reports.admit import LiveProof
from reports.cells import Observed, Reason, Status
from reports.costs import Cost

NoticeKind: TypeAlias = Literal[
    "breach", "conflict", "damaged", "torn", "missing shard", "overlap", "differing lists", "unknown claim", "note"
]
# Notices that make evidence unfit to decide on: exit 3.
GRAVE_NOTICES: frozenset[NoticeKind] = frozenset({"breach", "conflict", "damaged", "differing lists"})


@dataclass(frozen=True, slots=True)
class Item:
    """One test in one column.

    Shape: status is the one of all its observations together; proofs are those that carry it. properties are facts
    to print, name and value, in a stable order.
    """

    node_id: str
    claim_ids: tuple[str, ...]
    status: Status
    reason: Reason | None = None
    proofs: tuple[LiveProof | Observed, ...] = ()
    detail: str = ""
    attempts: tuple[Attempt, ...] = ()
    duration_ms: int = 0
    failure: str = ""
    stdout: str = ""
    stderr: str = ""
    provenance: str = "none"
    notes: tuple[str, ...] = ()
    properties: tuple[tuple[str, str], ...] = ()
    crashed: bool = False
    cost: Cost | None = None

    @property
    def is_known(self) -> bool:
        """Whether it failed as it was expected to."""
        return self.status == "failed" and self.reason is not None and self.reason.code == "known-failure"


@dataclass(frozen=True, slots=True, order=True)
class Void:
    """A record or a bundle that broke a rule; it counts for nothing."""

    lane: str
    code: str
    rule: str
    node_id: str
    record_id: str
    text: str


@dataclass(frozen=True, slots=True, order=True)
class Notice:
    """Something about the evidence of a lane that a reader must know."""

    lane: str
    kind: NoticeKind
    text: str


@dataclass(frozen=True, slots=True, order=True)
class SetAside:
    """A bundle about another subject: read, named, and not blended in."""

    lane: str
    bundle: str
    subject: str
