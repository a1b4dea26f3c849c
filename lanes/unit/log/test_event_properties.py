"""What holds of any event, and of any run of them: written and loaded equal, however it was batched and packed."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.log.chunk_rows import is_row, pack, unpack
from harness.log.events import (
    EVENT_TYPES,
    AssistantChunk,
    AssistantMessage,
    Event,
    ForeignPayload,
    Replace,
    ToolResult,
    UserMessage,
)
from harness.log.fold import fold_messages, fold_surface
from harness.log.json_form import encode_line, event_from_json, event_to_json, parse_line
from harness.log.load import encode_events, encode_header, scan
from harness.log.session_log import SessionLog
from harness.model.chunks import ReasoningDelta, TextDelta, ToolCallDelta
from lanes.unit.log.event_strategies import PAYLOADS

EVERY = pytest.mark.parametrize("kind", PAYLOADS, ids=[kind.__name__ for kind in PAYLOADS])
SURFACE = (UserMessage, AssistantMessage, ToolResult)


def few_examples(count):
    return settings(
        max_examples=count, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )


def append(log: SessionLog, payload, data) -> Event:
    """Append with an operation and citations drawn as far as its type may have any."""
    operation = sources = None
    if isinstance(payload, SURFACE):
        seqs = list(range(len(log)))
        cited = data.draw(st.lists(st.sampled_from(seqs), max_size=2, unique=True)) if seqs else []
        surface = log.surface()
        if surface and not isinstance(payload, ToolResult) and data.draw(st.booleans()):
            first = data.draw(st.integers(0, len(surface) - 1))
            shadowed = surface[first : data.draw(st.integers(first, len(surface) - 1)) + 1]
            operation = Replace(shadowed[0], shadowed[-1])
            cited = [*dict.fromkeys([*shadowed, *cited])]
        sources = tuple(cited) or (() if isinstance(payload, AssistantMessage) and data.draw(st.booleans()) else None)
    foreign = isinstance(payload, ForeignPayload)
    return log.append(payload, surface_op=operation, source_event_seqs=sources, ignorable=foreign)


def load(make, data: bytes) -> SessionLog:
    found = scan(data, clock=make.clock())
    assert (found.damage, found.good_size, found.lacks_newline) == (None, len(data), False)
    return found.log


def same(log: SessionLog) -> tuple[object, ...]:
    """Everything a log says."""
    return log.header, tuple(log), log.surface(), tuple(log.messages())


def test_every_type_of_event_is_drawn():
    assert set(PAYLOADS) == {*EVENT_TYPES, ForeignPayload}


@EVERY
@few_examples(40)
@given(data=st.data())
def test_an_event_of_any_type_is_written_and_read_equal(make, kind, data):
    log = make.log()
    append(log, UserMessage(make.user()), data)
    event = append(log, data.draw(PAYLOADS[kind]), data)
    line = encode_line(event_to_json(event))
    assert (line.count(b"\n"), event_from_json(parse_line(line[:-1]))) == (1, event)
    assert json.loads(json.dumps(event_to_json(event), allow_nan=False)) == json.loads(line)
    assert same(load(make, encode_header(log.header) + encode_events(tuple(log)))) == same(log)


@few_examples(60)
@given(data=st.data())
def test_a_log_of_any_events_loads_equal_however_it_was_cut_into_batches(make, data):
    log = make.log()
    for kind in data.draw(st.lists(st.sampled_from(list(PAYLOADS)), max_size=8)):
        append(log, data.draw(PAYLOADS[kind]), data)
    events = tuple(log)
    cut = data.draw(st.integers(0, len(events)))
    batches = encode_events(events[:cut]) + encode_events(events[cut:])
    singly = b"".join(encode_events((event,)) for event in events)
    for written in (encode_events(events), batches, singly):
        assert same(load(make, encode_header(log.header) + written)) == same(log)


@few_examples(60)
@given(data=st.data())
def test_the_views_of_a_log_are_one_function_of_its_events(make, data):
    log = make.log()
    for kind in data.draw(st.lists(st.sampled_from([*SURFACE, *SURFACE, AssistantChunk]), max_size=8)):
        append(log, data.draw(PAYLOADS[kind]), data)
        events = tuple(log)
        assert (fold_messages(events), fold_surface(events)) == (tuple(log.messages()), log.surface())
        assert fold_messages(list(events)) == fold_messages(events)


DELTAS = st.lists(
    st.builds(TextDelta, st.integers(0, 1), st.text(max_size=2))
    | st.builds(ReasoningDelta, st.integers(0, 1), st.text(max_size=2))
    | st.builds(
        ToolCallDelta, st.just(0), st.sampled_from(["c1", ""]), st.text(max_size=2), st.sampled_from([None, ""])
    ),
    max_size=9,
)


@few_examples(100)
@given(deltas=DELTAS, times=st.lists(st.integers(-(2**40), 2**40), min_size=9, max_size=9), first=st.integers(0, 9))
def test_L10_rows_unpack_to_the_events_they_were_packed_from_and_packing_is_settled(deltas, times, first):
    events = [Event(first + at, times[at], AssistantChunk(1, 1, delta)) for at, delta in enumerate(deltas)]
    rows = json.loads(json.dumps(list(pack(events))))
    found = [each for row in rows for each in (unpack(row) if is_row(row) else [event_from_json(row)])]
    assert found == events
    assert json.loads(json.dumps(list(pack(found)))) == rows
