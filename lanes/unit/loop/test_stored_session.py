"""The loop over a real session file: what is on disk when, and that the file alone carries a session on."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from pathlib import Path

from harness.log.events import Cause, RequestHeader, SessionHeader
from harness.log.store import SessionStore
from harness.log.writer import SessionWriter
from harness.loop.agent import Agent
from harness.loop.request import rebuild_request
from harness.loop.tools import Tool, ToolContext, ToolOutput
from harness.model.call import ModelRequest
from harness.model.messages import SessionId
from lanes.unit.loop.rig import ROUTE, Naps, message, output, texts, tool
from lanes.unit.loop.scripted_model import Hang, Reply, ScriptedModel, calls, open_text, text

NAME = SessionId("session-1")


def store_in(root: Path) -> SessionStore:
    clock = itertools.count(1000)
    return SessionStore(root, clock=lambda: next(clock))


def agent_over(
    writer: SessionWriter,
    *replies: Reply,
    tools: tuple[Tool, ...] = (),
    on_request: Callable[[ModelRequest], None] | None = None,
) -> tuple[Agent, ScriptedModel]:
    numbers = itertools.count(1)
    model = ScriptedModel(replies, on_request)
    agent = Agent(
        writer=writer,
        model=model,
        route=ROUTE,
        tools={each.schema.name: each for each in tools},
        ids=lambda prefix: f"{prefix}-{len(writer.log)}-{next(numbers)}",
        jitter=lambda: 0.5,
        sleep=Naps(),
        check_chunks=True,
    )
    return agent, model


async def test_P10_P11_request_and_call_are_in_the_file_before_the_model_and_the_tool_see_them(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    writer = await store.create(SessionHeader(NAME, 0))
    on_disk: list[tuple[str, ...]] = []

    def look() -> None:
        on_disk.append(tuple(event.type for event in store.inspect(NAME).events if event.seq < len(writer.log)))

    async def body(arguments: object, context: ToolContext) -> ToolOutput:
        look()
        return output("ok")

    agent, _ = agent_over(
        writer, calls(("c1", "look", "{}")), text("done"), tools=(tool("look", body),), on_request=lambda _: look()
    )
    agent.followup(message("hi"))
    await agent.when_idle()
    first, during, second = on_disk
    assert first[-4:] == ("step/start", "user/message", "request/header", "request/context")
    assert during[-1] == "tool/call"
    assert second[-3:] == ("tool/result", "step/end", "step/start")
    await writer.close()


async def test_F01_a_session_goes_on_from_its_file_alone(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    writer = await store.create(SessionHeader(NAME, 0))
    stalled = Hang(open_text("half"))
    agent, _ = agent_over(writer, calls(("c1", "look", "{}")), text("one"), stalled, tools=(tool("look"),))
    agent.followup(message("a"))
    agent.followup(message("b"))
    agent.followup(message("c"))
    await stalled.reached.wait()
    await agent.dispose()
    await writer.close()

    again = await store.resume(NAME)
    agent, model = agent_over(again, text("three"), text("four"), tools=(tool("look"),))
    assert (agent.status, [item.id for item in agent.inbox.next_turn], again.damage) == ("idle", ["c"], None)
    agent.followup(message("d"))
    await agent.when_idle()
    assert texts(model.requests[0]) == ["a", "", "done", "one", "b", "c"]
    assert texts(model.requests[1])[-2:] == ["three", "d"]
    headers = [event.payload.reason for event in again.log if isinstance(event.payload, RequestHeader)]
    assert headers == ["initial", "resume"]
    await agent.dispose()
    await again.close()

    stored = store.inspect(NAME)
    assert stored.log.messages()[: len(model.requests[1].messages)] == model.requests[1].messages
    asked = next(event.seq for event in reversed(stored.events) if event.type == "assistant/chunk") - 3
    assert rebuild_request(stored.events[:asked]) == model.requests[1]


async def test_case_B20_a_call_that_was_running_when_the_process_died_is_reported_and_not_run_again(
    tmp_path: Path,
) -> None:
    """The writer is left as a kill leaves it: the call is durable, its result was never written."""
    ran: list[str] = []
    working = asyncio.Event()

    async def body(arguments: object, context: ToolContext) -> ToolOutput:
        ran.append(context.call_id)
        working.set()
        await context.cancel.wait()
        return output("too late")

    root = tmp_path / "live"
    writer = await store_in(root).create(SessionHeader(NAME, 0))
    agent, _ = agent_over(writer, calls(("c1", "work", "{}"), ("c2", "work", "{}")), tools=(tool("work", body),))
    agent.followup(message("a"))
    await working.wait()
    killed = tmp_path / "killed" / writer.path.relative_to(root)
    killed.parent.mkdir(parents=True)
    killed.write_bytes(writer.path.read_bytes())
    agent.cancel(Cause("user"))
    await agent.dispose()
    await writer.close()

    again = await store_in(tmp_path / "killed").resume(NAME)
    agent, model = agent_over(again, text("ok"), tools=(tool("work", body),))
    agent.followup(message("go on"))
    await agent.when_idle()
    assert ran == ["c1"]
    _, _, first, second, prompt = texts(model.requests[0])
    assert ("outcome is unknown" in first, "had no effect" in second, prompt) == (True, True, "go on")
    await agent.dispose()
    await again.close()
