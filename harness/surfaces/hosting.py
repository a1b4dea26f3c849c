"""The sessions that one process serves for somebody else: each opened once, all closed together.

Room: the SDK and ACP servers come in. Composes no presets; model choice belongs to the host. It knows
who is alive and nothing of any wire.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from harness.assemble import Assembled
from harness.capabilities.live_agents import LiveAgents
from harness.errors import HarnessError, UsageError
from harness.model.messages import SessionId
from harness.surfaces.progress import one_line

MAX_SHOWN = 200  # characters of a path that is repeated to whoever named it

Build = Callable[[], Awaitable[Assembled]]


class ClosingError(HarnessError):
    """Some sessions could not be closed as they should; all were attempted."""

    code = "CLOSING_FAILED"


class Hosted:
    """Assembled agents by session id.

    Shape: open builds a session at most once at a time, so that callers who ask together share one agent; a build that
    failed leaves no trace, and the next caller tries again. What is asked of one session takes effect in the order it
    was asked: a close waits for the opening before it, an open for the close. close_all refuses new ones first. say
    hears what was repaired in a session's log when it was opened, and which MCP servers it does without.
    Raises: UsageError with code SHUTTING_DOWN from open once closing began.
    """

    def __init__(self, live: LiveAgents, say: Callable[[str], None]) -> None:
        self.live = live
        self._say = say
        self._sessions: dict[SessionId, Assembled] = {}
        self._opening: dict[SessionId, asyncio.Task[Assembled]] = {}
        self._ending: dict[SessionId, asyncio.Task[None]] = {}
        self._leaving: dict[SessionId, Assembled] = {}
        self._closing: asyncio.Task[None] | None = None
        self._refuses = False

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def sessions(self) -> tuple[Assembled, ...]:
        """Those that are open, in the order they were opened."""
        return tuple(self._sessions.values())

    @property
    def is_closing(self) -> bool:
        """Whether new sessions are refused by now."""
        return self._refuses

    def get(self, session_id: SessionId) -> Assembled | None:
        """The open session of that id."""
        return self._sessions.get(session_id)

    def owns(self, assembled: Assembled) -> bool:
        """Whether the agent of that session is still the one that is alive under its id."""
        return self.live.get(assembled.agent.id) is assembled.agent

    async def open(self, session_id: SessionId, build: Build) -> Assembled:
        """The open session of that id, built when there is none.

        Raises: what build raises, to everybody who waited for it.
        """
        if self.is_closing:
            raise UsageError("shutting down", code="SHUTTING_DOWN")
        found = self._sessions.get(session_id)
        if found is not None:
            return found
        opening = self._opening.get(session_id)
        if opening is None:
            opening = asyncio.ensure_future(self._build(session_id, build))
            self._opening[session_id] = opening
        opened = await asyncio.shield(opening)
        if self.is_closing:
            raise UsageError("shutting down", code="SHUTTING_DOWN")
        return opened

    async def close(self, session_id: SessionId) -> bool:
        """Close one session; False when none of that id is open.

        Raises: what closing it raises.
        """
        opening = self._opening.get(session_id)
        if opening is not None:
            await asyncio.wait({opening})
        assembled = self._sessions.pop(session_id, None)
        if assembled is None:
            return False
        self._leaving[session_id] = assembled
        ending = self._ending[session_id] = asyncio.ensure_future(self._end(session_id, assembled))
        await asyncio.shield(ending)
        return True

    def refuse_new(self) -> None:
        """Open nothing from now on."""
        self._refuses = True

    async def close_all(self) -> None:
        """Wait for what is being opened, then close everything; callers share one end.

        Raises: ClosingError naming every failure, after all were attempted.
        """
        self.refuse_new()
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close_all())
        await asyncio.shield(self._closing)

    def end_now(self) -> None:
        """Kill what tools left running, without waiting for anything."""
        for assembled in (*self.sessions, *self._leaving.values()):
            assembled.end_now()

    async def _build(self, session_id: SessionId, build: Build) -> Assembled:
        try:
            if session_id in self._ending:
                await asyncio.wait({self._ending[session_id]})
            assembled = await build()
        finally:
            del self._opening[session_id]
        self._sessions[session_id] = assembled
        damage = assembled.writer.damage
        for notice in (*([] if damage is None else [f"it was repaired: {damage}"]), *assembled.mcp.notices):
            self._say(f"session {session_id}: {one_line(notice)}")
        return assembled

    async def _end(self, session_id: SessionId, assembled: Assembled) -> None:
        try:
            await assembled.close()
        finally:
            del self._ending[session_id], self._leaving[session_id]

    async def _close_all(self) -> None:
        while self._opening:
            await asyncio.wait(set(self._opening.values()))
        if self._ending:  # who asked for those is told how they went
            await asyncio.wait(set(self._ending.values()))
        sessions = self.sessions
        endings = await asyncio.gather(*(each.close() for each in sessions), return_exceptions=True)
        self._sessions.clear()
        failed = [f"{each.agent.id}: {end}" for each, end in zip(sessions, endings, strict=True) if _is_failure(end)]
        if failed:
            raise ClosingError("; ".join(failed))


def existing_folder(path: Path, field: str) -> Path:
    """The folder that a client named, as it was named.

    Raises: UsageError naming the field when no folder stands there, or nobody can tell.
    """
    try:
        is_there = path.is_dir()
    except OSError as error:  # a name longer than any can be, a folder on the way that is closed to us
        raise UsageError(f"the folder cannot be looked at: {error.strerror or error}", where=field) from error
    if not is_there:
        raise UsageError(f"there is no folder {str(path)[:MAX_SHOWN]}", where=field)
    return path


def _is_failure(ending: object) -> bool:
    return isinstance(ending, BaseException)
