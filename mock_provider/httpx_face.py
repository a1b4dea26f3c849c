"""Face 1 for httpx: a transport without a socket, sync and async, piece by piece.

Room: asyncio and threads; tests and channels come in. The twin for httpx2 is httpx2_face.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import httpx

from mock_provider.faults import Head, Send
from mock_provider.incoming import Incoming
from mock_provider.mock import Mock
from mock_provider.player import Dead, Player, framing, text_of


class MockTransport(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """Give it to `httpx.Client(transport=…)` or `httpx.AsyncClient(transport=…)`.

    Shape: mock is the control object. Closing the client leaves the mock open; another client may go on with it.
    Limits: honours the client's read timeout; with virtual_time declared waiting takes none.
    """

    def __init__(self, mock: Mock, *, virtual_time: bool = False) -> None:
        self.mock = mock
        self._is_virtual = virtual_time

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Answer one request of a sync client."""
        player = self._player(request, request.read())
        pieces = iter(player)
        try:
            head = next(pieces)
        except Dead as death:
            raise _error(death, request) from None
        return _response(request, head, _Pieces(player, request, pieces=pieces))

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Answer one request of an async client."""
        player = self._player(request, await request.aread())
        pieces = aiter(player)
        try:
            head = await anext(pieces)
        except Dead as death:
            raise _error(death, request) from None
        except BaseException:  # the client's task was cancelled while the answer waited
            player.gone()
            raise
        return _response(request, head, _Pieces(player, request, async_pieces=pieces))

    def _player(self, request: httpx.Request, body: bytes) -> Player:
        headers = {name.lower(): value for name, value in request.headers.items()}
        incoming = Incoming(request.method, request.url.raw_path.decode("ascii"), headers, body)
        timeout = request.extensions.get("timeout", {}).get("read")
        return Player(self.mock, self.mock.handle(incoming), timeout, virtual_time=self._is_virtual)


class _Pieces(httpx.SyncByteStream, httpx.AsyncByteStream):
    """The body of an answer, handed over piece by piece."""

    def __init__(
        self,
        player: Player,
        request: httpx.Request,
        *,
        pieces: Iterator[Head | Send] | None = None,
        async_pieces: AsyncIterator[Head | Send] | None = None,
    ) -> None:
        self._player = player
        self._request = request
        self._pieces = pieces
        self._async_pieces = async_pieces

    def __iter__(self) -> Iterator[bytes]:
        try:
            for piece in self._pieces or ():
                if isinstance(piece, Send):
                    yield piece.data
        except Dead as death:
            raise _error(death, self._request) from None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._async_pieces is None:
            return
        try:
            async for piece in self._async_pieces:
                if isinstance(piece, Send):
                    yield piece.data
        except Dead as death:
            raise _error(death, self._request) from None

    def close(self) -> None:
        self._player.gone()

    async def aclose(self) -> None:
        self._player.gone()


def _response(request: httpx.Request, head: Head | Send, stream: _Pieces) -> httpx.Response:
    if not isinstance(head, Head):
        raise TypeError("a plan must begin with its head")
    headers = [*head.headers, framing(head)]
    return httpx.Response(
        head.status, headers=headers, stream=stream, request=request, extensions={"http_version": b"HTTP/1.1"}
    )


def _error(death: Dead, request: httpx.Request) -> httpx.TransportError:
    if death.kind == "timeout":
        return httpx.ReadTimeout(text_of(death), request=request)
    if death.kind == "refuse":
        return httpx.ConnectError(text_of(death), request=request)
    if death.kind == "reset":
        return httpx.ReadError(text_of(death), request=request)
    return httpx.RemoteProtocolError(text_of(death), request=request)
