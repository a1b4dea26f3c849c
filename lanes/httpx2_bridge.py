"""A bridge for clients of httpx2: any channel of a lane as a transport of theirs, piece by piece.

Room: tests of agents whose SDK takes httpx2 only come in. Nothing is decided here; witness and seal stay inside.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import cast

import httpx
import httpx2

from lanes.errors import UsageError


class Httpx2Bridge(httpx2.AsyncBaseTransport, httpx2.BaseTransport):
    """Give it to `httpx2.AsyncClient(transport=…)` or `httpx2.Client(transport=…)`; inner is the channel, of httpx.

    Raises: the error of httpx2 that is called as the one of httpx that the channel raised; any other as it is.
    UsageError when a client without an event loop meets a channel that needs one.
    """

    def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
        self._inner = inner

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Pass one request of a client without an event loop on, and give its answer back as it arrives."""
        if not isinstance(self._inner, httpx.BaseTransport):
            raise UsageError(
                f"the channel {type(self._inner).__name__} answers clients with an event loop only",
                where="Httpx2Bridge",
                fix="give the agent an asynchronous client here, such as AsyncOpenAI or AsyncAnthropic",
            )
        try:
            answer = self._inner.handle_request(_passed(request, request.read()))
        except httpx.TransportError as error:
            raise _translated(error, request) from error
        return _given_back(answer, _SyncPieces(cast("httpx.SyncByteStream", answer.stream), request), request)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Pass one request on and give its answer back as it arrives."""
        passed = _passed(request, await request.aread())
        try:
            answer = await self._inner.handle_async_request(passed)
        except httpx.TransportError as error:
            raise _translated(error, request) from error
        return _given_back(answer, _Pieces(cast("httpx.AsyncByteStream", answer.stream), request), request)

    def close(self) -> None:
        """Leave the channel open: it is the lane that closes it, after the test."""

    async def aclose(self) -> None:
        """Close the channel; the lane may still read what its witness saw."""
        await self._inner.aclose()


class _Pieces(httpx2.AsyncByteStream):
    def __init__(self, pieces: httpx.AsyncByteStream, request: httpx2.Request) -> None:
        self._pieces = pieces
        self._request = request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self._pieces:
                yield piece
        except httpx.TransportError as error:
            raise _translated(error, self._request) from error

    async def aclose(self) -> None:
        with suppress(httpx.TransportError):  # the connection was lost: the reader has heard of it
            await self._pieces.aclose()


class _SyncPieces(httpx2.SyncByteStream):
    def __init__(self, pieces: httpx.SyncByteStream, request: httpx2.Request) -> None:
        self._pieces = pieces
        self._request = request

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._pieces
        except httpx.TransportError as error:
            raise _translated(error, self._request) from error

    def close(self) -> None:
        with suppress(httpx.TransportError):  # the connection was lost: the reader has heard of it
            self._pieces.close()


def _passed(request: httpx2.Request, body: bytes) -> httpx.Request:
    waits = {name: value for name, value in request.extensions.items() if name == "timeout"}
    return httpx.Request(request.method, str(request.url), headers=request.headers.raw, content=body, extensions=waits)


def _given_back(answer: httpx.Response, pieces: _Pieces | _SyncPieces, request: httpx2.Request) -> httpx2.Response:
    return httpx2.Response(answer.status_code, headers=answer.headers.raw, stream=pieces, request=request)


def _translated(error: httpx.TransportError, request: httpx2.Request) -> httpx2.TransportError:
    kind = getattr(httpx2, type(error).__name__, httpx2.TransportError)
    found: httpx2.TransportError = kind(str(error), request=request)
    return found
