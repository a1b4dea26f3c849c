"""Cancels and other calls at every point of a turn: whatever the moment, the log is whole and the agent ends idle.

Every rig is checked at its end: order of events, pairing, reconstruction of each request, status trace.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.log.events import Cause, Event, TurnEnd, UserMessage
from harness.log.inbox import fate_of
from harness.loop.tools import ToolContext, ToolOutput
from harness.model.chunks import Chunk
from harness.model.messages import MessageId, text_of
from lanes.unit.loop.rig import Rig, message, output, tool
from lanes.unit.loop.scripted_model import Reply, calls, failing, open_text, reasoning, text

USER = Cause("user")


def busy_rig(ran: list[str]) -> Rig:
    """Two prompts whose work has everything: parallel and exclusive calls, a retry, several steps."""

    async def body(arguments: object, context: ToolContext) -> ToolOutput:
        ran.append(context.call_id)
        await asyncio.sleep(0)
        return output(f"{context.call_id} done", context=("note",) if context.call_id == "c1" else ())

    rig = Rig(
        calls(("c1", "r", "{}"), ("c2", "r", "{}"), ("c3", "w", "{}"), ("c4", "x", "{}"), said="a"),
        failing("TRANSPORT", *open_text("half")),
        text("one"),
        calls(("c5", "r", "{}")),
        text("two"),
        tools=[tool("r", body, read_only=True), tool("w", body)],
    )
    rig.may_leave_replies = True
    return rig


async def run_whole() -> Rig:
    rig = busy_rig([])
    await rig.run("a", "b")
    rig.check()
    return rig


@pytest.mark.parametrize("keep_inbox", [False, True], ids=["clearing", "keeping"])
async def test_C03_C04_a_cancel_from_an_observer_of_any_event_leaves_a_whole_log(keep_inbox: bool) -> None:
    length = len((await run_whole()).log)
    assert length > 60
    aborted = 0
    for at in range(length):
        ran: list[str] = []
        rig = busy_rig(ran)

        def cancel(event: Event, rig: Rig = rig, at: int = at) -> None:
            if event.seq == at:
                rig.agent.cancel(USER, keep_inbox)

        rig.log.observe(cancel)
        await rig.run("a", "b")
        rig.check()
        assert len(set(ran)) == len(ran), at
        if not keep_inbox:
            assert not rig.agent.inbox.has_waking
        aborted += rig.outcomes.count("aborted")
        assert rig.outcomes.count("aborted") <= 1
    assert aborted > length / 2


async def at_tick(tick: int, act: Callable[[], object]) -> None:
    for _ in range(tick):
        await asyncio.sleep(0)
    act()


async def count_ticks() -> int:
    rig = busy_rig([])
    running = asyncio.ensure_future(rig.run("a", "b"))
    ticks = 0
    while not running.done():
        await asyncio.sleep(0)
        ticks += 1
    return ticks


async def test_C03_C04_a_cancel_at_any_tick_of_the_event_loop_leaves_a_whole_log() -> None:
    ticks = await count_ticks()
    assert ticks > 30
    outcomes = set()
    for tick in range(ticks):
        rig = busy_rig([])
        rig.agent.followup(message("a"))
        rig.agent.followup(message("b"))
        await at_tick(tick, lambda rig=rig: rig.agent.cancel(USER))  # type: ignore[misc]
        await rig.idle()
        rig.check()
        assert not rig.agent.inbox.has_waking
        outcomes.update(rig.outcomes)
    assert outcomes == {"aborted", "completed"}


async def test_a_host_that_cancels_the_driver_at_any_tick_gets_a_closed_turn() -> None:
    ticks = await count_ticks()
    causes = set()
    for tick in range(ticks):
        rig = busy_rig([])
        rig.agent.followup(message("a"))
        rig.agent.followup(message("b"))
        activity = rig.agent._activity
        assert activity is not None
        await at_tick(tick, activity.cancel)
        await rig.idle()
        rig.check()
        causes.update(reason.cause for reason in rig.reasons if reason.kind == "aborted")
    assert causes == {Cause("disposed")}


async def test_P10_a_disk_that_fails_from_any_flush_on_leaves_a_whole_log_and_runs_no_tool_unrecorded() -> None:
    flushes = len((await run_whole()).writer.flushed_at)
    for broken_from in range(flushes):
        ran: list[str] = []
        rig = busy_rig(ran)
        rig.expected_failures = None
        rig.writer.is_broken = lambda log, rig=rig, at=broken_from: len(rig.writer.flushed_at) > at  # type: ignore[misc]
        await rig.run("a", "b")
        rig.check()
        recorded = {event.payload.call_id for event in rig.log[: rig.writer.durable] if event.type == "tool/call"}  # type: ignore[union-attr]
        assert set(ran) <= recorded, broken_from


REPLIES = st.sampled_from(["text", "reasoning", "call", "calls", "bad-calls", "cut", "retry", "fail", "empty", "throw"])


def reply(kind: str, number: int) -> list[Chunk]:
    match kind:
        case "text":
            return text(f"answer {number}")
        case "reasoning":
            return reasoning("hm", f"answer {number}")
        case "call":
            return calls((f"c{number}", "r", "{}"))
        case "calls":
            return calls((f"c{number}", "r", "{}"), (f"d{number}", "r", "{}"), (f"e{number}", "w", "{}"))
        case "bad-calls":
            return calls(("same", "nowhere", "{}"), ("same", "", "x"), ("", "r", "[1]"))
        case "cut":
            return calls((f"c{number}", "r", "{"), said="cut", kind="max-tokens")
        case "retry":
            return failing("SERVER", *open_text("half"))
        case "fail":
            return failing("AUTH")
        case "empty":
            return failing("EMPTY_RESPONSE")
        case _:
            return open_text("no end")


OPERATIONS = st.lists(
    st.sampled_from(
        ["followup", "followup", "steer", "inject", "cancel", "keep", "drop", "wake", "tick", "tick", "idle", "resume"]
    ),
    max_size=14,
)


@settings(max_examples=150, deadline=None)
@given(operations=OPERATIONS, script=st.lists(REPLIES, max_size=12))
async def test_R01_any_sequence_of_calls_keeps_order_pairing_and_reconstruction(
    operations: list[str], script: list[str]
) -> None:
    """The agent as a whole: prompts, steers, cancels, failures and resumes in any order."""
    numbers = iter(range(1000))

    def answers(kinds: Iterator[str]) -> Callable[[object], Reply]:
        def answer(request: object) -> Reply:
            number = next(numbers)
            return reply(next(kinds, "text"), number)

        return answer

    kinds = iter(script)
    tools = [tool("r", read_only=True), tool("w")]
    rig = Rig(endless=answers(kinds), tools=tools)
    sent: list[MessageId] = []
    for operation in operations:
        match operation:
            case "followup" | "steer" | "inject":
                item = message(f"m{len(sent)}")
                sent.append(item.id)
                getattr(rig.agent, operation)(item)
            case "cancel" | "keep":
                rig.agent.cancel(USER, keep_inbox=operation == "keep")
            case "drop":
                if sent:
                    rig.agent.cancel_message(sent[-1])
            case "wake":
                rig.agent.wake()
            case "tick":
                await asyncio.sleep(0)
            case "idle":
                await rig.idle()
            case _:
                await rig.agent.dispose()
                rig.check()
                waiting = rig.agent.inbox
                rig = Rig(endless=answers(kinds), tools=tools, seed=tuple(rig.log))
                assert rig.agent.inbox == waiting
    await rig.idle()
    rig.check()
    entered = [text_of(event.payload.message) for event in rig.log if isinstance(event.payload, UserMessage)]
    assert len(set(entered)) == len(entered), "a message entered twice"
    for item_id in sent:
        fate = fate_of(rig.log, item_id)
        assert fate is not None
        assert (fate.kind == "pending") == (rig.agent.inbox.find(item_id) is not None)
        if item_id in entered:
            assert fate.kind == "claimed"
    ends = [event for event in rig.log if isinstance(event.payload, TurnEnd)]
    assert [event.payload.turn for event in ends] == list(range(1, len(ends) + 1))  # type: ignore[union-attr]
