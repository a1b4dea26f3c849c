"""One client connection of the loopback server: requests read one after the other, each answered before the next.

Room: asyncio and sockets; only the server comes in.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Literal, TypeAlias, cast

from mock_provider.delivery import Delivery, deliver_whole
from mock_provider.exchange import Exchange
from mock_provider.faults import Head
from mock_provider.framing import Framing, spell_head
from mock_provider.http_head import HEAD_END, ChunkedBody, FramingError
from mock_provider.known_heads import Asking, KnownHeads
from mock_provider.mock import Mock
from mock_provider.outlet import Outlet

State: TypeAlias = Literal["head", "body", "chunks", "answering", "leaving"]
MAX_WAITING_BYTES = 64 << 10  # of later requests, while an answer is under way; then reading pauses
MAX_FRAME_BYTES = 4096  # of a request that is remembered to the byte, one for each connection
LINGER_TURNS = 2  # of the server's clock: a client told to go may still read why


class Connection(asyncio.Protocol):
    """One request at a time, answers in order.

    Shape: patience counts the turns of the server's clock since something last arrived, or since the request began.
    """

    __slots__ = (
        "_asking",
        "_buffer",
        "_chunks",
        "_connections",
        "_frame",
        "_framed",
        "_is_welcome",
        "_known",
        "_limit_bytes",
        "_mark",
        "_mock",
        "_outlet",
        "_parts",
        "_searched",
        "_state",
        "_task",
        "_transport",
        "_wanted",
        "patience",
    )

    def __init__(
        self, mock: Mock, known: KnownHeads, connections: dict[Connection, None], *, is_welcome: bool = True
    ) -> None:
        self._mock = mock
        self._limit_bytes = mock.limits.body_bytes
        self._known = known
        self._connections = connections
        self._transport: asyncio.Transport | None = None
        self._outlet: Outlet | None = None
        self._is_welcome = is_welcome
        self._state: State = "head"
        self._buffer = b""
        self._searched = 0
        self._asking: Asking | None = None
        self._frame = b""  # the last request, if it is remembered, and what it was read as
        self._framed: tuple[Asking, bytes] | None = None
        self._mark = 0  # tells the last request from others
        self._parts: list[bytes] = []
        self._wanted = 0
        self._chunks: ChunkedBody | None = None
        self._task: asyncio.Task[None] | None = None
        self.patience = 0

    @property
    def is_idle(self) -> bool:
        """Whether no request is under way, not even the beginning of one."""
        return self._state == "head" and not self._buffer

    @property
    def is_receiving(self) -> bool:
        """Whether a request has begun to arrive and is not complete."""
        return self._state in ("body", "chunks") or (self._state == "head" and bool(self._buffer))

    @property
    def is_leaving(self) -> bool:
        """Whether it was told to go."""
        return self._state == "leaving"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        stream = cast("asyncio.Transport", transport)  # faster loops have transports of their own descent
        self._transport = stream
        self._outlet = Outlet(stream)
        self._connections[self] = None
        if not self._is_welcome:
            self.turn_away(503)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._connections.pop(self, None)
        self._transport = None
        if self._outlet is not None:
            self._outlet.lost()
        if self._task is not None:
            self._task.cancel()

    def pause_writing(self) -> None:
        if self._outlet is not None:
            self._outlet.pause()

    def resume_writing(self) -> None:
        if self._outlet is not None:
            self._outlet.resume()

    def data_received(self, data: bytes) -> None:
        if self._state == "head" and not self._buffer:
            self.patience = 0
            rest = self._whole(data)
            if rest:
                self._take(rest)
        elif self._state == "answering":
            self._buffer += data
            if self._transport is not None and len(self._buffer) > MAX_WAITING_BYTES:
                self._transport.pause_reading()
        elif self._state != "leaving":
            self._take(data)

    def shut(self) -> None:
        """Close from the server's side, at once."""
        self._connections.pop(self, None)
        self._state = "leaving"
        if self._transport is not None:
            self._transport.abort()

    def hurry(self) -> None:
        """The request took too long to arrive: refuse it, in the provider's form once it is known who asks."""
        if self._asking is None or self._state == "head":
            self.turn_away(408)
        else:
            self._refuse(self._mock.too_slow(self._asking.caller))

    def turn_away(self, status: int) -> None:
        """Say why and close; what the client still sends is not read."""
        if self._transport is None or self._state in ("answering", "leaving"):
            return
        text = f"{status} {HTTPStatus(status).phrase}\n".encode("ascii")
        head = Head(status, (("content-type", "text/plain; charset=utf-8"), ("x-mock-provider", "scripted")), len(text))
        if self._outlet is not None:
            self._outlet.write(spell_head(head, Framing(is_last=True)) + text)
        self._leave()

    def _leave(self) -> None:
        """Stop writing, and let the client read what was written: closing at once would take it away again."""
        self._state = "leaving"
        self._buffer = b""
        self._parts = []
        self._chunks = None
        self.patience = 0
        if self._transport is not None and self._transport.can_write_eof() and not self._transport.is_closing():
            self._transport.write_eof()

    # Reading

    def _whole(self, data: bytes) -> bytes:
        """Answer a request that came in one piece and whose head is known: the usual one. Shape: what is left to do."""
        if data == self._frame and self._framed is not None:
            self._asking, body = self._framed
            return self._answer(body, b"") or b""
        end = data.find(HEAD_END) + len(HEAD_END)
        known = self._known.find(data[:end])
        if known is None:
            return data
        asking, length = known
        size = end + length
        rest = len(data) - size
        if rest < 0 or asking.is_chunked or length > self._limit_bytes:
            return data
        self._asking = asking
        if rest:
            return self._answer(data[end:size], data[size:]) or b""
        body = data[end:]
        left = self._answer(body, b"") or b""
        if size <= MAX_FRAME_BYTES:
            self._remember(data, asking, body)
        return left

    def _remember(self, data: bytes, asking: Asking, body: bytes) -> None:
        """Remember the last request to the byte once it came twice, and only if the engine does: no secret is in it."""
        mark = hash(data)
        if mark != self._mark:
            self._mark = mark
        elif self._mock.knows(asking.caller, body):
            self._frame, self._framed = data, (asking, body)

    def _take(self, data: bytes) -> None:
        """Take bytes, answer every request they complete."""
        rest: bytes | None = data
        try:
            while rest and self._state in ("head", "body", "chunks"):
                rest = self._step(rest)
            if rest and self._state == "answering":
                self._buffer = rest
        except FramingError as error:
            self.turn_away(error.status)

    def _step(self, data: bytes) -> bytes | None:
        """Take the next part of a request. Shape: what belongs to later parts; None when more has to come."""
        if self._state == "head":
            return self._take_head(data)
        if self._state == "body":
            size = len(data)
            if size < self._wanted:
                self._parts.append(data)
                self._wanted -= size
                return None
            cut = self._wanted
            body, rest = (data, b"") if size == cut else (data[:cut], data[cut:])
            if self._parts:
                self._parts.append(body)
                body = b"".join(self._parts)
                self._parts = []
            return self._answer(body, rest)
        chunks, asking = self._chunks, self._asking
        if chunks is None or asking is None:
            raise FramingError(400)
        following = chunks.feed(data)
        if chunks.is_too_large:
            self._refuse_size(asking, chunks.size_bytes)
            return None
        if following is None:
            return None
        self._chunks = None
        return self._answer(chunks.content(), following)

    def _take_head(self, data: bytes) -> bytes | None:
        if self._buffer:
            data = self._buffer + data
            self._buffer = b""
        if data.startswith((b"\r", b"\n")):  # a line end too many after the last body
            data = data.lstrip(b"\r\n")
            self._searched = 0
        end = data.find(HEAD_END, self._searched)
        limit = self._mock.limits.header_bytes
        if end < 0:
            if len(data) > limit:
                raise FramingError(431)
            if data and (not data[:1].isalpha() or b"\n\n" in data[max(self._searched - 1, 0) :]):
                raise FramingError(400)
            self._searched = max(len(data) - len(HEAD_END) + 1, 0)
            self._buffer = data
            return None
        self._searched = 0
        end += len(HEAD_END)
        if end > limit:
            raise FramingError(431)
        asking, length = self._known.read(data[:end])
        self._asking = asking
        if length > self._limit_bytes:
            self._refuse_size(asking, length)
            return None
        rest = data[end:]
        if not length and not asking.is_chunked:
            return self._answer(b"", rest)
        if asking.expects_go_on and not rest and self._outlet is not None:
            self._outlet.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if asking.is_chunked:
            self._state, self._chunks = "chunks", ChunkedBody(self._limit_bytes)
        else:
            self._state, self._wanted = "body", length
        return rest or None

    # Answering

    def _refuse_size(self, asking: Asking, size_bytes: int) -> None:
        self._refuse(self._mock.too_large(asking.caller, size_bytes))

    def _refuse(self, exchange: Exchange) -> None:
        """Say why and go, in the middle of a request."""
        if self._asking is not None and self._outlet is not None:
            deliver_whole(exchange, self._asking.framing._replace(is_last=True), self._outlet)
        self._leave()

    def _answer(self, body: bytes, rest: bytes) -> bytes | None:
        """Answer a request. Shape: as _step, whose last word this is."""
        asking = self._asking
        if asking is None or self._transport is None:
            return None
        self._state = "head"
        self.patience = 0
        framing, outlet = asking.framing, self._outlet
        if framing.has_body and outlet is not None:
            answer = self._mock.answer_at_once(asking.caller, body, framing)
            if isinstance(answer, bytes):
                outlet.write(answer)
                if framing.is_last:
                    self._state = "leaving"
                    outlet.close()
                return rest
        else:
            answer = self._mock.answer(asking.caller, body)
        delivery = self._deliver(answer, framing)
        if delivery is None:
            return rest
        self._state = "answering"
        self._task = asyncio.get_running_loop().create_task(self._finish(delivery))
        return rest

    def _deliver(self, exchange: Exchange, framing: Framing) -> Delivery | None:
        """Begin an answer. Shape: None when that was all of it."""
        if self._outlet is None:
            exchange.gone()
            return None
        if not deliver_whole(exchange, framing, self._outlet):
            delivery = Delivery(exchange, framing, self._outlet, self._mock)
            if not delivery.start():
                return delivery
        if framing.is_last:
            self._state = "leaving"
            self._outlet.close()
        return None

    async def _finish(self, delivery: Delivery) -> None:
        try:
            await delivery.finish()
        finally:
            self._task = None
        if self._transport is None:
            return
        if delivery.ends_connection:
            self._state = "leaving"
            if self._outlet is not None:
                self._outlet.close()
            return
        self._state = "head"
        waiting, self._buffer = self._buffer, b""
        self._transport.resume_reading()
        if waiting:
            self._take(waiting)
