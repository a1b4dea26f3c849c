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
from mock_provider.mock import Mock
from mock_provider.script import ScriptLike
from mock_provider.speed import choose_cut, choose_loop

BACKLOG = 2048  # connections that may wait to be taken; the system's own limit may be lower
MAX_PORT = 65_535
TAKEN_AT_ONCE = 100  # of them in one turn of the loop, so that those who have to go leave before the next ones come


def listen(host: str, port: int, *, is_shared: bool = False) -> socket.socket:
    """Open a socket to serve on. Shape: is_shared lets other processes open the same port, each for a part of the load.

    Raises: UsageError when that is impossible.
    """
    try:
        if not 0 <= port <= MAX_PORT:
            raise OverflowError(f"ports go from 0 to {MAX_PORT}")
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener = socket.create_server((str(address[0]), port), family=family, backlog=BACKLOG, reuse_port=is_shared)
    except (OSError, OverflowError, UnicodeError) as error:
        what = f"cannot listen on {host}:{port}: {error}"
        raise UsageError(what, expected="a free port of this machine", fix="--port 0 takes any free one") from None
    listener.setblocking(False)
    return listener


def root_of(listener: socket.socket) -> str:
    """The address of a socket, as the beginning of a URL."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class RunningServer:
    """A server in the running event loop. Shape: mock is the control object; close() ends every connection."""

    def __init__(self, mock: Mock, server: asyncio.Server, doorkeeper: Doorkeeper) -> None:
        self.mock = mock
        self._server = server
        self._doorkeeper = doorkeeper

    @classmethod
    async def start(cls, mock: Mock, listener: socket.socket, *, is_fast: bool = False) -> RunningServer:
        """Serve on a socket, and write its address into the control object."""
        doorkeeper = Doorkeeper(mock, choose_cut(is_fast=is_fast))
        loop = asyncio.get_running_loop()
        server = await loop.create_server(doorkeeper.connection, sock=listener, backlog=TAKEN_AT_ONCE)
        listener.listen(BACKLOG)
        mock.root = root_of(listener)
        doorkeeper.start(loop)
        return cls(mock, server, doorkeeper)

    async def close(self) -> None:
        """Stop listening and end what is under way."""
        self._server.close()
        self.mock.close()
        self._doorkeeper.close()
        await self._server.wait_closed()
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
        self._failure: UsageError | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, name="mock-provider", daemon=True)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=choose_loop(is_fast=self._is_fast)) as runner:
            runner.run(self._serve())

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
