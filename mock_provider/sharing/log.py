"""The order of events that all workers agree on.

Room: pure; the link comes in, tests use the one in memory.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Protocol


class LinkLostError(Exception):
    """The order of events cannot be reached any more; the text says why."""


class EventLog(Protocol):
    """Events in one order for all.

    Shape: append takes an event whose place would be `at`, counted from 0, unless others came first: then it gives
    those instead, oldest first, and nothing was appended. read gives the events from `at` on.
    Raises: LinkLostError.
    """

    def append(self, at: int, event: bytes) -> Sequence[bytes]: ...
    def read(self, at: int) -> Sequence[bytes]: ...


class MemoryLog:
    """The order of events in one process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._events: list[bytes] = []

    def append(self, at: int, event: bytes) -> Sequence[bytes]:
        """Append, or give what came first."""
        with self._lock:
            missed = self._events[at:]
            if not missed:
                self._events.append(event)
            return missed

    def read(self, at: int) -> Sequence[bytes]:
        """What came since."""
        with self._lock:
            return self._events[at:]
