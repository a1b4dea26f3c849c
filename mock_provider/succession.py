"""One script after another on the same address: conversations that have begun are finished on the script they began.

Room: pure; the engine comes in and holds the lock.
"""

from __future__ import annotations

from mock_provider.asked import Asked
from mock_provider.caller import Caller
from mock_provider.deciding import Decider
from mock_provider.play import Play
from mock_provider.playback import History
from mock_provider.values import value
from mock_provider.verdict import Verdict

MAX_EARLIER = 20  # scripts with unfinished conversations; the oldest is then given up


@value
class Scene:
    """A script under play, and who decides about its requests."""

    play: Play
    decider: Decider


class Succession:
    """The scripts before the present one. Limits: MAX_EARLIER."""

    def __init__(self) -> None:
        self._scenes: list[Scene] = []
        self._given_up: list[Verdict] = []

    def __bool__(self) -> bool:
        return bool(self._scenes)

    def leave(self, scene: Scene) -> None:
        """Another script follows this one."""
        self._scenes.append(scene)
        if len(self._scenes) > MAX_EARLIER:
            self._given_up.append(self._scenes.pop(0).play.verdict())

    def scene_of(self, checked: object, caller: Caller) -> Scene | None:
        """The earlier script whose conversation this request continues; None when it belongs to the present one."""
        if not isinstance(checked, Asked):
            return None
        history = History(checked.messages)
        name = caller.naming.conversation if caller.naming else None
        return next((scene for scene in reversed(self._scenes) if scene.play.playback.goes_on(history, name)), None)

    def judge(self, present: Verdict) -> Verdict:
        """The verdict on all of it: of earlier scripts what went wrong, and what was begun and not finished."""
        earlier = [*self._given_up, *(scene.play.verdict(only_begun=True) for scene in self._scenes)]
        return Verdict(
            script=present.script,
            used=present.used + sum(verdict.used for verdict in earlier),
            left=(*(line for verdict in earlier for line in verdict.left), *present.left),
            unmatched=(*(line for verdict in earlier for line in verdict.unmatched), *present.unmatched),
            invalid=(*(line for verdict in earlier for line in verdict.invalid), *present.invalid),
            gates=(*(line for verdict in earlier for line in verdict.gates), *present.gates),
            seeds=present.seeds,
        )

    def clear(self) -> None:
        """Forget all of them."""
        self._scenes.clear()
        self._given_up.clear()
