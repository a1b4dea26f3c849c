"""Who may be connected, and for how long without saying anything.

Room: asyncio; only the server comes in.
"""

from __future__ import annotations

import asyncio
import resource

from mock_provider.connection import LINGER_TURNS, Connection
from mock_provider.http_head import CutLines
from mock_provider.known_heads import KnownHeads
from mock_provider.mock import Mock

RESERVED_FILES = 256  # of the process's open files: journal, loop, a test around us, and two turns' worth of accepting
MIN_CONNECTIONS = 16
MAX_FILES = 65_536
TURNS = 4  # of the clock in the shorter of the times that a client has; it is late by at most a quarter of it
MAX_TURN_S = 1.0


class Doorkeeper:
    """Makes the connections of one server, and ends those that wait too long.

    Limits: when all places are taken, the connection that has been idle the longest makes room; without one the new
    one is turned away with 503. One clock for all, so that a connection costs no timer.
    """

    def __init__(self, mock: Mock, cut_lines: CutLines) -> None:
        self._mock = mock
        self._known = KnownHeads(mock, cut_lines)
        self._connections: dict[Connection, None] = {}
        self._places = mock.limits.connections or _places()
        self._turn_s = min(mock.limits.receive_s / TURNS, mock.limits.idle_s / TURNS, MAX_TURN_S)
        self._clock: asyncio.TimerHandle | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start the clock."""
        self._clock = loop.call_later(self._turn_s, self._turn, loop)

    def connection(self) -> Connection:
        """A place for a new connection."""
        is_full = len(self._connections) >= self._places
        if is_full:
            idle = next((one for one in self._connections if one.is_idle), None) or next(
                (one for one in self._connections if one.is_receiving), None
            )
            if idle is not None:
                idle.shut()
                is_full = False
        return Connection(self._mock, self._known, self._connections, is_welcome=not is_full)

    def close(self) -> None:
        """Stop the clock and end every connection."""
        if self._clock is not None:
            self._clock.cancel()
        for connection in tuple(self._connections):
            connection.shut()

    def _turn(self, loop: asyncio.AbstractEventLoop) -> None:
        limits = self._mock.limits
        for connection in tuple(self._connections):
            connection.patience += 1
            waited_s = connection.patience * self._turn_s
            if connection.is_leaving:
                if connection.patience > LINGER_TURNS:
                    connection.shut()
            elif connection.is_receiving:
                if waited_s > limits.receive_s:
                    connection.hurry()
            elif connection.is_idle and waited_s > limits.idle_s:
                connection.shut()
        self._clock = loop.call_later(self._turn_s, self._turn, loop)


def allow_many_files() -> None:
    """Let this process have as many open files as it may, within reason: every connection is one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_FILES)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _places() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(soft - RESERVED_FILES, MIN_CONNECTIONS)
