"""One client connection of the loopback server: requests read, answers written, broken on purpose where scripted.

Room: asyncio and sockets; only the server comes in.
Reading is h11's; writing is ours, because resets, cuts and bad framing cannot be said through a server library.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from http import HTTPStatus

import h11

from mock_provider.faults import GARBAGE, Delay, Die, Head, Send, Wait
from mock_provider.incoming import MAX_BODY_BYTES, Incoming
from mock_provider.mock import Exchange, Mock

MAX_HEADER_BYTES = 64 << 10
FAST_BYTES = 256 << 10  # up to here an answer without waiting is written at once, without a task
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER with time 0: closing sends RST instead of FIN


class Connection(asyncio.Protocol):
    """One request at a time, answers in order."""

    def __init__(self, mock: Mock, connections: set[Connection]) -> None:
        self._mock = mock
        self._connections = connections
        self._transport: asyncio.Transport | None = None
        self._parser = _new_parser()
        self._request: h11.Request | None = None
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._task: asyncio.Task[None] | None = None
        self._drained = asyncio.Event()
        self._drained.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if not isinstance(transport, asyncio.Transport):
            raise TypeError("a stream transport is needed")
        transport.set_write_buffer_limits(high=0)
        self._transport = transport
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._connections.discard(self)
        self._transport = None
        self._drained.set()
        if self._task is not None:
            self._task.cancel()

    def pause_writing(self) -> None:
        self._drained.clear()

    def resume_writing(self) -> None:
        self._drained.set()

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.receive_data(data)
        except h11.RemoteProtocolError as error:
            self._refuse_framing(error)
            return
        if self._task is None:
            self._read()
        elif self._transport is not None and len(self._parser.trailing_data[0]) > MAX_HEADER_BYTES:
            self._transport.pause_reading()

    def shut(self) -> None:
        """Close from the server's side."""
        if self._transport is not None:
            self._transport.abort()

    # Reading

    def _read(self) -> None:
        try:
            while self._transport is not None and self._task is None:
                event = self._parser.next_event()
                if event is h11.NEED_DATA or event is h11.PAUSED:
                    return
                if isinstance(event, h11.Request):
                    self._request = event
                    if self._parser.they_are_waiting_for_100_continue:
                        self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                elif isinstance(event, h11.Data):
                    self._body_bytes += len(event.data)
                    if self._body_bytes > MAX_BODY_BYTES:
                        self._too_large()
                        return
                    self._body.append(bytes(event.data))
                elif isinstance(event, h11.EndOfMessage):
                    self._answer()
                else:
                    return
        except h11.RemoteProtocolError as error:
            self._refuse_framing(error)

    def _refuse_framing(self, error: h11.RemoteProtocolError) -> None:
        """The bytes are not HTTP: say so once, plainly, and close."""
        if self._transport is None or self._task is not None:
            return
        status = error.error_status_hint
        text = f"{status} {HTTPStatus(status).phrase}: {error}\n".encode("utf-8", "replace")
        head = Head(status, (("content-type", "text/plain; charset=utf-8"), ("x-mock-provider", "scripted")), len(text))
        self._transport.write(_spell_head(head, is_last=True) + text)
        self._transport.close()

    def _too_large(self) -> None:
        request = self._request
        target = request.target.decode("ascii", "replace") if request else "/"
        exchange = self._mock.too_large(target, self._body_bytes)
        self._write_now(exchange, is_last=True, wants_body=True, is_chunked_known=True)
        if self._transport is not None:
            self._transport.close()

    def _answer(self) -> None:
        request = self._request
        if request is None or self._transport is None:
            return
        headers: dict[str, str] = {}
        for raw_name, raw_value in request.headers:
            name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        method = request.method.decode("ascii")
        incoming = Incoming(method, request.target.decode("ascii", "replace"), headers, b"".join(self._body))
        exchange = self._mock.handle(incoming)
        is_modern = request.http_version >= b"1.1"
        is_last = not is_modern or headers.get("connection", "").lower() == "close"
        self._request, self._body, self._body_bytes = None, [], 0
        if _is_quick(exchange):
            self._write_now(exchange, is_last=is_last, wants_body=method != "HEAD", is_chunked_known=is_modern)
            self._next(is_last=is_last)
            return
        coroutine = self._carry_out(exchange, is_last=is_last, wants_body=method != "HEAD", is_modern=is_modern)
        self._task = asyncio.get_running_loop().create_task(coroutine)

    def _next(self, *, is_last: bool) -> None:
        """Get ready for the next request on this connection, bytes of which may have arrived already."""
        if self._transport is None:
            return
        if is_last:
            self._transport.close()
            return
        waiting, is_closed = self._parser.trailing_data
        self._parser = _new_parser()
        if waiting:
            self._parser.receive_data(waiting)
        if is_closed:
            self._parser.receive_data(b"")
        self._transport.resume_reading()

    # Writing

    def _write_now(self, exchange: Exchange, *, is_last: bool, wants_body: bool, is_chunked_known: bool) -> None:
        """Write an answer that never waits; a whole one in a single write.

        It is noted as complete before its last byte leaves: who has read the answer may look at the journal.
        """
        if self._transport is None:
            exchange.gone()
            return
        if wants_body:
            for action in exchange.plan.actions:
                if isinstance(action, Send):
                    exchange.sent(action.data, is_piece=action.is_piece)
        exchange.finish("complete")
        head: Head | None = None
        held = b""
        for action in exchange.plan.actions:
            if isinstance(action, Head):
                head = action
                held = _spell_head(head, is_last=is_last, is_chunked_known=is_chunked_known)
                if head.length is None:
                    self._transport.write(held)
                    held = b""
            elif isinstance(action, Send) and head is not None and wants_body:
                framed = _frame(action.data, head, is_chunked_known=is_chunked_known)
                self._transport.write(held + framed)
                held = b""
        if head is not None and head.length is None and is_chunked_known and wants_body:
            held += b"0\r\n\r\n"
        if held:
            self._transport.write(held)

    async def _carry_out(self, exchange: Exchange, *, is_last: bool, wants_body: bool, is_modern: bool) -> None:
        try:
            is_whole = await self._play(exchange, is_last=is_last, wants_body=wants_body, is_modern=is_modern)
        except asyncio.CancelledError:
            exchange.gone()
            return
        finally:
            self._task = None
        if is_whole:
            self._next(is_last=is_last)
            self._read()

    async def _play(self, exchange: Exchange, *, is_last: bool, wants_body: bool, is_modern: bool) -> bool:
        """Carry a plan out. Shape: whether the connection can be used again."""
        head: Head | None = None
        last = exchange.plan.actions[-1]
        for action in exchange.plan.actions:
            if isinstance(action, Head):
                head = action
                await self._write(_spell_head(head, is_last=is_last, is_chunked_known=is_modern))
            elif isinstance(action, Send):
                if head is not None and wants_body and self._transport is not None:
                    exchange.sent(action.data, is_piece=action.is_piece)
                    if action is last:
                        exchange.finish("complete")
                    await self._write(_frame(action.data, head, is_chunked_known=is_modern))
            elif isinstance(action, Delay):
                if await self._mock.closing.opened(action.ms / 1000):
                    return self._abort(exchange, "closed")
            elif isinstance(action, Wait):
                if not await self._pass(action, exchange):
                    return False
            elif action.kind == "end" and head is not None:
                exchange.finish("fault end")
                await self._write(b"0\r\n\r\n" if is_modern else b"")
                return True
            else:
                return await self._die(action, exchange)
        exchange.finish("complete")
        if head is not None and head.length is None and is_modern and wants_body:
            await self._write(b"0\r\n\r\n")
        return True

    async def _write(self, data: bytes) -> None:
        """Write, and wait while the client is slower than we are."""
        if self._transport is None:
            raise asyncio.CancelledError
        self._transport.write(data)
        if not self._drained.is_set():
            await self._drained.wait()
        else:
            await asyncio.sleep(0)

    async def _pass(self, action: Wait, exchange: Exchange) -> bool:
        gate = self._mock.gate(action.gate)
        gate.waiting += 1
        gate.arrival.open()
        try:
            opened = await gate.door.opened(self._mock.gate_timeout_s)
        finally:
            gate.waiting -= 1
        if gate.is_abandoned:
            return self._abort(exchange, "closed")
        if opened:
            exchange.passed(gate.name)
            return True
        self._mock.gate_stuck(gate, exchange.entry)
        exchange.finish(f"gate {gate.name} never opened")
        if self._transport is not None:
            self._transport.close()
        return False

    async def _die(self, action: Die, exchange: Exchange) -> bool:
        await self._drained.wait()
        if action.kind == "stall":
            exchange.finish("fault stall")
            await self._mock.closing.opened()
            return self._abort(exchange, "fault stall")
        if action.kind == "reset":
            return self._abort(exchange, "fault reset")
        exchange.finish(f"fault {action.kind}")
        if action.kind == "garbage" and self._transport is not None:
            self._transport.write(GARBAGE)
        if self._transport is not None:
            self._transport.close()
        return False

    def _abort(self, exchange: Exchange, end: str) -> bool:
        exchange.finish(end)
        if self._transport is not None:
            sock = self._transport.get_extra_info("socket")
            if sock is not None:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            self._transport.abort()
        return False


def _new_parser() -> h11.Connection:
    return h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEADER_BYTES)


def _is_quick(exchange: Exchange) -> bool:
    size = 0
    for action in exchange.plan.actions:
        if isinstance(action, Send):
            size += len(action.data)
        elif not isinstance(action, Head):
            return False
    return size <= FAST_BYTES


def _spell_head(head: Head, *, is_last: bool, is_chunked_known: bool = True) -> bytes:
    try:
        phrase = HTTPStatus(head.status).phrase
    except ValueError:
        phrase = ""
    lines = [f"HTTP/1.1 {head.status} {phrase}", *(f"{name}: {value}" for name, value in head.headers)]
    if head.length is not None:
        lines.append(f"content-length: {head.length}")
    elif is_chunked_known:
        lines.append("transfer-encoding: chunked")
    if is_last:
        lines.append("connection: close")
    return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace")


def _frame(data: bytes, head: Head, *, is_chunked_known: bool) -> bytes:
    if head.length is not None or not is_chunked_known:
        return data
    return b"%x\r\n%b\r\n" % (len(data), data) if data else b""
