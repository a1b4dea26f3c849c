"""What the client is told of children: of runs of this process alone, and each end with the parent of its own run."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

from harness.capabilities.live_agents import LiveAgents
from harness.capabilities.subagents import SubagentFinished
from harness.model.messages import SessionId
from harness.surfaces.sdk.outbox import Outbox
from harness.transport.rpc import Peer
from lanes.unit.surfaces.scripted import say, use
from lanes.unit.surfaces.sdk_bench import SdkBench

DELEGATE = use("delegate", {"task": "look"})


class Wire:
    """A peer that keeps what it is to tell."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Any]] = []

    def notify(self, method: str, params: Any) -> None:
        self.told.append((method, params))

    async def room(self) -> None:
        return


def finished(parent: str, child: str) -> SubagentFinished:
    return SubagentFinished("p", SessionId(child), SessionId(parent), SessionId(child), "ok", "completed", None)


async def test_SV12_runs_of_one_child_id_that_end_out_of_order_each_name_their_own_parent() -> None:
    wire = Wire()
    outbox = Outbox(cast("Peer", wire), LiveAgents(), list[str]().append, max_tokens_as_success=False)
    for parent in ("new", "old"):
        outbox.notify(finished(parent, "c"))
    await outbox.drained()
    await outbox.close()
    assert [(method, params["parentSessionId"], params["childSessionId"]) for method, params in wire.told] == [
        ("subagent.finished", "new", "c"),
        ("subagent.finished", "old", "c"),
    ]


async def test_SV11_a_session_with_the_id_of_a_child_that_ends_is_no_end_of_a_child(tmp_path: Path) -> None:
    bench = SdkBench(tmp_path, DELEGATE, say("seen"), say("done"), say("again"), depth=1)
    await bench.prompt("a")
    await bench.idle()
    (child,) = [frame["params"]["childSessionId"] for frame in bench.sink.frames if _is(frame, "subagent.started")]
    await bench.prompt("by itself", session=child)
    await bench.idle(session=child, count=2)
    assert await bench.ask("session/close", {"sessionId": child}) == {}
    await bench.leave()
    assert [sum(_is(frame, f"subagent.{word}") for frame in bench.sink.frames) for word in ("started", "finished")] == [
        1, 1,
    ]  # fmt: skip


def _is(frame: Any, method: str) -> bool:
    return bool(frame.get("method") == method)


async def test_nothing_is_told_after_the_end() -> None:
    wire = Wire()
    outbox = Outbox(cast("Peer", wire), LiveAgents(), list[str]().append, max_tokens_as_success=False)
    await outbox.close()
    outbox.notify(finished("p", "c"))
    await asyncio.sleep(0)
    assert wire.told == []
