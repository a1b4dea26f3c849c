"""A small HTTP/1.1 load generator over raw sockets, so that the client is not what is measured."""

from __future__ import annotations

import asyncio
import time


def _content_length(head: bytes) -> int:
    at = head.lower().index(b"content-length:")
    return int(head[at + 15 : head.index(b"\r\n", at)])


async def _one_connection(port: int, request: bytes, count: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(count):
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(
            int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")
        )
        await reader.readexactly(length)
    writer.close()
    await writer.wait_closed()


async def requests_per_second(port: int, path: str, body: bytes, *, connections: int, total: int) -> float:
    """Send the same request over keep-alive connections and return answered requests per second of wall time."""
    lines = (
        f"POST {path} HTTP/1.1",
        f"host: 127.0.0.1:{port}",
        "content-type: application/json",
        "authorization: Bearer sk-mock-main",
        f"content-length: {len(body)}",
    )
    request = "\r\n".join((*lines, "", "")).encode() + body
    started = time.perf_counter()
    await asyncio.gather(*(_one_connection(port, request, total // connections) for _ in range(connections)))
    return total / (time.perf_counter() - started)


class ConstantResponder(asyncio.Protocol):
    """The floor: parse nothing but the length, answer the same bytes every time."""

    def __init__(self, answer: bytes) -> None:
        self._answer = (
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(answer) + answer
        )
        self._buffer = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport to write to."""
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer once for each complete request."""
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            at = self._buffer.find(b"content-length: ")
            length = int(self._buffer[at + 16 : self._buffer.find(b"\r\n", at)])
            if len(self._buffer) < end + 4 + length:
                return
            del self._buffer[: end + 4 + length]
            self._transport.write(self._answer)
