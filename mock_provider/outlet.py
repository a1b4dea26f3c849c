"""Writing to one client: at once where the socket takes it, else through the transport, which waits.

Room: asyncio and sockets; only the connection comes in.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER with time 0: closing sends RST instead of FIN


class Outlet:
    """The writing side of a connection.

    Shape: is_drained tells whether the client keeps up; after a write that left it False, wait for drained().
    """

    __slots__ = ("_drained", "_number", "_transport", "is_drained")

    def __init__(self, transport: asyncio.Transport) -> None:
        transport.set_write_buffer_limits(high=0)
        self._transport: asyncio.Transport | None = transport
        held = transport.get_extra_info("socket")
        self._number: int = held.fileno() if held is not None else -1
        self._drained: asyncio.Future[None] | None = None
        self.is_drained = True

    @property
    def is_open(self) -> bool:
        """Whether anything can still be written."""
        return self._transport is not None and not self._transport.is_closing()

    def write(self, data: bytes) -> None:
        """Write in a system call of its own, so that pieces stay apart on the wire; what does not fit is kept.

        The transports of faster loops gather what one turn of the loop writes; a stream would arrive in lumps.
        """
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if self.is_drained and self._number >= 0:
            try:
                sent = os.write(self._number, data)
            except OSError:
                sent = 0  # full, or gone: the transport finds out and says so in the proper way
            if sent == len(data):
                return
            data = data[sent:]
        if data:
            transport.write(data)

    def pause(self) -> None:
        """The client is slower than we are."""
        self.is_drained = False

    def resume(self) -> None:
        """The client has taken everything."""
        self.is_drained = True
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)
        self._drained = None

    async def drained(self) -> None:
        """Wait until the client has taken everything."""
        if not self.is_drained:
            if self._drained is None:
                self._drained = asyncio.get_running_loop().create_future()
            await self._drained

    def lost(self) -> None:
        """The connection is no more."""
        self._transport = None
        self.resume()

    def close(self) -> None:
        """Close once everything is written."""
        if self._transport is not None:
            self._transport.close()

    def reset(self) -> None:
        """Throw everything away and tell the client by a reset."""
        if self._transport is not None:
            held = self._transport.get_extra_info("socket")
            if held is not None:
                held.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            self._transport.abort()
