"""Heads of requests seen before: a client sends the same one with every request, but for the length of the body.

Room: pure; the connection comes in.
"""

from __future__ import annotations

from dataclasses import dataclass

from mock_provider.caller import Caller
from mock_provider.http_head import MAX_LENGTH_DIGITS, CutLines, RequestHead, read_head
from mock_provider.mock import Mock

MAX_HEADS = 1024
MAX_HEAD_BYTES = 8 << 10  # longer ones are rare; all together stay within some MiB
_SPELLINGS = (b"\r\ncontent-length: ", b"\r\nContent-Length: ")


@dataclass(frozen=True, slots=True)
class Asking:
    """A head, who sent it, and how long the body will be. Shape: length_bytes None means in chunks."""

    head: RequestHead
    caller: Caller
    length_bytes: int | None


class KnownHeads:
    """Reads heads, those it has seen by comparing bytes alone.

    Limits: MAX_HEADS, then all are forgotten. Raises: FramingError, from read.
    """

    def __init__(self, mock: Mock, cut_lines: CutLines) -> None:
        self._mock = mock
        self._cut_lines = cut_lines
        self._known: dict[bytes, Asking] = {}

    def read(self, block: bytes) -> Asking:
        """Read a whole head, the empty line included."""
        for spelling in _SPELLINGS:
            at = block.find(spelling)
            if at >= 0:
                at += len(spelling)
                end = block.index(b"\r", at)
                digits = block[at:end]
                key = block[:at] + block[end:]
                known = self._known.get(key)
                if known is not None and digits.isdigit() and len(digits) <= MAX_LENGTH_DIGITS:
                    return Asking(known.head, known.caller, int(digits))
                return self._learn(block, key)
        return self._known.get(block) or self._learn(block, block)

    def _learn(self, block: bytes, key: bytes) -> Asking:
        head = read_head(block, self._cut_lines)
        caller = self._mock.recognize(head.method, head.target, head.headers)
        asking = Asking(head, caller, head.length_bytes)
        if len(block) <= MAX_HEAD_BYTES:
            if len(self._known) >= MAX_HEADS:
                self._known.clear()
            self._known[key] = asking
        return asking
