"""Cancels at every await of turns that compact and delegate: brackets close, children end first, every log is whole."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from harness.capabilities.compaction import open_compaction
from harness.log.events import Cause
from lanes.unit.capabilities.family import Family, delegates
from lanes.unit.capabilities.shortened import WORDS, Shortened
from lanes.unit.loop.rig import Rig, message, tool
from lanes.unit.loop.scripted_model import calls, text

USER = Cause("user")


async def ticks_of(rig: Rig) -> int:
    """How many turns of the loop a prompt takes."""
    rig.agent.followup(message("go"))
    ticks = 0
    while rig.agent.status == "running":
        await asyncio.sleep(0)
        ticks += 1
    return ticks


async def cancelled_at(rig: Rig, tick: int, cancel: Callable[[], object]) -> None:
    rig.agent.followup(message("go"))
    for _ in range(tick):
        await asyncio.sleep(0)
    cancel()
    await rig.idle()


async def shortened(make_rig: Callable[..., Rig]) -> Shortened:
    """A session whose next turn is compacted before it asks."""
    short = Shortened(make_rig, text(WORDS), text("b"), summaries=[text("short")], limit=100)
    await short.rig.run("one")
    short.rig.may_leave_replies = True
    return short


async def test_a_cancel_at_any_tick_of_a_turn_that_compacts_closes_the_bracket_and_the_turn(
    make_rig: Callable[..., Rig],
) -> None:
    whole = await shortened(make_rig)
    ticks = await ticks_of(whole.rig)
    assert whole.brackets == ["start pressure", "summary", "end done"]
    seen = set()
    for tick in range(ticks):
        short = await shortened(make_rig)
        before = short.rig.log.surface()
        await cancelled_at(short.rig, tick, lambda short=short: short.rig.agent.cancel(USER))  # type: ignore[misc]
        assert open_compaction(short.rig.log) is None
        end = short.brackets[-1] if short.brackets else "none"
        if end != "end done":
            assert short.rig.log.surface()[: len(before)] == before
        seen.add((end, short.rig.outcomes[-1]))
        short.rig.check()
    assert {("none", "aborted"), ("end cancelled", "aborted"), ("end done", "aborted")} <= seen


async def test_a_host_that_cancels_the_driver_at_any_tick_of_a_turn_that_compacts_leaves_no_open_bracket(
    make_rig: Callable[..., Rig],
) -> None:
    for tick in range(await ticks_of((await shortened(make_rig)).rig)):
        short = await shortened(make_rig)

        def cancel(short: Shortened = short) -> None:
            activity = short.rig.agent._activity
            assert activity is not None
            activity.cancel()

        await cancelled_at(short.rig, tick, cancel)
        assert open_compaction(short.rig.log) is None
        short.rig.check()


def delegating(make_family: Callable[..., Family]) -> Family:
    """A parent with two children side by side, one of which uses a tool."""
    family = make_family(
        delegates("x", "y"),
        text("all done"),
        children=[[calls(("c", "look", "{}"), said="so"), text("one")], [text("two")]],
        is_read_only=True,
        child_options={"tools": [tool("look")]},
    )
    family.parent.may_leave_replies = True
    family.as_made = lambda child: setattr(child.rig, "may_leave_replies", True)
    return family


async def test_G05_a_cancel_at_any_tick_of_a_turn_that_delegates_ends_every_child_before_the_turn(
    make_family: Callable[..., Family],
) -> None:
    ticks = await ticks_of(delegating(make_family).parent)
    seen = set()
    for tick in range(ticks):
        family = delegating(make_family)
        parent = family.parent.agent
        family.parent.log.observe(lambda event, notes=family.notes: notes.append(f"parent {event.type}"))  # type: ignore[misc]
        await cancelled_at(family.parent, tick, lambda parent=parent: parent.cancel(USER))  # type: ignore[misc]
        family.check()
        ends = [note for note in family.notes if note.endswith(("turn/end", "closed"))]
        assert ends[-1:] == ["parent turn/end"] * len(family.parent.outcomes)
        for child in family.children:
            assert [reason.cause for reason in child.reasons if reason.kind == "aborted"] in ([], [Cause("parent")])
        seen.add((len(family.children), tuple(family.parent.outcomes)))
    assert {(0, ()), (0, ("aborted",)), (2, ("aborted",))} <= seen
