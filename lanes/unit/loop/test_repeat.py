"""The reminder that a call is being repeated."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.log.events import UserMessage
from harness.loop.hooks import GateAnswer, Hooks, ToolProposal
from harness.loop.repeat import remind_of_repeats
from harness.model.messages import PluginSource, text_of
from lanes.unit.loop.rig import Rig, tool
from lanes.unit.loop.scripted_model import calls, text

Make = Callable[..., Rig]


def nudges(rig: Rig) -> list[str]:
    """The nudges that entered a step, shortened to their count."""
    said = [
        payload.message for payload in rig.payloads(UserMessage) if isinstance(payload.message.source, PluginSource)
    ]
    return [text_of(message).split(" times")[0].split()[-1] for message in said]


def asking(*arguments: str, name: str = "look") -> list[list[object]]:
    return [list(calls((f"c{at}", name, each))) for at, each in enumerate(arguments)]


async def test_G08_the_model_is_told_at_the_third_fifth_and_eighth_identical_call(make_rig: Make) -> None:
    rig = make_rig(*asking(*["{}"] * 9), text("ok"), tools=[tool("look")], hooks=Hooks(results=(remind_of_repeats(),)))
    await rig.run("hi")
    assert nudges(rig) == ["3", "5", "8"]


async def test_G08_the_order_of_keys_does_not_matter_and_other_values_do(make_rig: Make) -> None:
    hooks = Hooks(results=(remind_of_repeats(),))
    same = make_rig(
        *asking('{"a":1,"b":2}', '{"b": 2, "a": 1}', '{"a":1,"b":2}'), text("ok"), tools=[tool("look")], hooks=hooks
    )
    other = make_rig(*asking('{"a":1}', '{"a":1}', '{"a":2}', '{"a":1}'), text("ok"), tools=[tool("look")], hooks=hooks)
    await same.run("hi")
    await other.run("hi")
    assert (nudges(same), nudges(other)) == (["3"], [])


async def test_G08_an_excluded_tool_neither_counts_nor_breaks_the_row(make_rig: Make) -> None:
    between = calls(("x", "wait", "{}"))
    first, second, third = asking("{}", "{}", "{}")
    rig = make_rig(
        first, second, between, between, between, third, text("ok"),
        tools=[tool("look"), tool("wait")], hooks=Hooks(results=(remind_of_repeats({"wait"}),)),
    )  # fmt: skip
    await rig.run("hi")
    assert nudges(rig) == ["3"]


async def test_G08_denied_calls_and_text_that_is_no_json_count(make_rig: Make) -> None:
    async def deny(proposal: ToolProposal) -> GateAnswer:
        return GateAnswer("deny")

    hooks = Hooks(gates=(deny,), results=(remind_of_repeats(),))
    rig = make_rig(*asking("{", "{", "{"), text("ok"), tools=[tool("look")], hooks=hooks)
    await rig.run("hi")
    assert nudges(rig) == ["3"]


async def test_G08_a_new_prompt_begins_a_new_row(make_rig: Make) -> None:
    first, second, third = asking("{}", "{}", "{}")
    rig = make_rig(
        first, second, text("ok"), third, text("ok"), tools=[tool("look")], hooks=Hooks(results=(remind_of_repeats(),))
    )
    await rig.run("a", "b")
    assert nudges(rig) == []


@pytest.mark.parametrize("count", [2, 3])
async def test_G08_identical_calls_of_one_step_count_in_their_order(make_rig: Make, count: int) -> None:
    step = calls(*[(f"c{at}", "look", "{}") for at in range(count)])
    hooks = Hooks(results=(remind_of_repeats(),))
    rig = make_rig(step, text("ok"), tools=[tool("look", read_only=True)], hooks=hooks)
    await rig.run("hi")
    assert nudges(rig) == (["3"] if count == 3 else [])
