"""A parent over a scripted model with its children over scripted models of their own, all in memory.

Room: the tests of children and of the tool that makes them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from harness.capabilities.delegation import build_delegate_tool
from harness.capabilities.subagents import (
    ChildPlan,
    SubagentFinished,
    SubagentNotice,
    Subagents,
    SubagentStarted,
)
from harness.log.events import SessionHeader
from harness.loop.agent import Agent
from harness.loop.tools import Tool
from harness.model.call import CancelSignal
from harness.model.messages import SessionId
from lanes.unit.loop.rig import Rig
from lanes.unit.loop.scripted_model import Chunks, Reply, calls


class Offspring:
    """A child as the family made it; notes what is done to it."""

    def __init__(self, rig: Rig, plan: ChildPlan, notes: list[str]) -> None:
        self.rig = rig
        self.plan = plan
        self.notes = notes
        self.agent: Agent = rig.agent
        self.on_close: Callable[[], Any] = lambda: ()
        self.killed = False

    async def close(self) -> tuple[str, ...]:
        await self.agent.dispose()
        self.notes.append(f"{self.plan.session_id} closed")
        return tuple(self.on_close())

    def end_now(self) -> None:
        self.killed = True


class Family:
    """A parent rig whose tool delegate makes child rigs, each with the next list of replies.

    Shape: notes says in order what happened between the members; children are the child rigs in order of creation.
    """

    def __init__(
        self,
        *parent: Reply,
        children: Iterable[Iterable[Reply]] = (),
        max_depth: int = 1,
        runtime_depth: int = 0,
        is_read_only: bool = False,
        tools: Iterable[Tool] = (),
        child_options: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        self.notes: list[str] = []
        self.made: list[Offspring] = []
        self.plans: list[ChildPlan] = []
        self.seen: list[SubagentNotice] = []
        self.before_child: Callable[[CancelSignal], Any] = lambda cancel: None
        self.as_made: Callable[[Offspring], None] = lambda child: None
        self.on_notice: Callable[[SubagentNotice], None] = lambda notice: None
        self._replies = [list(replies) for replies in children]
        self._child_options = child_options or {}
        self.parent = Rig(*parent, tools=tools, **options)
        self.drawn: list[str] = []
        self.subagents = Subagents(
            self.parent.log,
            make_child=self._make,
            depth=runtime_depth,
            max_depth=max_depth,
            ids=self._draw,
            notify=self._notice,
        )
        self.parent.tools["delegate"] = build_delegate_tool(self.subagents, is_read_only=is_read_only)

    @property
    def children(self) -> list[Rig]:
        return [child.rig for child in self.made]

    def check(self) -> None:
        """What holds after every test: each member's log is whole and every child is closed."""
        for rig in (self.parent, *self.children):
            rig.check()
        assert [note for note in self.notes if note.endswith("closed")] != [] or not self.made
        assert sum(note.endswith("closed") for note in self.notes) == len(self.made)

    def _draw(self, prefix: str) -> str:
        self.drawn.append(prefix)
        return f"{prefix}-c{len(self.drawn)}"

    async def _make(self, plan: ChildPlan, cancel: CancelSignal) -> Offspring:
        self.plans.append(plan)
        waiting = self.before_child(cancel)
        if asyncio.iscoroutine(waiting):
            await waiting
        parent = self.parent.log
        header = SessionHeader(
            plan.session_id,
            0,
            parent_session=parent.header.id,
            origin="subagent",
            delegation_depth=plan.depth,
            seed_length=None if plan.boundary is None else plan.boundary + 1,
        )
        seed = None if plan.boundary is None else tuple(parent[: plan.boundary + 1])
        replies = self._replies.pop(0) if self._replies else []
        child = Offspring(
            Rig(*replies, header=header, seed=seed, route=plan.route, **self._child_options), plan, self.notes
        )
        child.rig.log.observe(lambda event: self.notes.append(f"{plan.session_id} {event.type}"))
        self.made.append(child)
        self.as_made(child)
        return child

    def _notice(self, notice: SubagentNotice) -> None:
        self.seen.append(notice)
        kind = "started" if isinstance(notice, SubagentStarted) else "finished"
        self.notes.append(f"{notice.child} {kind}")
        self.on_notice(notice)

    @property
    def finished(self) -> list[SubagentFinished]:
        return [notice for notice in self.seen if isinstance(notice, SubagentFinished)]


def delegates(*tasks: str, fork: bool = False) -> Chunks:
    """An answer that delegates these tasks, each in a call of its own."""
    extra = ', "fork": true' if fork else ""
    return calls(*((f"d{at}", "delegate", f'{{"task": "{task}"{extra}}}') for at, task in enumerate(tasks, 1)))


FIRST_CHILD = SessionId("session-c1")
