"""The interval of a receipt seen live, up to the last turn end before idle, and the one read off the log are one."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from harness.log.events import Cause, Event, InboxSpliced, TurnEnd, UserMessage
from harness.log.interval import Interval, receipt_interval
from harness.log.repair import closers
from harness.loop.agent import StatusChange
from harness.loop.decide import Decision, Enter, Reject
from harness.loop.hooks import Hooks, StepProposal
from harness.model.messages import MessageId, text_of
from lanes.unit.loop.rig import Rig, message
from lanes.unit.loop.scripted_model import failing, text

Make = Callable[..., Rig]


class Live:
    """Notes the receipts of a rig, and at each idle how far their intervals reach."""

    def __init__(self, rig: Rig) -> None:
        self.found: dict[MessageId, Interval] = {}
        self._open: dict[MessageId, int] = {}
        self._last_end: int | None = None
        rig.log.observe(self._on_event)
        rig.agent.observe_status(self._on_status)

    def _on_event(self, event: Event) -> None:
        payload = event.payload
        if isinstance(payload, TurnEnd):
            self._last_end = event.seq
        elif isinstance(payload, InboxSpliced):
            for item in payload.removed:
                if item.fate == "canceled" and item.id in self._open:
                    self.found[item.id] = Interval(self._open.pop(item.id), event.seq)
            self._open.update((inserted.id, event.seq) for inserted in payload.inserted)

    def _on_status(self, change: StatusChange) -> None:
        if change.status == "idle":
            self.found.update((name, Interval(first, self._last_end)) for name, first in self._open.items())
            self._open.clear()


def offline(rig: Rig, live: Live) -> dict[MessageId, Interval | None]:
    return {name: receipt_interval(rig.log, name) for name in live.found}


async def judge(proposal: StepProposal) -> Decision:
    """Let a first batch be emptied or refused by what it says."""
    said = " ".join(text_of(claimed) for claimed in proposal.messages)
    if "refuse" in said:
        return Reject()
    return Enter(()) if "empty" in said else Enter(proposal.messages)


async def test_CL11_an_emptied_first_claim_ends_the_interval_live_and_offline_although_a_prompt_waits(
    make_rig: Make,
) -> None:
    rig = make_rig(text("later"), text("last"), hooks=Hooks(pre_step=(judge,)))
    live = Live(rig)
    rig.agent.followup(message("empty", "a"))
    rig.agent.followup(message("waits", "b"))
    await rig.idle()
    first_idle = rig.log.last(TurnEnd)
    await rig.run("c")
    assert first_idle is not None
    assert (rig.outcomes, live.found[MessageId("a")].last) == (["completed"] * 3, first_idle.seq)
    assert offline(rig, live) == live.found


ANSWERS = (text("fine"), text("cut", kind="max-tokens"), failing("BAD_REQUEST"))
ACTIONS = ("followup", "steer", "inject", "cancel", "park", "nothing", "nothing")


@pytest.mark.parametrize("first_seed", range(0, 200, 50))
async def test_CL11_intervals_of_random_overlap_agree(first_seed: int) -> None:
    ends: set[str] = set()
    for seed in range(first_seed, first_seed + 50):
        chance = random.Random(seed)  # noqa: S311 - chooses what a test does
        rig = Rig(endless=lambda request, chance=chance: chance.choice(ANSWERS), hooks=Hooks(pre_step=(judge,)))
        live = Live(rig)
        left = [12]

        def act(event: Event, rig: Rig = rig, chance: random.Random = chance, left: list[int] = left) -> None:
            """While a turn is open, now and then send or cancel from within an observer."""
            if not isinstance(event.payload, UserMessage) or left[0] == 0:
                return
            left[0] -= 1
            name = f"{chance.choice(('more', 'empty', 'refuse'))}-{event.seq}"
            action = chance.choice(ACTIONS)
            if action in ("followup", "steer", "inject"):
                getattr(rig.agent, action)(message(name))
            elif action in ("cancel", "park"):
                rig.agent.cancel(Cause("user"), keep_inbox=action == "park")
                if chance.random() < 0.5:
                    rig.agent.followup(message(f"after-{event.seq}"))

        rig.log.observe(act)
        for at in range(3):
            words = [f"{chance.choice(('go', 'go', 'empty', 'refuse'))}-{at}-{n}" for n in range(chance.randint(1, 3))]
            for word in words:
                rig.agent.followup(message(word))
            await rig.idle()
        ends.update(rig.outcomes)
        assert closers(rig.log) == ()
        assert offline(rig, live) == live.found, seed
    assert ends >= {"completed", "max-tokens", "error", "blocked", "aborted"}
