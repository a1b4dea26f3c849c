"""What a process tells its client, in the order it happened, at the pace the client reads.

Room: the SDK server comes in. The log is the buffer: what waits for a slow reader is a seq, not a copy of an event.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from harness.capabilities.live_agents import AgentEntered, AgentLeft, LiveAgents, LiveNotice
from harness.capabilities.subagents import SubagentFinished, SubagentNotice, SubagentStarted
from harness.log.events import Event
from harness.log.json_form import event_to_json
from harness.loop.agent import Agent, StatusChange
from harness.model.messages import JsonObject
from harness.surfaces.progress import one_line
from harness.surfaces.sdk.shapes import finished_params, started_params
from harness.transport.rpc import Peer


@dataclass(frozen=True, slots=True)
class _Happened:
    agent: Agent
    seq: int


_Item = _Happened | tuple[str, JsonObject]


class Outbox:
    """The notifications of one connection.

    Shape: every session of the process is told of, also those nobody asked for here; a session's events begin with the
    first one after its agent entered. Nothing that is told makes the loop wait. The wire has no word for a disk that
    refuses or a hook that fails, so an agent's failures are said to a person once it comes to rest.
    """

    def __init__(
        self, peer: Peer, live: LiveAgents, say: Callable[[str], None], *, max_tokens_as_success: bool
    ) -> None:
        self._peer = peer
        self._say = say
        self._max_tokens_as_success = max_tokens_as_success
        self._items: deque[_Item] = deque()
        self._came = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()
        self._detach: dict[int, tuple[Callable[[], None], ...]] = {}
        self._leave = live.observe(self._on_live)
        self._pump = asyncio.ensure_future(self._run())

    def notify(self, notice: SubagentNotice) -> None:
        """Tell of a child."""
        match notice:
            case SubagentStarted():
                self._put(("subagent.started", started_params(notice)))
            case SubagentFinished():
                params = finished_params(notice, max_tokens_as_success=self._max_tokens_as_success)
                self._put(("subagent.finished", params))

    async def drained(self) -> None:
        """Wait until everything that happened so far is on its way."""
        await self._empty.wait()

    async def close(self) -> None:
        """Tell of nothing any more."""
        self._leave()
        for detachers in self._detach.values():
            for detach in detachers:
                detach()
        self._detach.clear()
        self._pump.cancel()
        await asyncio.wait({self._pump})

    def _on_live(self, notice: LiveNotice) -> None:
        match notice:
            case AgentEntered(agent=agent):

                def on_event(event: Event) -> None:
                    self._put(_Happened(agent, event.seq))

                said = 0

                def on_status(change: StatusChange) -> None:
                    nonlocal said
                    if change.status == "idle":
                        texts = [one_line(str(failure) or type(failure).__name__) for failure in agent.failures[said:]]
                        for text in dict.fromkeys(texts):
                            self._say(f"session {agent.id}: {text}")
                        said = len(agent.failures)
                    self._put(("session.status", {"sessionId": agent.id, "status": change.status}))

                self._detach[id(agent)] = (agent.log.observe(on_event), agent.observe_status(on_status))
            case AgentLeft(agent=agent):
                for detach in self._detach.pop(id(agent), ()):
                    detach()

    def _put(self, item: _Item) -> None:
        self._items.append(item)
        self._empty.clear()
        self._came.set()

    async def _run(self) -> None:
        while True:
            await self._came.wait()
            self._came.clear()
            while self._items:
                await self._peer.room()
                item = self._items.popleft()
                if isinstance(item, _Happened):
                    event = event_to_json(item.agent.log[item.seq])
                    self._peer.notify("session.event", {"sessionId": item.agent.id, "event": event})
                else:
                    self._peer.notify(*item)
            self._empty.set()
