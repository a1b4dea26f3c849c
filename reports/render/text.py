"""The board for a terminal: words first, colours only beside them.

Room: pure; takes a Board and returns text. A narrow terminal gets the columns one under the other, never fewer.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from reports.board import Board, Column, Row
from reports.cells import STATUSES
from reports.costs import TITLE, cost_lines
from reports.guards import Guards
from reports.render.characters import as_line, as_text, width_of
from reports.render.lines import guard_lines, last_seen_words, reason_lines, subject_line, void_line
from reports.render.table import lay_out, pad
from reports.words import cell_words, counted_words, tally_words

MIN_WIDTH = 44  # the six status words of the counts, in one piece
_FAILURE_LINES = 12
# Select Graphic Rendition codes, beside words that say the same.
_COLOURS = {"passed": "32", "not run": "2", "stale": "33", "blocked": "35", "flaky": "33", "failed": "31"}


def render_text(board: Board, *, width: int = 120, colour: bool = False) -> str:
    """The whole board as text that ends in a newline.

    Units: width is in terminal columns; below MIN_WIDTH it counts as MIN_WIDTH.
    """
    paper = _Paper(max(width, MIN_WIDTH), colour=colour)
    paper.wrapped(board.banner)
    paper.line(subject_line(board))
    paper.line()
    _table(board, paper)
    _counts(board, paper)
    _last_seen(board, paper)
    _lists(board, paper)
    _texts(board, paper)
    return "\n".join(paper.lines).rstrip("\n") + "\n"


class _Paper:
    def __init__(self, width: int, *, colour: bool) -> None:
        self.width = width
        self.colour = colour
        self.lines: list[str] = []

    def line(self, text: str = "") -> None:
        self.lines.append(text.rstrip())

    def wrapped(self, text: str, indent: str = "", later: str | None = None) -> None:
        further = indent if later is None else later
        lines = textwrap.wrap(
            as_line(text),
            self.width,
            initial_indent=indent,
            subsequent_indent=further,
            break_on_hyphens=False,
        )
        self.lines += lines or [indent.rstrip()]

    def painted(self, text: str, padded: str) -> str:
        """The padded text with its leading status word in colour."""
        status = next((each for each in STATUSES if text.startswith(each)), None)
        if not self.colour or status is None:
            return padded
        return f"\x1b[{_COLOURS[status]}m{status}\x1b[0m{padded[len(status) :]}"


def _cells_of(board: Board, row: Row) -> list[str]:
    return [as_line(cell_words(row.cells[column.id], is_live=column.is_live)) for column in board.columns]


def _table(board: Board, paper: _Paper) -> None:
    if not board.rows:
        paper.line("No claims.")
        return
    head = [
        ["claim", *(as_line(column.heading) for column in board.columns)],
        ["", *(each.short for each in board.columns)],
    ]
    body = [[row.claim.id, *_cells_of(board, row)] for row in board.rows]
    whole = [0, *(number for number, column in enumerate(board.columns, start=1) if column.is_live)]
    lines = lay_out(head, body, paper.width, whole=whole, paint=paper.painted)
    if lines is None:
        _stack(board, paper)
    else:
        paper.lines += lines


def _stack(board: Board, paper: _Paper) -> None:
    width = max(width_of(column.heading) for column in board.columns)
    for row in board.rows:
        paper.wrapped(row.claim.id)
        for column, words in zip(board.columns, _cells_of(board, row), strict=True):
            indent = f"  {pad(column.heading, width)}  "
            start = len(paper.lines)
            paper.wrapped(words, indent, " " * len(indent))
            paper.lines[start] = indent + paper.painted(words, paper.lines[start][len(indent) :])
        paper.line()


def _counts(board: Board, paper: _Paper) -> None:
    line = "claims per column,"
    told = [f" {as_line(column.heading)} {tally_words(column.tally)}" for column in board.columns]
    for piece in ("passed/failed/flaky/stale/blocked/not run:", *told):
        if width_of(line) + 1 + width_of(piece) > paper.width:
            paper.line(line)
            line = " "
        line += f" {piece}" if line.strip() else piece
    paper.line(line)


def _last_seen(board: Board, paper: _Paper) -> None:
    for seen in board.last_seen:
        paper.wrapped(f"Last seen live: {last_seen_words(board, seen)}", later="  ")


def _lists(board: Board, paper: _Paper) -> None:
    _section(paper, "Void evidence, counted for nothing", [void_line(void) for void in board.voids])
    _section(paper, "About the evidence", [f"{each.lane}, {each.kind}: {each.text}" for each in board.notices])
    aside = [f"{each.lane}, {each.bundle}: about {each.subject}" for each in board.set_aside]
    _section(paper, "Set aside, evidence of another subject", aside)
    _section(paper, "Why cells are not run or blocked", reason_lines(board))
    _failures(board, paper)
    _section(paper, TITLE, cost_lines(board))
    _section(paper, f"{board.guards.heading} ({board.guards.sub_heading})", guard_lines(board))
    unclaimed = [f"{each.heading}: {counted_words(each.unclaimed)}" for each in board.columns if each.unclaimed.total]
    _section(paper, "Items that speak for no claim", unclaimed)
    removed = [f"{each.heading}: {each.keys_removed}" for each in board.columns if each.keys_removed]
    _section(paper, "Keys removed before the start", removed)
    started = [each.heading for each in board.columns if "self" in each.markers and each.not_run is None]
    _section(paper, "Started outside tox, marker set by the lane itself", [", ".join(started)] if started else [])


def _failures(board: Board, paper: _Paper) -> None:
    for column in board.columns:
        for item in column.items:
            if item.status not in {"failed", "flaky", "blocked"}:
                continue
            paper.line()
            why = f": {item.reason.words}" if item.reason is not None else ""
            paper.wrapped(f"{column.heading}, {item.status}: {item.node_id}{why}", later="  ")
            lines = as_text(item.failure).splitlines()
            shown = lines[-_FAILURE_LINES:]
            if len(shown) < len(lines):
                paper.line(f"    ({len(lines) - len(shown)} lines before)")
            for line in shown:
                paper.line(f"    {line}")


def _section(paper: _Paper, title: str, entries: Sequence[str]) -> None:
    if not entries:
        return
    paper.line()
    paper.line(f"{title}:")
    for entry in entries:
        paper.wrapped(entry, "  ", "    ")


def _texts(board: Board, paper: _Paper) -> None:
    paper.line()
    paper.line("What each column may claim:")
    for column in board.columns:
        _text_of_column(column, paper)
    if board.guards.shown:
        _text_of_column(board.guards, paper)


def _text_of_column(column: Column | Guards, paper: _Paper) -> None:
    paper.wrapped(f"{column.heading}: {column.sub_heading}", "  ", "    ")
    paper.wrapped(f"supports: {column.supports}", "    ", "      ")
    paper.wrapped(f"does not prove: {column.does_not_prove}", "    ", "      ")
