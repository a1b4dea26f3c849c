"""`mock-provider serve --workers N --redis URL`: several processes behind one port, and one that looks after them.

Room: processes, signals, the network; serving comes in.
Each worker opens the same port, and the system hands every connection to one of them. The one that looks after them
takes no connections: it keeps the port, writes journal and log, and judges the play.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import multiprocessing
import os
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from types import FrameType

from mock_provider.errors import MockError, UsageError
from mock_provider.listening import listen, reserve, root_of
from mock_provider.mock import Mock
from mock_provider.ready_file import ReadyFile
from mock_provider.server import RunningServer
from mock_provider.sharing.log import EventLog, LinkLostError
from mock_provider.sharing.redis_log import RedisLog, open_log
from mock_provider.speed import choose_loop
from mock_provider.standard_streams import say, tell

MAX_WORKERS = 64
CATCH_UP_S = 0.02  # how late a worker may hear what another one did at a gate
WATCH_S = 0.2  # how late the journal file may be
GRACE_S = 10.0  # for workers to end after a signal; answers under way are cut off, so they need none of it
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class WorkerError(MockError):
    """A worker died, or lost the others; the play cannot be judged."""

    code = "WORKERS"
    exit_code = 1


@dataclass(frozen=True, slots=True)
class Company:
    """How many workers play, where, and on which server they agree.

    Shape: make gives a play for a log of events, watched or not: the one that looks after the workers has the journal
    file and the log of requests.
    """

    count: int
    host: str
    port: int
    redis_url: str
    make: Callable[[EventLog, bool], Mock]
    is_fast: bool = True


def check_count(count: int, redis_url: str | None, *, is_watching: bool) -> None:
    """See that so many workers can play. Raises: UsageError."""
    if not 1 <= count <= MAX_WORKERS:
        raise UsageError(f"{count} workers", where="--workers", expected=f"a number from 1 to {MAX_WORKERS}")
    if count > 1 and redis_url is None:
        what = f"{count} workers need a place where they agree on what happened"
        fix = "name a Redis server, or leave --workers out: one process serves thousands of streams"
        raise UsageError(what, where="--workers", expected="--redis redis://HOST:PORT/DB", fix=fix)
    if redis_url is not None and is_watching:
        raise UsageError("workers do not change their script", where="--watch", fix="leave --workers and --redis out")


def serve_in_company(company: Company, ready: ReadyFile | None, describe: Callable[[Mock], str]) -> int:
    """Serve until a signal. Shape: exit code 0, or 3 for a bad play; describe makes the line that says where.

    Raises: UsageError, WorkerError.
    """
    log, play = open_log(company.redis_url, "watcher")
    place = reserve(company.host, company.port)
    with contextlib.ExitStack() as leaving:
        leaving.callback(place.close)
        leaving.callback(log.close)
        leaving.callback(_delete, log)
        watcher = company.make(log, True)
        watcher.root = root_of(place)
        stop = _Stop()
        leaving.callback(stop.restore)
        team = _Team(company, play, place)
        leaving.callback(team.end)
        team.start()
        line = describe(watcher)
        if ready is not None:
            ready.write(line)
            leaving.callback(ready.remove)
        say(line)
        _watch(team, watcher, stop)
        team.end()
        verdict = watcher.verify()
    tell(f"mock-provider: {verdict}\n")
    return 0 if verdict.ok else 3


def _delete(log: RedisLog) -> None:
    with contextlib.suppress(LinkLostError):
        log.delete()


class _Stop:
    """Whether a signal asked for the end."""

    def __init__(self) -> None:
        self.is_asked = False
        self._before = {number: signal.signal(number, self._ask) for number in STOP_SIGNALS}

    def _ask(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self.is_asked = True

    def restore(self) -> None:
        """Give the signals back."""
        for number, handler in self._before.items():
            signal.signal(number, handler)


def _watch(team: _Team, watcher: Mock, stop: _Stop) -> None:
    """Look after the workers until the end is asked for."""
    try:
        while not stop.is_asked:
            team.check()
            watcher.catch_up()
            time.sleep(WATCH_S)
    except LinkLostError as lost:
        raise WorkerError(f"the Redis server is lost: {lost}", fix="start it again, and the provider") from None


class _Team:
    """The workers."""

    def __init__(self, company: Company, play: int, place: socket.socket) -> None:
        self._company = company
        self._play = play
        self._port: int = place.getsockname()[1]
        self._processes: list[ForkProcess] = []

    def start(self) -> None:
        """Start them, and wait until all serve. Raises: WorkerError."""
        context = multiprocessing.get_context("fork")
        ears: list[Connection] = []
        for number in range(self._company.count):
            ear, mouth = context.Pipe(duplex=False)
            told = (self._company, self._play, number, self._port, mouth, os.getpid())
            process = context.Process(target=_work, args=told, name=f"worker-{number}")
            process.start()
            mouth.close()
            ears.append(ear)
            self._processes.append(process)
        for ear in ears:
            with ear, contextlib.suppress(EOFError):
                said = ear.recv()
                if said != "ready":
                    raise WorkerError(f"a worker could not begin: {said}")
                continue
            self.check()

    def check(self) -> None:
        """See that all are there. Raises: WorkerError."""
        for process in self._processes:
            if process.exitcode is not None:
                what = f"worker {process.name} ended by itself, exit code {process.exitcode}"
                raise WorkerError(what, fix="look at what it wrote to standard error")

    def end(self) -> None:
        """End them all."""
        for process in self._processes:
            process.terminate()
        wait([process.sentinel for process in self._processes], timeout=GRACE_S)
        deadline = time.monotonic() + GRACE_S
        for process in self._processes:
            process.join(max(deadline - time.monotonic(), 0))
            if process.exitcode is None:
                process.kill()
                process.join()
        self._processes.clear()


def _work(company: Company, play: int, number: int, port: int, mouth: Connection, parent: int) -> None:
    """One worker, in its own process."""
    gc.freeze()
    for one in STOP_SIGNALS:
        signal.signal(one, signal.SIG_DFL)
    try:
        log, _ = open_log(company.redis_url, f"worker {number}", play)
        listener = listen(company.host, port, is_shared=True)
    except MockError as error:
        mouth.send(str(error))
        return
    with asyncio.Runner(loop_factory=choose_loop(is_fast=company.is_fast)) as runner:
        runner.run(_serve(company.make(log, False), listener, mouth, parent, is_fast=company.is_fast))
    log.close()


async def _serve(mock: Mock, listener: socket.socket, mouth: Connection, parent: int, *, is_fast: bool) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, stopped.set)
    running = await RunningServer.start(mock, listener, is_fast=is_fast)
    mouth.send("ready")
    mouth.close()
    while not stopped.is_set() and os.getppid() == parent:  # without the one that looks after us nobody stops us
        with contextlib.suppress(LinkLostError):  # every request says so, and the watcher ends us all
            mock.catch_up()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stopped.wait(), CATCH_UP_S)
    await running.close()
