"""A load generator over raw sockets, so that the client is not what is measured."""

from __future__ import annotations

import asyncio
import importlib.util
import time
from collections.abc import Callable, Coroutine
from typing import TypeVar

from benchmarks.mock_provider.bodies import COUNTER, PATH

Result = TypeVar("Result")
_MARK = COUNTER.encode()


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


class _Asker(asyncio.Protocol):
    """Asks again as soon as it is answered. Units: first_byte_s is the time to the first byte of a body."""

    numbers = iter(range(1 << 40))

    def __init__(self, request: bytes, count: int, done: asyncio.Future[None], *, is_varied: bool) -> None:
        self._parts = request.split(_MARK)
        self._left = count
        self._done = done
        self._is_varied = is_varied
        self._data = b""
        self._sent_at = 0.0
        self._has_body = False
        self.first_byte_s: list[float] = []
        self.reads = 0
        self.size_bytes = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert hasattr(transport, "write")
        self._transport = transport
        self._ask()

    def _ask(self) -> None:
        number = next(self.numbers) if self._is_varied else 0
        self._data = b""
        self._has_body = False
        self._sent_at = time.perf_counter()
        self._transport.write((b"%08d" % number).join(self._parts))  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        self.reads += 1
        self.size_bytes += len(data)
        self._data += data
        end = self._data.find(b"\r\n\r\n")
        if end < 0:
            return
        if not self._has_body and len(self._data) > end + 4:
            self._has_body = True
            self.first_byte_s.append(time.perf_counter() - self._sent_at)
        head = self._data[:end].lower()
        assert head.startswith(b"http/1.1 200"), self._data
        at = head.find(b"content-length:")
        if at >= 0:
            if len(self._data) < end + 4 + int(head[at + 15 :].split(b"\r\n")[0]):
                return
        elif not self._data.endswith(b"\r\n0\r\n\r\n"):
            return
        self._left -= 1
        if self._left:
            self._ask()
        else:
            self._transport.close()
            self._done.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._done.done():
            self._done.set_exception(exc or ConnectionError("closed"))


async def ask(
    port: int, body: bytes, *, connections: int, total: int, is_varied: bool = True
) -> tuple[float, list[_Asker]]:
    """Send so many requests over so many connections. Shape: seconds of wall time, and the askers."""
    loop = asyncio.get_running_loop()
    askers: list[_Asker] = []
    ends: list[asyncio.Future[None]] = []
    started = time.perf_counter()
    for _ in range(connections):
        end: asyncio.Future[None] = loop.create_future()
        asker = _Asker(spell(port, body), total // connections, end, is_varied=is_varied)
        ends.append(end)
        askers.append(asker)
        await loop.create_connection(lambda asker=asker: asker, "127.0.0.1", port)
    await asyncio.gather(*ends)
    return time.perf_counter() - started, askers
