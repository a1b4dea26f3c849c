"""The one factory: settings and a way to the model become an agent, by plain calls in plain order.

Room: surfaces come in; nobody else constructs an agent. Clock, ids, jitter and sleep are bound here and nowhere deeper.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import random
import time
import uuid
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import httpx

from harness.errors import UsageError
from harness.log.events import RequestConfig, SessionHeader
from harness.log.store import SessionStore
from harness.log.writer import SessionWriter
from harness.loop.agent import Agent
from harness.loop.prompt import Section
from harness.loop.retry import RetryPolicy
from harness.model.messages import MessageId, SessionId
from harness.provider.http import HttpModel, build_model
from harness.settings import Settings
from harness.tools.shipped import ShippedTools, build_tools

SEEDED_EPOCH_MS = 1_700_000_000_000  # a round number far from any real run, easy to recognise in a log

Clock = Callable[[], int]
Ids = Callable[[str], str]

SECTIONS = (
    Section(
        "work",
        10,
        "You are a software agent at work in one folder, the workspace. Do what the user asks with the tools you "
        "have, then answer in a few plain sentences: what you did, and what you saw that shows it is done.",
    ),
    Section(
        "files",
        20,
        "Paths are relative to the workspace, and nothing outside of it can be reached. Read a file before you edit "
        "it. Prefer small edits to writing whole files anew.",
    ),
    Section(
        "honesty",
        30,
        "Say so when something failed or was not tried. A tool result that begins with `Error:` did not happen.",
    ),
)


@dataclass(frozen=True, slots=True)
class Assembled:
    """An agent with what it holds open.

    Shape: close() ends everything in order and gives the command lines of background processes it had to end;
    end_now() only kills processes, for when there is no time to wait.
    """

    agent: Agent
    writer: SessionWriter
    tools: ShippedTools
    ids: Ids
    _closing: AsyncExitStack

    def new_message_id(self) -> MessageId:
        """A fresh id for a message to this agent."""
        return MessageId(self.ids("message"))

    async def close(self) -> tuple[str, ...]:
        """Dispose the agent, end its processes, make the log durable and let go of it.

        Raises: the first failure, after everything else was closed all the same.
        """
        async with self._closing:
            try:
                await self.agent.dispose()
            finally:
                ended = await self.tools.close()
            return ended

    def end_now(self) -> None:
        """Kill what tools left running, without waiting for anything."""
        self.tools.end_now()


async def assemble(
    settings: Settings,
    *,
    transport: httpx.AsyncBaseTransport | None = None,
    resume: SessionId | None = None,
    clock: Clock | None = None,
    ids: Ids | None = None,
    jitter: Callable[[], float] | None = None,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Assembled:
    """Build the agent of a new session, or of the stored one named by resume.

    Raises: UsageError for settings that cannot work; LogError when the session cannot be opened. Nothing is left open.
    """
    clock = clock or (_wall_clock if settings.seed is None else _ticking_clock())
    jitter = jitter or (_jitter if settings.seed is None else _no_jitter)
    async with AsyncExitStack() as closing:
        model = build_model(
            base_url=settings.base_url,
            api_key=settings.api_key,
            transport=transport,
            dialect=settings.dialect,
            allowed_hosts=settings.allowed_hosts,
            now=_now,
        )
        closing.push_async_callback(model.aclose)
        _check_key(model, settings)
        writer = await _open_session(settings, clock, ids, resume)
        closing.push_async_callback(writer.close)
        ids = ids or _ids(settings.seed, f"{writer.log.header.id}/{len(writer.log)}")
        tools = build_tools(
            _workspace(settings, writer),
            spill_dir=writer.path.parent / "output",
            environment=settings.shell_environment,
        )
        if resume is not None:
            await tools.end_leftovers()
        agent = Agent(
            writer=writer,
            model=model,
            route=RequestConfig(provider=settings.provider, model=settings.model),
            tools=tools.tools,
            system=SECTIONS,
            retry=RetryPolicy(base_ms=settings.retry_base_ms),
            max_steps=settings.max_steps,
            ids=ids,
            jitter=jitter,
            sleep=sleep,
        )
        return Assembled(agent, writer, tools, ids, closing.pop_all())


def _check_key(model: HttpModel, settings: Settings) -> None:
    if settings.api_key is None and not model.endpoint.is_loopback:
        raise UsageError(
            f"no key for {model.endpoint.host_and_port}",
            where=settings.key_variable,
            expected=f"the key of the provider {settings.provider!r}",
            fix=f"export {settings.key_variable}=..., or give --base-url of a server on this machine",
        )


async def _open_session(settings: Settings, clock: Clock, ids: Ids | None, resume: SessionId | None) -> SessionWriter:
    store = SessionStore(settings.session_root, clock=clock)
    if resume is not None:
        return await store.resume(resume)
    new_id = (ids or _ids(settings.seed, "session"))("session")
    cwd = settings.cwd or Path.cwd()
    return await store.create(SessionHeader(SessionId(new_id), clock(), cwd=str(cwd)))


def _workspace(settings: Settings, writer: SessionWriter) -> Path:
    """The folder named now, or the one the session was begun in."""
    recorded = writer.log.header.cwd
    if settings.cwd is not None or recorded is None:
        return settings.cwd or Path.cwd()
    if not Path(recorded).is_dir():
        raise UsageError(
            f"the folder of this session is gone: {recorded}",
            where=f"session {writer.log.header.id}",
            fix="give --cwd FOLDER",
        )
    return Path(recorded)


def _wall_clock() -> int:
    return time.time_ns() // 1_000_000


def _now() -> datetime:
    return datetime.now(UTC)


def _ticking_clock() -> Clock:
    return itertools.count(SEEDED_EPOCH_MS).__next__


def _jitter() -> float:
    return random.random()  # noqa: S311 - spreads retries over time, protects nothing


def _no_jitter() -> float:
    return 0.5


def _ids(seed: str | None, place: str) -> Ids:
    """Fresh ids: random, or drawn from the seed and the place so that no other lifetime of a session has them."""
    if seed is None:
        return lambda prefix: f"{prefix}-{uuid.uuid4()}"
    numbers = itertools.count(1)

    def draw(prefix: str) -> str:
        text = f"{seed}/{place}/{prefix}/{next(numbers)}"
        return f"{prefix}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"

    return draw
