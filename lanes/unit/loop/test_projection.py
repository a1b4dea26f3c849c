"""The projection is what a fold over the whole log gives, whenever it is asked."""

from __future__ import annotations

from collections.abc import Callable

from harness.log.events import Cause, Event
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
