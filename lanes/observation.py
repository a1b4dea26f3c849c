"""One test item's observation: what its channels and children saw, gathered while it runs.

Room: the plugin makes one per item, channels write to it. A test can add nothing that a witness did not see.
"""

from __future__ import annotations

import difflib
import hashlib
import hmac
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from _pytest.outcomes import Skipped

from lanes.errors import GuardError, UsageError
from lanes.record import REASONS, Json, JsonObject
from lanes.trouble import Trouble

# What an item may say about itself when it does not run; the other codes are the lane's to give.
NOT_RUN_CODES = ("platform", "missing-dependency", "budget")


class NotRun(Skipped):
    """An item that did not run, with a code of the closed list."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(f"not run ({code}): {text}", _use_item_location=True)
        self.code = code
        self.text = text


class Blocked(Skipped):
    """An item that cannot be judged, for a reason outside of what it tests."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(f"blocked ({code}): {text}", _use_item_location=True)
        self.code = code
        self.text = text


def not_run(code: str, text: str) -> NoReturn:
    """Stop the running item and have it shown as not run.

    Raises: UsageError for a code outside NOT_RUN_CODES, with the nearest one.
    """
    if code not in NOT_RUN_CODES:
        near = difflib.get_close_matches(code, NOT_RUN_CODES, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        message = f"reason code {code!r} is not one a test may give{hint}"
        raise UsageError(message, expected=", ".join(f"{each} ({REASONS[each]})" for each in NOT_RUN_CODES))
    raise NotRun(code, text)


class Observation:
    """What witnesses saw during one item.

    Shape: `token` is known to this item and the children its channels start; a note without it is void.
    """

    def __init__(self, node_id: str, *, spool: Path, secret: str, claim_ids: Sequence[str] = ()) -> None:
        self.node_id = node_id
        self.claim_ids = tuple(claim_ids)
        self.spool = spool
        self.token = hmac.new(secret.encode(), node_id.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
        self._answers: list[JsonObject] = []
        self._script: JsonObject | None = None
        self._cassette: JsonObject | None = None
        self._model: JsonObject | None = None
        self._live_proof: JsonObject | None = None
        self._cost: JsonObject | None = None
        self.trouble: tuple[str, Trouble] | None = None  # with which provider, and what its latest exchange met

    def add_answer(self, note: Mapping[str, Json]) -> None:
        """Keep one answer note; its ordinal is given here."""
        self._answers.append({**note, "ordinal": len(self._answers) + 1})

    def set_script(self, facts: JsonObject) -> None:
        """Keep what a script was and how much of it was used."""
        self._script = facts

    def set_cassette(self, facts: JsonObject) -> None:
        """Keep what a recording was and how much of it was used."""
        self._cassette = facts

    def set_model(self, facts: JsonObject) -> None:
        """Keep which model was asked for, and where."""
        self._model = facts

    def set_live_proof(self, facts: JsonObject) -> None:
        """Keep the wire facts of a live conversation."""
        self._live_proof = facts

    def set_cost(self, facts: JsonObject) -> None:
        """Keep what a live conversation has cost."""
        self._cost = facts

    def new_note_file(self) -> Path:
        """Return a fresh path in the spool for the notes of one child."""
        number = 1
        while (path := self.spool / f"notes-{self.token[:24]}-{number}.jsonl").exists():
            number += 1
        path.touch(mode=0o600)
        return path

    def take_notes(self, path: Path) -> int:
        """Take over the notes that a child wrote, and return their number.

        Raises: GuardError for a line without this item's token, or one that is torn.
        """
        lines = path.read_text("utf-8").splitlines()
        for number, line in enumerate(lines, start=1):
            try:
                note = json.loads(line)
            except ValueError:
                note = None
            if not isinstance(note, dict) or note.pop("token", None) != self.token:
                raise GuardError(
                    "an answer note without this item's token is void", where=f"{path.name}, line {number}"
                )
            self.add_answer(note)
        return len(lines)

    @property
    def answers(self) -> tuple[JsonObject, ...]:
        """The answer notes so far."""
        return tuple(self._answers)

    def to_json(self) -> dict[str, Json]:
        """The observation as the evidence attribute of a report carries it."""
        return {
            "answers": [dict(answer) for answer in self._answers],
            "script": self._script,
            "cassette": self._cassette,
            "model": self._model,
            "live_proof": self._live_proof,
            "cost": self._cost,
        }


class ObservationView:
    """What a test may see of its observation: nothing can be added through it.

    Shape: answers are the notes so far; a witness alone writes them.
    """

    def __init__(self, observation: Observation) -> None:
        self.node_id = observation.node_id
        self._read: Callable[[], tuple[JsonObject, ...]] = lambda: observation.answers

    @property
    def answers(self) -> tuple[JsonObject, ...]:
        """The answer notes so far."""
        return self._read()
