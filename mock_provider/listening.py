"""The open port of a server, which can be closed for a while and opened again at the same place.

Room: asyncio and sockets; the server comes in.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable

from mock_provider.errors import UsageError

TAKEN_AT_ONCE = 100  # of those who wait, in one turn of the loop, so that those who have to go leave before the next
BACKLOG = 2048  # connections that may wait to be taken; the system's own limit may be lower
RETRY_S = 0.05  # until the port is tried again, should another process have taken it meanwhile
MAX_PORT = 65_535


def listen(host: str, port: int, *, is_shared: bool = False) -> socket.socket:
    """Open a socket to serve on. Shape: is_shared lets other processes open the same port, each for a part of the load.

    Raises: UsageError when that is impossible.
    """
    listener = _bound(host, port, is_shared=is_shared)
    try:
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise _impossible(host, port, error) from None
    listener.setblocking(False)
    return listener


def reserve(host: str, port: int) -> socket.socket:
    """Take a port for others who will share it, without listening there: who connects is refused.

    Raises: UsageError when that is impossible.
    """
    return _bound(host, port, is_shared=True)


def _bound(host: str, port: int, *, is_shared: bool) -> socket.socket:
    try:
        if not 0 <= port <= MAX_PORT:
            raise OverflowError(f"ports go from 0 to {MAX_PORT}")
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        bound = socket.socket(family, socket.SOCK_STREAM)
    except (OSError, OverflowError, UnicodeError) as error:
        raise _impossible(host, port, error) from None
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if is_shared:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        bound.bind((str(address[0]), port))
    except OSError as error:
        bound.close()
        raise _impossible(host, port, error) from None
    return bound


def _impossible(host: str, port: int, error: Exception) -> UsageError:
    what = f"cannot listen on {host}:{port}: {error}"
    return UsageError(what, expected="a free port of this machine", fix="--port 0 takes any free one")


def _is_shared(listener: socket.socket) -> bool:
    option = getattr(socket, "SO_REUSEPORT", None)
    return option is not None and bool(listener.getsockopt(socket.SOL_SOCKET, option))


class Listening:
    """The port of one server.

    Shape: pause(seconds) closes it, so that new connections are refused; those that are open stay. It opens by itself.
    """

    def __init__(self, make: Callable[[], asyncio.BaseProtocol], listener: socket.socket) -> None:
        self._make = make
        self._listener: socket.socket | None = listener
        self._host, self._port = listener.getsockname()[:2]
        self._is_shared = _is_shared(listener)
        self._server: asyncio.Server | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Take connections."""
        loop = asyncio.get_running_loop()
        listener = self._listener or listen(self._host, self._port, is_shared=self._is_shared)
        self._listener = None
        self._server = await loop.create_server(self._make, sock=listener, backlog=TAKEN_AT_ONCE)
        listener.listen(BACKLOG)

    def pause(self, duration_s: float) -> None:
        """Close the port for a while; a pause within a pause makes it longer."""
        loop = asyncio.get_running_loop()
        if self._server is not None:
            self._server.close()
            self._server = None
        if self._timer is not None:
            self._timer.cancel()
        self._timer = loop.call_later(duration_s, self._reopen)

    def _reopen(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._try())

    async def _try(self) -> None:
        while True:
            with contextlib.suppress(UsageError):
                await self.open()
                return
            await asyncio.sleep(RETRY_S)

    def stop(self) -> None:
        """Close the port for good."""
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
        if self._server is not None:
            self._server.close()

    async def stopped(self) -> None:
        """Wait until that is done."""
        if self._server is not None:
            await self._server.wait_closed()


def root_of(listener: socket.socket) -> str:
    """The address of a socket, as the beginning of a URL."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
