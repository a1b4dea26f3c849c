"""The client of `harness sdk`: start the server, prompt, and know when its work on a prompt is over.

Room: programs that embed the agent come in. The server's notifications are the only truth here; attribution that has
to outlive this process is rebuilt from the session's log.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from harness.client.errors import (
    ClientClosedError,
    ClientError,
    ProtocolError,
    RequestTimeoutError,
    RunTimeoutError,
    ServerDiedError,
    StartError,
)
from harness.client.process import Grace, ServerProcess, start_process
from harness.client.runs import Observer, RunCollector, RunResult, Told
from harness.client.tree import SessionTree
from harness.errors import PeerError
from harness.model.messages import Json, JsonObject
from harness.transport.rpc import CallTimeoutError, ConnectionEndedError, Peer, RpcError

SERVER_COMMAND = (sys.executable, "-m", "harness", "sdk")
REQUEST_TIMEOUT_S = 30.0

Filter = Callable[[Told], bool]
Content = str | Sequence[JsonObject]


@dataclass(frozen=True, slots=True)
class Launch:
    """How the server is started, and what it is asked for in the handshake.

    Shape: cwd is the folder the agent works in; environment None passes on this process's. Give a mapping made by
    clean_environment where keys of this process must not reach the server.
    Units: request_timeout_s is seconds for one request, the handshake among them.
    """

    cwd: str | Path
    provider: str
    model: str
    command: Sequence[str] = SERVER_COMMAND
    environment: Mapping[str, str] | None = field(default=None, repr=False)
    max_tokens: int | None = None
    reasoning_effort: str | None = None
    request_timeout_s: float = REQUEST_TIMEOUT_S
    grace: Grace = field(default_factory=Grace)


class Subscription:
    """The notifications a filter lets through, in wire order.

    Shape: next gives the oldest one. What came before the server's end stays to be read; then its end is raised. After
    close nothing is.
    Raises: what the filter raised, from next; nobody else is touched by it.
    """

    def __init__(self, client: HarnessClient, accepts: Filter) -> None:
        self._client = client
        self._accepts = accepts
        self._queue: deque[Told] = deque()
        self._came = asyncio.Event()
        self._error: Exception | None = None

    def offer(self, told: Told) -> None:
        """Take a notification in, or not."""
        try:
            accepted = self._accepts(told)
        except Exception as error:  # noqa: BLE001 - a filter may raise anything, to its own subscriber only
            self.fail(error)
            self._client.unsubscribe(self)
            return
        if accepted:
            self._queue.append(told)
            self._came.set()

    def fail(self, error: Exception) -> None:
        """Raise this from next once everything that came before was read."""
        self._error = self._error or error
        self._came.set()

    async def next(self) -> Told:
        """The next notification."""
        while not self._queue:
            if self._error is not None:
                raise self._error
            self._came.clear()
            await self._came.wait()
        return self._queue.popleft()

    def close(self) -> None:
        """End it; what was not read is dropped."""
        self._queue.clear()
        self.fail(ClientClosedError("the subscription was closed"))
        self._client.unsubscribe(self)


class HarnessClient:
    """One server process and the sessions it serves.

    Shape: use it as an async context manager, or call close. It starts the server at its first use; a start that
    failed is tried anew by the next one. Prompts and runs may overlap, on one session too: each run begins at its own
    receipt, and they may share their end.
    Raises: ClientError in its kinds. A request or a run that timed out stays running on the server; cancel stops it.
    """

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self.unmatched = 0
        self._folder = str(Path(launch.cwd).absolute())
        self._ids = itertools.count(1)
        self._process: ServerProcess | None = None
        self._peer: Peer | None = None
        self._starting: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._subscriptions: list[Subscription] = []
        self._tree = SessionTree()
        self._watching: asyncio.Task[None] | None = None

    async def __aenter__(self) -> HarnessClient:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def pending_calls(self) -> int:
        """How many requests wait for an answer."""
        return 0 if self._peer is None else self._peer.pending_calls

    @property
    def stderr_tail(self) -> str:
        """The newest lines of the server's standard error."""
        return "" if self._process is None else self._process.tail.text()

    async def start(self) -> None:
        """Start the server and shake hands; callers share one handshake, and later calls do nothing.

        Raises: StartError; ClientClosedError after close.
        """
        if self._closing is not None:
            raise ClientClosedError("the client was closed", fix="make a new one")
        if self._starting is None:
            self._starting = asyncio.ensure_future(self._start())
        starting = self._starting
        try:
            await asyncio.shield(starting)
        except ClientError:
            if self._starting is starting:
                self._starting = None
            raise

    async def run(
        self,
        content: Content,
        *,
        session_id: str,
        timeout_s: float | None = None,
        observer: Observer | None = None,
    ) -> RunResult:
        """Prompt a session and wait until it has come to rest.

        Shape: content is a text or content blocks. The observer sees every notification of the session and its
        children, in wire order, before this returns.
        Units: timeout_s is seconds from now until the rest.
        Raises: RunTimeoutError and ServerDiedError with what came until then; RpcError where the server refuses.
        """
        await self.start()
        subscription = self.subscribe(lambda told: self._tree.belongs(session_id, told.method, told.params))
        collector: RunCollector | None = None
        deadline = None if timeout_s is None else asyncio.get_running_loop().time() + timeout_s
        try:
            async with asyncio.timeout_at(deadline):
                message_id = await self.prompt(content, session_id=session_id)
                collector = RunCollector(session_id, message_id, observer)
                while not collector.take(await subscription.next()):
                    continue
            return collector.result()
        except TimeoutError as error:
            if deadline is None or asyncio.get_running_loop().time() < deadline:
                raise
            partial = (collector or RunCollector(session_id, "", None)).result()
            raise RunTimeoutError(f"the run did not end within {timeout_s:g} s", partial) from error
        except ServerDiedError as error:
            raise ServerDiedError(error.status, error.tail, None if collector is None else collector.result()) from None
        except PeerError as error:
            if isinstance(error, RpcError):
                raise
            raise ProtocolError(error.what) from None
        finally:
            subscription.close()

    async def prompt(self, content: Content, *, session_id: str) -> str:
        """Queue a prompt and give its receipt: the id of the message, which is in the durable inbox by then."""
        blocks: Json = [{"type": "text", "text": content}] if isinstance(content, str) else [*content]
        answer = await self.request("session/prompt", {"sessionId": session_id, "contentBlocks": blocks})
        receipt = answer.get("messageId")
        if not isinstance(receipt, str) or not receipt:
            raise ProtocolError("a receipt without a messageId")
        return receipt

    async def cancel(self, session_id: str, message_id: str | None = None) -> str:
        """Stop a message, or with none everything of a session; gives `turn`, `queued` or `none`."""
        params: JsonObject = {"sessionId": session_id}
        if message_id is not None:
            params = {**params, "messageId": message_id}
        return str((await self.request("session/cancel", params)).get("cancelled"))

    async def resume(self, session_id: str) -> None:
        """Open a stored session without a prompt."""
        await self.request("session/resume", {"sessionId": session_id})

    async def request(
        self, method: str, params: JsonObject | None = None, *, timeout_s: float | None = None
    ) -> JsonObject:
        """Any request of the wire.

        Raises: RpcError, RequestTimeoutError, ServerDiedError at once when the server is gone, ProtocolError for a
        result that is no object.
        """
        await self.start()
        return await self._request(method, params, timeout_s or self.launch.request_timeout_s)

    def subscribe(self, accepts: Filter) -> Subscription:
        """Hear what a filter lets through, from now on; after the server's end the subscription is born failed."""
        subscription = Subscription(self, accepts)
        process = self._process
        if self._closing is not None:
            subscription.fail(ClientClosedError("the client was closed"))
        elif self._peer is not None and self._peer.end is not None and process is not None:
            subscription.fail(ServerDiedError(process.exit_code, process.tail.text()))
        else:
            self._subscriptions.append(subscription)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """Hear nothing more for it."""
        if subscription in self._subscriptions:
            self._subscriptions.remove(subscription)

    async def close(self) -> None:
        """End the server, kindly first; returns once its process is really gone. Callers share one end.

        Raises: StillRunningError.
        """
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    async def _start(self) -> None:
        launch = self.launch
        self._process = process = await start_process(launch.command, self._folder, launch.environment)
        self._tree = SessionTree()
        self._peer = peer = Peer(
            process.source, process.sink, ids=lambda: f"req_{next(self._ids)}", report=_quiet, hear_all=self._hear
        )
        peer.start()
        self._watching = asyncio.ensure_future(self._watch(process, peer))
        params: dict[str, Json] = {"cwd": self._folder, "provider": launch.provider, "model": launch.model}
        if launch.max_tokens is not None:
            params["maxTokens"] = launch.max_tokens
        if launch.reasoning_effort is not None:
            params["reasoningEffort"] = launch.reasoning_effort
        try:
            hello = await self._request("initialize", params, launch.request_timeout_s)
            server = hello.get("serverInfo")
            if not isinstance(server, Mapping) or not isinstance(server.get("name"), str):
                raise ProtocolError("a handshake without serverInfo")
        except (ClientError, PeerError) as error:
            await self._end(process, peer)
            raise StartError(f"the handshake failed: {error.what}") from error

    async def _request(self, method: str, params: JsonObject | None, timeout_s: float) -> JsonObject:
        peer, process = self._peer, self._process
        if peer is None or process is None:
            raise ClientClosedError("the client was closed")
        try:
            result = await peer.request(method, params, timeout_s=timeout_s)
        except CallTimeoutError as error:
            raise RequestTimeoutError(f"{error.what}; it stays running on the server") from None
        except ConnectionEndedError:
            if self._closing is not None:
                raise ClientClosedError("the client was closed") from None
            await process.settled()
            raise ServerDiedError(process.exit_code, process.tail.text()) from None
        if not isinstance(result, Mapping):
            raise ProtocolError(f"the result of {method} is no object")
        return result

    def _hear(self, method: str, params: JsonObject) -> None:
        self._tree.learn(method, params)
        told = Told(method, params)
        subscriptions = tuple(self._subscriptions)
        for subscription in subscriptions:
            subscription.offer(told)
        if not subscriptions:
            self.unmatched += 1

    async def _watch(self, process: ServerProcess, peer: Peer) -> None:
        """Tell the subscribers when the server is gone, after everything it said."""
        await peer.ended.wait()
        await process.settled()
        subscriptions, self._subscriptions = self._subscriptions, []
        for subscription in subscriptions:
            subscription.fail(
                ClientClosedError("the client was closed")
                if self._closing is not None
                else ServerDiedError(process.exit_code, process.tail.text())
            )

    async def _close(self) -> None:
        if self._starting is not None:
            await asyncio.wait({self._starting})
        if self._process is not None and self._peer is not None:
            await self._end(self._process, self._peer)

    async def _end(self, process: ServerProcess, peer: Peer) -> None:
        async def ask() -> None:
            try:
                await peer.request("shutdown", timeout_s=self.launch.grace.shutdown_s)
            except PeerError:
                return  # a server that does not answer is ended less kindly

        self._process = self._peer = None
        try:
            await process.end(ask, self.launch.grace)
        finally:
            peer.close()
            if self._watching is not None:
                await asyncio.wait({self._watching}, timeout=1)


def _quiet(line: str) -> None:
    """What a server does wrong is no business of whoever embeds it."""


_SECRETS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL")


def clean_environment(environ: Mapping[str, str], overrides: Mapping[str, str] | None = None) -> dict[str, str]:
    """An environment without the settings of other harnesses and without credentials, but with what is given."""
    kept = {
        name: value
        for name, value in environ.items()
        if not name.startswith("DSH_") and not any(word in name.upper() for word in _SECRETS)
    }
    return {**kept, **(overrides or {})}
