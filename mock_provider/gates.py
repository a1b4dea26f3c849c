"""Gates: where an answer waits until the test lets it go on.

Room: threads and asyncio; the engine owns the gates, the faces wait at them, tests open them.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable


class Latch:
    """A door that opens once, for waiters in threads and in event loops alike.

    Shape: open() may be called from anywhere; waiting returns whether it opened within the time.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._event = threading.Event()
        self._futures: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []

    @property
    def is_open(self) -> bool:
        """Whether it was opened."""
        return self._event.is_set()

    def open(self) -> None:
        """Open for good, and wake whoever waits."""
        with self._lock:
            self._event.set()
            waiting, self._futures = self._futures, []
        for loop, future in waiting:
            try:
                loop.call_soon_threadsafe(_wake, future)
            except RuntimeError:  # that loop is closed, so nobody waits there any more
                continue

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait in a thread."""
        return self._event.wait(timeout_s)

    async def opened(self, timeout_s: float | None = None) -> bool:
        """Wait in an event loop."""
        loop = asyncio.get_running_loop()
        with self._lock:
            if self._event.is_set():
                return True
            future: asyncio.Future[None] = loop.create_future()
            entry = (loop, future)
            self._futures.append(entry)
        try:
            await asyncio.wait_for(future, timeout_s)
        except TimeoutError:
            return self._event.is_set()
        finally:
            with self._lock:
                if entry in self._futures:
                    self._futures.remove(entry)
        return True


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class Gate:
    """A named place in the script.

    Shape: reached opens as soon as an answer waits here; waiting counts those that wait now.
    abandoned is set when the play was reset or closed: waiters then give up. told, if it is set, hears of what is done
    here, "open", "enter" or "leave", before it is.
    """

    def __init__(self, name: str, told: Callable[[str, str], None] | None = None) -> None:
        self.name = name
        self._told = told
        self.door = Latch()
        self.arrival = Latch()
        self.waiting = 0
        self.is_abandoned = False

    @property
    def is_open(self) -> bool:
        """Whether answers may pass."""
        return self.door.is_open and not self.is_abandoned

    def open(self) -> None:
        """Let every answer that waits here, or comes later, go on."""
        if self._told is not None:
            self._told(self.name, "open")
        self.door.open()

    def enter(self) -> None:
        """An answer begins to wait here."""
        if self._told is not None:
            self._told(self.name, "enter")
        self.take_in("enter")

    def leave(self) -> None:
        """An answer waits here no more."""
        if self._told is not None:
            self._told(self.name, "leave")
        self.take_in("leave")

    def take_in(self, what: str) -> None:
        """Note what was done here, or at the same gate of another worker."""
        if what == "open":
            self.door.open()
        elif what == "enter":
            self.waiting += 1
            self.arrival.open()
        else:
            self.waiting -= 1

    def wait_reached(self, timeout_s: float = 10) -> bool:
        """Wait in a thread until an answer waits here."""
        return self.arrival.wait(timeout_s)

    async def reached(self, timeout_s: float = 10) -> bool:
        """Wait in an event loop until an answer waits here."""
        return await self.arrival.opened(timeout_s)

    def abandon(self) -> None:
        """Wake the waiters without letting them pass."""
        self.is_abandoned = True
        self.door.open()
