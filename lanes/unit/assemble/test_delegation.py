"""Children through the one factory: real sessions on disk, one workspace, one model's service."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from harness.assemble import Assembled
from harness.capabilities.live_agents import AgentEntered, AgentLeft
from harness.capabilities.subagents import SubagentStarted
from harness.log.events import Cause, SubagentDescriptor, ToolResult, TurnEnd, TurnReason
from harness.log.invariants import check_invariants
from harness.model.messages import Message, TextBlock, UserSource
from lanes.unit.assemble.place import Place, ask
from lanes.unit.surfaces.scripted import say, use


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def results(assembled: Assembled) -> list[str]:
    found = [event.payload for event in assembled.agent.log if isinstance(event.payload, ToolResult)]
    return [block.text for payload in found for block in payload.message.content[0].content]  # type: ignore[union-attr] # results only


def names(request: dict[str, Any]) -> list[str]:
    return [tool["function"]["name"] for tool in request["tools"]]


async def test_without_a_depth_nobody_is_offered_to_delegate(place: Place) -> None:
    assembled = await place.make(say("hm"), settings=place.settings(delegation_depth=None))
    await ask(assembled, "hello")
    await assembled.close()
    assert ("delegate" in names(place.script.requests[0]), assembled.subagents) == (False, None)


async def test_a_child_works_in_the_same_folder_and_leaves_a_log_with_its_lineage(place: Place) -> None:
    assembled = await place.make(
        use("delegate", {"task": "write it"}),
        use("write_file", {"path": "it.txt", "content": "42\n"}, call_id="call_2"),
        say("written"),
        say("all done"),
    )
    answer = await ask(assembled, "have it written")
    parent = assembled.agent.log.header
    await assembled.close()
    (child_id,) = place.children()
    child = place.store().inspect(child_id)
    check_invariants(child.log)
    check_invariants(assembled.agent.log)
    assert (answer, (place.work / "it.txt").read_text()) == ("all done", "42\n")
    assert (child.header.parent_session, child.header.delegation_depth, child.header.cwd) == (parent.id, 1, parent.cwd)
    described = [event.payload for event in child.events if isinstance(event.payload, SubagentDescriptor)]
    assert [payload.descriptor["mode"] for payload in described] == ["spawn"]
    assert results(assembled) == ["written"]
    assert [request["model"] for request in place.script.requests] == ["m"] * 4


async def test_the_child_enters_and_leaves_the_live_agents_within_its_run(place: Place) -> None:
    assembled = await place.make(use("delegate", {"task": "t"}), say("child"), say("parent"))
    await ask(assembled, "go")
    during = [type(notice).__name__ for notice in place.notices]
    await assembled.close()
    assert during == ["AgentEntered", "AgentEntered", "SubagentStarted", "AgentLeft", "SubagentFinished"]
    started = next(notice for notice in place.notices if isinstance(notice, SubagentStarted))
    entered = [notice.agent.id for notice in place.notices if isinstance(notice, AgentEntered)]
    left = [notice.agent.id for notice in place.notices if isinstance(notice, AgentLeft)]
    assert (entered, left, started.child) == ([assembled.agent.id, started.child], entered[::-1], entered[1])
    assert len(place.live) == 0


async def test_G06_a_fork_is_stored_with_what_it_began_with(place: Place) -> None:
    assembled = await place.make(
        say("first answer"), use("delegate", {"task": "and now?", "fork": True}), say("from the fork"), say("end")
    )
    await ask(assembled, "one")
    await ask(assembled, "two")
    await assembled.close()
    (child_id,) = place.children()
    child = place.store().inspect(child_id)
    said = [message["content"] for message in place.script.requests[2]["messages"] if message["role"] != "system"]
    assert (said, child.header.delegation_depth) == (["one", "first answer", "and now?"], 1)
    assert child.header.seed_length == 1 + max(
        event.seq for event in assembled.agent.log if isinstance(event.payload, TurnEnd) and event.payload.turn == 1
    )
    assert results(assembled) == ["from the fork"]


async def test_G04_a_resumed_child_cannot_count_from_zero(place: Place) -> None:
    first = await place.make(use("delegate", {"task": "t"}), say("child"), say("parent"))
    await ask(first, "go")
    await first.close()
    (child_id,) = place.children()
    resumed = await place.make(use("delegate", {"task": "deeper"}), say("could not"), resume=child_id)
    await ask(resumed, "go deeper")
    await resumed.close()
    told = "Error: no child was started: a child would stand 2 deep; expected: at most 1"
    assert (results(resumed), place.children()) == ([told], [child_id])


async def test_G04_grandchildren_are_made_where_the_cap_allows_and_carry_their_depth(place: Place) -> None:
    assembled = await place.make(
        use("delegate", {"task": "a"}), use("delegate", {"task": "b"}), use("delegate", {"task": "c"}),
        say("no deeper"), say("child"), say("parent"),
        settings=place.settings(delegation_depth=2),
    )  # fmt: skip
    await ask(assembled, "go")
    await assembled.close()
    headers = [place.store().inspect(child).header for child in place.children()]
    assert sorted(header.delegation_depth for header in headers) == [1, 2]
    assert results(assembled) == ["child"]


async def test_G05_closing_the_parent_closes_the_child_with_its_log_whole_and_its_hold_released(place: Place) -> None:
    held = asyncio.Event()

    async def hold() -> None:
        held.set()
        await asyncio.Event().wait()

    assembled = await place.make(use("delegate", {"task": "t"}), say("never whole", hold=1), on_hold=hold)
    assembled.agent.followup(Message(assembled.new_message_id(), "user", (TextBlock("go"),), UserSource()))
    await held.wait()
    await assembled.close()
    (child_id,) = place.children()
    child = place.store().inspect(child_id)
    ends = [event.payload.reason for event in child.events if isinstance(event.payload, TurnEnd)]
    assert (child.live, ends) == (False, [TurnReason("aborted", Cause("parent"))])
    assert results(assembled)[0].endswith("What it had said until then:\nnever whole")
    check_invariants(assembled.agent.log)


async def test_a_seed_makes_children_the_same_too(tmp_path: Path) -> None:
    async def logs(name: str) -> dict[str, bytes]:
        (tmp_path / name).mkdir()
        place = Place(tmp_path / name)
        assembled = await place.make(
            use("delegate", {"task": "t"}), say("child"), say("parent"), settings=place.settings({"HARNESS_SEED": "s"})
        )
        await ask(assembled, "go")
        await assembled.close()
        return {
            path.parent.name: path.read_bytes().replace(name.encode(), b"")
            for path in place.sessions.rglob("session.jsonl")
        }

    first, second = await logs("a-place"), await logs("b-place")
    assert (len(first), first) == (2, second)


async def test_the_model_is_reminded_when_it_repeats_itself(place: Place) -> None:
    repeats = [use("list_files", {}, call_id=f"call_{at}") for at in range(3)]
    assembled = await place.make(*repeats, say("done"))
    await ask(assembled, "go")
    await assembled.close()
    said = place.script.requests[3]["messages"][-1]["content"]
    assert said.startswith("You have called list_files 3 times in a row")
