"""Give a part of the work to a child: an ordinary agent with a session of its own, run once and closed.

Room: assemble comes in with the way to make a child, which is its own; delegation offers children to the model.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from harness.errors import HarnessError, InternalError, UsageError
from harness.log.events import (
    Cause,
    Event,
    ReasonKind,
    RequestConfig,
    RequestHeader,
    SessionHeader,
    SubagentDescriptor,
    TurnEnd,
    TurnReason,
    TurnStart,
)
from harness.log.fold import turn_end_reason
from harness.log.inbox import fate_of
from harness.log.interval import final_message, finish_reason, streamed_text
from harness.log.session_log import SessionLog
from harness.loop.agent import Agent
from harness.model.call import CancelSignal
from harness.model.messages import (
    CallId,
    ContentBlock,
    Json,
    JsonObject,
    Message,
    MessageId,
    PluginSource,
    SessionId,
    TextBlock,
)

PLUGIN = "subagents"

StopReason = Literal["completed", "max-tokens", "aborted", "refusal", "error"]

_STOP_OF: dict[ReasonKind, StopReason] = {
    "completed": "completed",
    "max-tokens": "max-tokens",
    "aborted": "aborted",
    "blocked": "refusal",
}


@dataclass(frozen=True, slots=True)
class ChildPlan:
    """What a child is to be; settled before anything is created or awaited.

    Shape: boundary is the last seq of the parent's log that the child begins with, None for a fresh child; depth is
    the child's own; descriptor is what its log will say of it.
    """

    session_id: SessionId
    depth: int
    route: RequestConfig
    boundary: int | None
    descriptor: JsonObject


class Child(Protocol):
    """A child as it was made: its agent, and everything it holds open."""

    @property
    def agent(self) -> Agent:
        """The child's agent, idle, with an empty inbox."""
        ...

    async def close(self) -> tuple[str, ...]:
        """Dispose the agent and let go of everything; gives the command lines of processes it had to end."""
        ...

    def end_now(self) -> None:
        """Kill what the child's tools left running, without waiting."""
        ...


MakeChild = Callable[[ChildPlan, CancelSignal], Awaitable[Child]]


@dataclass(frozen=True, slots=True)
class ChildResult:
    """What came of a child's work.

    Shape: content is that of its last message with text, or the text it had streamed, and empty when it said nothing;
    reason is how its turn ended, None when no turn ran; ended are command lines of processes that were ended with it;
    problem says what failed while it was closed.
    """

    session_id: SessionId
    stop: StopReason
    content: tuple[ContentBlock, ...]
    reason: TurnReason | None
    ended: tuple[str, ...] = ()
    problem: HarnessError | None = None

    @property
    def text(self) -> str:
        """The text of the content."""
        return "".join(block.text for block in self.content if isinstance(block, TextBlock))

    @property
    def is_ok(self) -> bool:
        """Whether the child did what it was asked, as far as its own end can say; a cut answer did not."""
        return self.stop == "completed"


@dataclass(frozen=True, slots=True)
class SubagentStarted:
    """A child is about to work; nothing of its own is in its log yet."""

    parent: SessionId
    child: SessionId
    agent: Agent


@dataclass(frozen=True, slots=True)
class SubagentFinished:
    """A child of this process is closed; the parent's tool result is not written yet.

    Shape: last_message is the content of its last message with text, else its streamed text, None when it said nothing.
    """

    provider: str
    agent_id: SessionId
    parent: SessionId
    child: SessionId
    status: Literal["ok", "error"]
    stop: StopReason
    last_message: tuple[ContentBlock, ...] | None


SubagentNotice: TypeAlias = SubagentStarted | SubagentFinished


def depth_of(header: SessionHeader, runtime_depth: int) -> int:
    """How deep an agent stands: its header's word and this process's, whichever is deeper.

    A resumed child counts from its header, and a session resumed inside a child from where it runs.
    """
    return max(header.delegation_depth, runtime_depth)


class Subagents:
    """The children of one agent, each run once.

    Shape: run returns when the child is closed, whatever became of its work; a cancel of the parent reaches the child
    as cancelled by its parent, and what it had said is still the result. depth is the parent's own.
    Limits: no child stands deeper than max_depth.
    Raises: from run, UsageError with code DELEGATION_DEPTH, and whatever making a child raises; nothing was created.
    """

    def __init__(
        self,
        log: SessionLog,
        *,
        make_child: MakeChild,
        depth: int,
        max_depth: int,
        ids: Callable[[str], str],
        notify: Callable[[SubagentNotice], None] | None = None,
    ) -> None:
        self.failures: list[Exception] = []
        self._log = log
        self._make_child = make_child
        self._depth = depth_of(log.header, depth)
        self._max_depth = max_depth
        self._ids = ids
        self._notify = notify
        self._children: list[Child] = []

    def plan(
        self, *, fork: bool = False, route: RequestConfig | None = None, call_id: CallId | None = None
    ) -> ChildPlan:
        """Settle what the next child is to be, from the parent's log as it stands.

        Shape: route is the parent's provider, model and token limit unless given. A fork begins with the parent's log
        up to its last turn end; without one it is a fresh child.
        Raises: UsageError with code DELEGATION_DEPTH when the child would stand too deep.
        """
        depth = self._depth + 1
        if depth > self._max_depth:
            raise UsageError(
                f"a child would stand {depth} deep",
                where=f"session {self._log.header.id}",
                expected=f"at most {self._max_depth}",
                fix="do this part of the work yourself",
                code="DELEGATION_DEPTH",
            )
        route = route if route is not None else self._inherited_route()
        ended = self._log.last(TurnEnd) if fork else None
        descriptor: dict[str, Json] = {
            "mode": "spawn" if ended is None else "fork",
            "parentSession": self._log.header.id,
            "delegationDepth": depth,
            "maxDelegationDepth": self._max_depth,
            "provider": route.provider,
            "model": route.model,
        }
        if route.max_tokens is not None:
            descriptor["maxTokens"] = route.max_tokens
        if call_id is not None:
            descriptor["parentCall"] = call_id
        boundary = None if ended is None else ended.seq
        return ChildPlan(SessionId(self._ids("session")), depth, route, boundary, descriptor)

    async def run(
        self,
        task: str,
        cancel: CancelSignal,
        *,
        fork: bool = False,
        route: RequestConfig | None = None,
        call_id: CallId | None = None,
    ) -> ChildResult:
        """Make a child, give it the task, wait for its end and close it."""
        plan = self.plan(fork=fork, route=route, call_id=call_id)
        child = await self._make_child(plan, cancel)
        self._children.append(child)
        result = ChildResult(plan.session_id, "error", (), None)
        try:
            result = await self._work(child.agent, plan, task, cancel)
        finally:
            try:
                result = await _closed(child, result)
            finally:
                self._children.remove(child)
                self._tell(self._finished(plan, result))
        return result

    def end_now(self) -> None:
        """Kill what the tools of running children left behind, without waiting for anything."""
        for child in tuple(self._children):
            child.end_now()

    async def _work(self, agent: Agent, plan: ChildPlan, task: str, cancel: CancelSignal) -> ChildResult:
        log = agent.log
        first_seq = len(log)
        _describe_in_first_turn(log, plan.descriptor)
        self._tell(SubagentStarted(self._log.header.id, plan.session_id, agent))
        if cancel.cancelled:
            return ChildResult(plan.session_id, "aborted", (), None)
        message_id = MessageId(self._ids("message"))
        agent.followup(Message(message_id, "user", (TextBlock(task),), PluginSource(PLUGIN, "relay")))
        passing_on = asyncio.ensure_future(_pass_on(cancel, agent))
        try:
            await agent.when_idle()
        finally:
            passing_on.cancel()
        return result_of(log, first_seq, message_id)

    def _inherited_route(self) -> RequestConfig:
        found = self._log.last(RequestHeader)
        if found is None or not isinstance(found.payload, RequestHeader):
            raise InternalError("no request of the parent is logged", where=f"session {self._log.header.id}")
        config = found.payload.header.config
        return RequestConfig(config.provider, config.model, max_tokens=config.max_tokens)

    def _finished(self, plan: ChildPlan, result: ChildResult) -> SubagentFinished:
        return SubagentFinished(
            provider=plan.route.provider,
            agent_id=plan.session_id,
            parent=self._log.header.id,
            child=plan.session_id,
            status="ok" if result.is_ok else "error",
            stop=result.stop,
            last_message=result.content or None,
        )

    def _tell(self, notice: SubagentNotice) -> None:
        if self._notify is None:
            return
        try:
            self._notify(notice)
        except Exception as error:  # noqa: BLE001 - an observer may raise anything and may stop no work
            self.failures.append(error)


def result_of(log: SessionLog, first_seq: int, message_id: MessageId) -> ChildResult:
    """What a child's own events, those from that seq on, say came of its task.

    Shape: the turn that counts is the one that claimed the task; of a task that never was claimed, the last one.
    """
    events = log.since(first_seq)
    reason = _accounting_reason(log, events, first_seq, message_id)
    said = final_message(events, first_seq)
    if said is not None:
        content = said.content
    else:
        streamed = streamed_text(events, first_seq)
        content = (TextBlock(streamed),) if streamed else ()
    stop = _STOP_OF.get(reason.kind, "error") if reason is not None else "aborted"
    return ChildResult(log.header.id, stop, content, reason)


def _accounting_reason(
    log: SessionLog, events: Sequence[Event], first_seq: int, message_id: MessageId
) -> TurnReason | None:
    fate = fate_of(events, message_id)
    if fate is not None and fate.turn is not None:
        return turn_end_reason(log, fate.turn)
    return finish_reason(events, first_seq)


async def _pass_on(cancel: CancelSignal, agent: Agent) -> None:
    await cancel.wait()
    agent.cancel(Cause("parent"))


async def _closed(child: Child, result: ChildResult) -> ChildResult:
    """The result with what closing the child brought to light; what it said is not lost to a failing disk."""
    try:
        ended = await child.close()
    except HarnessError as error:
        return ChildResult(result.session_id, "error", result.content, result.reason, problem=error)
    return ChildResult(result.session_id, result.stop, result.content, result.reason, ended)


def _describe_in_first_turn(log: SessionLog, descriptor: JsonObject) -> None:
    """Put the descriptor right behind the start of the child's first turn."""

    def describe(event: Event) -> None:
        if isinstance(event.payload, TurnStart):
            detach()
            log.append(SubagentDescriptor(descriptor))

    detach = log.observe(describe)
