"""Neighbouring elements of lists that arrived before, and what came after them: a tree of beginnings.

Room: pure; the reader of bodies grows the tree, findings about beginnings are noted in it.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator

from mock_provider.json_values import Json
from mock_provider.strict_json import DECODER, FAST

_NEXT = b"},{"  # between two objects, as most clients spell it; it may also stand inside of one
AFTER_TEXT = re.compile(r"[ \t\n\r]*([,\]}])[ \t\n\r]*")


class Run:
    """Neighbouring elements of a list, and what came after them.

    Shape: text is their spelling with what stands between them. Where each of them stands in it is worked out when a
    list goes another way for the first time. cleared is for whoever checks the text against something, to note against
    what; findings hold what `known.fold` found out about the list up to here, by the function it used.
    """

    __slots__ = ("_places", "branches", "cleared", "findings", "firsts", "text", "values")

    def __init__(self, text: bytes, values: list[Json], places: list[tuple[int, int]] | None = None) -> None:
        self.text = text
        self.values = values
        self.branches: list[Run] = []
        self.firsts: tuple[bytes, ...] = ()
        self.cleared: set[int] = set()
        self.findings: dict[Hashable, object] = {}
        self._places = places

    @property
    def is_root(self) -> bool:
        """Whether nothing stands before: the beginning of all lists of one name."""
        return not self.values

    def size_bytes(self) -> int:
        """How many bytes it keeps, with its branches."""
        size = 0
        waiting = [self]
        while waiting:
            run = waiting.pop()
            size += len(run.text)
            waiting += run.branches
        return size

    def first(self) -> bytes:
        """The spelling of the first element."""
        if self._places is not None:
            return self.text[: self._places[0][1]]
        if len(self.values) == 1:
            return self.text
        end = self.text.find(_NEXT) + 1
        if end and _is_whole(self.text[:end]):
            return self.text[:end]
        text = self.text.decode("utf-8", "surrogatepass")
        end = DECODER.raw_decode(text)[1]
        return self.text[: end if text.isascii() else len(text[:end].encode("utf-8", "surrogatepass"))]

    def places(self) -> list[tuple[int, int]]:
        """Where each element begins and ends in the text."""
        if self._places is None:
            self._places = list(_measure(self.text, len(self.values)))
        return self._places

    def agreement(self, data: bytes, at: int) -> int:
        """How many of the elements stand in these bytes at this place."""
        places = self.places()
        low, high = 1, len(places) - 1  # the first one does, all do not
        while low < high:
            middle = (low + high + 1) // 2
            if data.startswith(self.text[: places[middle - 1][1]], at):
                low = middle
            else:
                high = middle - 1
        return low

    def split(self, count: int) -> Run:
        """The same in two parts, for a tree that goes two ways here. Shape: the first part, which leads to the rest.

        This one stays as it is, for the lists that have it.
        """
        places = self.places()
        cut = places[count][0]
        head = Run(self.text[: places[count - 1][1]], self.values[:count], places[:count])
        rest = Run(self.text[cut:], self.values[count:], [(start - cut, end - cut) for start, end in places[count:]])
        head.cleared, rest.cleared = set(self.cleared), set(self.cleared)
        rest.branches, rest.firsts, rest.findings = self.branches, self.firsts, self.findings
        head.lead_to(rest)
        return head

    def lead_to(self, run: Run) -> None:
        """Let another run follow; the most recent one stands first."""
        self.branches.insert(0, run)
        self.firsts = (run.first(), *self.firsts)

    def drop(self, number: int = -1) -> Run:
        """Let one of the branches, the oldest if none is said, follow no more."""
        number %= len(self.branches)
        self.firsts = self.firsts[:number] + self.firsts[number + 1 :]
        return self.branches.pop(number)


def _is_whole(text: bytes) -> bool:
    """Whether this is one element, and not only the beginning of one."""
    try:
        FAST.read(text)
    except (ValueError, RecursionError):
        return False
    return True


def _measure(data: bytes, count: int) -> Iterator[tuple[int, int]]:
    """Where each of so many elements begins and ends."""
    text = data.decode("utf-8", "surrogatepass")
    is_ascii = text.isascii()
    at = before = size = 0
    for _ in range(count):
        _, end = DECODER.raw_decode(text, at)
        if is_ascii:
            yield at, end
        else:
            start = size + len(text[before:at].encode("utf-8", "surrogatepass"))
            size = start + len(text[at:end].encode("utf-8", "surrogatepass"))
            before = end
            yield start, size
        after = AFTER_TEXT.match(text, end)
        at = after.end() if after else end
