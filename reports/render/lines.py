"""Lines that the terminal and the Markdown output share, not yet made safe for either.

Room: pure. Renderers come in; what they print must still pass through characters.
"""

from __future__ import annotations

from reports.board import Board
from reports.items import Void
from reports.words import cell_reason


def subject_line(board: Board) -> str:
    """Which code the board is about, whether it was changed, and how deep the guard stood."""
    subject = board.subject
    name = subject.commit[:7] or (f"tree {subject.tree[7:19]}" if subject.tree else "unknown")
    depths = {column.guard for column in board.columns if column.guard}
    guard = f"  guard {next(iter(depths))}" if len(depths) == 1 else ""
    if len(depths) > 1:
        guard = "  guard " + ", ".join(f"{column.heading} {column.guard}" for column in board.columns if column.guard)
    return f"subject {name}  {'dirty' if subject.dirty else 'clean'}{guard}"


def void_line(void: Void) -> str:
    """One void record or bundle: its code, its rule, and why."""
    return f"void ({void.code}, {void.rule}): lane {void.lane}, {void.node_id}: {void.text}"


def reason_lines(board: Board) -> list[str]:
    """Why columns and cells are not run or blocked, with the free text of each reason."""
    found: list[str] = []
    for column in board.columns:
        if column.not_run is not None:
            found.append(f"{column.heading}: not run: {column.not_run.words}")
            continue
        for row in board.rows:
            if reason := cell_reason(row.cells[column.id]):
                found.append(f"{column.heading}, {row.claim.id}: {reason}")
    return found
