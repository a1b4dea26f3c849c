"""Reading request bodies that begin like earlier ones: the parts that are equal to the byte are not parsed again.

Room: pure; the reading of requests comes in.
An agent sends the same tools and a growing history with every request. The lists of a body are walked from the left, so
it is always known what a byte means; elements that followed each other before are compared as bytes, and only what
differs is parsed. Whatever looks unusual is left to the ordinary parser, which alone decides what is refused.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass, field

from mock_provider.json_values import Json, JsonObject, objects_within
from mock_provider.known import KnownList
from mock_provider.runs import AFTER_TEXT, Run
from mock_provider.spelling import Spelling
from mock_provider.strict_json import DECODER, FAST, parse

MIN_BYTES = 1024  # below, parsing costs less than looking for what is known
MAX_REMEMBERED_BYTES = 2 << 20  # of lists as spelled, about thrice that parsed: a hundred agents with their histories
MAX_BRANCHES = 64  # what may follow one beginning; looking through them costs less than parsing one message
MAX_FRAMES = 8  # agents that work side by side offer different tools
MAX_FRAME_BYTES = 128 << 10  # the tools and settings of an agent, several times over

_KEY = re.compile(rb'[ \t\n\r]*"([^"\\\x00-\x1f]*)"[ \t\n\r]*:[ \t\n\r]*')
_AFTER = re.compile(rb"[ \t\n\r]*([,\]}])[ \t\n\r]*")
_COMMA = re.compile(rb"[ \t\n\r]*,[ \t\n\r]*")
_SPACE = re.compile(rb"[ \t\n\r]*")
_PLAIN = re.compile(rb'"([^"\\\x00-\x1f]*)"|(true)|(false)|(null)|(-?(?:0|[1-9][0-9]{0,17}))(?![0-9.eE])')
_LAST = b"]}"  # what stands behind a list that is the last member


class _Unusual(Exception):  # noqa: N818 - not an error: the ordinary parser takes over
    """The document is not spelled the way clients spell it."""


@dataclass(slots=True, eq=False)
class Frame:
    """A document without the elements of one list, the one that grows.

    Shape: before ends where the first element begins, after begins where the list is closed; head and rest are the
    members there. findings are for whoever knows what follows from them alone.
    """

    before: Run
    name: str
    after: Run
    head: JsonObject
    rest: JsonObject
    findings: dict[Hashable, object] = field(default_factory=dict)


@dataclass(slots=True)
class Reading:
    """A document read.

    Shape: data is all of it, as it was spelled; runs are the parts that were known; fresh is the document without them,
    fresh_bytes what else was spelled; news may be remembered: the name of a list, what stands before in it, and new
    elements; and a frame. spelling is the document in pieces, where most of it was known; within the frame that was,
    around a list.
    """

    data: bytes
    value: Json
    runs: list[Run]
    fresh: Json
    fresh_bytes: bytes
    news: list[tuple[str, Run, Run]]
    frame: Frame | None = None
    spelling: Spelling | None = None
    within: tuple[Frame, list[Json]] | None = None
    _objects: list[JsonObject] | None = None

    def fresh_objects(self) -> list[JsonObject] | None:
        """All objects in fresh; None where it is nested too deep."""
        if self._objects is None:
            self._objects = objects_within(self.fresh)
        return self._objects


_NO_RUNS: list[Run] = []
_NO_NEWS: list[tuple[str, Run, Run]] = []


class Reader:
    """Reads documents and remembers their lists.

    Limits: MAX_REMEMBERED_BYTES; over it everything is forgotten and learned again. Not safe for threads.
    """

    def __init__(self, limit_bytes: int = MAX_REMEMBERED_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._roots: dict[str, Run] = {}
        self._frames: list[Frame] = []
        self._size_bytes = 0

    def read(self, data: bytes) -> Reading:
        """Read a document. Raises: ValueError or RecursionError for what is not JSON."""
        if len(data) >= MIN_BYTES and data.startswith(b"{"):
            walk = _Walk(data, self._roots)
            try:
                for frame in self._frames:
                    if data.startswith(frame.before.text) and data.endswith(frame.after.text):
                        reading = walk.list_within(frame)
                        if reading is not None:
                            return reading
                return walk.document()
            except (_Unusual, ValueError, RecursionError):
                pass  # the ordinary parser says what is wrong, if anything is
        value = parse(data)
        return Reading(data, value, _NO_RUNS, value, data, _NO_NEWS)

    def remember(self, reading: Reading) -> None:
        """Remember the lists of a document; never one that holds a secret, they stay in memory."""
        for name, place, run in reading.news:
            if place.is_root:
                self._roots[name] = place
            self._size_bytes += len(run.text)
            if len(place.branches) == MAX_BRANCHES:
                self._size_bytes -= place.drop().size_bytes()
            place.lead_to(run)
        if reading.frame is not None:
            self._frames.insert(0, reading.frame)
            self._size_bytes += reading.frame.before.size_bytes() + reading.frame.after.size_bytes()
            if len(self._frames) > MAX_FRAMES:
                dropped = self._frames.pop()
                self._size_bytes -= dropped.before.size_bytes() + dropped.after.size_bytes()
        if self._size_bytes > self._limit_bytes:
            self.forget()

    def forget(self) -> None:
        """Forget everything."""
        self._roots.clear()
        self._frames.clear()
        self._size_bytes = 0


class _Walk:
    """One document, walked from the left."""

    __slots__ = ("_data", "_fresh", "_fresh_bytes", "_fresh_from", "_news", "_roots", "_runs", "_spans")

    def __init__(self, data: bytes, roots: dict[str, Run]) -> None:
        self._data = data
        self._roots = roots
        self._runs: list[Run] = []
        self._fresh: JsonObject = {}
        self._fresh_bytes: list[bytes] = []
        self._news: list[tuple[str, Run, Run]] = []
        self._spans: list[tuple[str, int, int]] = []  # lists with something new: first element, closing bracket
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
        fresh_bytes = b"".join(self._fresh_bytes)
        return Reading(data, content, self._runs, self._fresh, fresh_bytes, self._news, self._frame(content))

    def _frame(self, content: JsonObject) -> Frame | None:
        """What stands around the list that is new, if it is the only one."""
        if len(self._spans) != 1:
            return None
        name, start, end = self._spans[0]
        data = self._data
        if len(data) - end + start > MAX_FRAME_BYTES:
            return None
        names = [*content]
        at = names.index(name)
        head, rest = {key: content[key] for key in names[:at]}, {key: content[key] for key in names[at + 1 :]}
        return Frame(Run(data[:start], []), name, Run(data[end:], []), head, rest)

    def list_within(self, frame: Frame) -> Reading | None:
        """Read the list within a frame that fits; None where that is not all there is between."""
        data = self._data
        at, end = len(frame.before.text), len(data) - len(frame.after.text)
        place = self._roots.get(frame.name)
        if place is None or at >= end:
            return None
        found = KnownList()
        pieces, runs = [frame.before.text], [frame.before, frame.after]
        while at < end:
            run = self._known(place, at)
            if run is None:
                break
            place = run
            found += run.values
            found.runs.append(run)
            runs.append(run)
            pieces.append(run.text)
            at += len(run.text)
            comma = _COMMA.match(data, at)
            if comma is not None:
                pieces.append(comma.group())
                at = comma.end()
                if at >= end:
                    return None
            elif at != end:
                return None
        news, new = _NO_NEWS, b""
        fresh: JsonObject = {}
        if at < end:
            values = self._parse_up_to(end, at)
            if values is None:
                return None
            new = data[at:end]
            news = self._add(frame.name, place, found, new, values)
            fresh = {frame.name: values}
        pieces += (new, frame.after.text)
        content: JsonObject = {**frame.head, frame.name: found, **frame.rest}
        shared = tuple([run.text for run in runs])
        spelling = Spelling(tuple(pieces), shared, len(new) + len(runs))  # and a comma between two runs
        return Reading(data, content, runs, fresh, new, news, None, spelling, (frame, found))

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
        value, end = DECODER.raw_decode(text)
        return value, at + (end if text.isascii() else len(text[:end].encode("utf-8", "surrogatepass")))

    def _list(self, name: str, at: int) -> tuple[list[Json], int]:
        data = self._data
        place = self._roots.get(name) or Run(b"", [])
        found = KnownList()
        space = _SPACE.match(data, at)
        first = at = space.end() if space else at
        if data[at : at + 1] == b"]":
            return found, at + 1
        while True:
            run = self._known(place, at)
            if run is None:
                return self._rest(name, place, found, first, at)
            place = run
            found += run.values
            found.runs.append(run)
            self._runs.append(run)
            self._fresh_bytes.append(data[self._fresh_from : at])
            at += len(run.text)
            self._fresh_from = at
            after = _AFTER.match(data, at)
            if after is None or after.group(1) == b"}":
                raise _Unusual
            if after.group(1) == b"]":
                return found, after.start(1) + 1
            at = after.end()

    def _known(self, place: Run, at: int) -> Run | None:
        """The longest known run at this place; a longer one is cut where the document goes another way."""
        data = self._data
        if not place.branches:
            return None
        if data.startswith(place.branches[0].text, at):  # what came last, most often
            return place.branches[0]
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

    def _rest(self, name: str, place: Run, found: KnownList, first: int, start: int) -> tuple[list[Json], int]:
        """Parse the elements that are new, to the end of the list, whose first element begins at first."""
        end = len(self._data) - len(_LAST)
        values = self._parse_up_to(end, start) if self._data.endswith(_LAST) else None
        if values is None:
            values, end = self._parse_each(start)
        self._fresh[name] = values
        self._news += self._add(name, place, found, self._data[start:end], values)
        self._spans.append((name, first, end))
        return found, end + 1

    def _add(
        self, name: str, place: Run, found: KnownList, text: bytes, values: list[Json]
    ) -> list[tuple[str, Run, Run]]:
        """Add new elements to a list. Shape: what may be remembered of them."""
        run = Run(text.rstrip(b" \t\n\r"), values)
        found.runs.append(run)
        found += values
        if all(type(value) is dict for value in values):
            return [(name, place, run)]
        return []  # others do not show in their spelling where they end

    def _parse_up_to(self, end: int, start: int) -> list[Json] | None:
        """Parse the rest of a list that is closed here, if it is: where it can be parsed up to, it ends."""
        if end <= start:
            return None
        try:
            values = FAST.read(b"[%b]" % self._data[start:end])
        except (ValueError, RecursionError):
            return None
        return values if isinstance(values, list) and values else None

    def _parse_each(self, start: int) -> tuple[list[Json], int]:
        """Parse the rest of a list element by element. Shape: the elements, and where the list is closed."""
        text = self._data[start:].decode("utf-8", "surrogatepass")
        values: list[Json] = []
        at = 0
        while True:
            value, end = DECODER.raw_decode(text, at)
            values.append(value)
            after = AFTER_TEXT.match(text, end)
            if after is None or after.group(1) == "}":
                raise _Unusual
            if after.group(1) == "]":
                at = after.start(1)
                return values, start + (at if text.isascii() else len(text[:at].encode("utf-8", "surrogatepass")))
            at = after.end()
