"""How far the play is: what every request changed, and the verdict on all of it.

Room: pure; the engine holds one and locks. Workers that share a play each hold one and exchange the notes.
"""

from __future__ import annotations

from collections.abc import Iterable

from mock_provider.playback import Cursor, Playback
from mock_provider.random_faults import say_seeds
from mock_provider.steps import Script, Step
from mock_provider.values import value
from mock_provider.verdict import Verdict

MAX_PROBLEMS = 1000


@value
class Note:
    """What one request changed.

    Shape: conversation and client say who played, when that was found out; item and step which step was used up, None
    when none was; history as playback seals it. unmatched and invalid are lines for the verdict. is_hit says that a
    fault by lot met the request, so that its step is not used up; drew that there was a lot at all.
    """

    conversation: str | None = None
    client: str = ""
    item: int | None = None
    step: int | None = None
    history: str | None = None
    unmatched: str | None = None
    invalid: str | None = None
    is_hit: bool = False
    drew: bool = False


class Play:
    """The state of one play. Limits: not safe for threads; the engine locks."""

    def __init__(self, script: Script, *, remembers: bool = False, number: int = 0) -> None:
        self.script = script
        self.playback = Playback(script, remembers=remembers)
        self.number = number
        self._unmatched: list[str] = []
        self._invalid: list[str] = []
        self._stuck: list[str] = []

    def use(self, cursor: Cursor, step: Step) -> int:
        """Change what a request changed that nothing but its client's step had to be looked at for. Shape: as apply."""
        self.number += 1
        self.playback.use(cursor, step)
        return self.number

    def apply(self, note: Note) -> int:
        """Change what a request changed. Shape: the number of the request, counted from 1."""
        self.number += 1
        if note.conversation is not None:
            if note.drew and note.step is not None:
                self.playback.note_lot(note.conversation, note.client, note.step, note.history, is_hit=note.is_hit)
            if note.item is not None and note.step is not None and not note.is_hit:
                self.playback.move(note.conversation, note.client, note.item, note.step, note.history)
            else:
                self.playback.enter(note.conversation, note.client)
        if note.unmatched is not None and len(self._unmatched) < MAX_PROBLEMS:
            self._unmatched.append(note.unmatched)
        if note.invalid is not None and len(self._invalid) < MAX_PROBLEMS:
            self._invalid.append(note.invalid)
        return self.number

    def stuck(self, line: str) -> None:
        """Note a gate that stayed shut for the whole time limit."""
        self._stuck.append(line)

    def reset(self) -> None:
        """Begin again."""
        self.playback.reset()
        self.number = 0
        self._unmatched.clear()
        self._invalid.clear()
        self._stuck.clear()

    def verdict(self, waiting: Iterable[str] = (), *, only_begun: bool = False) -> Verdict:
        """Judge the play so far.

        Shape: waiting are lines about gates at which answers wait now; only_begun leaves conversations that nobody
        began out of what is left.
        """
        return Verdict(
            script=self.script.name,
            used=self.playback.used(),
            left=self.playback.leftovers(only_begun=only_begun),
            unmatched=tuple(self._unmatched),
            invalid=tuple(self._invalid),
            gates=(*self._stuck, *waiting),
            seeds=say_seeds(self.script),
        )
