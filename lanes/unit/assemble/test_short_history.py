"""Compaction through the one factory: the same service writes the summary, and the stored log goes on from it."""

from __future__ import annotations

from typing import Any

import pytest

from harness.assemble import Assembled
from harness.capabilities.summary import INSTRUCTION
from harness.errors import UsageError
from harness.log.events import CompactionEnd, RequestContext, TurnEnd
from harness.log.invariants import check_invariants
from lanes.unit.assemble.place import Place, ask
from lanes.unit.surfaces.scripted import refuse, say

WORDS = "word " * 100


@pytest.fixture
def place(tmp_path: Any) -> Place:
    return Place(tmp_path)


def outcomes(assembled: Assembled) -> list[str]:
    return [event.payload.outcome for event in assembled.agent.log if isinstance(event.payload, CompactionEnd)]


def said(request: dict[str, Any]) -> list[str]:
    return [message["content"] for message in request["messages"] if message["role"] != "system"]


async def test_history_gives_way_to_a_summary_and_a_resumed_session_goes_on_from_it(place: Place) -> None:
    given = place.settings(compact_at=200)
    first = await place.make(say(WORDS), say("short"), say("b"), settings=given)
    await ask(first, "one")
    await ask(first, WORDS)
    await first.close()
    summary, second = place.script.requests[1:]
    assert (summary["messages"][0], outcomes(first)) == ({"role": "system", "content": INSTRUCTION}, ["done"])
    assert said(second)[1:] == [WORDS]
    check_invariants(first.agent.log)
    resumed = await place.make(say("c"), resume=first.agent.id, settings=place.settings())
    await ask(resumed, "three")
    await resumed.close()
    assert said(place.script.requests[0]) == [*said(second), "b", "three"]


async def test_a_request_that_is_too_long_is_asked_again_over_a_shorter_history(place: Place) -> None:
    too_long = refuse(400, "This model's maximum context length is 10 tokens.")
    assembled = await place.make(
        say(WORDS), too_long, say("short"), say("fits"), settings=place.settings(compact_at=100_000)
    )
    await ask(assembled, "one")
    assert await ask(assembled, "two") == "fits"
    await assembled.close()
    assert (outcomes(assembled), len(place.script.requests)) == (["done"], 4)


async def test_without_the_setting_a_request_that_is_too_long_ends_the_turn(place: Place) -> None:
    assembled = await place.make(say(WORDS), refuse(400, "This model's maximum context length is 10 tokens."))
    await ask(assembled, "one")
    await ask(assembled, "two")
    await assembled.close()
    ends = [event.payload.reason for event in assembled.agent.log if isinstance(event.payload, TurnEnd)]
    assert ends[-1].failure is not None
    assert (ends[-1].failure.code, outcomes(assembled)) == ("CONTEXT_WINDOW_EXCEEDED", [])


async def test_by_hand_an_idle_agent_is_shortened_and_one_without_the_setting_is_refused(place: Place) -> None:
    assembled = await place.make(say(WORDS), say("short"), settings=place.settings(compact_at=100_000))
    nothing = await assembled.compact()
    await ask(assembled, "one")
    done = await assembled.compact()
    await assembled.close()
    assert (nothing, done, len(assembled.agent.log.messages())) == ("nothing", "done", 1)
    plain = await place.make()
    with pytest.raises(UsageError, match="no compaction is set up"):
        await plain.compact()
    await plain.close()


async def test_a_window_that_is_known_stands_in_the_log(place: Place) -> None:
    assembled = await place.make(say("a"), settings=place.settings({"HARNESS_CONTEXT_WINDOW": "1000"}))
    await ask(assembled, "one")
    await assembled.close()
    contexts = [event.payload for event in assembled.agent.log if isinstance(event.payload, RequestContext)]
    assert contexts == [RequestContext("openai", "m", 1000)]
