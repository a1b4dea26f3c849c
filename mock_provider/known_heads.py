"""Heads of requests seen before: a client sends the same one with every request, but for the length of the body.

Room: the connection comes in.
"""

from __future__ import annotations

from dataclasses import dataclass

from mock_provider.caller import Caller
from mock_provider.framing import Framing
from mock_provider.http_head import MAX_LENGTH_DIGITS, CutLines, read_head
from mock_provider.mock import Mock

MAX_HEADS = 1024
MAX_EXACT_HEADS = 256  # a client of a test asks the same again, or an agent asks something longer each time
MAX_HEAD_BYTES = 8 << 10  # longer ones are rare; all together stay within some MiB
_SPELLINGS = (b"\r\ncontent-length: ", b"\r\nContent-Length: ")


@dataclass(frozen=True, slots=True)
class Asking:
    """A head, who sent it, and how the answer is to be framed. Shape: expects_go_on as in RequestHead."""

    caller: Caller
    framing: Framing
    expects_go_on: bool
    is_chunked: bool


class KnownHeads:
    """Reads heads, those it has seen by comparing bytes alone.

    Limits: MAX_HEADS, then all are forgotten. Raises: FramingError, from read.
    """

    def __init__(self, mock: Mock, cut_lines: CutLines) -> None:
        self._mock = mock
        self._cut_lines = cut_lines
        self._known: dict[bytes, Asking] = {}
        self._exactly: dict[bytes, tuple[Asking, int]] = {}

    def find(self, block: bytes) -> tuple[Asking, int] | None:
        """A head that was read before, and how long the body will be this time."""
        return self._exactly.get(block) or self._find_alike(block)

    def _find_alike(self, block: bytes) -> tuple[Asking, int] | None:
        """A head that differs in the length of the body, or was not seen lately."""
        key, digits = _cut_length(block)
        known = self._known.get(key)
        if known is None or not digits.isdigit() or len(digits) > MAX_LENGTH_DIGITS:
            return None
        if len(self._exactly) >= MAX_EXACT_HEADS:
            self._exactly.clear()
        found = self._exactly[block] = known, int(digits)
        return found

    def read(self, block: bytes) -> tuple[Asking, int]:
        """Read a whole head, the empty line included. Shape: the head, and how long the body will be."""
        return self.find(block) or self._learn(block)

    def _learn(self, block: bytes) -> tuple[Asking, int]:
        head = read_head(block, self._cut_lines)
        caller = self._mock.recognize(head.method, head.target, head.headers)
        framing = Framing(head.is_last, head.is_modern, head.method != "HEAD")
        asking = Asking(caller, framing, head.expects_go_on, head.length_bytes is None)
        length = head.length_bytes or 0
        key, digits = _cut_length(block)
        if len(block) <= MAX_HEAD_BYTES and int(digits) == length:
            if len(self._known) >= MAX_HEADS:
                self._known.clear()
            self._known[key] = asking
        return asking, length


def _cut_length(block: bytes) -> tuple[bytes, bytes]:
    """Cut the length of the body out of a head. Shape: the rest, and the digits; "0" where none is spelled as usual."""
    for spelling in _SPELLINGS:
        at = block.find(spelling)
        if at >= 0:
            at += len(spelling)
            end = block.index(b"\r", at)
            return block[:at] + block[end:], block[at:end]
    return block, b"0"
