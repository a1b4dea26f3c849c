"""The board as Markdown for a forge's step summary, cut to its limit with an exact count.

Room: pure; takes a Board and returns text. Everything that came from a test is escaped or fenced.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from reports.board import Board, Column, Row
from reports.costs import TITLE, cost_lines
from reports.guards import Guard
from reports.items import Item
from reports.proof_words import guards_line
from reports.render.characters import as_line, as_text
from reports.render.lines import last_seen_words, reason_lines, subject_line, unproven_lines, void_line
from reports.words import cell_words, column_reason, counted_words, tally_words

MAX_BYTES = 1_000_000  # a forge takes 1 MiB a step; the rest is room for what else the step writes
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"}
_SPECIAL = re.compile(r"[\\`*_{}\[\]()#|~!+]|://")
_FAILURE_LINES = 40
_RESERVE = 4_000  # for the lines that say what was left out


def render_markdown(board: Board, *, max_bytes: int = MAX_BYTES) -> str:
    """The whole board as Markdown, within max_bytes of UTF-8.

    Shape: banner, columns, void evidence, failures, claims, and then the rest; each part that is cut says by how much.
    """
    page = _Page(max_bytes - _RESERVE)
    page.keep(["## Evidence board", "", f"**{escape(board.banner)}**", "", escape(subject_line(board)), ""])
    page.keep(_column_table(board))
    page.part("Void evidence, counted for nothing", [f"- {escape(void_line(void))}" for void in board.voids])
    failures = [lines for column in board.columns for item in column.items if (lines := _failure(column.heading, item))]
    page.part("Failed, flaky and blocked", failures)
    page.part("Claims", [_claim_row(board, row) for row in board.rows], head=_claim_head(board))
    page.part(f"{board.guards.heading}: {board.guards.sub_heading}", _guard_entries(board), head=_guard_head(board))
    notices = [f"- {escape(f'{each.lane}, {each.kind}: {each.text}')}" for each in board.notices]
    page.part("About the evidence", notices)
    aside = [f"- {escape(f'{each.lane}, {each.bundle}: about {each.subject}')}" for each in board.set_aside]
    page.part("Set aside, evidence of another subject", aside)
    page.part("Last seen live", [f"- {escape(last_seen_words(board, seen))}" for seen in board.last_seen])
    page.part("Why cells are not run or blocked", [f"- {escape(line)}" for line in reason_lines(board)])
    page.part(TITLE, [f"- {escape(line)}" for line in cost_lines(board)])
    unclaimed = [f"- {escape(c.heading)}: {counted_words(c.unclaimed)}" for c in board.columns if c.unclaimed.total]
    page.part("Items that speak for no claim", unclaimed)
    return page.text()


def render_column(board: Board, column: Column, *, max_bytes: int = MAX_BYTES) -> str:
    """One column as a page of its own, as its lane's job publishes it, within max_bytes of UTF-8.

    Shape: a claim that does not ask for the lane has no row.
    """
    page = _Page(max_bytes - _RESERVE)
    page.keep([f"## {escape(column.heading)}: {escape(column.sub_heading)}", ""])
    page.keep([f"**{escape(board.banner)}**", "", escape(subject_line(board)), ""])
    page.keep([f"passed/failed/flaky/stale/blocked/not run: {tally_words(column.tally)}", ""])
    page.keep([f"Supports: {escape(column.supports)}", "", f"Does not prove: {escape(column.does_not_prove)}"])
    voids = [f"- {escape(void_line(void))}" for void in board.voids if void.lane == column.lane]
    page.part("Void evidence, counted for nothing", voids)
    page.part(
        "Failed, flaky and blocked", [lines for item in column.items if (lines := _failure(column.heading, item))]
    )
    asked = [row for row in board.rows if row.cells[column.id] is not None]
    rows = [f"| {escape(row.claim.id)} | {_words(row, column)} | {escape(row.claim.sentence)} |" for row in asked]
    page.part("Claims", rows, head=["| claim | status | in words |", "| --- | --- | --- |"])
    return page.text()


def _words(row: Row, column: Column) -> str:
    return escape(cell_words(row.cells[column.id], is_live=column.is_live))


def escape(value: str) -> str:
    """One line of text that Markdown shows as it is: no markup, no HTML, no mention, no link."""
    line = _SPECIAL.sub(lambda match: ":&#47;/" if match.group() == "://" else "\\" + match.group(), as_line(value))
    return re.sub(r"&(?!#47;/)|[<>@]", lambda match: _ENTITIES[match.group()], line)


class _Page:
    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._lines: list[str] = []
        self._size = 0

    def keep(self, lines: Sequence[str]) -> None:
        self._lines += lines
        self._size += sum(_size(line) for line in lines)

    def part(self, title: str, entries: Sequence[str], *, head: Sequence[str] = ()) -> None:
        """One part with as many of its entries as there is room for, and the exact number of the others."""
        if not entries:
            return
        self.keep(["", f"### {title}", "", *head])
        shown = 0
        for entry in entries:
            if self._size + _size(entry) > self._budget:
                break
            self.keep([entry])
            shown += 1
        if shown < len(entries):
            self.keep(["", f"{len(entries) - shown} of {len(entries)} left out: the summary is full."])

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"


def _size(line: str) -> int:
    return len(line.encode("utf-8", "replace")) + 1


def _column_table(board: Board) -> list[str]:
    lines = [
        "| column | who answers | passed/failed/flaky/stale/blocked/not run | guard | supports | does not prove |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for column in board.columns:
        heading = f"**{escape(column.heading)}**"
        counts = tally_words(column.tally)
        if column.not_run is not None:
            counts += f"<br>{escape(column_reason(column.not_run))}"
        cells = (heading, escape(column.sub_heading), counts, escape(column.guard or "none shown"))
        texts = (escape(column.supports), escape(column.does_not_prove))
        lines.append(f"| {' | '.join((*cells, *texts))} |")
    return lines


def _claim_head(board: Board) -> list[str]:
    headings = " | ".join(f"{escape(column.heading)}<br>{escape(column.short)}" for column in board.columns)
    return [f"| claim | {headings} |", f"| --- |{' --- |' * len(board.columns)}"]


def _claim_row(board: Board, row: Row) -> str:
    words = [_words(row, column) for column in board.columns]
    return f"| {escape(row.claim.id)} | {' | '.join(words)} |"


def _failure(heading: str, item: Item) -> str:
    if item.status not in {"failed", "flaky", "blocked"}:
        return ""
    why = f": {item.reason.words}" if item.reason is not None else ""
    head = f"- {escape(heading)}, {item.status}: {escape(item.node_id + why)}"
    lines = as_text(item.failure).splitlines()
    if not lines:
        return head
    shown = lines[-_FAILURE_LINES:]
    before = [f"({len(lines) - len(shown)} lines before)"] if len(shown) < len(lines) else []
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", "\n".join(shown))), default=0))
    block = [fence + "text", *before, *shown, fence]
    return "\n".join([head, "", *(f"  {line}" for line in block)])


def _guard_head(board: Board) -> list[str]:
    guards = board.guards
    line = f"supports: {guards.supports}; does not prove: {guards.does_not_prove}"
    return [escape(f"{guards_line(guards)}; {line}"), ""]


def _guard_entries(board: Board) -> list[str]:
    """Each proof with its edit as a diff; the claims whose guard is not proven come first."""
    found = [f"- {escape(line)}" for line in unproven_lines(board)]
    found += [_guard(each) for each in board.guards.shown]
    return found + [f"- {escape(f'not run: {each}')}" for each in board.guards.not_run]


def _guard(guard: Guard) -> str:
    where = "this commit" if guard.is_current else f"{guard.commit[:7]}, not this commit"
    seconds = f"{guard.duration_ms / 1000:.1f} s"
    about = escape(", ".join((guard.claim_id, guard.lane, where, seconds)))
    head = f"**{guard.verdict}**: {escape(guard.id)} ({about})"
    facts = [f"  {escape(guard.why)}", "", f"  {escape(guard.counts)}"]
    facts += ["", f"  {escape(guard.text)}"] if guard.text else []
    facts += ["", f"  expected red: {escape(', '.join(guard.expected) or 'none')}"]
    facts += ["", f"  observed red: {escape(', '.join(guard.observed) or 'none')}"]
    diff = "\n".join(as_text(text) for _name, text in guard.diffs)
    return "\n".join([f"- {head}", "", *facts, "", *(f"  {line}" for line in _fenced(diff, "diff"))])


def _fenced(text: str, language: str) -> list[str]:
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return [fence + language, *text.splitlines(), fence]
