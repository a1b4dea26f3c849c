"""A source and a sink in memory, in the hands of a test.

Room: the tests of the peer and of what is built on it come in.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from harness.transport.pipes import PipeClosedError


class MemorySource:
    """Gives what the test sends."""

    def __init__(self) -> None:
        self.is_closed = False
        self._take: Callable[[bytes], None] = lambda data: None
        self._ended: Callable[[str | None], None] = lambda problem: None

    def start(self, take: Callable[[bytes], None], ended: Callable[[str | None], None]) -> None:
        self._take, self._ended = take, ended

    def close(self) -> None:
        self.is_closed = True

    def send(self, data: bytes) -> None:
        self._take(data)

    def frame(self, **members: Any) -> None:
        self.send(json.dumps(members).encode() + b"\n")

    def end(self, problem: str | None = None) -> None:
        self._ended(problem)


class MemorySink:
    """Keeps what was written; on_put may answer before put returns."""

    def __init__(self) -> None:
        self.data = b""
        self.fails = False
        self.is_closed = False
        self.on_put: Callable[[], None] = lambda: None
        self.on_failure: Callable[[str], None] = lambda problem: None

    def put(self, data: bytes) -> None:
        if self.fails:
            raise PipeClosedError("the output cannot be written: broken pipe")
        self.data += data
        self.on_put()

    async def room(self) -> None:
        return

    async def flush(self) -> None:
        return

    def close(self) -> None:
        self.is_closed = True

    @property
    def frames(self) -> list[Any]:
        return [json.loads(line) for line in self.data.splitlines()]
