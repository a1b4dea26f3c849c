"""Explanation: why the cells of one claim say what they say, in words, with the records they stand on.

Room: pure. The lane command comes in with a Board; nothing here judges anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from lanes.claims import Claim
from reports.board import Board, Column
from reports.cells import STATUSES, Blocked, Cell, NotRun, Proven, Status, status_of
from reports.items import Item
from reports.render.characters import as_line, as_text
from reports.render.lines import last_seen_lines, void_line
from reports.words import cell_words, item_facts

PASSED_SHOWN = 10
_FAILURE_LINES = 6
_MEANINGS: dict[Status, str] = {
    "passed": "every test of it passed at its first attempt, and nothing of it was left out",
    "not run": "for at least one part nothing was attempted, and no part is worse",
    "stale": "it passed, but on a recording that is too old or no longer fits",
    "blocked": "at least one part could not be judged for reasons outside the code, and no part is worse",
    "flaky": "at least one part passed only after a failed attempt, or two observations of it disagree",
    "failed": "the last attempt of at least one part failed, or broke a law of its lane",
}
_WORST_FIRST = tuple(reversed(STATUSES))


def explain_claim(board: Board, claim_id: str, *, lanes: Sequence[str] = (), everything: bool = False) -> str:
    """Why each cell of a claim says what it says.

    Shape: lanes are the columns to speak of, by lane, all by default; of the tests that passed only the first are
    named unless everything is asked for.
    """
    row = board.row(claim_id)
    lines = [*_claim_lines(row.claim), *_guard_lines(board, row.claim)]
    for column in board.columns:
        if lanes and column.lane not in lanes:
            continue
        lines += ["", *_column_lines(board, column, row.claim, row.cells[column.id], everything=everything)]
    lines += ["", *last_seen_lines(board, claim_id)] if last_seen_lines(board, claim_id) else []
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _claim_lines(claim: Claim) -> Iterator[str]:
    asked = [f"{lane} (required)" for lane in claim.required] + [f"{lane} (optional)" for lane in claim.optional]
    yield as_line(f"{claim.id}: {claim.sentence}")
    yield "  " + as_line(f"asks for {', '.join(asked)}; owner {claim.owner}")


def _guard_lines(board: Board, claim: Claim) -> Iterator[str]:
    words = board.guards.words_of(claim)
    if not words:
        return
    yield f"  {words}"
    for guard in board.guards.shown:
        if guard.claim_id == claim.id and not (guard.is_proof and guard.is_current):
            where = "this commit" if guard.is_current else f"{guard.commit[:7] or 'another tree'}, not this commit"
            yield "  " + as_line(f"{guard.id}: {guard.verdict} on {where}")


def _column_lines(board: Board, column: Column, claim: Claim, cell: Cell | None, *, everything: bool) -> Iterator[str]:
    words = cell_words(cell, is_live=column.is_live)
    yield as_line(f"{column.heading} ({column.short}): {words}")
    if cell is None:
        yield "  the claim does not ask for this lane"
        return
    status = status_of(cell)
    yield f"  it reads {status!r} because {_because(cell, status)}"
    items = [item for item in column.items if claim.id in item.claim_ids]
    if len({item.status for item in items}) > 1:
        yield f"  a cell is the worst of its parts: {', '.join(_counted(items))}"
    node_ids = {item.node_id for item in items}
    yield from (f"  {as_line(void_line(void))}" for void in board.voids if void.node_id in node_ids)
    facts = [f"who answered: {column.sub_heading}"]
    facts += [f"its runs began: {' to '.join(column.started)}"] if column.started else []
    facts += [f"does not prove: {column.does_not_prove}"]
    yield from (f"  {as_line(fact)}" for fact in facts)
    yield from _item_lines(items, everything=everything)


def _because(cell: Cell, status: Status) -> str:
    match cell:
        case NotRun() | Blocked():
            return as_line(f"{_MEANINGS[status]}: {cell.reason.words}")
        case Proven():
            detail = " (all of it was expected to fail)" if cell.detail == "known" else ""
            return _MEANINGS[status] + detail


def _counted(items: Sequence[Item]) -> Iterator[str]:
    for status in _WORST_FIRST:
        if count := sum(1 for item in items if item.status == status):
            yield f"{status} {count}"


def _item_lines(items: Iterable[Item], *, everything: bool) -> Iterator[str]:
    left = 0
    passed = 0
    for item in sorted(items, key=lambda each: (_WORST_FIRST.index(each.status), each.node_id)):
        if item.status == "passed":
            passed += 1
            if passed > PASSED_SHOWN and not everything:
                left += 1
                continue
        yield f"  {item.status}: {as_line(item.node_id)}"
        yield from (f"      {as_line(fact)}" for fact in item_facts(item))
        lines = as_text(item.failure).splitlines()
        yield from (f"      | {line}" for line in lines[-_FAILURE_LINES:])
    if left:
        yield f"  and {left} more passed; --all names them"
