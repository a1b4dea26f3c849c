"""Events and headers as lines."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import InvalidEventError, LogDamagedError, LogUnsupportedError
from harness.log.events import EVENT_TYPES, SessionHeader
from harness.log.json_form import (
    encode_line,
    event_from_json,
    event_to_json,
    header_from_json,
    header_to_json,
    parse_line,
)
from harness.log.payload_form import READERS, WRITERS
from harness.model.messages import SessionId


def test_every_type_has_a_writer_and_a_reader():
    assert (set(WRITERS) >= set(EVENT_TYPES), set(READERS)) == (True, set(EVENT_TYPES.values()))


@settings(deadline=None)
@given(data=st.data())
def test_what_can_be_appended_can_be_read_back_equal(make, data):
    log, again = make.log(), make.log()
    for payload in data.draw(st.lists(make.payloads, max_size=6)):
        event = make.append(log, payload)
        again.restore(event_from_json(parse_line(encode_line(event_to_json(event))[:-1])))
    assert (list(again), again.messages()) == (list(log), log.messages())


def test_every_sample_is_spelled_in_plain_json_and_reads_back(make):
    log = make.log()
    for payload in make.samples():
        event = make.append(log, payload)
        assert event_from_json(json.loads(json.dumps(event_to_json(event)))) == event


def _sample_lines(make):
    log = make.log()
    return [event_to_json(make.append(log, payload)) for payload in make.samples()]


def _extra_keys(value, path=()):
    """Each copy of an object with one unknown key somewhere, apart from the values that are free JSON."""
    free = {"meta", "replayState", "parameters", "adapterDefaults", "facts"}
    if isinstance(value, dict):
        if value.get("type") in ("subagent/descriptor", "other/thing"):
            return
        yield (*path, "unknown")
        for key, item in value.items():
            if key not in free:
                yield from _extra_keys(item, (*path, key))
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _extra_keys(item, (*path, at))


def test_an_unknown_key_anywhere_is_refused(make):
    tried = 0
    for line in _sample_lines(make):
        for path in _extra_keys(line):
            changed = json.loads(json.dumps(line))
            target = changed
            for key in path[:-1]:
                target = target[key]
            target["unknown"] = None
            tried += 1
            with pytest.raises(InvalidEventError):
                event_from_json(changed)
    assert tried > 80


def _mutations(value, path=()):
    """Each place of an object, with values that belong to another type."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _mutations(item, (*path, key))
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _mutations(item, (*path, at))
    if path:
        for other in (None, True, 1.5, -7, "", "\N{SNOWMAN}", [], {}):
            yield path, other


def test_a_value_of_another_type_never_raises_anything_but_a_refusal(make):
    """Whatever a damaged line holds, reading ends in an event or in a named refusal."""
    outcomes = {"read": 0, "refused": 0}
    for seq, line in enumerate(_sample_lines(make)):
        for path, other in _mutations(line):
            changed = json.loads(json.dumps(line))
            target = changed
            for key in path[:-1]:
                target = target[key]
            target[path[-1]] = other
            log = make.log()
            changed["seq"] = 0 if changed.get("seq") == seq else changed.get("seq")
            try:
                log.restore(event_from_json(changed))
                outcomes["read"] += 1
            except (InvalidEventError, LogUnsupportedError):
                outcomes["refused"] += 1
    assert outcomes["refused"] > 1000
    assert outcomes["read"] > 100


def test_lone_surrogates_are_escaped_on_disk_and_come_back_as_they_were(make):
    log = make.log()
    event = log.append(make.chunk("half \ud83d end"))
    line = encode_line(event_to_json(event))
    assert (line.isascii(), b"half \\ud83d end" in line, event_from_json(parse_line(line))) == (True, True, event)


def test_two_halves_side_by_side_become_their_character_before_they_are_stored(make):
    event = make.log().append(make.chunk("\ud83e" + "\uddea"))
    assert event.payload.chunk.text == "\N{TEST TUBE}"


def test_a_line_is_compact_and_ends_with_its_only_newline(make):
    line = encode_line(event_to_json(make.log().append(make.chunk("a\nb\u2028c"))))
    assert (line.count(b"\n"), line[-1:], b": " in line, b", " in line) == (1, b"\n", False, False)


BAD_LINES = {
    "nothing": b"",
    "text": b"hello",
    "cut": b'{"type":"turn/sta',
    "array": b"[1]",
    "null": b"null",
    "nan": b'{"a":NaN}',
    "infinity": b'{"a":-Infinity}',
    "not_utf8": b'{"a":"\xff"}',
    "two_values": b'{"a":1}{"b":2}',
    "deep": b"[" * 100_000,
    "nul": b"\x00\x00\x00",
}


@pytest.mark.parametrize("line", BAD_LINES.values(), ids=BAD_LINES.keys())
def test_a_line_that_is_no_json_object_is_refused(line):
    with pytest.raises(InvalidEventError):
        parse_line(line)


def test_a_number_that_overflows_is_refused_with_its_place():
    line = b'{"type":"subagent/descriptor","seq":0,"time":1,"data":{"limits":[1e999]}}'
    with pytest.raises(InvalidEventError) as caught:
        event_from_json(parse_line(line))
    assert caught.value.where == "data.limits[0]"


ENVELOPES = {
    "unknown_key": {"more": 1},
    "ignorable_false": {"ignorable": False},
    "ignorable_null": {"ignorable": None},
    "operation_unknown": {"surfaceOp": "prepend"},
    "operation_replace_without_end": {"surfaceOp": {"op": "replace", "start": 0}},
    "operation_other": {"surfaceOp": {"op": "swap", "start": 0, "end": 0}},
    "sources_number": {"sourceEventSeqs": 3},
    "data_list": {"data": []},
    "type_number": {"type": 5},
}


@pytest.mark.parametrize("changes", ENVELOPES.values(), ids=ENVELOPES.keys())
def test_an_envelope_that_is_not_as_specified_is_refused(changes):
    with pytest.raises(InvalidEventError):
        event_from_json({"type": "turn/start", "seq": 0, "time": 1, "data": {"turn": 1}, **changes})


def test_L09_an_unknown_required_type_is_unsupported_and_not_damaged():
    with pytest.raises(LogUnsupportedError) as caught:
        event_from_json({"type": "vote/cast", "seq": 4, "time": 1, "data": {}})
    assert "vote/cast" in str(caught.value)


def test_L09_an_unknown_ignorable_type_is_kept_as_it_is():
    value = {"type": "vote/cast", "seq": 0, "time": 1, "data": {"x": [1, None]}, "ignorable": True}
    assert event_to_json(event_from_json(value)) == value


VERSIONS = {
    "newer": (7, "a newer build"),
    "much_newer": (10**6, "a newer build"),
    "older": (-1, "an older build"),
}


@pytest.mark.parametrize(("version", "direction"), VERSIONS.values(), ids=VERSIONS.keys())
@pytest.mark.parametrize("rest", [{}, {"type": 5, "alien": []}], ids=["bare", "alien"])
def test_L09_a_foreign_version_is_unsupported_with_its_direction_whatever_its_shape(version, direction, rest):
    with pytest.raises(LogUnsupportedError) as caught:
        header_from_json({"version": version, **rest})
    assert (direction in str(caught.value), "corrupt" in str(caught.value).lower()) == (True, False)


def test_a_header_reads_back_with_every_field(make):
    full = SessionHeader(SessionId("s"), 5, "/w", SessionId("p"), 3, "subagent", 2, "reviewer")
    bare = SessionHeader(SessionId("s"), 0)
    assert [header_from_json(json.loads(json.dumps(header_to_json(header)))) for header in (full, bare)] == [full, bare]


BAD_HEADERS = {
    "version_missing": {"version": KeyError},
    "version_text": {"version": "0"},
    "version_true": {"version": False},
    "type_other": {"type": "log"},
    "unknown_key": {"more": 1},
    "cwd_relative": {"cwd": "w"},
    "cwd_null": {"cwd": None},
    "depth_null": {"delegationDepth": None},
    "id_empty": {"id": ""},
    "created_float": {"createdAt": 1.0},
}


@pytest.mark.parametrize("changes", BAD_HEADERS.values(), ids=BAD_HEADERS.keys())
def test_a_header_of_this_version_that_does_not_read_is_damaged(changes):
    value = header_to_json(SessionHeader(SessionId("s"), 5)) | changes
    value = {key: item for key, item in value.items() if item is not KeyError}
    with pytest.raises(LogDamagedError):
        header_from_json(value)


def test_a_splice_tells_the_number_of_removed_items_and_their_fates(make):
    line = [line for line in _sample_lines(make) if line["type"] == "agent/inbox/spliced"][2]
    assert line["data"] == {
        "target": "next-turn",
        "start": 0,
        "inserted": [],
        "removedCount": 1,
        "removed": [{"id": "m1", "fate": "claimed", "turn": 1}],
    }


def test_a_splice_whose_count_disagrees_with_its_list_is_refused(make):
    line = [line for line in _sample_lines(make) if line["type"] == "agent/inbox/spliced"][2]
    line["data"]["removedCount"] = 2
    with pytest.raises(InvalidEventError):
        event_from_json(line)


def test_spelling_on_disk_of_a_whole_turn(make):
    log = make.log(times=[10])
    make.turn(log)
    assert [event_to_json(event) for event in log[3:6]] == [
        {"type": "step/start", "seq": 3, "time": 13, "data": {"turn": 1, "step": 1}},
        {
            "type": "user/message",
            "seq": 4,
            "time": 14,
            "data": {
                "id": "m1",
                "role": "user",
                "content": [{"type": "text", "text": "hi"}],
                "source": {"kind": "user"},
            },
            "surfaceOp": "append",
        },
        {
            "type": "request/header",
            "seq": 5,
            "time": 15,
            "data": {
                "header": {"config": {"provider": "mock", "model": "m"}, "system": "be brief"},
                "reason": "initial",
            },
        },
    ]
