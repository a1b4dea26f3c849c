"""Lines that the terminal and the Markdown output share, not yet made safe for either.

Room: pure. Renderers come in; what they print must still pass through characters.
"""

from __future__ import annotations

from collections.abc import Sequence

from reports.board import Board, LastSeen
from reports.guards import UNPROVEN
from reports.items import Void
from reports.proof_words import guard_line, guards_line
from reports.render.characters import as_line
from reports.words import cell_reason, column_reason, subject_words

NAMES_SHOWN = 6  # enough to see of what kind they are; a plain run leaves most proofs to their own environment


def subject_line(board: Board) -> str:
    """Which code the board is about, whether it was changed, and how deep the guard stood."""
    subject = board.subject
    name = subject.commit[:7] or subject_words(subject)
    mark = f"  {'dirty' if subject.dirty else 'clean'}" if subject.commit else ""  # without commits nothing is clean
    depths = {column.guard for column in board.columns if column.guard}
    guard = f"  guard {next(iter(depths))}" if len(depths) == 1 else ""
    if len(depths) > 1:
        guard = "  guard " + ", ".join(f"{column.heading} {column.guard}" for column in board.columns if column.guard)
    return f"subject {name}{mark}{guard}"


def void_line(void: Void) -> str:
    """One void record or bundle: its code, its rule, and why."""
    return f"void ({void.code}, {void.rule}): lane {void.lane}, {void.node_id}: {void.text}"


def reason_lines(board: Board) -> list[str]:
    """Why columns and cells are not run or blocked, with the free text of each reason and the claims it holds for."""
    found: list[str] = []
    for column in board.columns:
        if column.not_run is not None:
            found.append(f"{column.heading}: {column_reason(column.not_run)}")
            continue
        claims: dict[str, list[str]] = {}
        for row in board.rows:
            if reason := cell_reason(row.cells[column.id]):
                claims.setdefault(reason, []).append(row.claim.id)
        found += [f"{column.heading}, {reason}: {', '.join(ids)}" for reason, ids in claims.items()]
    return found


def last_seen_words(board: Board, seen: LastSeen) -> str:
    """When, where and on which commit a claim was last seen live; it is never a part of a cell."""
    here = "this commit" if seen.commit == board.subject.commit else "not this commit"
    ago = "today" if seen.days == 0 else f"{seen.days} days ago"
    return f"{seen.claim_id} on {seen.commit[:7]} ({here}), {ago}, {seen.model} at {seen.host}"


def last_seen_lines(board: Board, claim_id: str) -> list[str]:
    """The line about one claim, if it was ever seen live."""
    found = [seen for seen in board.last_seen if seen.claim_id == claim_id]
    return [as_line(f"Last seen live: {last_seen_words(board, seen)}") for seen in found]


def guard_lines(board: Board) -> list[str]:
    """The proofs of the guards, those that are proven on this subject together, every other one with its verdict."""
    guards = board.guards
    if not guards.shown and not guards.not_run:
        return unproven_lines(board)
    proven = [each.id for each in guards.shown if each.is_proof and each.is_current]
    found = [guards_line(guards)]
    found += [f"proven: {', '.join(proven)}"] if proven else []
    found += [guard_line(each) for each in guards.shown if each.id not in proven]
    found += [f"not run: {_first_of(guards.not_run)}"] if guards.not_run else []
    return found + unproven_lines(board)


def _first_of(names: Sequence[str]) -> str:
    """The first names in words and the number of the others; the JSON board has them all."""
    rest = len(names) - NAMES_SHOWN
    return ", ".join(names[:NAMES_SHOWN]) + (f" and {rest} more" if rest > 0 else "")


def unproven_lines(board: Board) -> list[str]:
    """The claims that are flagged as guarded and whose guard was not seen to hold on this subject."""
    names = [row.claim.id for row in board.rows if board.guards.words_of(row.claim) == UNPROVEN]
    return [f"{UNPROVEN}: {', '.join(names)}"] if names else []
