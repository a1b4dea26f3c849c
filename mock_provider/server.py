"""Face 2: the server on loopback, in the running event loop or in a thread of its own.

Room: asyncio, sockets and one thread; tests, channels and the command come in.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from types import TracebackType

from mock_provider.doorkeeper import Doorkeeper
from mock_provider.errors import UsageError
from mock_provider.listening import Listening, listen, root_of
from mock_provider.mock import Mock
from mock_provider.script import ScriptLike
from mock_provider.speed import choose_cut, choose_loop


class RunningServer:
    """A server in the running event loop. Shape: mock is the control object; close() ends every connection."""

    def __init__(self, mock: Mock, listening: Listening, doorkeeper: Doorkeeper) -> None:
        self.mock = mock
        self._listening = listening
        self._doorkeeper = doorkeeper

    @classmethod
    async def start(cls, mock: Mock, listener: socket.socket, *, is_fast: bool = False) -> RunningServer:
        """Serve on a socket, and write its address into the control object."""
        doorkeeper = Doorkeeper(mock, choose_cut(is_fast=is_fast))
        mock.root = root_of(listener)
        listening = Listening(doorkeeper.connection, listener)
        await listening.open()
        mock.close_port = listening.pause
        doorkeeper.start(asyncio.get_running_loop())
        return cls(mock, listening, doorkeeper)

    async def close(self) -> None:
        """Stop listening and end what is under way."""
        self.mock.close_port = None
        self._listening.stop()
        self.mock.close()
        self._doorkeeper.close()
        await self._listening.stopped()
        for _ in range(3):  # connection_lost and cancelled tasks need a turn each to note their ends
            await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def serve(
    script: ScriptLike | Mock,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    journal_path: Path | None = None,
    is_fast: bool = False,
) -> AsyncIterator[Mock]:
    """Serve a script in this event loop; gives the control object.

    Raises: ScriptError, UsageError when the address cannot be used.
    """
    mock = script if isinstance(script, Mock) else Mock(script, journal_path=journal_path)
    running = await RunningServer.start(mock, listen(host, port), is_fast=is_fast)
    try:
        yield mock
    finally:
        await running.close()


class ServerThread:
    """The same server in a thread of its own, for tests and commands without an event loop.

    Shape: a context manager that gives the control object.
    """

    def __init__(
        self,
        script: ScriptLike | Mock,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        journal_path: Path | None = None,
        is_fast: bool = False,
    ) -> None:
        self.mock = script if isinstance(script, Mock) else Mock(script, journal_path=journal_path)
        self._host = host
        self._port = port
        self._is_fast = is_fast
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, name="mock-provider", daemon=True)

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=choose_loop(is_fast=self._is_fast)) as runner:
                runner.run(self._serve())
        except BaseException as error:  # noqa: BLE001 - who waits for the server has to hear of it
            self._failure = error
            self._ready.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        try:
            running = await RunningServer.start(self.mock, listen(self._host, self._port), is_fast=self._is_fast)
        except UsageError as error:
            self._failure = error
            self._ready.set()
            return
        self._ready.set()
        await self._stop.wait()
        await running.close()

    def __enter__(self) -> Mock:
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            self._thread.join()
            raise self._failure
        return self.mock

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._loop is not None and self._stop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
