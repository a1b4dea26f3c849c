"""Reading request bodies that begin like earlier ones: the parts that are equal to the byte are not parsed again.

Room: pure; the reading of requests comes in.
An agent sends the same tools and a growing history with every request. The lists of a body are walked from the left, so
it is always known what a byte means; elements that followed each other before are compared as bytes, and only what
differs is parsed. Whatever looks unusual is left to the ordinary parser, which alone decides what is refused.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from mock_provider.json_values import Json, JsonObject
from mock_provider.known import KnownList, KnownObject

MIN_BYTES = 1024  # below, parsing costs less than looking for what is known
MAX_REMEMBERED_BYTES = 2 << 20  # of lists as spelled, about thrice that parsed: a hundred agents with their histories
MAX_BRANCHES = 64  # what may follow one beginning; looking through them costs less than parsing one message

_KEY = re.compile(rb'[ \t\n\r]*"([^"\\\x00-\x1f]*)"[ \t\n\r]*:[ \t\n\r]*')
_AFTER = re.compile(rb"[ \t\n\r]*([,\]}])[ \t\n\r]*")
_AFTER_TEXT = re.compile(r"[ \t\n\r]*([,\]}])[ \t\n\r]*")
_SPACE = re.compile(rb"[ \t\n\r]*")
_PLAIN = re.compile(rb'"([^"\\\x00-\x1f]*)"|(true)|(false)|(null)|(-?(?:0|[1-9][0-9]{0,17}))(?![0-9.eE])')


class _Unusual(Exception):  # noqa: N818 - not an error: the ordinary parser takes over
    """The document is not spelled the way clients spell it."""


def _not_a_number(word: str) -> Json:
    raise ValueError(f"{word} is no JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]} is out of range")
    return value


_OTHER_ENCODINGS = (
    b"\0",
    b"\xef",
    b"\xfe",
    b"\xff",
)  # a byte order mark, or a wide character; no JSON in UTF-8 begins so
_DECODER = json.JSONDecoder(parse_constant=_not_a_number, parse_float=_finite)


def parse_strictly(data: bytes) -> Json:
    """Read a document as the standard says: no NaN, no infinite numbers. Raises: ValueError, RecursionError."""
    if data.startswith(_OTHER_ENCODINGS) or data[1:2] == b"\0":
        value: Json = json.loads(data, parse_constant=_not_a_number, parse_float=_finite)
    else:
        value = _DECODER.decode(data.decode("utf-8", "surrogatepass"))
    return value


@dataclass(slots=True, eq=False)
class Run:
    """Neighbouring elements of a list, and what came after them.

    Shape: text is their spelling with what stands between them; starts and ends are places in it; cleared is for
    whoever checks the text against something, to note against what.
    """

    text: bytes
    starts: list[int]
    ends: list[int]
    values: list[Json]
    first: bytes = b""
    branches: list[Run] = field(default_factory=list)
    firsts: tuple[bytes, ...] = ()
    cleared: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.first = self.text[: self.ends[0]] if self.ends else b""

    def size_bytes(self) -> int:
        """How many bytes it keeps, with its branches."""
        size = 0
        waiting = [self]
        while waiting:
            run = waiting.pop()
            size += len(run.text)
            waiting += run.branches
        return size

    def agreement(self, data: bytes, at: int) -> int:
        """How many of the elements stand in these bytes at this place."""
        low, high = 1, len(self.ends) - 1  # the first one does, all do not
        while low < high:
            middle = (low + high + 1) // 2
            if data.startswith(self.text[: self.ends[middle - 1]], at):
                low = middle
            else:
                high = middle - 1
        return low

    def split(self, count: int) -> Run:
        """Cut into the first elements and the rest, which becomes a branch. Shape: the first part."""
        cut = self.starts[count]
        head = Run(self.text[: self.ends[count - 1]], self.starts[:count], self.ends[:count], self.values[:count])
        head.cleared = set(self.cleared)
        self.text = self.text[cut:]
        self.starts = [at - cut for at in self.starts[count:]]
        self.ends = [at - cut for at in self.ends[count:]]
        self.values = self.values[count:]
        self.first = self.text[: self.ends[0]]
        head.lead_to(self)
        return head

    def lead_to(self, run: Run) -> None:
        """Let another run follow; the most recent one stands first."""
        self.branches.insert(0, run)
        self.firsts = (run.first, *self.firsts)

    def drop(self, number: int = -1) -> Run:
        """Let one of the branches, the oldest if none is said, follow no more."""
        number %= len(self.branches)
        self.firsts = self.firsts[:number] + self.firsts[number + 1 :]
        return self.branches.pop(number)


def _root() -> Run:
    return Run(b"", [], [], [])


@dataclass(slots=True)
class Reading:
    """A document read.

    Shape: runs are the parts that were known; fresh is the document without them, fresh_bytes what else was spelled;
    news may be remembered: the name of a list, what stands before in it, and new elements.
    """

    value: Json
    runs: list[Run]
    fresh: Json
    fresh_bytes: bytes
    news: list[tuple[str, Run, Run]]


class Reader:
    """Reads documents and remembers their lists.

    Limits: MAX_REMEMBERED_BYTES; over it everything is forgotten and learned again. Not safe for threads.
    """

    def __init__(self, limit_bytes: int = MAX_REMEMBERED_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._roots: dict[str, Run] = {}
        self._size_bytes = 0

    def read(self, data: bytes) -> Reading:
        """Read a document. Raises: ValueError or RecursionError for what is not JSON."""
        if len(data) >= MIN_BYTES and data.startswith(b"{"):
            try:
                return _Walk(data, self._roots).document()
            except (_Unusual, ValueError, RecursionError):
                pass  # the ordinary parser says what is wrong, if anything is
        value = parse_strictly(data)
        return Reading(value, [], value, data, [])

    def remember(self, reading: Reading) -> None:
        """Remember the lists of a document; never one that holds a secret, they stay in memory."""
        for name, place, run in reading.news:
            if not place.ends:
                self._roots[name] = place
            self._size_bytes += len(run.text)
            if len(place.branches) == MAX_BRANCHES:
                self._size_bytes -= place.drop().size_bytes()
            place.lead_to(run)
        if self._size_bytes > self._limit_bytes:
            self.forget()

    def forget(self) -> None:
        """Forget everything."""
        self._roots.clear()
        self._size_bytes = 0


class _Walk:
    """One document, walked from the left."""

    def __init__(self, data: bytes, roots: dict[str, Run]) -> None:
        self._data = data
        self._roots = roots
        self._runs: list[Run] = []
        self._fresh: JsonObject = {}
        self._fresh_bytes: list[bytes] = []
        self._news: list[tuple[str, Run, Run]] = []
        self._fresh_from = 0

    def document(self) -> Reading:
        """Read the members of the document. Raises: _Unusual, ValueError, RecursionError."""
        data = self._data
        content: JsonObject = {}
        at = 1
        while True:
            key = _KEY.match(data, at)
            if key is None:
                raise _Unusual
            name = key.group(1).decode("utf-8", "surrogatepass")
            at = key.end()
            if name in content:
                raise _Unusual
            if data[at : at + 1] == b"[":
                content[name], at = self._list(name, at + 1)
            else:
                content[name], at = self._value(at)
                self._fresh[name] = content[name]
            after = _AFTER.match(data, at)
            if after is None:
                raise _Unusual
            at = after.end()
            end = after.group(1)
            if end == b"}" and at == len(data):
                break
            if end != b",":
                raise _Unusual
        self._fresh_bytes.append(data[self._fresh_from :])
        return Reading(content, self._runs, self._fresh, b"".join(self._fresh_bytes), self._news)

    def _value(self, at: int) -> tuple[Json, int]:
        data = self._data
        plain = _PLAIN.match(data, at)
        value: Json
        if plain is not None:
            kind = plain.lastindex
            if kind == 1:
                value = plain.group(1).decode("utf-8", "surrogatepass")
            else:
                value = int(plain.group(5)) if kind == 5 else (True, False, None)[(kind or 0) - 2]
            return value, plain.end()
        text = data[at:].decode("utf-8", "surrogatepass")
        value, end = _DECODER.raw_decode(text)
        return value, at + (end if text.isascii() else len(text[:end].encode("utf-8", "surrogatepass")))

    def _list(self, name: str, at: int) -> tuple[list[Json], int]:
        data = self._data
        place = self._roots.get(name) or _root()
        found = KnownList()
        space = _SPACE.match(data, at)
        at = space.end() if space else at
        if data[at : at + 1] == b"]":
            return found, at + 1
        while True:
            run = self._known(place, at)
            if run is None:
                return self._rest(name, place, found, at)
            place = run
            found += run.values
            self._runs.append(run)
            self._fresh_bytes.append(data[self._fresh_from : at])
            at += len(run.text)
            self._fresh_from = at
            after = _AFTER.match(data, at)
            if after is None or after.group(1) == b"}":
                raise _Unusual
            if after.group(1) == b"]":
                found.known_count = len(found)
                return found, after.start(1) + 1
            at = after.end()

    def _known(self, place: Run, at: int) -> Run | None:
        """The longest known run at this place; a longer one is cut where the document goes another way."""
        data = self._data
        if not data.startswith(place.firsts, at):
            return None
        number = next(n for n, first in enumerate(place.firsts) if data.startswith(first, at))
        run = place.branches[number]
        if data.startswith(run.text, at):
            if number:
                place.lead_to(place.drop(number))
            return run
        place.drop(number)
        head = run.split(run.agreement(data, at))
        place.lead_to(head)
        return head

    def _rest(self, name: str, place: Run, found: KnownList, start: int) -> tuple[list[Json], int]:
        """Parse the elements that are new, to the end of the list."""
        text = self._data[start:].decode("utf-8", "surrogatepass")
        values: list[Json] = []
        starts: list[int] = []
        ends: list[int] = []
        at = 0
        is_last = False
        while not is_last:
            value, end = _DECODER.raw_decode(text, at)
            values.append(KnownObject(value) if isinstance(value, dict) else value)
            starts.append(at)
            ends.append(end)
            after = _AFTER_TEXT.match(text, end)
            if after is None or after.group(1) == "}":
                raise _Unusual
            is_last = after.group(1) == "]"
            at = after.start(1) + 1 if is_last else after.end()
        if not text.isascii():
            starts, ends, at = _in_bytes(text, starts, ends, at)
        self._fresh[name] = values
        if all(
            isinstance(value, dict) for value in values
        ):  # other values do not show in their spelling where they end
            self._news.append((name, place, Run(self._data[start : start + ends[-1]], starts, ends, values)))
        found.known_count = len(found)
        found += values
        return found, start + at


def _in_bytes(text: str, starts: list[int], ends: list[int], last: int) -> tuple[list[int], list[int], int]:
    """Turn places in a text, in their order, into places in its bytes."""

    def counted() -> Iterator[int]:
        before = size = 0
        for place in (*(place for pair in zip(starts, ends, strict=True) for place in pair), last):
            size += len(text[before:place].encode("utf-8", "surrogatepass"))
            before = place
            yield size

    places = list(counted())
    return places[0:-1:2], places[1:-1:2], places[-1]
