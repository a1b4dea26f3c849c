"""The server of a recording: takes requests over loopback, passes them on, and streams the answers through.

Room: asyncio and sockets; the recording comes in. Every piece goes out as it comes in, in a write of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import AsyncIterator
from http import HTTPStatus
from types import TracebackType

import httpx

from mock_provider.errors import UsageError
from mock_provider.http_head import HEAD_END, ChunkedBody, FramingError, RequestHead, cut_with_h11, read_head
from mock_provider.limits import Limits
from mock_provider.listening import listen, root_of
from mock_provider.recording.forwarding import Begun, Forwarder

READ_BYTES = 64 << 10


class Proxy:
    """One server. Shape: `async with Proxy(forwarder).serving(host, port) as root` gives its address."""

    def __init__(self, forwarder: Forwarder, limits: Limits | None = None) -> None:
        self._forwarder = forwarder
        self._limits = limits or Limits()
        self._tasks: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def serving(self, host: str, port: int) -> AsyncIterator[str]:
        """Serve while this is open; answers that are under way at its end are cut. Raises: UsageError."""
        listener = listen(host, port)
        root = root_of(listener)
        server = await asyncio.start_server(self._connected, sock=listener, limit=self._limits.header_bytes)
        try:
            yield root
        finally:
            server.close()
            for task in tuple(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await self._forwarder.aclose()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
        try:
            while await self._one(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the client is gone, or sent more head than anybody needs: there is nobody to tell
        except asyncio.CancelledError:
            pass  # only serving cancels, at its end; a task of asyncio's streams that ends so is called a failure
        finally:
            if task is not None:
                self._tasks.discard(task)
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Serve one request. Shape: whether another may follow on this connection."""
        try:
            block = await reader.readuntil(HEAD_END)
            head = read_head(block, cut_with_h11)
            body = await self._body(reader, writer, head)
        except FramingError as error:
            _write_error(writer, error.status, HTTPStatus(error.status).phrase)
            return False
        try:
            begun = await self._forwarder.send(head.method, head.target, head.headers, body)
        except httpx.InvalidURL:
            _write_error(writer, 400, "this is no address that could be passed on")
            return False
        except httpx.HTTPError as error:
            _write_error(writer, 502, f"the provider cannot be reached: {type(error).__name__}")
            return False
        return await _pass_on(begun, writer, head)

    async def _body(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: RequestHead) -> bytes:
        limit = self._limits.body_bytes
        if head.expects_go_on:
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if head.length_bytes is not None:
            if head.length_bytes > limit:
                raise FramingError(413)
            return await reader.readexactly(head.length_bytes)
        chunks = ChunkedBody(limit)
        while True:
            data = await reader.read(READ_BYTES)
            if not data:
                raise FramingError(400)
            rest = chunks.feed(data)
            if chunks.is_too_large:
                raise FramingError(413)
            if rest is not None:
                reader.feed_data(rest)  # the beginning of the next request
                return chunks.content()


class ProxyThread:
    """The same server in a thread of its own. Shape: a context manager that gives its address."""

    def __init__(self, forwarder: Forwarder, host: str, port: int) -> None:
        self._proxy = Proxy(forwarder)
        self._host = host
        self._port = port
        self._ready = threading.Event()
        self._root = ""
        self._failure: UsageError | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, name="mock-provider record", daemon=True)

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        try:
            async with self._proxy.serving(self._host, self._port) as self._root:
                self._ready.set()
                await self._stop.wait()
        except UsageError as error:
            self._failure = error
        finally:
            self._ready.set()

    def __enter__(self) -> str:
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            self._thread.join()
            raise self._failure
        return self._root

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._loop is not None and self._stop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()


def _write_error(writer: asyncio.StreamWriter, status: int, message: str) -> None:
    body = json.dumps({"error": {"message": f"mock-provider record: {message}", "type": "recorder_error"}}).encode()
    head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: application/json\r\n"
    writer.write(f"{head}content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode("ascii") + body)


async def _pass_on(begun: Begun, writer: asyncio.StreamWriter, head: RequestHead) -> bool:
    """Send an answer on as it comes. Shape: whether the connection can be used again."""
    has_body = head.method != "HEAD" and begun.status not in (204, 304)
    is_chunked = has_body and begun.length is None and head.is_modern
    is_last = head.is_last or (has_body and begun.length is None and not head.is_modern)
    lines = [f"HTTP/1.1 {begun.status} {begun.reason}", *(f"{name}: {value}" for name, value in begun.headers)]
    if begun.length is not None:
        lines.append(f"content-length: {begun.length}")
    elif is_chunked:
        lines.append("transfer-encoding: chunked")
    if is_last:
        lines.append("connection: close")
    writer.write("\r\n".join([*lines, "", ""]).encode("latin-1", "replace"))
    pieces = begun.pieces
    try:
        async for piece in pieces:
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece) if is_chunked else piece)
            await writer.drain()
    except httpx.HTTPError:
        writer.transport.abort()  # the provider broke off: so does the answer, without a proper end
        return False
    finally:
        if hasattr(pieces, "aclose"):
            await pieces.aclose()
    if is_chunked:
        writer.write(b"0\r\n\r\n")
    await writer.drain()
    return not is_last
