"""Answers that stand: where nothing but the client's place in the script decides, and that place gives the same again.

Room: pure; deciding makes them, the engine gives them.
A step that says the same to everybody, taken by a client whose name alone says who plays, needs no weighing of
conversations and histories. What is left of an answer is its ids.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeAlias

from mock_provider.asked import Asked
from mock_provider.caller import Caller
from mock_provider.composing import digits_of, seed_of
from mock_provider.dialects.codec import count_input
from mock_provider.expect import try_fit
from mock_provider.filled import Filled, Pattern
from mock_provider.framing import Framing, cut_filled
from mock_provider.journal import Alike, Entry, Journal
from mock_provider.metrics import Metrics, Tally
from mock_provider.patterns import Patterns
from mock_provider.pieces import tokens_of
from mock_provider.play import Play
from mock_provider.playback import Cursor, Playback, Taken
from mock_provider.spelling import KeptBody
from mock_provider.steps import Script, Step

MAX_STANDING = 512  # each some hundred bytes: callers by steps
MAX_CUT = 64  # one for each count of the input; each about as long as the answer


class Standing:
    """What one client gets of one step for as long as it stands there.

    Shape: needs_words says that the step has conditions, so that other words may not fit. alike is what its entries in
    the journal have in common, tally counts them.
    """

    __slots__ = (
        "_counts_from",
        "_cut",
        "_item",
        "_last",
        "_pattern",
        "_seed",
        "alike",
        "cursor",
        "needs_words",
        "step",
        "tally",
    )

    def __init__(
        self, script: Script, taken: Taken, caller: Caller, asked: Asked, pattern: Pattern, tally: Tally
    ) -> None:
        cursor, step = taken.cursor, taken.step
        conversation, client = cursor.conversation.name, cursor.client
        self.cursor = cursor
        self.step = step
        self.needs_words = step.expect is not None
        self.tally = tally
        self._item = taken.item
        self._pattern = pattern
        self._seed = seed_of(script.digest, conversation, client)
        usage = step.usage
        self._counts_from = None if usage.is_absent or usage.input is not None else usage.cached or 0
        self._cut: dict[tuple[int, Framing], tuple[bytes, ...]] = {}
        self._last: tuple[int, Framing, tuple[bytes, ...]] = (-1, Framing(), ())
        first = Entry(
            number=0,
            method=caller.method,
            path=caller.shown_path,
            kept_headers=caller.shown_headers,
            dialect=caller.dialect.name,
            conversation=conversation,
            client=client,
            step=step.number,
            matched=True,
            status=pattern.head.status,
            pieces_sent=1,
            extra_fields=asked.extra_fields,
            end="complete",
        )
        self.alike = Alike(first, self._fill, tells_length=caller.tells_length)

    @property
    def is_due(self) -> bool:
        """Whether the client still stands there."""
        return self.cursor.item == self._item

    def count(self, said_bytes: int) -> int:
        """The count of the input of a request that says so many bytes, as far as the answer tells it."""
        least = self._counts_from
        return 0 if least is None else max(tokens_of(said_bytes) or 1, least)

    def count_of(self, asked: Asked) -> int:
        """The same of a request."""
        least = self._counts_from
        return 0 if least is None else max(count_input(asked), least)

    def spell(self, use: int, counted: int, framing: Framing) -> bytes:
        """The whole answer on the wire. Shape: use counts the client's requests from 1."""
        known_count, known_framing, cut = self._last
        if counted != known_count or framing is not known_framing:
            cut = self._cut_for(counted, framing)
        spelled = [*cut]
        spelled[1::2] = digits_of(self._seed, use, self._pattern.marks)
        return b"".join(spelled)

    def _cut_for(self, counted: int, framing: Framing) -> tuple[bytes, ...]:
        cut = self._cut.get((counted, framing))
        if cut is None:
            if len(self._cut) >= MAX_CUT:
                self._cut.clear()
            cut = self._cut[counted, framing] = cut_filled(self._pattern, counted, framing)
        self._last = counted, framing, cut
        return cut

    def _fill(self, use: int, counted: int) -> Filled:
        return Filled(self._pattern, digits_of(self._seed, use, self._pattern.marks), counted)


# What a request gets: the answer that stands, the count of its input, the body for the journal.
Due: TypeAlias = "tuple[Standing, int, KeptBody]"


def give(due: Due, size_bytes: int, framing: Framing, play: Play, journal: Journal) -> bytes:
    """Give an answer that stands: use its step up, note it as complete. Shape: all of it, as it goes over the wire."""
    standing, counted, kept_body = due
    cursor = standing.cursor
    number = play.use(cursor, standing.step)
    use = cursor.requests
    journal.add_row((standing.alike, number, use, counted, kept_body, size_bytes))
    standing.tally.count += 1
    return standing.spell(use, counted, framing)


_Key: TypeAlias = "tuple[Caller, int, str, tuple[str, ...], Hashable]"


class Standings:
    """The standing answers of one script. Limits: MAX_STANDING, then all are forgotten; not safe for threads."""

    def __init__(self, script: Script, patterns: Patterns, metrics: Metrics) -> None:
        self._script = script
        self._patterns = patterns
        self._metrics = metrics
        self._known: dict[_Key, Standing | None] = {}

    def of(self, playback: Playback, caller: Caller, asked: Asked) -> Standing | None:
        """What a request gets; None where more has to be looked at."""
        answer_key = caller.dialect.answer_key
        cursor = playback.begun(caller.naming)
        if cursor is None or asked.is_stream or answer_key is None:
            return None
        at, items = cursor.item, cursor.conversation.items
        step = items[at] if at < len(items) else None
        if not isinstance(step, Step) or step.repeat == 1:
            return None
        expect = step.expect
        if expect is not None and (not expect.is_quick or try_fit(expect, asked) is None):
            return None
        key = (caller, at, asked.model, asked.extra_fields, answer_key(asked))
        if key in self._known:
            return self._known[key]
        if len(self._known) >= MAX_STANDING:
            self._known.clear()
        standing = self._known[key] = self._make(cursor, step, caller, asked)
        return standing

    def _make(self, cursor: Cursor, step: Step, caller: Caller, asked: Asked) -> Standing | None:
        taken = Taken(cursor, cursor.item, step, cursor.requests + 1, {})
        filled = self._patterns.fill(taken, asked, caller.dialect)
        if filled is None or not filled.pattern.is_for_all:
            return None
        pattern = filled.pattern
        tally = self._metrics.tally(caller.dialect.name, pattern.head.status or 0)
        return Standing(self._script, taken, caller, asked, pattern, tally)

    def forget(self) -> None:
        """Forget all of them: the play begins again, with other cursors."""
        self._known.clear()
