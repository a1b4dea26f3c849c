"""A load generator over raw sockets, so that the client is not what is measured."""

from __future__ import annotations

import asyncio
import importlib.util
import re
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TypeVar, cast

from benchmarks.mock_provider.bodies import COUNTER, PATH

Result = TypeVar("Result")
NUMBERS = iter(range(1, 1 << 40))  # those of requests that differ; used once in a run
_MARK = COUNTER.encode()
_HEAD_END = b"\r\n\r\n"
_LAST_CHUNK = b"\r\n0\r\n\r\n"
_LENGTH = re.compile(rb"\r\ncontent-length: ([0-9]+)", re.IGNORECASE)


def run(main: Coroutine[object, object, Result]) -> Result:
    """Run in the fastest loop there is."""
    factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    if importlib.util.find_spec("uvloop"):
        import uvloop

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(main)


def spell(port: int, body: bytes, key: str = "sk-mock") -> bytes:
    """A whole request."""
    lines = (
        f"POST {PATH} HTTP/1.1",
        f"host: 127.0.0.1:{port}",
        "content-type: application/json",
        f"authorization: Bearer {key}",
        "accept: application/json",
        "user-agent: load/1",
        f"content-length: {len(body)}",
    )
    return "\r\n".join((*lines, "", "")).encode() + body


class Asker(asyncio.Protocol):
    """Asks again as soon as it is answered. Units: first_byte_s is the time to the first byte of a body."""

    def __init__(self, request: bytes, count: int, done: asyncio.Future[None], *, is_varied: bool) -> None:
        self._parts = request.split(_MARK)
        self._left = count
        self._done = done
        self._is_varied = is_varied
        self._head = b""
        self._wanted = 0  # bytes of the body that are still to come; -1: up to the end of chunks
        self._tail = b""
        self._is_reading = False
        self._sent_at = 0.0
        self.first_byte_s: list[float] = []
        self.reads = 0
        self.size_bytes = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # faster loops have transports of their own descent
        self._ask()

    def _ask(self) -> None:
        number = next(NUMBERS) if self._is_varied else 0
        self._sent_at = time.perf_counter()
        self._transport.write((b"%08d" % number).join(self._parts))

    def data_received(self, data: bytes) -> None:
        self.reads += 1
        self.size_bytes += len(data)
        if not self._is_reading:
            data = self._head + data
            end = data.find(_HEAD_END) + len(_HEAD_END)
            if end < len(_HEAD_END):
                self._head = data
                return
            self._read_head(data[:end])
            data = data[end:]
            if not data and self._wanted:
                return
            self.first_byte_s.append(time.perf_counter() - self._sent_at)
        if self._wanted >= 0:
            self._wanted -= len(data)
            if self._wanted:
                return
        else:
            self._tail = (self._tail + data)[-len(_LAST_CHUNK) :]
            if self._tail != _LAST_CHUNK:
                return
        self._is_reading = False
        self._left -= 1
        if self._left:
            self._ask()
        else:
            self._transport.close()
            self._done.set_result(None)

    def _read_head(self, head: bytes) -> None:
        assert head.startswith(b"HTTP/1.1 200"), head
        self._head, self._tail = b"", b""
        self._is_reading = True
        length = _LENGTH.search(head)
        self._wanted = int(length.group(1)) if length else -1

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._done.done():
            self._done.set_exception(exc or ConnectionError("closed"))


async def ask(
    port: int, body: bytes, *, connections: int, total: int, is_varied: bool = True
) -> tuple[float, list[Asker]]:
    """Send so many requests over so many connections. Shape: seconds of wall time, and the askers."""
    loop = asyncio.get_running_loop()
    askers: list[Asker] = []
    ends: list[asyncio.Future[None]] = []
    started = time.perf_counter()
    for _ in range(connections):
        end: asyncio.Future[None] = loop.create_future()
        make = partial(Asker, spell(port, body), total // connections, end, is_varied=is_varied)
        _, asker = await loop.create_connection(make, "127.0.0.1", port)
        ends.append(end)
        askers.append(asker)
    await asyncio.gather(*ends)
    return time.perf_counter() - started, askers
