"""An event loop, a writer's thread, a disk and timers that do the same in every run.

Room: tests that steer an agent tick by tick, where a real thread or clock would make each run another one.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

from harness.log.disk import Disk


class RepeatableLoop(asyncio.SelectorEventLoop):
    """Runs what is meant for a thread at once, so that no run depends on how threads are scheduled."""

    def run_in_executor(self, executor: object, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        done: asyncio.Future[Any] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - as an executor hands it over
            done.set_exception(error)
        return done


class AtOnce(Executor):
    """Stands in for a writer's thread in the same way."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(fn(*args, **kwargs))
        return done


class FillingDisk(Disk):
    """A disk that can be full, and that needs no time to be sure."""

    def __init__(self) -> None:
        self.is_full = False

    def write(self, fd: int, data: bytes | memoryview) -> int:
        if self.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(fd, data)

    def sync(self, fd: int) -> None:
        pass


class HeldTimer:
    """A call that is due when the test says so."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call: Callable[[], None] | None = call

    def cancel(self) -> None:
        self._call = None

    def fire(self) -> None:
        call, self._call = self._call, None
        if call is not None:
            call()
