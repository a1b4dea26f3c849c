"""A bridge for clients of httpx2: any channel of a lane as a transport of theirs, piece by piece.

Room: tests of agents whose SDK takes httpx2 only come in. Nothing is decided here; witness and seal stay inside.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import cast

import httpx
import httpx2


class Httpx2Bridge(httpx2.AsyncBaseTransport):
    """Give it to `httpx2.AsyncClient(transport=…)`; inner is the channel, a transport of httpx.

    Raises: the error of httpx2 that is called as the one of httpx that the channel raised; any other as it is.
    """

    def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Pass one request on and give its answer back as it arrives."""
        body = await request.aread()
        waits = {name: value for name, value in request.extensions.items() if name == "timeout"}
        passed = httpx.Request(
            request.method, str(request.url), headers=request.headers.raw, content=body, extensions=waits
        )
        try:
            answer = await self._inner.handle_async_request(passed)
        except httpx.TransportError as error:
            raise _translated(error, request) from error
        return httpx2.Response(
            answer.status_code,
            headers=answer.headers.raw,
            stream=_Pieces(cast("httpx.AsyncByteStream", answer.stream), request),
            request=request,
        )

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


def _translated(error: httpx.TransportError, request: httpx2.Request) -> httpx2.TransportError:
    kind = getattr(httpx2, type(error).__name__, httpx2.TransportError)
    found: httpx2.TransportError = kind(str(error), request=request)
    return found
