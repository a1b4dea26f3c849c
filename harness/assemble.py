"""The one factory: settings and a way to the model become an agent, by plain calls in plain order.

Room: surfaces come in; nobody else constructs an agent, also not for a child. Clock, ids, jitter and sleep are bound
here and nowhere deeper.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from harness.capabilities.chance import (
    Clock,
    Ids,
    fresh_ids,
    jitter_of_chance,
    no_jitter,
    now,
    ticking_clock,
    wall_clock,
)
from harness.capabilities.compaction import Compaction, Outcome
from harness.capabilities.delegation import NAME as DELEGATE
from harness.capabilities.delegation import build_delegate_tool
from harness.capabilities.instructions import SECTIONS
from harness.capabilities.lifecycle import Closing, check_wanted, open_wanted, unless_cancelled
from harness.capabilities.live_agents import Beginning, LiveAgents
from harness.capabilities.mcp import McpServers, Processes, Server, open_servers, read_servers
from harness.capabilities.subagents import ChildPlan, SubagentNotice, Subagents
from harness.errors import UsageError
from harness.log.attachments import AttachmentStore
from harness.log.disk import Disk
from harness.log.events import RequestConfig, SessionHeader
from harness.log.session_log import SessionLog
from harness.log.store import SessionStore
from harness.log.writer import SessionWriter
from harness.loop.agent import Agent
from harness.loop.answer_redaction import clean_model
from harness.loop.hooks import GateAnswer, Hooks, ToolGate, ToolProposal
from harness.loop.redaction import Secrets
from harness.loop.repeat import remind_of_repeats
from harness.loop.retry import RetryPolicy
from harness.loop.tools import Tool
from harness.model.call import CancelSignal, Model, ReasoningEffort
from harness.model.messages import MessageId, SessionId
from harness.provider.endpoint import parse_endpoint
from harness.settings import Settings, current_folder
from harness.tools.processes import family_of
from harness.tools.redaction import redact_tools
from harness.tools.shipped import ShippedTools, build_tools

if TYPE_CHECKING:
    import httpx

    from harness.provider.http import HttpModel

Setup = Callable[[AsyncExitStack], Awaitable[Mapping[str, Tool]]]


@dataclass(frozen=True, slots=True)
class Assembled:
    """An agent with what it holds open.

    Shape: close() ends everything in order and gives the command lines of background processes it had to end; every
    caller of it waits for the same end. end_now() only kills processes, for when there is no time to wait. subagents
    and compaction are None unless the settings ask for them.
    """

    agent: Agent
    writer: SessionWriter
    tools: ShippedTools
    ids: Ids
    subagents: Subagents | None
    compaction: Compaction | None
    mcp: McpServers
    _closing: Closing

    def new_message_id(self) -> MessageId:
        """A fresh id for a message to this agent."""
        return MessageId(self.ids("message"))

    async def compact(self) -> Outcome:
        """Shorten by hand what the model sees, while nothing else runs.

        Raises: UsageError when the agent is not idle, or the settings ask for no compaction.
        """
        compaction = self.compaction
        if compaction is None:
            raise UsageError("no compaction is set up", where="--compact-at", expected="a number of tokens")
        return await self.agent.run_maintenance(lambda cancel: compaction.compact("manual", cancel))

    async def close(self) -> tuple[str, ...]:
        """Dispose the agent, end its processes, make the log durable and let go of it.

        Raises: the first failure, after everything else was closed all the same.
        """
        return await self._closing.once(self._close)

    async def _close(self) -> tuple[str, ...]:
        async with self._closing.stack:
            try:
                await self.agent.dispose()
            finally:
                ended = await self.tools.close()
            return ended

    def end_now(self) -> None:
        """Kill what tools left running, those of children too, without waiting for anything."""
        self.tools.end_now()
        self.mcp.end_now()
        if self.subagents is not None:
            self.subagents.end_now()


@dataclass(frozen=True, slots=True)
class RequestOptions:
    """What a host may choose for the requests of a session; None leaves it to the model's service."""

    max_tokens: int | None = None
    reasoning_effort: ReasoningEffort | None = None


@dataclass(frozen=True, slots=True)
class _Surroundings:
    """What an agent shares with its children; ids is None where each session draws its own."""

    settings: Settings
    store: SessionStore
    model: Model
    clock: Clock
    ids: Ids | None
    jitter: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]]
    live: LiveAgents
    notify: Callable[[SubagentNotice], None] | None
    extra_tools: Mapping[str, Tool]
    servers: tuple[Server, ...]
    secrets: Secrets
    ask: ToolGate | None = None


@dataclass(frozen=True, slots=True)
class _Birth:
    """How one agent comes to be: its session, its model, how deep it stands; its folder, None for the session's own."""

    open_session: Callable[[], Coroutine[None, None, SessionWriter]]
    beginning: Beginning
    route: RequestConfig
    depth: int = 0
    workspace: Path | None = None


def check_settings(settings: Settings) -> None:
    """Raise the UsageError of an address that is none, or of a file of MCP servers that cannot be used."""
    parse_endpoint(settings.base_url)
    read_servers(settings.mcp_file, settings.environment, settings.allowed_hosts)


async def assemble(
    settings: Settings,
    *,
    transport: httpx.AsyncBaseTransport | None = None,
    resume: SessionId | None = None,
    session_id: SessionId | None = None,
    options: RequestOptions | None = None,
    ask: ToolGate | None = None,
    clock: Clock | None = None,
    ids: Ids | None = None,
    jitter: Callable[[], float] | None = None,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    live: LiveAgents | None = None,
    setup: Setup | None = None,
    cancel: CancelSignal | None = None,
    notify: Callable[[SubagentNotice], None] | None = None,
    disk: Disk | None = None,
    secrets: Secrets | None = None,
) -> Assembled:
    """Build the agent of a new session, or of the stored one named by resume.

    Shape: session_id is the new session's, where the caller has one. ask is asked before every call of a tool that
    may change something, of children too; without it none is asked about. setup may open things, which are closed with
    the agent, and answers more tools. Nobody hears of the agent before it enters live, whose observers are the first
    to; from then on cancel has no power over it. notify is told of children. secrets are what the host
    knows to be one beside what the settings hold: no message, answer or tool output has one of them when it is written
    down.
    Raises: UsageError for settings that cannot work, and with code CREATION_CANCELLED; LogError when the session
    cannot be opened or has a live agent; whatever setup raises. Nothing is left open, and a new id is free again.
    """
    from harness.provider.http import build_model  # its client loads for longer than an editor waits for `initialize`

    clock = clock or (wall_clock if settings.seed is None else ticking_clock())
    jitter = jitter or (jitter_of_chance if settings.seed is None else no_jitter)
    secrets = (secrets or Secrets()).and_of([settings.api_key, *settings.secrets])
    async with AsyncExitStack() as closing:
        model = build_model(
            base_url=settings.base_url,
            api_key=settings.api_key,
            transport=transport,
            dialect=settings.dialect,
            allowed_hosts=settings.allowed_hosts,
            now=now,
            read_picture=AttachmentStore.beside(settings.session_root).read if settings.takes_pictures else None,
        )
        closing.push_async_callback(model.aclose)
        _check_key(model, settings)
        around = _Surroundings(
            settings=settings,
            store=SessionStore(settings.session_root, clock=clock, disk=disk),
            model=clean_model(model, secrets),
            clock=clock,
            ids=ids,
            jitter=jitter,
            sleep=sleep,
            live=live if live is not None else LiveAgents(),
            notify=notify,
            extra_tools={},
            servers=read_servers(settings.mcp_file, settings.environment, settings.allowed_hosts),
            secrets=secrets,
            ask=ask,
        )
        options = options or RequestOptions()
        birth = _Birth(
            partial(_open_session, around, resume, session_id),
            "startup" if resume is None else "resume",
            RequestConfig(
                provider=settings.provider,
                model=settings.model,
                max_tokens=options.max_tokens,
                reasoning_effort=options.reasoning_effort,
            ),
        )
        return await _create(around, birth, closing, setup=setup, cancel=cancel)


async def _create(
    around: _Surroundings,
    birth: _Birth,
    closing: AsyncExitStack,
    *,
    setup: Setup | None,
    cancel: CancelSignal | None,
) -> Assembled:
    """Prepare the session, set up, build the agent, make it known; what fails before that is taken back.

    Shape: the agent takes over what closing holds. At its end, after its own disposal: what setup opened, then its
    place among the live ones, then its log.
    """
    settings = around.settings
    writer = await open_wanted(birth.open_session, cancel)
    try:
        async with AsyncExitStack() as held:
            log = writer.log
            ids = around.ids or fresh_ids(settings.seed, f"{log.header.id}/{len(log)}")
            workspace = birth.workspace or _workspace(settings, writer)
            spill_dir = writer.path.parent / "output"
            tools = build_tools(
                workspace, spill_dir=spill_dir, environment=settings.shell_environment, secrets=around.secrets
            )
            if birth.beginning == "resume":
                await tools.end_leftovers()
            if setup is not None:
                around = replace(around, extra_tools=await unless_cancelled(setup(held), cancel))
            servers = around.servers if birth.depth == 0 else ()  # children use their parent's
            processes = Processes(*family_of(str(spill_dir), "mcp"))
            opening = open_servers(servers, workspace, settings.shell_environment, processes, key=settings.api_key)
            mcp = await unless_cancelled(opening, cancel)
            held.push_async_callback(mcp.close)
            around = replace(around, extra_tools=_joined(around.extra_tools, mcp.tools))
            subagents = _subagents(around, log, birth.depth, workspace, ids)
            compaction = _compaction(around, writer, ids)
            all_tools = redact_tools(_joined(tools.tools, _delegation(subagents), around.extra_tools), around.secrets)
            agent = Agent(
                writer=writer,
                model=around.model,
                route=birth.route,
                tools=all_tools,
                system=SECTIONS,
                retry=RetryPolicy(base_ms=settings.retry_base_ms),
                hooks=_hooks(compaction, around.ask, all_tools),
                max_steps=settings.max_steps,
                context_window=None if settings.context_window is None else lambda _: settings.context_window,
                ids=ids,
                jitter=around.jitter,
                sleep=around.sleep,
                clean=around.secrets.message,
            )
            check_wanted(cancel)
            leave = around.live.enter(agent, birth.beginning)
            closing.push_async_callback(writer.close)
            closing.callback(leave)
            closing.push_async_exit(held.pop_all())
    except BaseException:
        await writer.abandon()
        raise
    return Assembled(agent, writer, tools, ids, subagents, compaction, mcp, Closing(closing.pop_all()))


def _hooks(compaction: Compaction | None, ask: ToolGate | None, tools: Mapping[str, Tool]) -> Hooks:
    hooks = Hooks(results=(remind_of_repeats(),))
    if ask is not None:
        hooks = replace(hooks, gates=(partial(_ask_before_changes, tools),), ask=ask)
    if compaction is None:
        return hooks
    return replace(hooks, pre_step=(compaction.relieve,), shrink=compaction.shrink)


async def _ask_before_changes(tools: Mapping[str, Tool], proposal: ToolProposal) -> GateAnswer:
    tool = tools.get(proposal.call.name)
    only_reads = tool is not None and tool.is_read_only is not None and tool.is_read_only({}) is True
    return GateAnswer("allow" if only_reads else "ask")


def _compaction(around: _Surroundings, writer: SessionWriter, ids: Ids) -> Compaction | None:
    limit = around.settings.compact_at
    return None if limit is None else Compaction(writer, model=around.model, ids=ids, limit_tokens=limit)


def _subagents(around: _Surroundings, log: SessionLog, depth: int, workspace: Path, ids: Ids) -> Subagents | None:
    """The children of the agent of that log: in its folder, with its model's service, extra tools and notices."""
    max_depth = around.settings.max_delegation_depth
    if max_depth == 0:
        return None

    async def make_child(plan: ChildPlan, cancel: CancelSignal) -> Assembled:
        birth = _Birth(partial(_open_child, around, log, plan), "startup", plan.route, plan.depth, workspace)
        return await _create(around, birth, AsyncExitStack(), setup=None, cancel=cancel)

    return Subagents(log, make_child=make_child, depth=depth, max_depth=max_depth, ids=ids, notify=around.notify)


def _delegation(subagents: Subagents | None) -> Mapping[str, Tool]:
    return {} if subagents is None else {DELEGATE: build_delegate_tool(subagents)}


def _joined(*groups: Mapping[str, Tool]) -> Mapping[str, Tool]:
    found: dict[str, Tool] = {}
    for name, tool in (each for group in groups for each in group.items()):
        if name in found:
            raise UsageError(f"there is a tool {name!r} already", where="tools", fix="give the other one another name")
        found[name] = tool
    return found


def _check_key(model: HttpModel, settings: Settings) -> None:
    if settings.api_key is None and not model.endpoint.is_loopback:
        raise UsageError(
            f"no key for {model.endpoint.host_and_port}",
            where=settings.key_variable,
            expected=f"the key of the provider {settings.provider!r}",
            fix=f"export {settings.key_variable}=..., or give --base-url of a server on this machine",
        )


async def _open_session(around: _Surroundings, resume: SessionId | None, session_id: SessionId | None) -> SessionWriter:
    if resume is not None:
        return await around.store.resume(resume)
    settings = around.settings
    new_id = session_id or (around.ids or fresh_ids(settings.seed, "session"))("session")
    cwd = settings.cwd or current_folder()
    return await around.store.create(SessionHeader(SessionId(new_id), around.clock(), cwd=str(cwd)))


async def _open_child(around: _Surroundings, parent: SessionLog, plan: ChildPlan) -> SessionWriter:
    if plan.boundary is not None:
        return await around.store.fork(
            parent, plan.session_id, boundary=plan.boundary, origin="subagent", delegation_depth=plan.depth
        )
    header = SessionHeader(
        plan.session_id,
        around.clock(),
        cwd=parent.header.cwd,
        parent_session=parent.header.id,
        origin="subagent",
        delegation_depth=plan.depth,
        agent_preset=parent.header.agent_preset,
    )
    return await around.store.create(header)


def _workspace(settings: Settings, writer: SessionWriter) -> Path:
    """The folder named now, or the one the session was begun in."""
    recorded = writer.log.header.cwd
    if settings.cwd is not None or recorded is None:
        return settings.cwd or current_folder()
    if not Path(recorded).is_dir():
        raise UsageError(
            f"the folder of this session is gone: {recorded}",
            where=f"session {writer.log.header.id}",
            fix="give --cwd FOLDER",
        )
    return Path(recorded)
