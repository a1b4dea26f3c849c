"""Descriptors as a source and a sink of bytes for the event loop, whatever they are: pipes, files, the null device.

Room: the peer and the stdio surfaces come in. Blocking calls stay in two threads, because the loop's own pipe
connectors refuse files and turn a description that is shared with others non-blocking.
"""

from __future__ import annotations

import asyncio
import errno
import os
import queue
import select
import threading
from collections import deque
from collections.abc import Callable

from harness.errors import PeerError

HIGH_WATER_BYTES = 1 << 20  # what may wait for a slow reader before those who can wait have to
MAX_ANSWERS_BYTES = 16 << 20  # what may wait for somebody who asks and asks and reads no answer
WRITE_TIMEOUT_S = 60.0  # nobody reads for that long on purpose
_READ_BYTES = 1 << 16
_WRITE_BYTES = 4096  # a pipe that is ready takes as many without blocking (POSIX: PIPE_BUF)
_LOOK_EVERY_S = 0.5  # how soon a thread that waits notices that it need not any more
_AHEAD = 4  # pieces read before the loop took the first of them: a flood waits in the pipe, not in memory


class PipeClosedError(PeerError):
    """The other end is gone, or this end was closed."""

    code = "PIPE_CLOSED"


class DescriptorSource:
    """Reads a descriptor in a thread of its own.

    Shape: take gets bytes in order, ended gets None at the end of input, or what went wrong; both run in the event
    loop, and neither after close. The descriptor stays open.
    With a sink for the answers, whoever reads them is watched: one that goes while nothing is written is noticed, too,
    once all input that had come was read. That is so of a pipe, of a terminal, and of a socket that was closed whole;
    elsewhere the next write notices it.
    Limits: with a sink for the answers, nothing more is read while max_answers_bytes of them were not taken.
    """

    def __init__(
        self,
        descriptor: int,
        *,
        answers: DescriptorSink | None = None,
        max_answers_bytes: int = MAX_ANSWERS_BYTES,
    ) -> None:
        self._descriptor = descriptor
        self._answers = answers
        self._max_answers_bytes = max_answers_bytes
        self._wake_reader, self._wake_writer = os.pipe()
        self._ahead = threading.Semaphore(_AHEAD)
        self._closed = False
        self._thread: threading.Thread | None = None

    def start(self, take: Callable[[bytes], None], ended: Callable[[str | None], None]) -> None:
        """Begin to read; once."""
        loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._read, args=(loop, take, ended), name="read", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop reading; may be called twice, and before start."""
        if self._closed:
            return
        self._closed = True
        os.close(self._wake_writer)
        self._ahead.release()
        if self._thread is not None:
            self._thread.join()
        os.close(self._wake_reader)

    def _read(
        self, loop: asyncio.AbstractEventLoop, take: Callable[[bytes], None], ended: Callable[[str | None], None]
    ) -> None:
        problem: str | None = None
        poll = select.poll()  # select.select knows no descriptor above 1023, and a big program has them
        if self._answers is not None:
            poll.register(self._answers.descriptor, 0)  # asks for nothing: that the other end is gone is told anyway
        poll.register(self._descriptor, select.POLLIN)
        poll.register(self._wake_reader, select.POLLIN)
        while True:
            self._ahead.acquire()
            if self._answers is not None:
                self._answers.wait_below(self._max_answers_bytes, lambda: self._closed)
            try:
                ready = dict(poll.poll())
                if self._closed:
                    return
                if self._answers is not None and self._descriptor not in ready:
                    poll.unregister(self._answers.descriptor)  # it would be ready for ever
                    if ready[self._answers.descriptor] & (select.POLLERR | select.POLLHUP):
                        _call(loop, self._answers.lose_reader)
                    self._ahead.release()
                    continue
                data = os.read(self._descriptor, _READ_BYTES)
            except BlockingIOError:  # somebody else took it first
                self._ahead.release()
                continue
            except OSError as error:
                problem = (error.strerror or "the descriptor cannot be read").lower()
                break
            if not data:
                break
            if not _call(loop, self._deliver, take, data):
                return
        _call(loop, self._finish, ended, problem)

    def _deliver(self, take: Callable[[bytes], None], data: bytes) -> None:
        self._ahead.release()
        if not self._closed:
            take(data)

    def _finish(self, ended: Callable[[str | None], None], problem: str | None) -> None:
        if not self._closed:
            ended(problem)


class DescriptorSink:
    """Writes a descriptor in a thread of its own: whole pieces, in the order they were put.

    Units: high_water_bytes is what may be queued before room waits; write_timeout_s is seconds without a byte taken,
    after which the reader counts as gone. The descriptor stays open and keeps its mode.
    """

    def __init__(
        self,
        descriptor: int,
        *,
        high_water_bytes: int = HIGH_WATER_BYTES,
        write_timeout_s: float = WRITE_TIMEOUT_S,
    ) -> None:
        self._descriptor = descriptor
        self._high_water_bytes = high_water_bytes
        self._write_timeout_s = write_timeout_s
        self._queue: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._put = 0
        self._written = 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._problem: str | None = None
        self._closed = False
        self._progress = threading.Condition()
        self._finished = asyncio.Event()
        self.on_failure: Callable[[str], None] = _nobody

    @property
    def descriptor(self) -> int:
        """Where it is written to."""
        return self._descriptor

    @property
    def queued_bytes(self) -> int:
        """What was put and is not written yet."""
        return self._put - self._written

    def wait_below(self, limit_bytes: int, is_over: Callable[[], bool]) -> None:
        """Block a thread that is not the event loop's while more than that is queued and can still be written."""
        with self._progress:
            while self.queued_bytes > limit_bytes and not (self._problem or self._closed or is_over()):
                self._progress.wait(_LOOK_EVERY_S)

    def put(self, data: bytes) -> None:
        """Queue bytes behind all others; never waits.

        Raises: PipeClosedError when the reader is gone or the sink was closed.
        """
        if self._problem is not None or self._closed:
            raise PipeClosedError(self._problem or "transport closed")
        if self._thread is None:
            loop = asyncio.get_running_loop()
            self._thread = threading.Thread(target=self._write, args=(loop,), name="write", daemon=True)
            self._thread.start()
        self._put += len(data)
        self._queue.put(data)

    def lose_reader(self) -> None:
        """Fail now as the next write would, because its reader was seen to be gone."""
        self._fail(os.strerror(errno.EPIPE).lower())

    async def room(self) -> None:
        """Wait while more than the high water is queued.

        Raises: as put.
        """
        if self.queued_bytes > self._high_water_bytes:
            await self._until(self._put - self._high_water_bytes)
        elif self._problem is not None:
            raise PipeClosedError(self._problem)

    async def flush(self) -> None:
        """Wait until everything put before is taken by the descriptor; writes nothing itself.

        Raises: PipeClosedError when it could not be.
        """
        await self._until(self._put)

    def close(self) -> None:
        """Take nothing more; what was put is still written. May be called twice."""
        if not self._closed:
            self._closed = True
            self._queue.put(None)

    async def finished(self) -> None:
        """Wait until nothing uses the descriptor any more; after close only."""
        if self._thread is not None:
            await self._finished.wait()

    async def _until(self, position: int) -> None:
        if self._problem is not None:
            raise PipeClosedError(self._problem)
        if self._written >= position:
            return
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((position, waiting))
        await waiting

    def _write(self, loop: asyncio.AbstractEventLoop) -> None:
        self._write_queued(loop)
        _call(loop, self._finished.set)

    def _write_queued(self, loop: asyncio.AbstractEventLoop) -> None:
        poll = select.poll()
        poll.register(self._descriptor, select.POLLOUT)
        while (data := self._queue.get()) is not None:
            try:
                self._write_all(data, poll)
            except OSError as error:
                _call(loop, self._fail, (error.strerror or str(error)).lower())
                return
            if not _call(loop, self._advance, len(data)):
                return

    def _write_all(self, data: bytes, poll: select.poll) -> None:
        view = memoryview(data)
        while view:
            if not poll.poll(self._write_timeout_s * 1000):
                raise TimeoutError(f"nothing was read for {self._write_timeout_s:g} s")
            try:
                view = view[os.write(self._descriptor, view[:_WRITE_BYTES]) :]
            except BlockingIOError:
                continue

    def _advance(self, count: int) -> None:
        self._written += count
        with self._progress:
            self._progress.notify_all()
        self._wake(lambda position: position <= self._written, None)

    def _fail(self, problem: str) -> None:
        if self._problem is not None:
            return
        self._problem = f"the output cannot be written: {problem}"
        self._wake(lambda _: True, PipeClosedError(self._problem))
        self.on_failure(self._problem)

    def _wake(self, is_due: Callable[[int], bool], error: Exception | None) -> None:
        still: deque[tuple[int, asyncio.Future[None]]] = deque()
        for position, waiting in self._waiting:
            if waiting.done():
                continue
            if not is_due(position):
                still.append((position, waiting))
            elif error is None:
                waiting.set_result(None)
            else:
                waiting.set_exception(error)
        self._waiting = still


def _call(loop: asyncio.AbstractEventLoop, run: Callable[..., None], *arguments: object) -> bool:
    """Hand over to the loop; False when it is closed."""
    try:
        loop.call_soon_threadsafe(run, *arguments)
    except RuntimeError:
        return False
    return True


def _nobody(problem: str) -> None:
    """Nobody has to be told of a failure."""
