"""One end of a JSON-RPC connection: it answers requests, asks its own, and knows which error answers what.

Room: the stdio surfaces and the clients come in. The only room that gives error codes; malformed lines never reach it
and are never answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from harness.errors import PeerError, UsageError
from harness.model.messages import Json, JsonObject
from harness.wire.ndjson import MAX_LINE_BYTES, DroppedLine, NdjsonDecoder, encode_frame
from harness.wire.rpc_frames import (
    Notification,
    Request,
    Response,
    RpcId,
    classify,
    error_frame,
    notification_frame,
    request_frame,
    result_frame,
)

METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
UNKNOWN_CODE = 0  # the peer gave none, or something that is no number

Handler = Callable[[JsonObject], Awaitable[JsonObject]]
Told = Callable[[JsonObject], None]


class RpcError(PeerError):
    """A request that was answered with an error, or has to be.

    Shape: rpc_code is the number on the wire; data is what the peer sent along, unread.
    """

    code = "RPC_ERROR"

    def __init__(self, rpc_code: int, message: str, data: Json = None) -> None:
        super().__init__(message)
        self.rpc_code = rpc_code
        self.data = data


class CallTimeoutError(PeerError):
    """No answer came in time; the peer may still be at work on it."""

    code = "CALL_TIMEOUT"


class ConnectionEndedError(PeerError):
    """The connection ended before the answer came."""

    code = "CONNECTION_ENDED"


class Source(Protocol):
    """Where bytes come from."""

    def start(self, take: Callable[[bytes], None], ended: Callable[[str | None], None]) -> None:
        """Begin to read."""
        ...

    def close(self) -> None:
        """Stop reading."""
        ...


class Sink(Protocol):
    """Where bytes go."""

    on_failure: Callable[[str], None]

    def put(self, data: bytes) -> None:
        """Queue bytes."""
        ...

    async def room(self) -> None:
        """Wait for a slow reader."""
        ...

    async def flush(self) -> None:
        """Wait until everything is written."""
        ...

    def close(self) -> None:
        """Take nothing more."""
        ...


def rpc_error_of(error: Exception) -> RpcError:
    """What answers a request whose handler raised: wrong params for a usage error, else an internal error."""
    if isinstance(error, RpcError):
        return error
    if isinstance(error, UsageError):
        return RpcError(INVALID_PARAMS, f"{error.where}: {error.what}" if error.where else error.what)
    return RpcError(INTERNAL_ERROR, str(error) or type(error).__name__)


class Peer:
    """Frames in, frames out.

    Shape: handlers answer requests by method with an object; told hear notifications by method, in arrival order, and
    everything in `hear_all`. Requests run side by side, begun in the order they came, answered in the order they end.
    close() detaches from source and sink and fails what is pending; after it nothing is written any more.
    Raises: nothing from a peer's mistakes; report gets a line for each that a person may want to know.
    """

    def __init__(
        self,
        source: Source,
        sink: Sink,
        *,
        ids: Callable[[], str],
        report: Callable[[str], None],
        handlers: Mapping[str, Handler] | None = None,
        told: Mapping[str, Told] | None = None,
        hear_all: Callable[[str, JsonObject], None] | None = None,
        error_of: Callable[[Exception], RpcError] = rpc_error_of,
        max_line_bytes: int = MAX_LINE_BYTES,
    ) -> None:
        self._source = source
        self._sink = sink
        self._ids = ids
        self._report = report
        self._handlers = dict(handlers or {})
        self._told = dict(told or {})
        self._hear_all = hear_all
        self._error_of = error_of
        self._decoder = NdjsonDecoder(max_line_bytes)
        self._pending: dict[RpcId, asyncio.Future[Json]] = {}
        self._running: dict[asyncio.Task[None], RpcId] = {}
        self._started = False
        self._end: str | None = None
        self._is_input_broken = False
        self.ended = asyncio.Event()

    @property
    def pending_calls(self) -> int:
        """How many own requests wait for an answer."""
        return len(self._pending)

    @property
    def end(self) -> str | None:
        """Why the connection ended; None while it stands."""
        return self._end

    @property
    def is_input_broken(self) -> bool:
        """Whether the input ended because it could not be read."""
        return self._is_input_broken

    @property
    def request_id(self) -> RpcId | None:
        """The id of the request that the running handler answers; None outside of handlers."""
        task = asyncio.current_task()
        return None if task is None else self._running.get(task)

    def start(self) -> None:
        """Begin to read; a second call does nothing."""
        if self._started or self._end is not None:
            return
        self._started = True
        self._sink.on_failure = self._ended_by
        self._source.start(self._take, self._input_ended)

    async def request(
        self,
        method: str,
        params: JsonObject | None = None,
        *,
        timeout_s: float | None = None,
        withdrawal: str | None = None,
    ) -> Json:
        """Ask the peer and give its result.

        Shape: withdrawal is the notification that names a question whose asker was cancelled before the answer came.
        Units: timeout_s is seconds until the answer is no longer waited for; the peer is not told.
        Raises: RpcError when it answers with an error, CallTimeoutError, ConnectionEndedError.
        """
        if self._end is not None:
            raise ConnectionEndedError(self._end)
        identity = self._ids()
        answer: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._pending[identity] = answer
        try:
            try:
                self._sink.put(encode_frame(request_frame(identity, method, params)))
            except PeerError as error:
                raise ConnectionEndedError(error.what) from None
            if not (await asyncio.wait({answer}, timeout=timeout_s))[0]:
                raise CallTimeoutError(f"{method} was not answered within {timeout_s:g} s")
            return answer.result()
        except asyncio.CancelledError:
            if withdrawal is not None and not answer.done():
                self.notify(withdrawal, {"requestId": identity})
            raise
        finally:
            self._pending.pop(identity, None)
            if answer.done() and not answer.cancelled():
                answer.exception()  # a failure that came while this call was being cancelled is nobody's any more

    def notify(self, method: str, params: JsonObject) -> None:
        """Queue a notification; nothing after the end."""
        self._send(notification_frame(method, params))

    async def room(self) -> None:
        """Wait while the peer reads slower than it is told things; returns at the end."""
        try:
            await self._sink.room()
        except PeerError:
            return

    async def flush(self) -> None:
        """Wait until everything sent before was taken by the stream.

        Raises: PeerError when it was not.
        """
        await self._sink.flush()

    async def settle(self) -> None:
        """Wait until no request of the peer is being answered any more."""
        while self._running:
            await asyncio.wait(set(self._running))

    def close(self) -> None:
        """Detach; may come before start and twice."""
        self._source.close()
        self._ended_by("transport closed")
        self._sink.close()

    def _input_ended(self, problem: str | None) -> None:
        if problem is not None:
            self._is_input_broken = True
            self._report(f"the input cannot be read: {problem}")
        self._ended_by(problem or "the other end closed the connection")

    def _ended_by(self, why: str) -> None:
        if self._end is not None:
            return
        self._end = why
        pending, self._pending = self._pending, {}
        for answer in pending.values():
            if not answer.done():
                answer.set_exception(ConnectionEndedError(why))
        self.ended.set()

    def _take(self, data: bytes) -> None:
        for frame in self._decoder.feed(data):
            if isinstance(frame, DroppedLine):
                self._report(f"a line of more than {frame.limit_bytes} bytes was dropped")
                continue
            match classify(frame):
                case Request() as request:
                    self._accept(request)
                case Notification() as notification:  # behind the first step of every request that came before it
                    asyncio.get_running_loop().call_soon(self._hear, notification)
                case Response() as response:
                    self._resolve(response)

    def _accept(self, request: Request) -> None:
        task = asyncio.get_running_loop().create_task(self._answer(request))
        self._running[task] = request.id
        task.add_done_callback(self._running.pop)

    async def _answer(self, request: Request) -> None:
        handler = self._handlers.get(request.method)
        if handler is None:
            self._send(error_frame(request.id, METHOD_NOT_FOUND, f"method not found: {request.method}"))
            return
        try:
            data = encode_frame(result_frame(request.id, await handler(request.params)))
        except Exception as error:  # noqa: BLE001 - whatever a handler raises answers its request and nothing else
            answer = self._error_of(error)
            data = encode_frame(error_frame(request.id, answer.rpc_code, answer.what))
        self._put(data)

    def _hear(self, notification: Notification) -> None:
        told = self._told.get(notification.method)
        try:
            if told is not None:
                told(notification.params)
            if self._hear_all is not None:
                self._hear_all(notification.method, notification.params)
        except Exception as error:  # noqa: BLE001 - a notification has no answer; the connection goes on
            self._report(f"{notification.method} could not be taken in: {error}")

    def _resolve(self, response: Response) -> None:
        answer = self._pending.pop(response.id, None)
        if answer is None or answer.done():
            return
        if response.error is None:
            answer.set_result(response.result)
            return
        code, message = response.error.get("code"), response.error.get("message")
        answer.set_exception(
            RpcError(
                code if isinstance(code, int) and not isinstance(code, bool) else UNKNOWN_CODE,
                message if isinstance(message, str) and message else "the peer answered with an error",
                response.error.get("data"),
            )
        )

    def _send(self, frame: JsonObject) -> None:
        self._put(encode_frame(frame))

    def _put(self, data: bytes) -> None:
        if self._end == "transport closed":
            return
        try:
            self._sink.put(data)
        except PeerError as error:
            self._ended_by(error.what)
