"""What an answer does: bytes that go out, waits, and the places where it dies.

Room: pure; the dialects make items, faults makes plans of them, the faces carry them out.
"""

from __future__ import annotations

from typing import Protocol, TypeAlias

from mock_provider.steps import FaultKind
from mock_provider.values import value


@value
class Send:
    """Bytes that go out in one write. Shape: is_piece tells pieces of the answer from the dialect's framing."""

    data: bytes
    is_piece: bool = False


@value
class Wait:
    """Wait for a gate."""

    gate: str


@value
class Delay:
    """Let time pass."""

    ms: int


@value
class Die:
    """A fault is here: the answer ends badly, or its next event is harmed. Units: ms as in FaultAt."""

    kind: FaultKind
    ms: int = 0


@value
class Head:
    """Status and headers. Shape: length None means a body of unknown length, sent in chunks."""

    status: int
    headers: tuple[tuple[str, str], ...]
    length: int | None = None


class Opening(Protocol):
    """Something that opens once: see gates.Latch."""

    def wait(self, timeout_s: float | None = None) -> bool: ...
    async def opened(self, timeout_s: float | None = None) -> bool: ...


@value
class Hold:
    """Wait until something happens in the engine, or for so long."""

    until: Opening
    limit_s: float


Item: TypeAlias = "Send | Wait | Die"
Action: TypeAlias = "Head | Send | Wait | Delay | Hold | Die"
