"""Runs of stream pieces packed into one row each: storage words, not events.

Room: pure; the store packs what it writes, loading unpacks it. A packed run reads back event for event.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from operator import sub
from typing import Any, TypeAlias, cast

from harness.errors import InvalidEventError
from harness.log.events import AssistantChunk, Event
from harness.log.frozen import MAX_SAFE_INTEGER
from harness.log.json_form import event_to_json
from harness.log.model_checks import refuse
from harness.log.model_form import JsonDict, take, take_list
from harness.model.chunks import ReasoningDelta, TextDelta, ToolCallDelta
from harness.model.messages import CallId

MIN_RUN = 3  # two events are no longer than the row that would hold them

Delta: TypeAlias = TextDelta | ReasoningDelta | ToolCallDelta

_ROW = frozenset({"type", "seq0", "time0", "data"})
_TEXTS = frozenset({"turn", "step", "index", "dt", "texts"})
_ARGS = frozenset({"turn", "step", "index", "id", "dt", "args"})
_NAME = frozenset({"name"})
_ROW_TYPES = {TextDelta: "text-chunks", ReasoningDelta: "reasoning-chunks", ToolCallDelta: "tool-call-chunks"}
ROW_TYPES = frozenset(_ROW_TYPES.values())


class ChunkRow(Sequence[Event]):
    """The events of one packed row, made one by one when asked for.

    Shape: seq0 is the first seq, last_time the time of the last event, len() the number of events; a long log of deltas
    costs its strings and no more.
    """

    __slots__ = (
        "_call",
        "_gaps",
        "_kind",
        "_step",
        "_texts",
        "_time0",
        "_times",
        "_turn",
        "_where",
        "last_time",
        "seq0",
    )

    def __init__(
        self,
        kind: str,
        seq0: int,
        time0: int,
        gaps: list[int],
        place: tuple[int, int, int],
        texts: list[str],
        call: tuple[CallId, str | None] | None,
        last_time: int,
    ) -> None:
        self.seq0 = seq0
        self._kind = kind
        self._time0 = time0
        self._gaps = gaps
        self._times: list[int] | None = None  # summed up when somebody asks for an event; most rows are never asked
        self._turn, self._step, self._where = place
        self._texts = texts
        self._call = call
        self.last_time = last_time

    def __len__(self) -> int:
        return len(self._texts)

    def __getitem__(self, at: Any) -> Any:  # Any: Sequence wants slices too, which nobody asks a row for
        return self.event(range(len(self._texts))[at])

    def __iter__(self) -> Iterator[Event]:
        return (self.event(at) for at in range(len(self._texts)))

    def event(self, at: int) -> Event:
        """The event at that place of the row."""
        if self._times is None:
            self._times = list(accumulate(self._gaps, initial=self._time0))
        text = self._texts[at]
        delta: Delta
        if self._call is not None:
            delta = ToolCallDelta(self._where, self._call[0], text, self._call[1])
        elif self._kind == "text-chunks":
            delta = TextDelta(self._where, text)
        else:
            delta = ReasoningDelta(self._where, text)
        return Event(self.seq0 + at, self._times[at], AssistantChunk(self._turn, self._step, delta))


def pack(events: Sequence[Event]) -> list[JsonDict]:
    """The rows that hold these events: a packed row for each run of three or more like deltas, the event otherwise."""
    marks = [_mark(event) for event in events]
    rows: list[JsonDict] = []
    at = 0
    while at < len(events):
        end = at + 1
        mark = marks[at]
        if mark is not None:
            while end < len(events) and marks[end] == mark and events[end].seq == events[end - 1].seq + 1:
                end += 1
        if end - at >= MIN_RUN:
            rows.append(_pack_run(events[at:end]))
        else:
            rows.extend(event_to_json(event) for event in events[at:end])
        at = end
    return rows


def _mark(event: Event) -> tuple[object, ...] | None:
    """What the members of a run have in common; None for an event that is stored as it is."""
    payload = event.payload
    if type(payload) is not AssistantChunk or event.ignorable:
        return None
    chunk = payload.chunk
    if type(chunk) is TextDelta or type(chunk) is ReasoningDelta:
        return type(chunk), payload.turn, payload.step, chunk.index
    if type(chunk) is ToolCallDelta:
        return type(chunk), payload.turn, payload.step, chunk.index, chunk.id, chunk.name
    return None


def _pack_run(events: Sequence[Event]) -> JsonDict:
    pieces = cast("Sequence[AssistantChunk]", [event.payload for event in events])  # _mark proved what they are
    deltas = cast("Sequence[Delta]", [piece.chunk for piece in pieces])
    times = [event.time for event in events]
    first = deltas[0]
    data: JsonDict = {"turn": pieces[0].turn, "step": pieces[0].step, "index": first.index}
    if isinstance(first, ToolCallDelta):
        data["id"] = first.id
        if first.name is not None:
            data["name"] = first.name
    data["dt"] = list(map(sub, times[1:], times))
    if isinstance(first, ToolCallDelta):
        data["args"] = [delta.arguments_delta for delta in cast("Sequence[ToolCallDelta]", deltas)]
    else:
        data["texts"] = [delta.text for delta in cast("Sequence[TextDelta | ReasoningDelta]", deltas)]
    return {"type": _ROW_TYPES[type(first)], "seq0": events[0].seq, "time0": times[0], "data": data}


def is_row(value: JsonDict) -> bool:
    """Whether an object on a line is a packed row and not an event."""
    kind = value.get("type")
    return type(kind) is str and kind in ROW_TYPES


def unpack(value: JsonDict) -> ChunkRow:
    """The events of a packed row.

    Raises: InvalidEventError when the row is not exactly what pack would have written.
    """
    row = take(value, "row", _ROW)
    kind = row["type"]
    call: tuple[CallId, str | None] | None = None
    if kind == "tool-call-chunks":
        data = take(row["data"], "row.data", _ARGS, _NAME)
        texts = take_list(data["args"], "row.data.args")
        name = data.get("name")
        if type(data["id"]) is not str or ("name" in data and type(name) is not str):
            refuse("row.data", "id and name have to be strings")
        call = (CallId(data["id"]), name)
    elif kind in ROW_TYPES:
        data = take(row["data"], "row.data", _TEXTS)
        texts = take_list(data["texts"], "row.data.texts")
    else:
        refuse("row.type", f"{kind!r} is not a packed row")
    gaps = take_list(data["dt"], "row.data.dt")
    if len(texts) < MIN_RUN or len(gaps) != len(texts) - 1:
        refuse("row.data", f"{len(texts)} members with {len(gaps)} gaps between them")
    try:
        "".join(texts)  # what JSON gives is a string, or nothing that joins
    except TypeError:
        refuse("row.data", "a member is not a string")
    if set(map(type, gaps)) != {int}:
        refuse("row.data.dt", "a gap is not an integer")
    _bounded(row["seq0"], 0, "row.seq0")
    _bounded(row["seq0"] + len(texts), 0, "row.seq0")
    _bounded(data["turn"], 1, "row.data.turn")
    _bounded(data["step"], 1, "row.data.step")
    _bounded(data["index"], 0, "row.data.index")
    _bounded(row["time0"], -MAX_SAFE_INTEGER, "row.time0")
    last_time = row["time0"] + sum(gaps)
    if last_time > MAX_SAFE_INTEGER or min(gaps) < 0:  # rare: look at each sum
        for time in accumulate(gaps, initial=row["time0"]):
            _bounded(time, -MAX_SAFE_INTEGER, "row.data.dt")
    place = (data["turn"], data["step"], data["index"])
    return ChunkRow(kind, row["seq0"], row["time0"], gaps, place, texts, call, last_time)


def _bounded(value: object, least: int, where: str) -> None:
    if type(value) is not int or not least <= value <= MAX_SAFE_INTEGER:
        raise InvalidEventError(f"{value!r} is not an integer from {least} up", where=where)
