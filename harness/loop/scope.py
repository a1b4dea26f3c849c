"""Whether the work at hand was cancelled, by whom, and waiting that listens to it.

Room: the loop's own waits go through here; tools and models see only the CancelSignal side.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import TypeVar

from harness.log.events import Cause, TurnReason
from harness.loop.failure import stopped

DISPOSED = Cause("disposed")

Result = TypeVar("Result")


class CancelScope:
    """A cancel signal with its cause; the first cause stands.

    Shape: one scope for each turn, a child of it for each tool call. Listeners are called inside cancel, so they
    may only wake somebody.
    """

    def __init__(self) -> None:
        self._cause: Cause | None = None
        self._listeners: list[Callable[[], object]] = []

    @property
    def cancelled(self) -> bool:
        """True from the moment of the first cancel."""
        return self._cause is not None

    @property
    def cause(self) -> Cause | None:
        """Who cancelled first, or None."""
        return self._cause

    def cancel(self, cause: Cause) -> bool:
        """Cancel unless that has happened; True when this was the first cancel."""
        if self._cause is not None:
            return False
        self._cause = cause
        listeners, self._listeners = self._listeners, []
        for listener in listeners:
            listener()
        return True

    def on_cancel(self, listener: Callable[[], object]) -> Callable[[], None]:
        """Call the listener at the first cancel, at once if that was before; the result takes it off again."""
        if self._cause is not None:
            listener()
            return _nothing
        self._listeners.append(listener)

        def detach() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return detach

    async def wait(self) -> None:
        """Return once cancelled."""
        if self._cause is not None:
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def wake() -> None:
            if not woken.done():
                woken.set_result(None)

        detach = self.on_cancel(wake)
        try:
            await woken
        finally:
            detach()


def _nothing() -> None:
    """There was no listener to take off."""


def stop_of(scope: CancelScope) -> TurnReason | None:
    """How the turn of a cancelled scope ends, None while it is not cancelled; ask after every wait."""
    return stopped(scope.cause) if scope.cancelled else None


async def pause(sleep: Callable[[float], Awaitable[None]], delay_s: float, scope: CancelScope) -> None:
    """Sleep that long, or until the scope is cancelled."""
    if scope.cancelled:
        return
    sleeping = asyncio.ensure_future(sleep(delay_s))
    detach = scope.on_cancel(sleeping.cancel)
    try:
        await asyncio.wait({sleeping})
    finally:
        detach()
        sleeping.cancel()
    if not sleeping.cancelled():
        sleeping.result()


async def settle(tasks: Collection[asyncio.Task[Result]], scope: CancelScope, *, first: bool = False) -> None:
    """Wait until all tasks are done, or the first of them; nobody is abandoned.

    A host that cancels the waiting task meanwhile is answered by cancelling the scope as disposed: the tasks are told
    to end, and the wait goes on, because what they do must not outlive the turn that owns them.
    """
    return_when = asyncio.FIRST_COMPLETED if first else asyncio.ALL_COMPLETED
    while tasks and not (any if first else all)(task.done() for task in tasks):
        try:
            await asyncio.wait(tasks, return_when=return_when)
        except asyncio.CancelledError:
            scope.cancel(DISPOSED)


def is_host_cancelling() -> bool:
    """Whether the current task itself was cancelled from outside, as against something it awaited."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
