"""What the page shows of a board, worked out once: the template only lays it out.

Room: pure. The HTML renderer comes in. Words of cells, reasons and counts are those of every other output.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from lanes.record import Subject
from reports.board import Board, Column, Row
from reports.cells import STATUSES, Blocked, NotRun, Status, Tally, status_of
from reports.costs import TITLE, cost_lines
from reports.guards import UNPROVEN, Guard
from reports.items import GRAVE_NOTICES, Item
from reports.proof_words import guards_line
from reports.render.html_parts import (
    LEGEND,
    Alarm,
    Bar,
    Card,
    Chip,
    ClaimView,
    Detail,
    Excerpt,
    GuardView,
    NightBar,
    Test,
    TrendView,
)
from reports.render.lines import last_seen_words, void_line
from reports.trend import PROMOTED_AFTER_NIGHTS, SHOWN_NIGHTS, Trend
from reports.words import (
    NO_HOSTED,
    NO_LIVE,
    attempt_words,
    cell_reason,
    cell_status,
    cell_words,
    column_reason,
    item_facts,
)

ITEMS_SHOWN = 6_000  # on the whole page; about 4 MB, which a browser opens at once
_PASSED_PER_CELL = 10
_OTHERS_PER_CELL = 50
_FAILURE_LINES, _STREAM_LINES = 40, 15
_EXCERPT_CHARACTERS = 8_000
_NIGHT_STEP = 8
_NIGHT_HEIGHTS = {"passed": 20, "flaky": 14, "stale": 10, "failed": 6}
_WORST_FIRST: tuple[Status, ...] = tuple(reversed(STATUSES))
_PLAIN_ID = re.compile(r"[a-z0-9.-]{1,120}")


class View:
    """A whole board, ready to be laid out. The tests of a claim are made as the page comes to them."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._room = ITEMS_SHOWN
        self._items = {column.id: _items_by_claim(column) for column in board.columns}
        subject = board.subject
        self.banner = board.banner
        self.is_live = not board.banner.startswith((NO_LIVE, NO_HOSTED))
        self.name = subject.commit[:7] or (subject.tree[7:19] if subject.tree else "unknown")
        self.facts = tuple((name, value) for name, value in _subject_facts(board) if value)
        self.cards = tuple(_card(number, column) for number, column in enumerate(board.columns, start=1))
        self.guards = tuple(_guard(number, guard) for number, guard in enumerate(board.guards.shown, start=1))
        self._proofs: dict[str, tuple[tuple[str, str, Chip], ...]] = {}
        for each in self.guards:
            proof = (each.anchor, each.id, each.chip)
            self._proofs[each.claim] = (*self._proofs.get(each.claim, ()), proof)
        self.claims = tuple(self._claim(number, row) for number, row in enumerate(board.rows, start=1))
        occurring = {chip.status for claim in self.claims for _card, chip in claim.cells}
        self.statuses = tuple(Chip(each, each) for each in _WORST_FIRST if each in occurring)
        self.alarms = tuple(_alarms(board, self.cards))
        self.voids = tuple(void_line(void) for void in board.voids)
        self.notices = tuple((each.lane, each.kind, each.text) for each in board.notices)
        self.aside = tuple(f"{each.lane}, {each.bundle}: about {each.subject}" for each in board.set_aside)
        self.last_seen = tuple(last_seen_words(board, seen) for seen in board.last_seen)
        self.costs, self.costs_title = cost_lines(board), TITLE
        self.trends = tuple(_trend(trend) for trend in board.trends)
        self.guards_line = guards_line(board.guards)
        self.guards_not_run = board.guards.not_run
        self.guard_texts = board.guards
        self.unclaimed = tuple(
            (card, _chips(column.unclaimed)) for card, column in self._columns() if column.unclaimed.total
        )
        self.legend = tuple((Chip(status, status), means, never) for status, means, never in LEGEND)
        self.bundles = tuple((card, column.bundles) for card, column in self._columns() if column.bundles)

    def _columns(self) -> Iterator[tuple[Card, Column]]:
        return zip(self.cards, self._board.columns, strict=True)

    def _claim(self, number: int, row: Row) -> ClaimView:
        claim = row.claim
        asked = [*claim.required, *(f"{lane} (optional)" for lane in claim.optional)]
        cells = tuple((card, _chip(row, column)) for card, column in self._columns())
        words = self._board.guards.words_of(claim)
        anchor = f"claim-{claim.id if _PLAIN_ID.fullmatch(claim.id) else number}"
        return ClaimView(
            anchor,
            claim.id,
            claim.sentence,
            ", ".join(asked),
            claim.owner,
            words,
            words == UNPROVEN,
            cells,
            self._proofs.get(claim.id, ()),
            row,
        )

    def details(self, claim: ClaimView) -> Iterator[Detail]:
        """The cells of a claim that it asks for, each with its tests, worst first, as far as the page has room."""
        for card, column in self._columns():
            cell = claim.row.cells[column.id]
            if cell is None:
                continue
            chip = _chip(claim.row, column)
            items = self._items[column.id].get(claim.id, [])
            shown, left_out = self._choose(items)
            tests = tuple(_test(item) for item in shown)
            is_open = chip.status in {"failed", "flaky", "blocked", "stale"}
            yield Detail(card, chip, cell_reason(cell), tests, left_out, is_open)

    def _choose(self, items: Sequence[Item]) -> tuple[list[Item], tuple[str, ...]]:
        shown: list[Item] = []
        left: list[str] = []
        for status in _WORST_FIRST:
            of_status = [item for item in items if item.status == status]
            most = min(_PASSED_PER_CELL if status == "passed" else _OTHERS_PER_CELL, self._room)
            shown += of_status[:most]
            self._room -= min(most, len(of_status))
            if len(of_status) > most:
                left.append(f"{len(of_status) - most} more {status}")
        return shown, tuple(left)


def view_of(board: Board) -> View:
    """The view of a board."""
    return View(board)


def _items_by_claim(column: Column) -> dict[str, list[Item]]:
    found: dict[str, list[Item]] = {}
    for item in column.items:
        for claim_id in item.claim_ids:
            found.setdefault(claim_id, []).append(item)
    return found


def _tree_words(subject: Subject) -> str:
    return f"dirty, {subject.dirty_digest[:19]}" if subject.dirty else "clean"


def _subject_facts(board: Board) -> Iterator[tuple[str, str]]:
    subject = board.subject
    yield "commit", subject.commit
    yield "tree", "" if subject.commit else subject.tree
    yield "work tree", _tree_words(subject) if subject.commit else ""
    yield "loop", subject.loop_digest[:19]
    yield "locks", subject.lock_digest[:19]
    yield "interpreter", subject.python
    yield "platform", subject.platform


def _chip(row: Row, column: Column) -> Chip:
    cell = row.cells[column.id]
    return Chip(cell_status(cell), cell_words(cell, is_live=column.is_live))


def _card(number: int, column: Column) -> Card:
    facts = [("tests", ", ".join(chip.words for chip in _chips(column.item_tally)))]
    facts += [("guard", column.guard)]
    facts += [("keys removed", str(column.keys_removed) if column.keys_removed else "")]
    facts += [("started by", ", ".join(column.markers))]
    return Card(
        anchor=f"column-{number}",
        heading=column.heading,
        short=column.short,
        sub_heading=column.sub_heading,
        when=" to ".join(_moment(each) for each in column.started),
        why_not_run="" if column.not_run is None else column_reason(column.not_run),
        glance=tuple(_glance(column)),
        chips=tuple(_chips(column.tally)),
        bars=tuple(_bars(column.tally)),
        counted=", ".join(chip.words for chip in _chips(column.tally)) or "no claim asks for it",
        supports=column.supports,
        does_not_prove=column.does_not_prove,
        facts=tuple((name, value) for name, value in facts if value),
        is_live=column.is_live,
    )


def _glance(column: Column) -> list[Chip]:
    """A column in a word or two: its claims by status, or why there is nothing to count."""
    reason = column.not_run
    if reason is None:
        return _chips(column.tally)
    cell = Blocked(reason) if reason.code == "void" else NotRun(reason)
    return [Chip(status_of(cell), cell_words(cell, is_live=column.is_live))]


def _moment(told: str) -> str:
    """A moment for a reader; a form that is not the usual one is left as it is."""
    usual = re.fullmatch(r"(\d{4}-\d{2}-\d{2})T(\d{2}:\d{2}):\d{2}Z", told)
    return f"{usual[1]} {usual[2]} UTC" if usual else told


def _chips(tally: Tally) -> list[Chip]:
    """The statuses that occur, with their counts; known failures are told apart."""
    found: list[Chip] = []
    for status in STATUSES:
        count = tally.of(status)
        if status == "failed" and tally.known:
            found.append(Chip(status, f"failed (known) {tally.known}"))
            count -= tally.known
        if count:
            found.append(Chip(status, f"{status} {count}"))
    return found


def _bars(tally: Tally) -> Iterator[Bar]:
    start = 0.0
    for status in STATUSES:
        if count := tally.of(status):
            width = 100 * count / tally.total
            yield Bar(Chip(status, "").name, round(start, 2), round(width, 2))
            start += width


def _test(item: Item) -> Test:
    attempts = tuple(attempt_words(each) for each in item.attempts) if len(item.attempts) > 1 else ()
    facts = tuple(fact for fact in item_facts(item) if fact not in attempts)
    excerpts: list[Excerpt] = []
    if item.status != "passed":
        for title, text, most in (
            ("failure", item.failure, _FAILURE_LINES),
            ("standard output", item.stdout, _STREAM_LINES),
            ("standard error", item.stderr, _STREAM_LINES),
        ):
            if text.strip():
                excerpts.append(_excerpt(title, text, most))
        excerpts += [
            _excerpt(f"attempt {each.n}", each.failure, _STREAM_LINES) for each in item.attempts[:-1] if each.failure
        ]
    status = "failed (known)" if item.is_known else item.status
    return Test(item.node_id, Chip(item.status, status), attempts, facts, tuple(excerpts))


def _excerpt(title: str, text: str, most: int) -> Excerpt:
    lines = text[-_EXCERPT_CHARACTERS:].splitlines()
    shown = lines[-most:]
    return Excerpt(title, "\n".join(shown), max(0, len(text.splitlines()) - len(shown)))


def _alarms(board: Board, cards: Sequence[Card]) -> Iterator[Alarm]:
    """What a reader should see before anything else, gravest first."""
    if board.voids:
        yield Alarm(f"{len(board.voids)} pieces of evidence are void", "evidence", is_grave=True)
    kinds = Counter((notice.lane, notice.kind) for notice in board.notices)
    for (lane, kind), count in kinds.items():
        if kind in GRAVE_NOTICES or kind in {"missing shard", "torn"}:
            words = f"{lane}: {kind}" + (f", {count} times" if count > 1 else "")
            yield Alarm(words, "evidence", is_grave=kind in GRAVE_NOTICES)
    for status in ("failed", "flaky", "blocked", "stale"):
        for card, column in zip(cards, board.columns, strict=True):
            count = column.tally.of(status) - (column.tally.known if status == "failed" else 0)
            if count:
                yield Alarm(f"{card.heading}: {count} {status}", card.anchor, is_grave=status == "failed")
    idle = [
        column.heading for column in board.columns if column.not_run and column.tally.not_run and not column.is_live
    ]
    if idle:
        yield Alarm(f"not run: {', '.join(idle)}", "columns", is_grave=False)
    if board.set_aside:
        count = len(board.set_aside)
        words = "1 bundle is" if count == 1 else f"{count} bundles are"
        yield Alarm(f"{words} about another subject, and set aside", "evidence", is_grave=False)
    for card, column in zip(cards, board.columns, strict=True):
        if column.is_partial and column.bundles:
            yield Alarm(f"{card.heading}: only a part of the lane was run", card.anchor, is_grave=False)
    unproven = sum(1 for row in board.rows if board.guards.words_of(row.claim) == UNPROVEN)
    if unproven:
        yield Alarm(f"{unproven} guards not proven on this commit", "guards", is_grave=False)


def _trend(trend: Trend) -> TrendView:
    nights = trend.strip[-SHOWN_NIGHTS:]
    told = [f"{word} {len(list(run))}" for word, run in itertools.groupby(nights)]
    ago = "never" if trend.days_since_live is None else f"{trend.days_since_live} days ago"
    earned = "yes" if trend.is_promoted else f"after {trend.clean_nights} of {PROMOTED_AFTER_NIGHTS} nights: not yet"
    facts = (
        ("nights judged", trend.rate.words),
        ("last seen live", ago),
        ("first byte", "" if trend.ttfb_ms is None else f"{trend.ttfb_ms} ms, the median"),
        ("cost of all nights", "not known" if trend.usd is None else f"${trend.usd:f}"),
        ("may be required live", earned),
    )
    return TrendView(
        claim=trend.claim_id,
        who=f"{trend.provider} {trend.model}".strip(),
        bars=tuple(_night_bar(number, word) for number, word in enumerate(nights)),
        width=max(1, len(nights)) * _NIGHT_STEP,
        words=", ".join(told),
        facts=tuple((name, value) for name, value in facts if value),
    )


def _night_bar(number: int, word: str) -> NightBar:
    """Passed stands full, what is worse stands lower, and a night without data lies flat: not by colour alone."""
    height = _NIGHT_HEIGHTS.get(word, 2)
    name = word.replace(" ", "-") if word in _NIGHT_HEIGHTS else "gap"
    return NightBar(name, number * _NIGHT_STEP, _NIGHT_HEIGHTS["passed"] - height, height)


def _guard(number: int, guard: Guard) -> GuardView:
    where = "this commit" if guard.is_current else f"{guard.commit[:7] or 'another tree'}, not this commit"
    status = "passed" if guard.is_proof and guard.is_current else "not run" if guard.is_proof else "failed"
    return GuardView(
        anchor=f"guard-{number}",
        chip=Chip(status, guard.verdict),
        id=guard.id,
        claim=guard.claim_id,
        lane=guard.lane,
        why=guard.why,
        counts=guard.counts,
        where=f"{where}, {guard.duration_ms / 1000:.1f} s",
        text=guard.text,
        expected=", ".join(guard.expected) or "none",
        observed=", ".join(guard.observed) or "none",
        diffs=guard.diffs,
    )
