"""One JSON object a line: framing, limits, and what is ignored in silence."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Self

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.wire import ndjson
from harness.wire.ndjson import DroppedLine, LineSplitter, NdjsonDecoder, decode_frame, encode_frame

if TYPE_CHECKING:
    from typing_extensions import Buffer


def test_TR03_lines_are_cut_at_lf_only() -> None:
    stream = "a\u2028b\u0085\r\nc\r\n\nlast".encode()
    assert LineSplitter().feed(stream) == ("a\u2028b\u0085\r".encode(), b"c\r", b"")


@settings(deadline=None)
@given(data=st.text(alphabet="ab\n", max_size=60), cuts=st.lists(st.integers(0, 60)))
def test_TR03_every_split_gives_the_same_lines(data: str, cuts: list[int]) -> None:
    stream = data.encode()
    places = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    split = LineSplitter(3)
    pieces = (stream[begin:end] for begin, end in itertools.pairwise(places))
    assert tuple(line for piece in pieces for line in split.feed(piece)) == LineSplitter(3).feed(stream)


def test_TR02_a_character_cut_by_a_read_is_whole() -> None:
    decoder = NdjsonDecoder()
    frame = '{"text":"価格 🧪"}\n'.encode()
    frames = [found for n in range(len(frame)) for found in decoder.feed(frame[n : n + 1])]
    assert frames == [{"text": "価格 🧪"}]


def test_TR03_frames_with_crlf_and_a_byte_order_mark_in_front_are_served() -> None:
    assert NdjsonDecoder().feed(b'\xef\xbb\xbf{"a":1}\r\n {"b":2} \n') == ({"a": 1}, {"b": 2})


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"", id="blank"),
        pytest.param(b" \t\r", id="white-space"),
        pytest.param(b"garbage", id="words"),
        pytest.param(b'{"id":1,"method":', id="cut"),
        pytest.param(b"null", id="null"),
        pytest.param(b"5", id="number"),
        pytest.param(b'"s"', id="string"),
        pytest.param(b"[]", id="empty-list"),
        pytest.param(b'[{"id":1}]', id="batch"),
        pytest.param(b'\xff\xfe{"id":1}', id="no-utf-8"),
        pytest.param(b'{"id":NaN}', id="nan"),
        pytest.param(b'{"id":-Infinity}', id="infinity"),
        pytest.param(b'{"id":1e999}', id="overflow"),
        pytest.param(b'{"id":' + b"9" * 5000 + b"}", id="number-of-thousands-of-digits"),
        pytest.param(b"[" * 100_000, id="deep-nesting"),
        pytest.param(b'{"a":' * 100_000, id="deep-objects"),
        pytest.param('{"id":1}'.encode("utf-16"), id="utf-16"),
    ],
)
def test_TR01_a_malformed_line_is_ignored_in_silence_and_the_next_one_is_served(line: bytes) -> None:
    assert NdjsonDecoder().feed(line + b'\n{"ok":true}\n') == ({"ok": True},)


def test_TR13_an_unterminated_last_line_is_not_processed() -> None:
    assert NdjsonDecoder().feed(b'{"a":1}\n{"b":2}') == ({"a": 1},)


@pytest.mark.parametrize("piece_bytes", [1, 4, 1000], ids=["bytes", "pieces", "whole"])
def test_TR18_a_too_long_line_is_dropped_once_and_the_following_line_is_served(piece_bytes: int) -> None:
    stream = b'{"a":1}\n' + b"x" * 100 + b'\n{"b":2}\n'
    decoder = NdjsonDecoder(max_line_bytes=20)
    frames = [frame for n in range(0, len(stream), piece_bytes) for frame in decoder.feed(stream[n : n + piece_bytes])]
    assert frames == [{"a": 1}, DroppedLine(20), {"b": 2}]


def test_TR18_a_line_of_exactly_the_limit_is_whole_and_the_newline_does_not_count() -> None:
    assert LineSplitter(5).feed(b"12345\n123456\n") == (b"12345", DroppedLine(5))


def test_TR18_an_endless_line_is_reported_when_the_limit_is_passed_and_held_no_longer() -> None:
    split = LineSplitter(1000)
    reports = [line for _ in range(100) for line in split.feed(b"x" * 100)]
    assert (reports, split.feed(b"\nnext\n")) == ([DroppedLine(1000)], (b"next",))


def test_TR18_the_cost_of_one_huge_line_grows_with_its_length_alone() -> None:
    assert [cost_of_a_line(pieces) / pieces for pieces in (2, 8, 32, 128)] == [cost_of_a_line(1)] * 4


class Counting(bytearray):
    """Counts the bytes that are copied into it and out of it, whichever way."""

    copied = 0

    def __iadd__(self, piece: Buffer, /) -> Self:  # type: ignore[override] # as narrow as bytearray has it
        self.copied += len(memoryview(piece))
        return super().__iadd__(piece)

    def __add__(self, piece: Buffer, /) -> bytearray:
        raise AssertionError("everything that is held would be copied for one more piece")

    def __bytes__(self) -> bytes:
        self.copied += len(self)
        return bytes(memoryview(self))


def cost_of_a_line(pieces: int) -> int:
    """Bytes copied to take one line in, in pieces of 4 KiB, its newline in a piece of its own."""
    split, held = LineSplitter(), Counting()
    split._held = held
    for _ in range(pieces):
        assert split.feed(b"x" * 4096) == ()
    assert split._held is held  # or what it does with another holder would not be seen
    assert split.feed(b"\n") == (b"x" * 4096 * pieces,)
    return held.copied


def test_TR19_a_lone_surrogate_survives_as_an_escape_and_no_exotic_line_end_leaves() -> None:
    frame = {"text": "half \ud83d end \u2028 🧪"}
    encoded = encode_frame(frame)
    assert (encoded.isascii(), encoded.count(b"\n"), decode_frame(encoded)) == (True, 1, frame)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")], ids=repr)
def test_TR19_a_number_that_is_not_finite_never_leaves(number: float) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        encode_frame({"n": number})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=50, deadline=None)
@given(frame=st.dictionaries(st.text(max_size=3), JSON, max_size=3))
def test_what_one_end_writes_the_other_end_reads(frame: dict[str, object]) -> None:
    encoded = encode_frame(json.loads(json.dumps(frame)))
    assert NdjsonDecoder().feed(encoded) == (frame,)


@pytest.mark.parametrize("cut", range(1, 40))
def test_TR03_noise_in_any_pieces_takes_no_frame_with_it(cut: int) -> None:
    data = b'noise\n{"a":\n{"b":2}\nmore noise\nno\n{"c":3}\nnoi'
    decoder = NdjsonDecoder()
    found = [*decoder.feed(data[:cut]), *decoder.feed(data[cut:]), *decoder.feed(b'se\n}{\n{"d":4}\n')]
    assert found == [{"b": 2}, {"c": 3}, {"d": 4}]


def test_TR01_a_flood_of_noise_is_looked_at_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[bytes] = []
    monkeypatch.setattr(ndjson, "decode_frame", looked_at.append)
    decoder = NdjsonDecoder()
    assert [decoder.feed(b"noise\n" * 10_000 + b"noi"), decoder.feed(b"se\n"), looked_at] == [(), (), [b"noise"]]
