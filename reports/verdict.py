"""The verdict: one board and what was asked for, to the exit code of a command.

Room: pure. Output and the lane command come in; the codes are those of the documents, and there is no other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reports.board import Board, Column, Row
from reports.cells import Cell, NotRun, Proven, status_of
from reports.items import GRAVE_NOTICES

PASSED = 0
FAILED = 1
USAGE = 2
VOID = 3
NOT_LIVE = 4
NOTHING_RUN = 5

_PARTIAL = frozenset({"deselected"})  # who filters a lane has asked that run for less; the whole board still lacks it


@dataclass(frozen=True, slots=True)
class Asked:
    """What a command asked of the board. lanes empty: every lane."""

    lanes: tuple[str, ...] = ()
    require_live: bool = False
    strict: bool = False


EVERYTHING = Asked()


def exit_code(board: Board, asked: Asked = EVERYTHING) -> int:
    """The exit code of a command that asked this of the board.

    Shape: 0 passed, 1 failed, 2 usage, 3 void evidence, conflict or guard, 4 no live proof, 5 nothing was run.
    """
    columns = [column for column in board.columns if not asked.lanes or column.lane in asked.lanes]
    lanes = {column.lane for column in columns}
    if any(void.lane in lanes or not asked.lanes for void in board.voids):
        return VOID
    if any(notice.kind in GRAVE_NOTICES and notice.lane in lanes for notice in board.notices):
        return VOID
    if any(USAGE in column.exit_codes for column in columns):
        return USAGE
    if any(_has_failed(board.rows, column, strict=asked.strict) for column in columns):
        return FAILED
    groups = [[column for column in columns if column.lane == lane] for lane in sorted(lanes)]
    if not any(column.bundles for column in columns) or any(all(map(_ran_nothing, group)) for group in groups):
        return NOTHING_RUN  # a lane, and not a column of it: a private endpoint may have run what the vendors did not
    if any(_has_gap(board.rows, column, asked) for column in columns):
        return FAILED
    if any(notice.kind in {"torn", "missing shard"} and notice.lane in lanes for notice in board.notices):
        return FAILED
    if asked.require_live and not _is_live(board):
        return NOT_LIVE
    return PASSED


def _has_failed(rows: Sequence[Row], column: Column, *, strict: bool) -> bool:
    if any(item.crashed or (item.status == "failed" and not item.is_known) for item in column.items):
        return True
    if not column.is_live and any(item.status == "blocked" for item in column.items):
        return True
    if not strict:
        return False
    if any(item.reason is not None and item.reason.code == "unclassified-skip" for item in column.items):
        return True
    cells = [row.cells[column.id] for row in rows]
    return any(cell is not None and status_of(cell) in {"flaky", "stale"} for cell in cells)


def _ran_nothing(column: Column) -> bool:
    if column.not_run is not None:
        return column.not_run.code == "nothing-collected"
    return bool(column.items) and column.item_tally.not_run == column.item_tally.total


def _has_gap(rows: Sequence[Row], column: Column, asked: Asked) -> bool:
    if column.is_live:
        return False
    return any(column.lane in row.claim.required and not _is_met(row.cells[column.id], asked) for row in rows)


def _is_met(cell: Cell | None, asked: Asked) -> bool:
    match cell:
        case None:
            return True
        case Proven():
            if cell.verdict == "failed":
                return cell.tally.known == cell.tally.failed
            return cell.verdict == "passed" or not asked.strict
        case NotRun():
            return bool(asked.lanes) and cell.reason.code in _PARTIAL
        case _:
            return False


def _is_live(board: Board) -> bool:
    real = board.column("real")
    proven = [row.cells["real"] for row in board.rows if row.cells["real"] is not None]
    required = [row.cells["real"] for row in board.rows if real.lane in row.claim.required]
    passes = [cell for cell in proven if isinstance(cell, Proven) and cell.verdict == "passed"]
    return bool(passes) and all(cell in passes for cell in required)
