"""The board: claims by columns, made by `fold` from records and by nothing else.

Room: pure. Renderers accept a Board only; it has no total over columns, no percentage and no setter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import InitVar, dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from lanes.bundle import Bundle
from lanes.claims import Claim, Claims
from lanes.policy import ENVIRONMENTS, LANES, LanePolicy
from lanes.record import Subject
from reports import gather as gathering
from reports.admit import Admission, LiveProof
from reports.cells import Blocked, Cell, NotRun, Observed, Proven, Reason, Tally, count_statuses, status_of, worst
from reports.guards import NO_GUARDS, Guards, gather_guards
from reports.items import Item, Notice, SetAside, Void
from reports.soundness import Findings, Rules
from reports.words import banner_text, column_heading, column_short, column_sub_heading

if TYPE_CHECKING:  # only carried here; nights look at a board, and trends at nights
    from reports.trend import Trend

_SEAL: Final = object()
_REASONS_FIRST = ("void", "conflict", "no-call")


@dataclass(frozen=True, slots=True)
class LastSeen:
    """The latest earlier time that a claim was seen live, from the history; it is never a cell."""

    claim_id: str
    commit: str
    days: int
    model: str
    host: str


@dataclass(frozen=True, slots=True)
class Column:
    """One column with its texts, which are part of the data.

    Shape: tally counts claims by the status of their cells; unclaimed counts the items that speak for no claim;
    is_partial says that every run of it was asked for less than the whole lane; started holds when the first and the
    last of its runs began, ISO 8601 as they told it, and is empty where none did.
    """

    id: str
    lane: str
    heading: str
    short: str
    sub_heading: str
    supports: str
    does_not_prove: str
    is_live: bool
    not_run: Reason | None
    guard: str
    tally: Tally
    item_tally: Tally
    unclaimed: Tally
    items: tuple[Item, ...]
    bundles: tuple[str, ...]
    keys_removed: int
    exit_codes: tuple[int, ...]
    markers: tuple[str, ...]
    is_partial: bool = False
    started: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """One claim; a cell is None where the claim does not ask for that lane."""

    claim: Claim
    cells: Mapping[str, Cell | None]


@dataclass(frozen=True, slots=True)
class Board:
    """Everything the outputs show, for one subject.

    Shape: rows are in the order of the claims file, columns in the order of the lanes.
    Raises: TypeError when it is not `fold` that makes it, or a real cell holds anything but live proofs.
    """

    subject: Subject
    banner: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    voids: tuple[Void, ...]
    notices: tuple[Notice, ...]
    set_aside: tuple[SetAside, ...]
    last_seen: tuple[LastSeen, ...]
    seal: InitVar[object]
    trends: tuple[Trend, ...] = ()
    guards: Guards = NO_GUARDS

    def __post_init__(self, seal: object) -> None:
        if seal is not _SEAL:
            raise TypeError("a Board comes from reports.board.fold and from nowhere else")
        live = {column.id for column in self.columns if column.is_live}
        for row in self.rows:
            for column_id, cell in row.cells.items():
                if column_id in live and isinstance(cell, Proven):
                    _check_live(row.claim.id, cell)

    def column(self, column_id: str) -> Column:
        """The column of that id."""
        return next(column for column in self.columns if column.id == column_id)

    def row(self, claim_id: str) -> Row:
        """The row of that claim."""
        return next(row for row in self.rows if row.claim.id == claim_id)


def _check_live(claim_id: str, cell: Proven) -> None:
    if not all(isinstance(proof, LiveProof) for proof in cell.proofs):
        raise TypeError(f"the real cell of {claim_id} holds something that is no live proof")


def fold(
    bundles: Iterable[Bundle],
    claims: Claims,
    policy: Mapping[str, LanePolicy] = LANES,
    *,
    admission: Admission,
    environments: Mapping[str, str | None] = ENVIRONMENTS,
    last_seen: Sequence[LastSeen] = (),
    trends: Sequence[Trend] = (),
    proofs: Iterable[Bundle] = (),
    declared: Sequence[str] = (),
) -> Board:
    """Fold bundles into the one board of a subject: a pure function of the set of records.

    Shape: the subject is the admission's; a bundle about another one is named and set aside. proofs are the bundles of
    break-it proofs, declared the ids of all there are; they fill no cell, nor does what earlier nights saw.
    """
    rules = Rules(claims, policy, environments, admission)
    gathered = gathering.gather(bundles, rules)
    for lane in policy:
        if lane not in gathered.columns:
            gathered.columns[lane] = gathering.Column(not_run=_why_no_column(lane, gathered.findings))
    order = {lane: number for number, lane in enumerate(policy)}
    ids = sorted(gathered.columns, key=lambda each: (order[each.partition(":")[0]], each))
    missing = {notice.lane for notice in gathered.findings.notices if notice.kind == "missing shard"}
    by_claim = {each: _by_claim(gathered.columns[each]) for each in ids}
    rows = tuple(Row(claim, _cells(claim, gathered.columns, by_claim, missing)) for claim in claims)
    columns = tuple(_column(each, gathered.columns[each], policy[each.partition(":")[0]], rows, claims) for each in ids)
    guards, unsound = gather_guards(proofs, declared, admission.subject, claims)
    return Board(
        subject=admission.subject,
        banner=banner_text(_proofs(rows, columns)),
        columns=columns,
        rows=rows,
        voids=tuple(sorted((*gathered.findings.voids, *unsound))),
        notices=tuple(sorted(gathered.findings.notices)),
        set_aside=tuple(sorted(gathered.findings.set_aside)),
        last_seen=tuple(sorted(last_seen, key=lambda each: each.claim_id)),
        seal=_SEAL,
        trends=tuple(trends),
        guards=guards,
    )


def _why_no_column(lane: str, findings: Findings) -> Reason:
    """Why a lane has no evidence that speaks: all of it is void, or about something else, or there is none."""
    if any(void.lane == lane for void in findings.voids):
        return Reason("void")
    aside = sorted({each.subject for each in findings.set_aside if each.lane == lane})
    return Reason("other-subject", f"what is here is about {', '.join(aside)}") if aside else Reason("lane-not-run")


def _by_claim(column: gathering.Column) -> dict[str, list[Item]]:
    found: dict[str, list[Item]] = {}
    for item in column.items:
        for claim_id in item.claim_ids:
            found.setdefault(claim_id, []).append(item)
    return found


def _cells(
    claim: Claim,
    columns: Mapping[str, gathering.Column],
    by_claim: Mapping[str, Mapping[str, Sequence[Item]]],
    missing: set[str],
) -> Mapping[str, Cell | None]:
    cells: dict[str, Cell | None] = {}
    for column_id, items in by_claim.items():
        has_gap = column_id.partition(":")[0] in missing
        found = items.get(claim.id, ())
        is_shown = claim.asks(column_id) or (bool(found) and claim.may_fill(column_id))
        cells[column_id] = _cell(found, columns[column_id], has_gap=has_gap) if is_shown else None
    return MappingProxyType(cells)


def _cell(items: Sequence[Item], column: gathering.Column, *, has_gap: bool) -> Cell:
    if not items:
        reason = _why_nothing(column, has_gap=has_gap)
        return Blocked(reason) if reason.code == "void" else NotRun(reason)
    statuses = [item.status for item in items]
    tally = count_statuses(statuses, known=sum(1 for item in items if item.is_known))
    status = worst(statuses)
    leading = [item for item in items if item.status == status]
    reason = _leading_reason(leading)
    match status:
        case "not run":
            return NotRun(reason, tally)
        case "blocked":
            return Blocked(reason, tally)
        case "passed" if column.unseen is not None:
            return NotRun(column.unseen, tally)
        case _:
            proofs: tuple[LiveProof | Observed, ...] = tuple(proof for item in items for proof in item.proofs)
            return Proven(status, tuple(dict.fromkeys(proofs)), tally, _detail(items, leading))


def _why_nothing(column: gathering.Column, *, has_gap: bool) -> Reason:
    if column.not_run is not None:
        return column.not_run
    if has_gap:
        return Reason("shard-missing")
    return Reason("deselected") if column.is_filtered else Reason("no-test")


def _leading_reason(items: Sequence[Item]) -> Reason:
    reasons = [item.reason for item in items if item.reason is not None]
    for code in _REASONS_FIRST:
        found = next((reason for reason in reasons if reason.code == code), None)
        if found is not None:
            return found
    return reasons[0] if reasons else Reason("unclassified-skip")


def _detail(items: Sequence[Item], leading: Sequence[Item]) -> str:
    if all(item.is_known for item in leading):
        return "known"
    found = dict.fromkeys(item.detail for item in leading if item.detail)
    found |= dict.fromkeys(note for item in items for note in item.notes)
    return ", ".join(found)


def _column(
    column_id: str, column: gathering.Column, policy: LanePolicy, rows: Sequence[Row], claims: Claims
) -> Column:
    cells = [cell for row in rows if (cell := row.cells[column_id]) is not None]
    known = sum(1 for cell in cells if isinstance(cell, Proven) and cell.verdict == "failed" and cell.detail == "known")
    unclaimed = [item for item in column.items if not any(each in claims.by_id for each in item.claim_ids)]
    depths = sorted({bundle.header.guard_depth for bundle in column.bundles if bundle.header.guard_depth})
    return Column(
        id=column_id,
        lane=policy.name,
        heading=column_heading(column_id, policy),
        short=column_short(policy, column.items),
        sub_heading=column_sub_heading(policy, column.items),
        supports=policy.supports,
        does_not_prove=policy.does_not_prove,
        is_live=policy.ceiling == "live",
        not_run=column.not_run,
        guard=", ".join(depths),
        tally=count_statuses([status_of(cell) for cell in cells], known=known),
        item_tally=_tally_items(column.items),
        unclaimed=_tally_items(unclaimed),
        items=tuple(column.items),
        bundles=tuple(sorted({gathering.identify(bundle) for bundle in column.bundles})),
        keys_removed=sum(bundle.header.keys_removed for bundle in column.bundles),
        exit_codes=tuple(sorted({each.trailer.exit_code for each in column.bundles if each.trailer is not None})),
        markers=tuple(sorted({bundle.header.marker for bundle in column.bundles})),
        is_partial=column.is_filtered,
        started=_first_and_last(bundle.header.started_at for bundle in column.bundles),
    )


def _first_and_last(times: Iterable[str]) -> tuple[str, ...]:
    told = sorted({each for each in times if each})
    return (told[0], told[-1]) if len(told) > 1 else tuple(told)


def _tally_items(items: Sequence[Item]) -> Tally:
    return count_statuses([item.status for item in items], known=sum(1 for item in items if item.is_known))


def _proofs(rows: Sequence[Row], columns: Sequence[Column]) -> tuple[tuple[str, LiveProof], ...]:
    live = [column.id for column in columns if column.is_live]
    found: list[tuple[str, LiveProof]] = []
    for row in rows:
        for column_id in live:
            cell = row.cells[column_id]
            if isinstance(cell, Proven):
                found += [(row.claim.id, proof) for proof in cell.proofs if isinstance(proof, LiveProof)]
    return tuple(found)
