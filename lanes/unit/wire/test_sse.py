"""Event stream framing: every rule of the parsing algorithm, every split of the bytes, every limit."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import PeerError
from harness.wire.sse import MAX_EVENT_BYTES, SseDecoder, SseEvent


def decode(*pieces: bytes, limit: int = MAX_EVENT_BYTES) -> tuple[SseEvent, ...]:
    decoder = SseDecoder(limit)
    events = tuple(event for piece in pieces for event in decoder.feed(piece))
    decoder.end()
    return events


def message(data: str, event: str = "message", last_id: str = "") -> SseEvent:
    return SseEvent(event, data, last_id)


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        pytest.param(b"data: a\n\n", (message("a"),), id="lf"),
        pytest.param(b"data: a\r\r", (message("a"),), id="cr"),
        pytest.param(b"data: a\r\n\r\n", (message("a"),), id="crlf"),
        pytest.param(b"data: a\r\ndata: b\n\rdata: c\r\r\n", (message("a\nb"), message("c")), id="mixed-line-ends"),
        pytest.param(b"\xef\xbb\xbfdata: a\n\n", (message("a"),), id="byte-order-mark-is-stripped"),
        pytest.param(b"data: a\n\n\xef\xbb\xbfdata: b\n\n", (message("a"),), id="only-the-first-mark-is-stripped"),
        pytest.param(b"data: a\ndata: b\n\n", (message("a\nb"),), id="data-lines-are-joined"),
        pytest.param(b"data: a\ndata\ndata:\n\n", (message("a\n\n"),), id="empty-data-lines-count"),
        pytest.param(b"data:a\n\ndata:  b\n\n", (message("a"), message(" b")), id="one-space-is-optional"),
        pytest.param(b"data\n\n", (message(""),), id="data-without-a-colon"),
        pytest.param(b"data: a:b\n\n", (message("a:b"),), id="only-the-first-colon-cuts"),
        pytest.param(b"event: x\ndata: a\n\ndata: b\n\n", (message("a", "x"), message("b")), id="event-name-once"),
        pytest.param(b"event: x\n\ndata: b\n\n", (message("b"),), id="event-without-data-is-none"),
        pytest.param(
            b"id: 7\ndata: a\n\ndata: b\n\n",
            (message("a", "message", "7"), message("b", "message", "7")),
            id="id-stays",
        ),
        pytest.param(b"id: 7\0\ndata: a\n\n", (message("a"),), id="id-with-nul-is-ignored"),
        pytest.param(b"retry: 10\nfoo: bar\ndata: a\n\n", (message("a"),), id="other-fields-are-ignored"),
        pytest.param(b"Data: a\n\n", (), id="field-names-are-case-sensitive"),
        pytest.param(b": hello\n:\ndata: a\n: in between\n\n", (message("a"),), id="comments-are-no-payload"),
        pytest.param(b"data: a\n\ndata: b", (message("a"),), id="unended-line-is-no-event"),
        pytest.param(b"data: a\n\ndata: b\n", (message("a"),), id="event-without-blank-line-is-no-event"),
        pytest.param(b"\n\n\r\r\n", (), id="blank-lines-alone"),
        pytest.param(b"", (), id="nothing"),
        pytest.param(b"data: \xff\xc3\n\n", (message("��"),), id="bytes-that-are-no-text"),
    ],
)
def test_S02_a_stream_gives_these_events_whole_and_byte_by_byte(stream: bytes, expected: tuple[SseEvent, ...]) -> None:
    byte_by_byte = [stream[n : n + 1] for n in range(len(stream))]
    assert (decode(stream), decode(*byte_by_byte)) == (expected, expected)


def test_case_B05_only_lf_cr_and_crlf_end_a_line() -> None:
    exotic = "a\u2028b\u2029c\u0085d\x0b\x0c\x1c\x1d\x1ee"
    assert decode(f"data: {exotic}\n\n".encode()) == (message(exotic),)


LINES = st.one_of(
    st.sampled_from(
        [b"", b":", b": keep", b"data", b"event: x", b"id: 1", b"id: \x00", b"\xef\xbb\xbf", b"data: \xf0\x9f"]
    ),
    st.builds(lambda text: b"data: " + text.encode(), st.text(st.characters(exclude_categories=["Cs"]), max_size=8)),
)
STREAMS = st.lists(st.tuples(LINES, st.sampled_from([b"\n", b"\r", b"\r\n", b"\n\n", b"\r\r", b"\r\n\r\n", b""]))).map(
    lambda pairs: b"".join(line + end for line, end in pairs)
)


def observed(pieces: list[bytes], limit: int) -> tuple[tuple[SseEvent, ...], int, str]:
    """Events, comments and the error's text, as a reader of the whole stream sees them."""
    decoder = SseDecoder(limit)
    events: list[SseEvent] = []
    try:
        for piece in pieces:
            events += decoder.feed(piece)
        decoder.end()
    except PeerError as error:
        return tuple(events), 0, str(error)
    return tuple(events), decoder.comments, ""


@settings(deadline=None)
@given(stream=STREAMS, cuts=st.lists(st.integers(0, 200)), limit=st.sampled_from([12, 30, MAX_EVENT_BYTES]))
def test_S02_every_split_gives_the_same_events_comments_and_errors(stream: bytes, cuts: list[int], limit: int) -> None:
    places = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    pieces = [stream[begin:end] for begin, end in itertools.pairwise(places)]
    assert observed(pieces, limit) == observed([stream], limit)


def test_S02_an_event_of_exactly_the_limit_passes_and_one_byte_more_does_not() -> None:
    longest = b"data: " + b"x" * 94
    assert decode(longest + b"\n\n", limit=100) == (message("x" * 94),)
    with pytest.raises(PeerError) as caught:
        decode(b"data: a\n\n", longest + b"x", limit=100)
    assert (caught.value.error_code, "byte 9 " in caught.value.what) == ("EVENT_TOO_LONG", True)


def test_events_before_a_too_long_one_are_returned_first() -> None:
    decoder = SseDecoder(20)
    assert decoder.feed(b"data: a\n\ndata: " + b"x" * 30) == (message("a"),)
    with pytest.raises(PeerError):
        decoder.feed(b"\n\ndata: b\n\n")
    with pytest.raises(PeerError):
        decoder.end()


def test_many_lines_without_a_blank_one_pass_the_limit_too() -> None:
    with pytest.raises(PeerError):
        decode(*[b"foo: bar\n"] * 20, limit=100)


def test_an_endless_comment_costs_no_memory_and_is_no_error() -> None:
    decoder = SseDecoder(100)
    for _ in range(50):
        decoder.feed(b":" + b"x" * 99)
    assert (decoder.feed(b"\ndata: a\n\n"), decoder.comments) == ((message("a"),), 1)


def test_S07_comments_are_counted_as_signs_of_life() -> None:
    decoder = SseDecoder()
    decoder.feed(b": keep-alive\n\n: keep-alive\n\n:")
    assert decoder.comments == 2
