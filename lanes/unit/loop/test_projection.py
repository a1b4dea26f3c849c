"""The projection is what a fold over the whole log gives, whenever it is asked."""

from __future__ import annotations

from collections.abc import Callable

from harness.log.events import AssistantChunk, Cause, Event
from harness.log.fold import latest_context, latest_header
from harness.log.inbox import fold_inbox
from harness.loop.decide import TurnState, advance
from harness.loop.projection import Projection
from lanes.unit.loop.rig import Rig, message, tool
from lanes.unit.loop.scripted_model import calls, failing, text

Make = Callable[..., Rig]


async def test_at_every_event_it_equals_the_folds_from_scratch(make_rig: Make) -> None:
    rig = make_rig(
        calls(("c1", "look", "{}"), ("", "look", "{}")), failing("SERVER"), text("x", kind="max-tokens"), text("y"),
        tools=[tool("look")],
    )  # fmt: skip
    projection = Projection(rig.log)
    compared: list[int] = []

    def compare(event: Event) -> None:
        state = TurnState()
        for each in rig.log:
            state = advance(state, each)
        assert projection.state == state
        assert projection.inbox == fold_inbox(rig.log)
        assert projection.header == latest_header(rig.log)
        assert projection.context == latest_context(rig.log)
        compared.append(event.seq)

    rig.log.observe(compare)
    rig.agent.inject(message("note"))
    await rig.run("a", "b")
    rig.agent.inject(message("dropped"))
    rig.agent.cancel(Cause("user"))
    assert compared == list(range(len(rig.log)))
    assert projection.call_ids == {"c1", "call-1-1-2"}


async def test_on_resume_the_stream_pieces_of_ended_lifetimes_are_stepped_over_and_nothing_is_missed(
    make_rig: Make,
) -> None:
    replies = calls(("c1", "look", "{}")), text("x", kind="max-tokens"), failing("BAD_REQUEST")
    rig = make_rig(*replies, tools=[tool("look")])
    rig.expected_failures = None
    await rig.run("a", "b")
    rig.agent.inject(message("waits"))
    resumed = make_rig(seed=tuple(rig.log))
    read: list[Event] = []

    class Watched(Projection):
        def _take(self, event: Event) -> None:
            read.append(event)
            super()._take(event)

    projection = Watched(resumed.log)
    assert (projection.inbox, projection.header, projection.context, projection.call_ids) == (
        fold_inbox(rig.log),
        latest_header(rig.log),
        latest_context(rig.log),
        {"c1"},
    )
    state = TurnState()
    for event in rig.log:
        state = advance(state, event)
    found = projection.state
    assert (found.turn, found.turn_open, found.step, found.step_open) == (state.turn, False, state.step, False)
    chunks = [event for event in rig.log if isinstance(event.payload, AssistantChunk)]
    assert (len(read), len(chunks) > 5) == (len(resumed.log) - len(chunks), True)


async def test_a_cut_answer_of_this_lifetime_still_ends_its_turn_as_cut(make_rig: Make) -> None:
    first = make_rig(text("x"))
    await first.run("a")
    second = make_rig(text("y", kind="max-tokens"), seed=tuple(first.log))
    await second.run("b")
    assert second.outcomes == ["completed", "max-tokens"]
