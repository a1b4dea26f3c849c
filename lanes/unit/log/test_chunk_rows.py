"""Packing runs of stream pieces."""

from __future__ import annotations

import copy
import json

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from harness.errors import InvalidEventError
from harness.log.chunk_rows import is_row, pack, unpack
from harness.log.events import AssistantChunk, EndSeed, Event
from harness.log.json_form import event_from_json
from harness.model.chunks import ReasoningDelta, TextDelta, ToolCallDelta
from harness.model.messages import CallId

# All but the explanation of a failure, which runs it some hundred times more: 20 s where finding it took one.
PHASES = [phase for phase in Phase if phase is not Phase.explain]


def _read(rows: list[dict]) -> list[Event]:
    """The events of rows, by way of their text."""
    events: list[Event] = []
    for row in json.loads(json.dumps(rows)):
        events.extend(unpack(row) if is_row(row) else [event_from_json(row)])
    return events


def _events(chunks, times=None, first=0) -> list[Event]:
    return [
        Event(first + at, 1000 + at if times is None else times[at], AssistantChunk(1, 1, chunk))
        for at, chunk in enumerate(chunks)
    ]


@settings(deadline=None, phases=PHASES)
@given(data=st.data())
def test_L10_packing_and_unpacking_reproduces_every_batch_exactly(make, data):
    payloads = data.draw(st.lists(make.deltas | st.just(EndSeed()), max_size=20))
    first = data.draw(st.integers(0, 1000))
    times = [data.draw(st.integers(-(2**40), 2**40)) for _ in payloads]
    events = [Event(first + at, times[at], payload) for at, payload in enumerate(payloads)]
    assert _read(pack(events)) == events


def test_L10_a_row_keeps_each_fragment_and_each_gap(make):
    events = _events([TextDelta(0, text) for text in ("a", "", "b")], times=[10, 4, 9], first=7)
    assert pack(events) == [
        {
            "type": "text-chunks",
            "seq0": 7,
            "time0": 10,
            "data": {"turn": 1, "step": 1, "index": 0, "dt": [-6, 5], "texts": ["a", "", "b"]},
        }
    ]


def test_L10_a_run_of_calls_carries_id_and_name_once(make):
    events = _events([ToolCallDelta(2, CallId("c1"), text, "read") for text in "ab{"])
    assert pack(events)[0]["data"] == {
        "turn": 1,
        "step": 1,
        "index": 2,
        "id": "c1",
        "name": "read",
        "dt": [1, 1],
        "args": ["a", "b", "{"],
    }


def test_L10_two_alike_are_stored_as_they_are(make):
    assert [row["type"] for row in pack(_events([TextDelta(0, "a"), TextDelta(0, "b")]))] == ["assistant/chunk"] * 2


C1, C2 = CallId("c1"), CallId("c2")
BREAKS = {
    "kind": ([TextDelta(0, "a")] * 3, [ReasoningDelta(0, "a")] * 3),
    "index": ([TextDelta(0, "a")] * 3, [TextDelta(1, "a")] * 3),
    "call_id": ([ToolCallDelta(0, C1, "a")] * 3, [ToolCallDelta(0, C2, "a")] * 3),
    "name_presence": ([ToolCallDelta(0, C1, "a", "")] * 3, [ToolCallDelta(0, C1, "a")] * 3),
    "name": ([ToolCallDelta(0, C1, "a", "x")] * 3, [ToolCallDelta(0, C1, "a", "y")] * 3),
}


@pytest.mark.parametrize(("one", "other"), BREAKS.values(), ids=BREAKS.keys())
def test_L10_a_run_ends_where_its_kind_index_id_or_name_changes(one, other):
    events = _events([*one, *other])
    rows = pack(events)
    assert (len(rows), [row["seq0"] for row in rows], _read(rows)) == (2, [0, 3], events)


MARKS = {
    "kind": ("text", "reasoning", "call"),
    "step": (1, 2),
    "index": (0, 1),
    "id": (C1, C2),
    "name": (None, "", "x"),
}
CHANGES = [(field, value) for field, values in MARKS.items() for value in values]


def _piece(mark: dict, text: str) -> AssistantChunk:
    index = mark["index"]
    chunk = {
        "text": TextDelta(index, text),
        "reasoning": ReasoningDelta(index, text),
        "call": ToolCallDelta(index, mark["id"], text, mark["name"]),
    }
    return AssistantChunk(1, mark["step"], chunk[mark["kind"]])


@settings(deadline=None, phases=PHASES)
@given(runs=st.lists(st.tuples(st.sampled_from(CHANGES), st.integers(0, 3)), max_size=12))
def test_L10_runs_that_differ_in_one_mark_read_back_exactly(runs):
    mark = {field: values[0] for field, values in MARKS.items()} | {"kind": "call"}
    events = []
    for (field, value), length in runs:
        mark = {**mark, field: value}
        events += [Event(at, 1, _piece(mark, str(at))) for at in range(len(events), len(events) + length)]
    assert _read(pack(events)) == events


def test_L10_a_run_ends_where_the_step_changes(make):
    events = [Event(at, 1, AssistantChunk(1, 1 + at // 3, TextDelta(0, "a"))) for at in range(6)]
    assert [row["data"]["step"] for row in pack(events)] == [1, 2]


def test_an_ignorable_chunk_is_stored_as_it_is(make):
    events = [Event(at, 1, AssistantChunk(1, 1, TextDelta(0, "a")), ignorable=True) for at in range(4)]
    assert _read(pack(events)) == events
    assert not any(is_row(row) for row in pack(events))


GOOD = pack(_events([TextDelta(0, "a")] * 3))[0]
GOOD_CALL = pack(_events([ToolCallDelta(0, C1, "a", "x")] * 3))[0]


def _change(row: dict, place: str, value: object) -> dict:
    changed = copy.deepcopy(row)
    target = changed
    *path, last = place.split(".")
    for key in path:
        target = target[key]
    if value is KeyError:
        del target[last]
    else:
        target[last] = value
    return changed


MALFORMED = {
    "no_members": _change(_change(GOOD, "data.texts", []), "data.dt", []),
    "gap_missing": _change(GOOD, "data.dt", [1]),
    "gap_too_many": _change(GOOD, "data.dt", [1, 1, 1]),
    "gap_float": _change(GOOD, "data.dt", [1, 1.0]),
    "gap_bool": _change(GOOD, "data.dt", [1, True]),
    "text_number": _change(GOOD, "data.texts", ["a", 1, "c"]),
    "texts_string": _change(GOOD, "data.texts", "abc"),
    "key_missing": _change(GOOD, "data.index", KeyError),
    "key_extra": _change(GOOD, "data.more", 1),
    "row_key_extra": _change(GOOD, "seq", 0),
    "seq_negative": _change(GOOD, "seq0", -1),
    "seq_bool": _change(GOOD, "seq0", True),
    "seq_beyond": _change(GOOD, "seq0", 2**53 - 1),
    "time_float": _change(GOOD, "time0", 1.5),
    "time_beyond": _change(GOOD, "data.dt", [2**53 - 1, 5]),
    "turn_zero": _change(GOOD, "data.turn", 0),
    "call_id_number": _change(GOOD_CALL, "data.id", 5),
    "call_name_null": _change(GOOD_CALL, "data.name", None),
    "call_with_texts": _change(_change(GOOD_CALL, "data.args", KeyError), "data.texts", ["a"] * 3),
    "data_list": _change(GOOD, "data", []),
    "type_unknown": _change(GOOD, "type", "image-chunks"),
}


@pytest.mark.parametrize("row", MALFORMED.values(), ids=MALFORMED.keys())
def test_L10_a_malformed_row_fails_loudly(row):
    with pytest.raises(InvalidEventError):
        unpack(row)


def test_the_row_the_malformed_ones_were_made_from_reads():
    assert [len(unpack(GOOD)), len(unpack(GOOD_CALL))] == [3, 3]
