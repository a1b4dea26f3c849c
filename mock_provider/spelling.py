"""A document as it was spelled, in pieces of which most are shared with others: histories repeat each other.

Room: pure; the reading of requests makes it, the journal keeps it.
"""

from __future__ import annotations

from typing import TypeAlias


class Spelling:
    """A document in pieces. Shape: together they are its bytes; shared are those that others have, own the rest."""

    __slots__ = ("own_bytes", "pieces", "shared")

    def __init__(self, pieces: tuple[bytes, ...], shared: tuple[bytes, ...], own_bytes: int) -> None:
        self.pieces = pieces
        self.shared = shared
        self.own_bytes = own_bytes

    def data(self) -> bytes:
        """The whole document."""
        return b"".join(self.pieces)


KeptBody: TypeAlias = "bytes | Spelling | None"


class Shelf:
    """Counts the bytes of spellings, those that are shared once."""

    __slots__ = ("_uses", "size_bytes")

    def __init__(self) -> None:
        self._uses: dict[int, int] = {}  # by identity; who is counted is kept by its spelling
        self.size_bytes = 0

    def add(self, kept: bytes | Spelling) -> None:
        """Count one."""
        if isinstance(kept, bytes):
            self.size_bytes += len(kept)
            return
        uses = self._uses
        self.size_bytes += kept.own_bytes
        for piece in kept.shared:
            count = uses.get(id(piece), 0)
            if not count:
                self.size_bytes += len(piece)
            uses[id(piece)] = count + 1

    def take(self, kept: bytes | Spelling) -> None:
        """Count one no more."""
        if isinstance(kept, bytes):
            self.size_bytes -= len(kept)
            return
        uses = self._uses
        self.size_bytes -= kept.own_bytes
        for piece in kept.shared:
            count = uses.pop(id(piece)) - 1
            if count:
                uses[id(piece)] = count
            else:
                self.size_bytes -= len(piece)

    def clear(self) -> None:
        """Count nothing."""
        self._uses.clear()
        self.size_bytes = 0
