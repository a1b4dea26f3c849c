"""One session open for writing: what the log has and the disk has not yet, and the barrier between them.

Room: I/O; the store makes writers, the loop awaits their flush. The log itself is the buffer, nothing is copied.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

from harness.errors import LogBusyError, LogError, LogWriteError
from harness.log.disk import Disk, Lock, LogFile, unwritten
from harness.log.events import Event
from harness.log.load import encode_events, encode_header
from harness.log.session_log import SessionLog


class Timer(Protocol):
    """A call that is due later and can be called off; asyncio's handle and a test's."""

    def cancel(self) -> None:
        """Call it off."""
        ...


Later = Callable[[float, Callable[[], None]], Timer]


class SessionWriter:
    """A live log and the file behind it.

    Shape: append to log; flush returns once everything appended so far, and while it waited, is durable. damage tells
    what was repaired when it was opened. durable_seq is the last seq on disk, -1 before the first.
    Limits: events wait at most window_s from the first one that waits; one write at a time.
    Raises: LogWriteError from flush when the disk refuses, and the batch is kept; LogBusyError when somebody else
    touched the file, and nothing more is ever written.
    """

    def __init__(
        self,
        log: SessionLog,
        path: Path,
        *,
        lock: Lock,
        file: LogFile | None,
        durable: int,
        damage: str | None,
        disk: Disk,
        window_s: float,
        later: Later | None,
        report: Callable[[Exception], None] | None,
    ) -> None:
        self.log = log
        self.path = path
        self.damage = damage
        self.writes = 0
        self.failures: list[LogError] = []
        self._lock = lock
        self._file = file
        self._durable = durable
        self._disk = disk
        self._window_s = window_s
        self._later = later if later is not None else asyncio.get_running_loop().call_later
        self._report = report
        self._timer: Timer | None = None
        self._write: asyncio.Future[None] | None = None
        self._broken: LogBusyError | None = None
        self._closed = False
        self._failing = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="session-log")
        self._detach = log.observe(self._arm)
        if len(log) > durable:
            self._arm(None)

    @property
    def durable_seq(self) -> int:
        """The last seq that is on disk, -1 before the first."""
        return self._durable - 1

    async def flush(self) -> None:
        """Return once every event of the log is durable, those appended meanwhile too.

        Raises: LogWriteError or LogBusyError; what is not on disk stays in the log for the next flush.
        """
        self._disarm()
        while self._durable < len(self.log):
            await asyncio.shield(self._start_write())
        self._disarm()

    async def close(self) -> None:
        """Flush, let go of the file and the lock; a second call does nothing. Nothing can be appended from then on.

        Raises: what flush raises, after everything was let go.
        """
        if self._closed:
            return
        self._closed = True
        try:
            await self.flush()
        finally:
            self.log.seal()  # with nothing awaited since the flush: what came before is stored, what comes is refused
            self._detach()
            self._disarm()
            await self._release()

    async def abandon(self) -> None:
        """Let go of the file and the lock without writing what waits; for a session that nobody came to know of."""
        if self._closed:
            return
        self._closed = True
        self.log.seal()
        self._detach()
        self._disarm()
        if self._write is not None:
            await asyncio.wait({self._write})
            self._disarm()
        await self._release()

    def _arm(self, _event: Event | None) -> None:
        """Begin the window; events that come within it do not move its end."""
        if self._timer is None and self._broken is None and self._write is None:
            self._timer = self._later(self._window_s, self._window_over)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _window_over(self) -> None:
        self._timer = None
        if self._durable < len(self.log):
            self._start_write()

    def _start_write(self) -> asyncio.Future[None]:
        """The write under way, or a new one of everything that waits.

        One that is over but whose end was not handled yet is none any more: who waits for it would not be suspended,
        and could ask again and again without anybody else coming to their turn.
        """
        if self._write is None or self._write.done():
            loop = asyncio.get_running_loop()
            self._write = write = loop.create_future()
            write.add_done_callback(self._write_over)
            if self._broken is None:
                self._hand_over(loop, write)
            else:
                write.set_exception(self._broken)
        return self._write

    def _hand_over(self, loop: asyncio.AbstractEventLoop, write: asyncio.Future[None]) -> None:
        try:
            self._thread.submit(self._write_pending, len(self.log), loop, write)
        except RuntimeError as error:  # it ended when the session was closed, or the system gives no further thread
            failure = LogWriteError(
                f"nobody writes it any more: {error}",
                where=str(self.path),
                expected="events that are stored before the session is closed",
                fix="resume the session in a new process; what is not on disk yet is lost when this one ends",
            )
            failure.__cause__ = error
            self._settle(write, failure)

    def _write_over(self, write: asyncio.Future[None]) -> None:
        """Go on with what came meanwhile; what failed waits for an event or a flush, or a full disk would spin us."""
        if self._write is write:
            self._write = None
        if not write.cancelled() and write.exception() is None and self._durable < len(self.log):
            self._arm(None)

    def _write_pending(self, length: int, loop: asyncio.AbstractEventLoop, write: asyncio.Future[None]) -> None:
        """Blocking, in the one thread of this writer: store, then tell the loop how it went."""
        failure: BaseException | None = None
        try:
            self._store(length)
        except BaseException as error:  # noqa: BLE001 - it belongs to who waits for the write, not to this thread
            failure = error
        loop.call_soon_threadsafe(self._settle, write, failure)

    def _settle(self, write: asyncio.Future[None], error: BaseException | None) -> None:
        failure = self._refused(error) if isinstance(error, OSError) else error
        if failure is None:
            self._failing = False
        elif isinstance(failure, LogError):
            if isinstance(failure, LogBusyError):
                self._broken = failure
            self._tell(failure)
        if write.done():
            return  # a loop that shuts down has cancelled it, and nobody waits any more
        if failure is None:
            write.set_result(None)
        else:
            write.set_exception(failure)

    def _refused(self, error: OSError) -> LogWriteError:
        failure = unwritten(error, self.path)
        failure.__cause__ = error
        return failure

    def _store(self, length: int) -> None:
        """Put on disk what waits, with the header when it is the first.

        The count moves here and not where the write is waited for: a wait can be cancelled, bytes on disk cannot.
        """
        batch = self.log[self._durable : length]
        if not batch:
            return  # a write whose waiter was cancelled has done this one's work
        lines = encode_events(batch)
        if self._file is None:
            self._file = LogFile.appear(self.path, encode_header(self.log.header) + lines, self._disk)
        else:
            self._file.append(lines)
        self._durable = batch[-1].seq + 1
        self.writes += 1

    async def _release(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._let_go)
        self._thread.shutdown(wait=False)

    def _let_go(self) -> None:
        """Blocking, behind every write that was begun."""
        if self._file is not None:
            self._file.close()
        self._lock.release()

    def _tell(self, failure: LogError) -> None:
        """Report a failure once; repeats of it stay quiet until a write succeeds again."""
        if self._failing:
            return
        self._failing = True
        self.failures.append(failure)
        if self._report is not None:
            self._report(failure)
