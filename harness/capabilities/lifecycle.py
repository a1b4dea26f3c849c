"""How an agent comes to be and how it ends: opened whole or not at all, closed once for everybody who asks.

Room: assemble comes in. A creation that is not wanted any more is waited for and taken back, never left behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack
from typing import TypeVar

from harness.errors import UsageError
from harness.log.writer import SessionWriter
from harness.loop.scope import CancelScope, settle
from harness.model.call import CancelSignal

T = TypeVar("T")


class Closing:
    """What has to be let go at the end, and the one end that everybody who asks for it waits for."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self.stack = stack
        self._end: asyncio.Task[tuple[str, ...]] | None = None

    async def once(self, close: Callable[[], Coroutine[None, None, tuple[str, ...]]]) -> tuple[str, ...]:
        """What the first caller's close gives; it goes on also when a caller that waits for it is cancelled."""
        if self._end is None:
            self._end = asyncio.ensure_future(close())
        return await asyncio.shield(self._end)


def check_wanted(cancel: CancelSignal | None) -> None:
    """Refuse to go on with a creation that was cancelled.

    Raises: UsageError with code CREATION_CANCELLED.
    """
    if cancel is not None and cancel.cancelled:
        raise UsageError("cancelled before it began", where="session", code="CREATION_CANCELLED")


async def open_wanted(
    open_session: Callable[[], Coroutine[None, None, SessionWriter]], cancel: CancelSignal | None
) -> SessionWriter:
    """The session once it is open; one that nobody wants any more by then is let go, so that its id is free.

    Raises: UsageError with code CREATION_CANCELLED; what opening raises; CancelledError when the host cancels.
    """
    check_wanted(cancel)
    opening = asyncio.ensure_future(open_session())
    host = CancelScope()
    await settle((opening,), host)  # never left behind: the thread at work on it holds the lock when it is done
    if host.cancelled and opening.exception() is not None:
        raise asyncio.CancelledError
    writer = opening.result()
    if not host.cancelled and not (cancel is not None and cancel.cancelled):
        return writer
    await writer.abandon()
    check_wanted(cancel)
    raise asyncio.CancelledError


async def unless_cancelled(work: Awaitable[T], cancel: CancelSignal | None) -> T:
    """What the work gives; work that is not wanted any more is told to end and waited for, and its late result dropped.

    Raises: UsageError with code CREATION_CANCELLED, or what the work raises.
    """
    working = asyncio.ensure_future(work)
    listening = asyncio.ensure_future((cancel or CancelScope()).wait())
    try:
        await asyncio.wait({working, listening}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        listening.cancel()
        if not working.done():
            working.cancel()
            await asyncio.wait({working})
        if not working.cancelled():
            working.exception()  # looked at, so that a failure nobody waits for any more is not reported as lost
    check_wanted(cancel)
    return working.result()
