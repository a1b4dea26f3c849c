"""The parts of the page: what stands in each place of it, as the template takes it.

Room: pure. The view fills them; nothing is worked out here.
"""

from __future__ import annotations

from dataclasses import dataclass

from reports.board import Row
from reports.cells import Status

_GLYPHS = {"passed": "●", "not run": "○", "stale": "◔", "blocked": "■", "flaky": "▲", "failed": "✕"}
# What each status means and what it never means, as docs/evidence.md has it.
LEGEND: tuple[tuple[Status, str, str], ...] = (
    ("passed", "every test of the claim passed at its first attempt", "that a skipped or missing sibling passed"),
    ("not run", "nothing was attempted: no key, lane not run, deselected, missing shard, no test", "passed"),
    ("stale", "it passed, but its recording is too old or no longer fits", "passed"),
    ("blocked", "could not be judged: lost worker, torn or void evidence, provider, credential", "failed or passed"),
    ("flaky", "passed only after a failed attempt, or two observations disagree", "passed"),
    ("failed", "the last attempt failed, or a law of the lane broke", "that the provider was down"),
)


@dataclass(frozen=True, slots=True)
class Chip:
    """One status as it is shown: its class for the style, a sign that is no colour, and its words."""

    status: str
    words: str

    @property
    def name(self) -> str:
        """The status as a class name."""
        return self.status.replace(" ", "-")

    @property
    def glyph(self) -> str:
        """The sign in front of the words."""
        return _GLYPHS.get(self.status, "")


@dataclass(frozen=True, slots=True)
class Bar:
    """One part of a bar of counts, in hundredths of its width."""

    name: str
    start: float
    width: float


@dataclass(frozen=True, slots=True)
class Card:
    """One column at a glance."""

    anchor: str
    heading: str
    short: str
    sub_heading: str
    when: str
    why_not_run: str
    glance: tuple[Chip, ...]
    chips: tuple[Chip, ...]
    bars: tuple[Bar, ...]
    counted: str
    supports: str
    does_not_prove: str
    facts: tuple[tuple[str, str], ...]
    is_live: bool


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The end of a longer text, and how many lines stood before it."""

    title: str
    text: str
    before: int


@dataclass(frozen=True, slots=True)
class Test:
    """One test below a cell."""

    name: str
    chip: Chip
    attempts: tuple[str, ...]
    facts: tuple[str, ...]
    excerpts: tuple[Excerpt, ...]


@dataclass(frozen=True, slots=True)
class Detail:
    """One cell with the tests it stands on."""

    column: Card
    chip: Chip
    reason: str
    tests: tuple[Test, ...]
    left_out: tuple[str, ...]
    is_open: bool


@dataclass(frozen=True, slots=True)
class ClaimView:
    """One row, and what lies below it."""

    anchor: str
    id: str
    sentence: str
    asked: str
    owner: str
    guard: str
    is_guard_missing: bool
    cells: tuple[tuple[Card, Chip], ...]
    proofs: tuple[tuple[str, str, Chip], ...]
    row: Row

    @property
    def statuses(self) -> str:
        """The status words of its cells, for the filter."""
        return " ".join(dict.fromkeys(chip.name for _card, chip in self.cells))


@dataclass(frozen=True, slots=True)
class Alarm:
    """Something that a reader should look at first."""

    words: str
    target: str
    is_grave: bool


@dataclass(frozen=True, slots=True)
class NightBar:
    """One night of a strip: where it stands, how high it is, and its class for the style."""

    name: str
    x: int
    y: int
    height: int


@dataclass(frozen=True, slots=True)
class TrendView:
    """The nights of one claim with one provider: a strip to look at, and the same in words."""

    claim: str
    who: str
    bars: tuple[NightBar, ...]
    width: int
    words: str
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class GuardView:
    """One proof of a guard."""

    anchor: str
    chip: Chip
    id: str
    claim: str
    lane: str
    why: str
    counts: str
    where: str
    text: str
    expected: str
    observed: str
    diffs: tuple[tuple[str, str], ...]
