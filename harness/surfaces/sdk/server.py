"""The server behind `harness sdk`: requests in, receipts and events out, over one connection.

Room: the command line comes in through the connection. Composes no presets; model choice belongs to the host. It has
no loop of its own: what it tells is a fold over the logs of the agents that assemble gives it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness.assemble import Assembled, RequestOptions, assemble
from harness.capabilities.live_agents import LiveAgents
from harness.errors import HarnessError, InternalError, SessionNotFoundError, UsageError
from harness.log.attachments import AttachmentStore
from harness.log.events import Cause, InboxSpliced
from harness.log.fold import open_turn
from harness.log.session_log import SessionLog
from harness.log.store import SessionStore
from harness.loop.agent import Agent
from harness.model.messages import Json, JsonObject, Message, MessageId, SessionId, UserSource
from harness.settings import PROVIDERS, Flags, Settings, from_environment
from harness.surfaces.hosting import Hosted, existing_folder
from harness.surfaces.sdk.outbox import Outbox
from harness.surfaces.sdk.shapes import (
    SERVER_NAME,
    SERVER_VERSION,
    Initialize,
    Prompt,
    read_initialize,
    read_message_id,
    read_prompt,
    read_session_id,
    read_text,
)
from harness.transport.rpc import INTERNAL_ERROR, INVALID_PARAMS, Handler, Peer, RpcError, Told

if TYPE_CHECKING:
    import httpx


@dataclass(frozen=True, slots=True)
class SdkOptions:
    """What the command line says of the server itself."""

    max_tokens_as_success: bool = False


class SdkServer:
    """The methods of one connection.

    Shape: handlers is method to handler; stopped is set once shutdown was answered, so that the process may go. live
    holds the agents of the process, those of others too; the client hears of all of them.
    """

    def __init__(
        self,
        flags: Flags,
        environ: Mapping[str, str],
        *,
        say: Callable[[str], None],
        live: LiveAgents | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        options: SdkOptions | None = None,
    ) -> None:
        self._flags = flags
        self._environ = environ
        self._transport = transport
        self._say = say
        self._sdk_options = options or SdkOptions()
        self._settings: Settings | None = None
        self._options = RequestOptions()
        self._handshake = asyncio.Lock()  # what was sent behind a handshake is done as that one asks
        self._folders: dict[SessionId, Path] = {}
        self._moves: dict[str, asyncio.Lock] = {}  # held while a session changes its folder
        self._coming: dict[str, list[asyncio.Future[None]]] = {}  # prompts of each session that are not queued yet
        self.hosted = Hosted(live if live is not None else LiveAgents(), say)
        self.told: Mapping[str, Told] = {}
        self._outbox: Outbox | None = None
        self.stopped = asyncio.Event()
        self._shutdown: asyncio.Task[None] | None = None
        self.handlers: Mapping[str, Handler] = {
            "initialize": self._initialize,
            "session/prompt": self._on_prompt,
            "session/resume": self._resume,
            "session/cancel": self._cancel,
            "session/list": self._list,
            "session/close": self._close_session,
            "session/working-directory/get": self._folder,
            "session/working-directory/set": self._set_folder,
            "shutdown": self._on_shutdown,
        }

    def connect(self, peer: Peer) -> None:
        """Tell this client of everything from now on."""
        switch = self._sdk_options.max_tokens_as_success
        self._outbox = Outbox(peer, self.hosted.live, self._say, max_tokens_as_success=switch)

    async def end(self) -> None:
        """Shut down; callers share one end."""
        await self.shut_down()

    def end_now(self) -> None:
        """Kill what tools left running."""
        self.hosted.end_now()

    async def close(self) -> None:
        """Tell the client of nothing any more."""
        if self._outbox is not None:
            await self._outbox.close()

    def error_of(self, error: Exception) -> RpcError:
        """How what a handler raises is answered: our own errors in their words, anything else without its text."""
        match error:
            case RpcError():
                return error
            case UsageError(error_code="SHUTTING_DOWN"):
                return RpcError(INTERNAL_ERROR, error.what)
            case UsageError():
                return RpcError(INVALID_PARAMS, f"{error.where}: {error.what}" if error.where else error.what)
            case HarnessError():
                return RpcError(INTERNAL_ERROR, str(error))
            case _:
                self._say(f"{type(error).__name__}: {error}")
                return RpcError(INTERNAL_ERROR, f"internal error [{InternalError.code}]")

    async def _initialize(self, params: JsonObject) -> JsonObject:
        asked = read_initialize(params)
        if asked.provider not in PROVIDERS:
            raise UsageError(f'no adapter registered for provider "{asked.provider[:60]}"')
        async with self._handshake:
            await self._take_over(asked)
        return {
            "serverInfo": {"name": SERVER_NAME, "version": SERVER_VERSION},
            "capabilities": {"methods": tuple(sorted(self.handlers))},
        }

    async def _take_over(self, asked: Initialize) -> None:
        """Serve the sessions made from now on as the handshake asks."""
        folder = await asyncio.to_thread(_folder_at, Path(), asked.cwd, "cwd")
        flags = replace(self._flags, provider=asked.provider, model=asked.model, cwd=str(folder))
        settings = from_environment(self._environ, flags)
        self._flags, self._settings = flags, settings
        self._options = RequestOptions(max_tokens=asked.max_tokens, reasoning_effort=asked.effort)

    async def _on_prompt(self, params: JsonObject) -> JsonObject:
        """Take a prompt; what was sent behind it to its session, prompts and cancels, waits until it is queued."""
        session: str = str(params.get("sessionId"))
        queued: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        coming = self._coming.setdefault(session, [])
        before = coming[-1] if coming else None
        coming.append(queued)
        try:
            await self._moved(session)
            return await self._prompt(params, before, queued)
        finally:
            if before is None or before.done():
                self._queued(session, queued)
            else:  # this one is refused, and who came behind it still has to wait for who came before it
                before.add_done_callback(lambda _: self._queued(session, queued))

    def _queued(self, session: str, queued: asyncio.Future[None]) -> None:
        if not queued.done():
            queued.set_result(None)
            self._coming[session].remove(queued)
            if not self._coming[session]:
                del self._coming[session]

    async def _prompt(
        self, params: JsonObject, before: asyncio.Future[None] | None, queued: asyncio.Future[None]
    ) -> JsonObject:
        prompt = read_prompt(params)
        assembled = await self._session(prompt)
        if before is not None:  # a picture takes its time to be looked up, and words sent behind it speak of it
            await asyncio.wait({before})
        if not self.hosted.owns(assembled):
            raise RpcError(INTERNAL_ERROR, f"session {prompt.session_id} is not served here any more")
        if self.hosted.is_closing:
            raise UsageError("shutting down", code="SHUTTING_DOWN")
        message_id = assembled.new_message_id()
        assembled.agent.followup(Message(message_id, "user", prompt.content, UserSource()))
        self._queued(prompt.session_id, queued)
        await assembled.writer.flush()
        return {"messageId": message_id}

    async def _session(self, prompt: Prompt) -> Assembled:
        if prompt.attachments:
            settings, _ = await self._wanted()
            await AttachmentStore.beside(settings.session_root).keep(prompt.attachments)
        return await self._opened(prompt.session_id, may_create=True)

    async def _opened(self, session_id: SessionId, *, may_create: bool) -> Assembled:
        settings, options = await self._wanted()
        folder = self._folders.get(session_id)

        async def build() -> Assembled:
            is_stored = await asyncio.to_thread(_is_stored, settings, session_id)
            if not is_stored and not may_create:
                raise UsageError(f"unknown session: {session_id}", where="sessionId")
            own = settings if not is_stored else replace(settings, cwd=folder)
            return await assemble(
                own,
                transport=self._transport,
                resume=session_id if is_stored else None,
                session_id=None if is_stored else session_id,
                options=options,
                live=self.hosted.live,
                notify=None if self._outbox is None else self._outbox.notify,
            )

        return await self.hosted.open(session_id, build)

    async def _resume(self, params: JsonObject) -> JsonObject:
        session_id = read_session_id(params)
        await self._moved(session_id)
        if self.hosted.get(session_id) is not None:
            raise RpcError(INTERNAL_ERROR, f"session {session_id} is open already")
        await self._opened(session_id, may_create=False)
        return {}

    async def _cancel(self, params: JsonObject) -> JsonObject:
        session_id, message_id = read_session_id(params), read_message_id(params)
        before = self._coming.get(session_id)
        if message_id is None and before:  # they were sent before this, and it would find nothing of them yet
            await asyncio.wait([*before])
        assembled = self.hosted.get(session_id)
        if assembled is None:
            return {"cancelled": "none"}
        agent = assembled.agent
        if message_id is not None:
            return {"cancelled": _cancel_message(agent, message_id)}
        outcome = agent.cancel(Cause("user"))
        return {"cancelled": "turn" if outcome.turn is not None else "queued" if outcome.discarded else "none"}

    async def _list(self, params: JsonObject) -> JsonObject:
        asked = None if params.get("cwd") is None else read_text(params, "cwd")
        folder = None if asked is None else str(await asyncio.to_thread(_folder_at, Path(), asked, "cwd"))
        store = _store((await self._wanted())[0])
        found: list[Json] = []
        for listing in await asyncio.to_thread(store.list):
            header = listing.header
            if header is None:
                found.append({"problem": listing.problem, "path": str(listing.path)})
            elif header.origin is None and folder in (None, header.cwd):
                found.append({"sessionId": header.id, "cwd": header.cwd, "createdAt": header.created_at})
        return {"sessions": found}

    async def _close_session(self, params: JsonObject) -> JsonObject:
        session_id = read_session_id(params)
        before = tuple(self._coming.get(session_id, ()))
        await self._moved(session_id)
        if before:  # they were sent before this, and may still be opening the session
            await asyncio.wait(before)
        if not await self.hosted.close(session_id):
            raise UsageError(f"unknown session: {session_id}", where="sessionId")
        return {}

    async def _folder(self, params: JsonObject) -> JsonObject:
        session_id = read_session_id(params)
        return {"cwd": str(self._folder_of(session_id))}

    async def _set_folder(self, params: JsonObject) -> JsonObject:
        session_id, path = read_session_id(params), read_text(params, "path")
        before = tuple(self._coming.get(session_id, ()))
        async with self._moves.setdefault(session_id, asyncio.Lock()):
            if before:  # they were sent before this, and have the session at work
                await asyncio.wait(before)
            return {"cwd": str(await self._move(session_id, path))}

    async def _moved(self, session_id: str) -> None:
        """Wait for the changes of folder that were sent before."""
        move = self._moves.get(session_id)
        if move is not None:
            async with move:
                return

    async def _move(self, session_id: SessionId, path: str) -> Path:
        folder = await asyncio.to_thread(_folder_at, self._folder_of(session_id), path, "path")
        assembled = self.hosted.get(session_id)
        if assembled is not None and (assembled.agent.status != "idle" or assembled.agent.pending):
            raise UsageError("the session is at work", where="sessionId", fix="wait until it is idle")
        self._folders[session_id] = folder
        if assembled is not None and len(assembled.agent.log):
            await self.hosted.close(session_id)
            await self._opened(session_id, may_create=False)
        return folder

    def _folder_of(self, session_id: SessionId) -> Path:
        chosen = self._folders.get(session_id)
        if chosen is not None:
            return chosen
        assembled = self.hosted.get(session_id)
        if assembled is None:
            raise UsageError(f"unknown session: {session_id}", where="sessionId")
        return Path(assembled.agent.log.header.cwd or Path.cwd())

    async def _on_shutdown(self, params: JsonObject) -> JsonObject:
        try:
            await self.shut_down()
        finally:
            self.stopped.set()
        return {}

    async def shut_down(self) -> None:
        """Refuse what is new, end every session, and let the client see their ends; callers share one end.

        Raises: ClosingError naming every session that did not close as it should.
        """
        self.hosted.refuse_new()
        if self._shutdown is None:
            self._shutdown = asyncio.ensure_future(self._end())
        await asyncio.shield(self._shutdown)

    async def _end(self) -> None:
        try:
            await self.hosted.close_all()
        finally:
            if self._outbox is not None:
                await self._outbox.drained()

    async def _wanted(self) -> tuple[Settings, RequestOptions]:
        """What the newest handshake asked for, one under way included."""
        async with self._handshake:
            if self._settings is None:
                self._settings = from_environment(self._environ, self._flags)
            return self._settings, self._options


def _folder_at(base: Path, path: str, field: str) -> Path:
    """A folder that exists, from a base unless it is absolute.

    Raises: UsageError naming the field.
    """
    try:
        folder = (base / path).absolute()
    except OSError as error:
        raise UsageError("the folder of the server itself is gone", where=field, expected="an absolute path") from error
    return existing_folder(folder, field).resolve()


def _is_stored(settings: Settings, session_id: SessionId) -> bool:
    try:
        _store(settings).find(session_id)
    except SessionNotFoundError:
        return False
    return True


def _store(settings: Settings) -> SessionStore:
    return SessionStore(settings.session_root, clock=lambda: 0)  # reads only


def _cancel_message(agent: Agent, message_id: MessageId) -> str:
    """Take a message out of the queue, or end the turn that has it; others go on."""
    if agent.cancel_message(message_id):
        return "queued"
    open_now = open_turn(agent.log)
    if open_now is None or _claiming_turn(agent.log, message_id) != open_now[0]:
        return "none"
    agent.cancel(Cause("user"), keep_inbox=True)
    agent.wake()
    return "turn"


def _claiming_turn(log: SessionLog, message_id: MessageId) -> int | None:
    for seq in range(len(log) - 1, -1, -1):
        payload = log[seq].payload
        if isinstance(payload, InboxSpliced):
            for item in payload.removed:
                if item.id == message_id:
                    return item.turn
    return None
