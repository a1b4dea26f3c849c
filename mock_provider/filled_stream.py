"""A stream that was sent before, with a new id: its chunks are framed already, and the digits are spliced in.

Room: pure; the patterns make it, the server sends it, the journal remembers it by its id.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mock_provider.actions import Action, Head, Send
from mock_provider.asked import AskedMessage

MAX_STREAM_BYTES = 512 << 10  # of one stream as it is kept; a longer one is made anew each time


@dataclass(slots=True, eq=False)
class StreamPattern:
    """A stream as it was sent.

    Shape: chunks are its writes, framed for HTTP/1.1, each as what stands between the digits of the answer's id; before
    each of them so many pieces of the answer were sent, and at last all. mark is what tells the id apart; said is what
    clients send back.
    """

    chunks: tuple[tuple[bytes, ...], ...]
    pieces: tuple[int, ...]
    mark: bytes
    said: AskedMessage


class FilledStream:
    """A pattern with the digits of its id."""

    __slots__ = ("_digits", "pattern")

    def __init__(self, pattern: StreamPattern, digits: bytes) -> None:
        self.pattern = pattern
        self._digits = digits

    def framed(self) -> Iterator[bytes]:
        """Its writes as chunks of HTTP/1.1."""
        return map(self._digits.join, self.pattern.chunks)

    def actions(self, head: Head) -> Iterator[Action]:
        """Its writes as actions of a plan."""
        yield head
        pieces = self.pattern.pieces
        for at, framed in enumerate(self.framed()):
            yield Send(_content(framed), pieces[at] < pieces[at + 1])

    def digest(self, count: int | None = None) -> bytes:
        """SHA-256 of the first so many writes, or of all."""
        digest = hashlib.sha256()
        for at, framed in enumerate(self.framed()):
            if at == count:
                break
            digest.update(_content(framed))
        return digest.digest()


def _content(framed: bytes) -> bytes:
    return framed[framed.index(b"\r\n") + 2 : -2]


def keep_stream(sends: Sequence[Send], answer_id: bytes, mark: bytes, said: AskedMessage) -> StreamPattern | None:
    """Make a pattern of a stream that was sent; None for one that has its id in two writes.

    Shape: answer_id ends with its digits, and is the only id in it.
    """
    if b"".join([send.data for send in sends]).count(answer_id) != sum(send.data.count(answer_id) for send in sends):
        return None
    chunks: list[tuple[bytes, ...]] = []
    pieces = [0]
    digits = answer_id.rpartition(b"-")[2]
    kind = answer_id[: -len(digits)]
    for send in sends:
        *before, last = send.data.split(answer_id)
        between = [part + kind for part in before] + [last]
        between[0] = b"%x\r\n%b" % (len(send.data), between[0])
        between[-1] += b"\r\n"
        chunks.append(tuple(between))
        pieces.append(pieces[-1] + send.is_piece)
    return StreamPattern(tuple(chunks), tuple(pieces), mark, said)
