"""Read one model stream while listening for a cancel.

Room: the attempt comes in. The stream is read and closed by one task of its own, because an adapter may hold
time limits that have to be left by the task that entered them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable

from harness.loop.scope import CancelScope, settle
from harness.model.chunks import Chunk, Finish

READ_AHEAD_CHUNKS = 64  # what one network read usually holds; beyond it a slow log must slow the provider down


class ChunkReader:
    """Hand out the chunks of a stream, in order, up to its finish or the cancel.

    Shape: next answers None when there is nothing more to read; error is then what the adapter raised, if it did.
    close has to be awaited on every path: it stops the adapter, also in the middle of a read, and waits for its end.
    """

    def __init__(self, open_stream: Callable[[], AsyncIterator[Chunk]], scope: CancelScope) -> None:
        self.error: BaseException | None = None
        self._scope = scope
        self._ready: deque[Chunk] = deque()
        self._bell: asyncio.Future[None] | None = None
        self._room: asyncio.Future[None] | None = None
        self._closing = False
        self._reading = True
        self._stream: AsyncIterator[Chunk] | None = None
        try:
            self._stream = open_stream()
        except Exception as error:  # noqa: BLE001 - an adapter may raise anything; it becomes the end of the stream
            self.error = error
        self._task = asyncio.ensure_future(self._pump())
        self._task.add_done_callback(lambda _: self._ring())
        self._detach = scope.on_cancel(self._ring)

    async def next(self) -> Chunk | None:
        """The next chunk, or None at the end of the stream and from the cancel on."""
        while not self._scope.cancelled:
            if self._ready:
                if self._room is not None and not self._room.done():
                    self._room.set_result(None)
                return self._ready.popleft()
            if self._task.done():
                return None
            self._bell = asyncio.get_running_loop().create_future()
            await self._bell
        return None

    async def close(self) -> None:
        """Stop reading and return once the adapter has cleaned up."""
        self._closing = True
        self._detach()
        if self._reading and not self._task.done():
            self._task.cancel()
        await settle((self._task,), self._scope)
        if self._reading:  # stopped before its first tick, so that nobody has closed the stream yet
            await self._close_stream()

    def _ring(self) -> None:
        if self._bell is not None and not self._bell.done():
            self._bell.set_result(None)

    async def _pump(self) -> None:
        try:
            if self._stream is None:
                return
            async for chunk in self._stream:
                if self._closing:
                    break
                self._ready.append(chunk)
                self._ring()
                if isinstance(chunk, Finish):
                    break
                if len(self._ready) >= READ_AHEAD_CHUNKS:
                    self._room = asyncio.get_running_loop().create_future()
                    await self._room
        except asyncio.CancelledError as error:
            if not self._closing:
                self.error = error
        except Exception as error:  # noqa: BLE001 - an adapter may raise anything; it becomes the end of the stream
            self.error = error
        finally:
            self._reading = False
            await self._close_stream()

    async def _close_stream(self) -> None:
        close = getattr(self._stream, "aclose", None)
        if close is None:
            return
        try:
            await close()
        except Exception as error:  # noqa: BLE001 - a cleanup may raise anything; the answer stands, the loop reports it
            self.error = self.error or error
