"""The program as child processes over one recorded session: what starts them, and what they leave behind.

Room: the channel of recordings comes in. It knows neither the product nor the player, only the files between them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from lanes.errors import ScenarioError
from lanes.record import Json, JsonObject


@dataclass(slots=True)
class RecordedChild:
    """The program as child processes that share a recorded session as their model, each going on where one ended.

    Shape: `command` gives what to start instead of the program, for one process after another. `base_url` is what the
    program is told. `problems` and `facts` are those of all of them; while none was started, what the player says
    that nobody asked anything.
    """

    base_url: str
    _stem: Path
    _document: dict[str, Json]
    _unasked: tuple[str, ...]
    _untouched: JsonObject
    _verdicts: list[Path] = field(default_factory=list)

    def command(self, arguments: Sequence[str]) -> list[str]:
        """Return the command that runs the program with these arguments, as `harness ARGUMENTS` would."""
        begun = self._said()[-1]["cursors"] if self._verdicts else []
        stem = f"{self._stem.name}-{len(self._verdicts) + 1}"
        specification, verdict = self._stem.with_name(f"{stem}.json"), self._stem.with_name(f"{stem}.verdict")
        self._verdicts.append(verdict)
        document = {**self._document, "argv": list(arguments), "begun": begun, "verdict": str(verdict)}
        specification.write_text(json.dumps(document), "utf-8")
        return [sys.executable, "-m", "lanes.replay_child", str(specification)]

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong at the end: divergences of all processes, and answers that none of them asked for."""
        said = self._said()
        if not said:
            return self._unasked
        missed = [str(miss) for each in said[:-1] for miss in cast("list[str]", each["misses"])]
        return (*missed, *cast("list[str]", said[-1]["problems"]))

    @property
    def facts(self) -> JsonObject:
        """The recording as evidence shows it."""
        said = self._said()
        if not said:
            return self._untouched
        unmatched = sum(len(cast("list[str]", each["misses"])) for each in said)
        return {**self._untouched, **cast("JsonObject", said[-1]["facts"]), "unmatched": unmatched}

    def _said(self) -> list[Mapping[str, Json]]:
        """What the processes left behind.

        Raises: ScenarioError when one of them has not come to its end.
        """
        for path in self._verdicts:
            if not path.exists():
                raise ScenarioError("the program has not come to its end", where="recorded child")
        return [json.loads(path.read_text("utf-8")) for path in self._verdicts]
