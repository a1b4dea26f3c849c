"""The methods of the Agent Client Protocol over the agents of this process.

Room: the command line comes in through the connection. Composes no presets; model choice belongs to the host. It has
no loop of its own: a prompt is a message in an agent's inbox, and its answer a fold over what that agent's log says.
Source: Agent Client Protocol, version 1.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness.assemble import Assembled, assemble
from harness.capabilities.chance import fresh_ids
from harness.capabilities.live_agents import LiveAgents
from harness.errors import HarnessError, LogError, SessionNotFoundError, UsageError
from harness.log.attachments import AttachmentStore
from harness.log.events import Cause, RequestHeader
from harness.log.store import SessionStore
from harness.loop.hooks import GateAnswer, ToolProposal
from harness.model.messages import Json, JsonObject, SessionId
from harness.settings import MODEL_INPUTS, Settings
from harness.surfaces.acp.admission import Gate, NotAdmittedError, admit
from harness.surfaces.acp.capability import Facts, takes_pictures
from harness.surfaces.acp.permission import WITHDRAWN, answer_of, permission_params
from harness.surfaces.acp.session import AcpSession, Slot
from harness.surfaces.acp.settlement import Failed, settle
from harness.surfaces.hosting import Hosted, existing_folder
from harness.transport.rpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    Handler,
    Peer,
    RpcError,
    Told,
)

if TYPE_CHECKING:
    import httpx

PROTOCOL_VERSION = 1
AGENT_NAME = "five-lanes-acp"
USER = Cause("user")


@dataclass(frozen=True, slots=True)
class AcpOptions:
    """What a deployment chooses; the defaults are what automation expects.

    Shape: asks has the client asked before anything is changed; live tells it of thoughts and tool calls too; stored
    lets it list, load, resume and close sessions; tells_max_tokens tells it of turns that were cut at a limit.
    """

    version: str = "0"
    asks: bool = False
    live: bool = False
    stored: bool = False
    tells_max_tokens: bool = False


class AcpBridge:
    """One connection: its sessions, each with one prompt in flight at most."""

    def __init__(
        self,
        settings: Settings,
        *,
        say: Callable[[str], None],
        live: LiveAgents | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        options: AcpOptions | None = None,
        store: AttachmentStore | None = None,
    ) -> None:
        self._settings = settings
        self._say = say
        self._transport = transport
        self._options = options or AcpOptions()
        self._store = store if store is not None else AttachmentStore.beside(settings.session_root)
        self._new_id = fresh_ids(settings.seed, "acp")
        self._advertised = False
        self._sessions: dict[SessionId, AcpSession] = {}
        self._reopening: set[SessionId] = set()
        self._peer: Peer | None = None
        self._teardown: asyncio.Task[None] | None = None
        self.hosted = Hosted(live if live is not None else LiveAgents(), say)
        self.stopped = asyncio.Event()  # an ACP client has no word for it: it closes its end
        self.handlers: Mapping[str, Handler] = {
            "initialize": self._initialize,
            "authenticate": _accept,
            "session/new": self._new,
            "session/prompt": self._prompt,
            **(self._stored_handlers() if self._options.stored else {}),
        }
        self.told: Mapping[str, Told] = {"session/cancel": self._cancel, WITHDRAWN: self._cancel_request}

    def _stored_handlers(self) -> Mapping[str, Handler]:
        return {
            "session/list": self._list,
            "session/load": self._load,
            "session/resume": self._resume,
            "session/close": self._close_session,
        }

    def connect(self, peer: Peer) -> None:
        """Tell this client of what its sessions do."""
        self._peer = peer

    async def end(self) -> None:
        """Refuse what is new, cancel everything before waiting for anything, then let all of it end; once."""
        self.hosted.refuse_new()
        if self._teardown is None:
            for session in self._sessions.values():
                self._cancel_session(session)
            self._teardown = asyncio.ensure_future(self._tear_down())
        await asyncio.shield(self._teardown)

    def end_now(self) -> None:
        """Kill what tools left running."""
        self.hosted.end_now()

    async def close(self) -> None:
        """Nothing is held any more once the sessions have ended."""

    async def _tear_down(self) -> None:
        await asyncio.gather(*(session.at_rest() for session in self._sessions.values()))
        await self.hosted.close_all()

    # handshake

    async def _initialize(self, params: JsonObject) -> JsonObject:
        self._advertised = self._are_pictures_taken(self._settings.provider, self._settings.model)
        prompts = {"image": self._advertised, "audio": False, "embeddedContext": False}
        capabilities: dict[str, Json] = {"promptCapabilities": prompts}
        if self._options.stored:
            capabilities |= {"loadSession": True, "sessionCapabilities": {"list": {}, "resume": {}, "close": {}}}
        return {
            "protocolVersion": PROTOCOL_VERSION,
            "agentInfo": {"name": AGENT_NAME, "version": self._options.version},
            "agentCapabilities": capabilities,
            "authMethods": (),
        }

    def _are_pictures_taken(self, provider: str, model: str) -> bool:
        return takes_pictures(Facts(self._store.accepted_types, provider, model, self._inputs_of))

    def _inputs_of(self, provider: str, model: str) -> frozenset[str] | None:
        if (provider, model) == (self._settings.provider, self._settings.model):
            return self._settings.model_inputs
        return MODEL_INPUTS.get((provider, model))

    # sessions

    async def _new(self, params: JsonObject) -> JsonObject:
        folder = await self._folder(params)
        session_id = SessionId(self._new_id("session"))
        await self._opened(session_id, folder, is_stored=False)
        return {"sessionId": session_id}

    async def _load(self, params: JsonObject) -> JsonObject:
        session = await self._reopened(params)
        for event in tuple(session.assembled.agent.log):
            session.chain.replay(event)
        await session.chain.tail()
        return {}

    async def _resume(self, params: JsonObject) -> JsonObject:
        await self._reopened(params)
        return {}

    async def _reopened(self, params: JsonObject) -> AcpSession:
        session_id = _session_id(params)
        if session_id in self._sessions or session_id in self._reopening:
            raise UsageError(f"session {session_id} is open already")
        self._reopening.add(session_id)  # with nothing awaited since the look: of two who ask together one gets it
        try:
            folder = await self._folder(params)
            if not await asyncio.to_thread(self._is_stored, session_id):
                raise UsageError(f"unknown session: {session_id}")
            return await self._opened(session_id, folder, is_stored=True)
        finally:
            self._reopening.discard(session_id)

    def _is_stored(self, session_id: SessionId) -> bool:
        try:
            self._logs().find(session_id)
        except SessionNotFoundError:
            return False
        return True

    def _logs(self) -> SessionStore:
        return SessionStore(self._settings.session_root, clock=lambda: 0)  # reads only

    async def _list(self, params: JsonObject) -> JsonObject:
        wanted = params.get("cwd")
        if wanted is not None and not isinstance(wanted, str):
            raise UsageError("expected a text", where="cwd")
        headers = [listing.header for listing in await asyncio.to_thread(self._logs().list)]
        found: list[Json] = [
            {"sessionId": header.id, "cwd": header.cwd or ""}
            for header in headers
            if header is not None and header.origin is None and wanted in (None, header.cwd)
        ]
        return {"sessions": found}

    async def _close_session(self, params: JsonObject) -> JsonObject:
        session = self._session(params)
        self._cancel_session(session)
        del self._sessions[session.id]  # at once, so that what was sent behind the close finds it closed
        try:
            await self.hosted.close(session.id)
        finally:
            session.detach()
            await session.at_rest()
        return {}

    async def _opened(self, session_id: SessionId, folder: Path, *, is_stored: bool) -> AcpSession:
        async def build() -> Assembled:
            return await assemble(
                replace(self._settings, cwd=folder),
                transport=self._transport,
                resume=session_id if is_stored else None,
                session_id=None if is_stored else session_id,
                ask=self._ask if self._options.asks else None,
                live=self.hosted.live,
            )

        assembled = await self.hosted.open(session_id, build)

        async def send(update: JsonObject) -> None:
            if self._peer is not None:
                self._peer.notify("session/update", {"sessionId": session_id, "update": update})
                await self._peer.room()

        session = AcpSession(assembled, send, self._store, live=self._options.live, say=self._say)
        self._sessions[session_id] = session
        return session

    async def _folder(self, params: JsonObject) -> Path:
        for name in ("additionalDirectories", "mcpServers"):
            value = params.get(name)
            if value is not None and (not isinstance(value, list | tuple) or value):
                raise UsageError("only an empty list is taken", where=name)
        cwd = params.get("cwd")
        if not isinstance(cwd, str) or not Path(cwd).is_absolute():
            raise UsageError("expected an absolute path", where="cwd")
        return await asyncio.to_thread(existing_folder, Path(cwd), "cwd")

    def _session(self, params: JsonObject) -> AcpSession:
        session_id = _session_id(params)
        session = self._sessions.get(session_id)
        if session is None:
            raise UsageError(f"unknown session: {session_id}")
        return session

    # prompts

    async def _prompt(self, params: JsonObject) -> JsonObject:
        if self.hosted.is_closing:
            raise NotAdmittedError("disposed")
        session = self._session(params)
        if session.slot is not None:
            raise UsageError(f"a prompt is already in flight in session {session.id}")
        slot = session.slot = Slot(None if self._peer is None else self._peer.request_id)
        try:
            problem = await self._admitted(session, slot, params.get("prompt"))
            if slot.ticket.is_queued:
                await session.at_rest_after_prompt()
        finally:
            session.free(slot)
        if problem is not None and not slot.was_cancelled:
            raise problem
        outcome = settle(slot.happened(session), tells_max_tokens=self._options.tells_max_tokens)
        if isinstance(outcome, Failed):
            raise NotAdmittedError(outcome.text)
        ending = "cancelled" if slot.ending is None else slot.ending.kind
        return {"stopReason": outcome, "_meta": {"ending": ending}}

    async def _admitted(self, session: AcpSession, slot: Slot, blocks: Json) -> Exception | None:
        """Bring the prompt in; what kept it out, or None."""
        agent = session.assembled.agent
        gate = Gate(
            agent=agent,
            is_registered=lambda: self.hosted.owns(session.assembled),
            new_message_id=session.assembled.new_message_id,
            store=self._store,
            may_hold_pictures=self._advertised,
            route_takes_pictures=self._route_of(session),
        )
        try:
            await admit(blocks, gate, slot.ticket)
        except HarnessError as error:
            cause = error.__cause__
            if cause is not None:
                self._say(f"{error.what}: {type(cause).__name__}: {cause}")
            return error
        finally:
            slot.is_admitted = True
        return None

    def _route_of(self, session: AcpSession) -> Callable[[], Awaitable[bool]]:
        async def look() -> bool:
            found = session.assembled.agent.log.last(RequestHeader)
            if found is None or not isinstance(found.payload, RequestHeader):
                return self._are_pictures_taken(self._settings.provider, self._settings.model)
            config = found.payload.header.config
            return self._are_pictures_taken(config.provider, config.model)

        return look

    def _cancel(self, params: JsonObject) -> None:
        session_id = params.get("sessionId")
        session = self._sessions.get(SessionId(session_id)) if isinstance(session_id, str) else None
        if session is not None:
            self._cancel_session(session)

    def _cancel_request(self, params: JsonObject) -> None:
        request_id = params.get("requestId")
        for session in self._sessions.values():
            if session.slot is not None and request_id is not None and session.slot.request_id == request_id:
                self._cancel_session(session)

    def _cancel_session(self, session: AcpSession) -> None:
        """Cancel the prompt in flight, or without one what the session does by itself; never unrelated work."""
        slot = session.slot
        if slot is not None:
            slot.was_cancelled = True
            slot.ticket.scope.cancel(USER)
        if slot is None or slot.ticket.is_queued:
            session.assembled.agent.cancel(USER)

    # permission

    async def _ask(self, proposal: ToolProposal) -> GateAnswer:
        session = self._sessions.get(proposal.agent.id)
        if session is None or session.assembled.agent is not proposal.agent or self._peer is None:
            return GateAnswer("deny", "there is nobody to ask for permission")
        params = permission_params(session.id, proposal.call)
        question = self._peer.request("session/request_permission", params, withdrawal=WITHDRAWN)
        asking = asyncio.ensure_future(question)
        cancelled = asyncio.ensure_future(proposal.cancel.wait())
        try:
            await asyncio.wait({asking, cancelled}, return_when=asyncio.FIRST_COMPLETED)
            if not asking.done():
                return GateAnswer("deny", "the turn was cancelled")
            return answer_of(asking)
        finally:
            cancelled.cancel()
            asking.cancel()  # tells the client before the prompt is answered: whoever answers that runs behind it

    # errors

    def error_of(self, error: Exception) -> RpcError:
        """How what a handler raises is answered; no inner text leaves but our own."""
        match error:
            case RpcError():
                return error
            case UsageError(error_code="SHUTTING_DOWN"):
                return RpcError(INTERNAL_ERROR, "Internal error: disposed")
            case NotAdmittedError():
                return RpcError(INTERNAL_ERROR, f"Internal error: {error.what}")
            case UsageError():
                detail = f"{error.where}: {error.what}" if error.where else error.what
                return RpcError(INVALID_PARAMS, f"Invalid params: {detail}")
            case LogError():
                self._say(str(error))
                return RpcError(INTERNAL_ERROR, f"Internal error: {error}")
            case HarnessError():
                self._say(str(error))
                return RpcError(INTERNAL_ERROR, f"Internal error: [{error.error_code}]")
            case _:
                self._say(f"{type(error).__name__}: {error}")
                return RpcError(INTERNAL_ERROR, "Internal error: unexpected failure")


async def _accept(params: JsonObject) -> JsonObject:
    return {}


def _session_id(params: JsonObject) -> SessionId:
    value = params.get("sessionId")
    if not isinstance(value, str) or not value:
        raise UsageError("expected a text that is not empty", where="sessionId")
    return SessionId(value)
