"""Reading the bytes of a file."""

from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import LogDamagedError, LogUnsupportedError
from harness.log.events import TurnStart
from harness.log.load import encode_events, encode_header, scan
from harness.model.messages import SessionId


def _bytes(log) -> bytes:
    return encode_header(log.header) + encode_events(log.since(0))


def _file(make, turns=2, chunks=4):
    log = make.log()
    for turn in range(1, turns + 1):
        make.turn(log, turn, chunks=chunks)
    return log, _bytes(log)


def _scan(make, data, **options):
    return scan(data, clock=make.clock(), **options)


@settings(deadline=None)
@given(data=st.data())
def test_what_was_written_loads_equal(make, data):
    log = make.log()
    for payload in data.draw(st.lists(make.payloads, max_size=8)):
        make.append(log, payload)
    found = _scan(make, _bytes(log))
    assert (list(found.log), found.log.messages(), found.log.header) == (list(log), log.messages(), log.header)
    assert (found.damage, found.good_size, found.lacks_newline) == (None, len(_bytes(log)), False)


def test_packed_unpacked_and_mixed_files_read_alike(make):
    log, packed = _file(make, chunks=9)
    plain = encode_header(log.header) + b"".join(encode_events([event]) for event in log)
    half = 10  # inside the first run of chunks
    mixed = encode_header(log.header) + encode_events(log[:half]) + encode_events(log[half:])
    assert len(packed) < len(mixed) < len(plain)
    assert [list(_scan(make, data).log) for data in (packed, plain, mixed)] == [list(log)] * 3


def test_P03_a_file_cut_at_any_byte_keeps_the_whole_records_before_the_cut(make):
    """The prefix is always whole records; what is dropped or kept without its newline is told apart."""
    log, data = _file(make, turns=1, chunks=2)
    first = len(encode_header(log.header))
    for cut in range(first, len(data) + 1):
        found = _scan(make, data[:cut])
        whole = data[:cut].rfind(b"\n") + 1
        fragment = data[whole:cut]
        kept = bool(fragment) and data[cut : cut + 1] == b"\n"
        assert found.good_size == (cut if kept else whole)
        assert (found.lacks_newline, found.damage is None) == (kept, kept or not fragment)
        assert list(found.log) == list(log[: len(found.log)])


def test_a_packed_row_is_dropped_as_a_whole(make):
    log = make.log()
    make.open_step(log)
    for text in "abcdef":
        log.append(make.chunk(text))
    found = _scan(make, _bytes(log)[:-10])
    assert list(found.log) == list(log)[:-6]


def _lines(data: bytes) -> list[bytes]:
    return data.splitlines(keepends=True)


DAMAGE = {
    "zeros": lambda line: b"\x00" * (len(line) - 1) + b"\n",
    "half_a_line": lambda line: line[: len(line) // 2] + b"\n",
    "blank": lambda line: b"\n",
    "not_an_object": lambda line: b"[]\n",
    "lost": lambda line: b"",
    "twice": lambda line: line * 2,
    "not_utf8": lambda line: b'{"type":"\xff"}\n',
    "another_seq": lambda line: line.replace(b'"seq":', b'"seq":9'),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_P04_damage_with_a_later_turn_end_is_refused(make, damage):
    _, data = _file(make, chunks=0)
    lines = _lines(data)
    lines[3] = damage(lines[3])
    with pytest.raises(LogDamagedError) as caught:
        _scan(make, b"".join(lines))
    assert "line" in str(caught.value)


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_P04_damage_without_a_later_turn_end_keeps_the_prefix(make, damage):
    log = make.log()
    make.turn(log)
    make.open_step(log, 2)
    lines = _lines(_bytes(log))
    at = len(make.log()) + 10  # inside the second turn, which has no end
    before = b"".join(lines[:at])
    found = _scan(make, before + damage(lines[at]) + b"".join(lines[at + 1 :]))
    kept = at if damage is DAMAGE["twice"] else at - 1
    assert ([event.seq for event in found.log], found.damage is not None) == (list(range(kept)), True)
    assert found.good_size == len(b"".join(lines[: kept + 1]))


def test_P04_a_bad_line_that_is_itself_a_turn_end_is_committed_history(make):
    log, data = _file(make, turns=1)
    repeated = data + encode_events([log[len(log) - 1]])
    with pytest.raises(LogDamagedError):
        _scan(make, repeated)


def test_P04_a_turn_end_in_the_text_of_a_message_is_not_one(make):
    log = make.log()
    make.open_step(log, text='{"type":"turn/end"}')
    lines = _lines(_bytes(log))
    broken = b"".join(lines[:2]) + b"garbage\n" + b"".join(lines[3:])
    assert len(_scan(make, broken).log) == 1


def test_P04_a_turn_end_that_does_not_read_itself_is_no_proof_of_committed_history(make):
    log = make.log()
    make.open_step(log)
    found = _scan(make, _bytes(log) + b'garbage\n{"type":"turn/end","se\n')
    assert (list(found.log), found.damage is not None) == (list(log), True)


def test_P04_salvage_takes_the_prefix_whatever_stands_behind_it(make):
    log, data = _file(make, chunks=0)
    lines = _lines(data)
    found = _scan(make, b"".join([*lines[:3], b"garbage\n", *lines[4:]]), salvage=True)
    assert (list(found.log), found.damage is not None) == (list(log[:2]), True)


def _child(make, seed_length):
    """A log of two turns that says how many of its events it inherited."""
    log, data = _file(make, chunks=0)
    header = dataclasses.replace(log.header, parent_session=SessionId("parent"), seed_length=seed_length)
    return log, encode_header(header) + data[len(encode_header(log.header)) :]


@pytest.mark.parametrize("beyond", [1, 10**12])
def test_F04_a_seed_length_beyond_the_log_is_damage_that_names_line_field_and_mending(make, beyond):
    log, _ = _child(make, 0)
    _, data = _child(make, len(log) + beyond)
    with pytest.raises(LogDamagedError) as caught:
        _scan(make, data)
    assert caught.value.what == f"line 1: header.seedLength is {len(log) + beyond}, and {len(log)} events read"
    assert "sessions salvage ID" in caught.value.fix


def test_F04_a_child_cut_at_any_byte_inside_its_seed_is_damage_and_behind_it_a_torn_tail(make):
    """A fork appears with its whole seed, so no crash leaves half of one."""
    log, data = _child(make, 4)
    lines = _lines(data)
    seed_end = len(b"".join(lines[:5]))
    for cut in range(len(lines[0]), len(data)):
        if cut >= seed_end - 1:  # the last record of the seed is whole without its newline
            assert len(_scan(make, data[:cut]).log) >= 4
            continue
        with pytest.raises(LogDamagedError, match=r"header\.seedLength is 4"):
            _scan(make, data[:cut])
    assert list(_scan(make, data).log) == list(log)


def test_F04_salvage_of_a_broken_seed_says_how_much_of_it_is_there(make):
    _, data = _child(make, 8)
    lines = _lines(data)
    found = _scan(make, b"".join([*lines[:4], b"garbage\n", *lines[5:]]), salvage=True)
    assert (len(found.log), found.log.header.seed_length) == (3, 3)
    assert found.damage.endswith("; 5 of 8 inherited events are missing")
    whole = _scan(make, data, salvage=True)
    assert (whole.log.header.seed_length, whole.damage) == (8, None)


HEADERS = {
    "empty_file": b"",
    "no_json": b"hello\n",
    "an_event": b'{"type":"turn/start","seq":0,"time":1,"data":{"turn":1}}\n',
    "torn": b'{"type":"session","ver',
}


@pytest.mark.parametrize("data", HEADERS.values(), ids=HEADERS.keys())
def test_a_file_without_a_header_is_damaged(make, data):
    with pytest.raises(LogDamagedError):
        _scan(make, data)


def test_a_header_alone_is_an_empty_log(make):
    header = encode_header(make.log().header)
    assert [(len(found.log), found.lacks_newline) for found in (_scan(make, header), _scan(make, header[:-1]))] == [
        (0, False),
        (0, True),
    ]


def test_L09_a_newer_version_is_refused_by_its_direction_before_anything_else(make):
    line = json.dumps({"version": 3, "shape": "alien"}).encode() + b"\ngarbage\n"
    with pytest.raises(LogUnsupportedError) as caught:
        _scan(make, line)
    assert "newer" in str(caught.value)


def test_L09_an_unknown_required_event_is_unsupported(make):
    data = encode_header(make.log().header) + b'{"type":"vote/cast","seq":0,"time":1,"data":{}}\n'
    with pytest.raises(LogUnsupportedError):
        _scan(make, data)


def test_L09_an_unknown_ignorable_event_keeps_its_place(make):
    log = make.log()
    data = encode_header(log.header) + b'{"type":"vote/cast","seq":0,"time":1,"data":{},"ignorable":true}\n'
    found = _scan(make, data).log
    found.append(TurnStart(1))
    assert make.types(found) == ["vote/cast", "turn/start"]


@settings(deadline=None)
@given(data=st.data())
def test_bytes_flipped_anywhere_end_in_a_log_or_in_a_named_error(make, data):
    _, good = _file(make, turns=1, chunks=3)
    spoiled = bytearray(good)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(spoiled) - 1))
        spoiled[at] = data.draw(st.integers(0, 255))
    try:
        found = _scan(make, bytes(spoiled))
    except (LogDamagedError, LogUnsupportedError):
        return
    assert [event.seq for event in found.log] == list(range(len(found.log)))
    assert found.good_size <= len(spoiled)
