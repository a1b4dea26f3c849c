"""Face 2: the server on loopback, in the running event loop or in a thread of its own.

Room: asyncio, sockets and one thread; tests, channels and the command come in.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from types import TracebackType

from mock_provider.connection import Connection
from mock_provider.errors import UsageError
from mock_provider.mock import Mock
from mock_provider.script import ScriptLike


class RunningServer:
    """A server in the running event loop. Shape: mock is the control object; close() ends every connection."""

    def __init__(self, mock: Mock, server: asyncio.Server, connections: set[Connection]) -> None:
        self.mock = mock
        self._server = server
        self._connections = connections

    @classmethod
    async def start(cls, mock: Mock, host: str, port: int) -> RunningServer:
        """Listen, and write the address into the control object. Raises: UsageError when that is impossible."""
        connections: set[Connection] = set()
        loop = asyncio.get_running_loop()
        try:
            server = await loop.create_server(lambda: Connection(mock, connections), host, port)
        except (OSError, OverflowError) as error:
            what = f"cannot listen on {host}:{port}: {error}"
            raise UsageError(what, expected="a free port of this machine", fix="--port 0 takes any free one") from None
        address = server.sockets[0].getsockname()
        shown = f"[{address[0]}]" if ":" in str(address[0]) else str(address[0])
        mock.root = f"http://{shown}:{address[1]}"
        return cls(mock, server, connections)

    async def close(self) -> None:
        """Stop listening and end what is under way."""
        self._server.close()
        self.mock.close()
        for connection in tuple(self._connections):
            connection.shut()
        await self._server.wait_closed()
        for _ in range(3):  # connection_lost and cancelled tasks need a turn each to note their ends
            await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def serve(
    script: ScriptLike | Mock, host: str = "127.0.0.1", port: int = 0, *, journal_path: Path | None = None
) -> AsyncIterator[Mock]:
    """Serve a script in this event loop; gives the control object.

    Raises: ScriptError, UsageError when the address cannot be used.
    """
    mock = script if isinstance(script, Mock) else Mock(script, journal_path=journal_path)
    running = await RunningServer.start(mock, host, port)
    try:
        yield mock
    finally:
        await running.close()


class ServerThread:
    """The same server in a thread of its own, for tests and commands without an event loop.

    Shape: a context manager that gives the control object.
    """

    def __init__(
        self, script: ScriptLike | Mock, host: str = "127.0.0.1", port: int = 0, *, journal_path: Path | None = None
    ) -> None:
        self.mock = script if isinstance(script, Mock) else Mock(script, journal_path=journal_path)
        self._host = host
        self._port = port
        self._ready = threading.Event()
        self._failure: UsageError | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, name="mock-provider", daemon=True)

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        try:
            running = await RunningServer.start(self.mock, self._host, self._port)
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
