"""The floor: a bare asyncio.Protocol with httptools and uvloop that answers the same bytes whatever it is asked."""

from __future__ import annotations

import asyncio
import sys

import httptools
import uvloop

ANSWER = b'{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"hi"}}]}'
WHOLE = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(ANSWER), ANSWER)
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
EVENT = b'data: {"id":"x","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"12345678"}}]}\n\n'
CHUNK = b"%x\r\n%b\r\n" % (len(EVENT), EVENT)
CHUNKS = 1_000


class Responder(asyncio.Protocol):
    """Parses heads, looks at nothing but whether the path ends in a query."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._parser = httptools.HttpRequestParser(self)
        self._body = b""

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        """Keep the body, as any server has to."""
        self._body += body

    def on_message_complete(self) -> None:
        """Answer."""
        body, self._body = self._body, b""
        if b'"stream":true' in body[:200]:
            self._task = asyncio.ensure_future(self._stream())
        else:
            self._transport.write(WHOLE)  # type: ignore[attr-defined]

    async def _stream(self) -> None:
        self._transport.write(HEAD)  # type: ignore[attr-defined]
        for _ in range(CHUNKS):
            self._transport.write(CHUNK)  # type: ignore[attr-defined]
            await asyncio.sleep(0)
        self._transport.write(b"0\r\n\r\n")  # type: ignore[attr-defined]


async def main(port: int) -> None:
    """Serve until killed."""
    server = await asyncio.get_running_loop().create_server(Responder, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1])))
