"""A body in pieces, as it came or as it is given to a client.

Room: the players come in. It knows HTTP and nothing of recordings.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence

import httpx


class PieceStream(httpx.AsyncByteStream, httpx.SyncByteStream):
    """A body that comes in the given pieces, to either kind of client."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._pieces = tuple(pieces)

    def __iter__(self) -> Iterator[bytes]:
        yield from self._pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece


def cut(body: bytes, sizes: Sequence[int]) -> list[bytes]:
    """A body in pieces of these sizes."""
    parts: list[bytes] = []
    start = 0
    for size in sizes:
        parts.append(body[start : start + size])
        start += size
    return parts


def cut_at_events(body: bytes) -> list[bytes]:
    """A stream of events, one event a piece."""
    parts = body.split(b"\n\n")
    return [part + b"\n\n" for part in parts[:-1]] + [part for part in parts[-1:] if part]
