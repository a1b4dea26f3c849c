"""Heads are read strictly, bodies in chunks whatever pieces they come in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mock_provider.http_head import MAX_CHUNK_LINE_BYTES, ChunkedBody, FramingError, cut_with_h11, read_head

CHUNKED = b"5\r\nhello\r\n1;a=b\r\n \r\n5 \r\nworld\r\n0\r\nx: y\r\n\r\n"


def fed(data: bytes, cuts: list[int], limit: int = 1_000) -> tuple[bytes, bytes | None]:
    """What came out of a body, and what was left over."""
    body = ChunkedBody(limit)
    for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
        rest = body.feed(data[start:end])
        if rest is not None:
            return body.content(), rest + data[end:]
    return body.content(), None


@pytest.mark.parametrize("at", range(1, len(CHUNKED)))
def test_a_body_cut_anywhere_is_the_same_body(at: int) -> None:
    assert fed(CHUNKED + b"GET", [at]) == (b"hello world", b"GET")


def test_a_body_in_single_bytes_is_the_same_body() -> None:
    assert fed(CHUNKED, list(range(1, len(CHUNKED)))) == (b"hello world", b"")


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"x\r\n", id="no-number"),
        pytest.param(b"-1\r\n", id="negative"),
        pytest.param(b"0x5\r\n", id="prefix"),
        pytest.param(b"5\nhello\r\n", id="line-feed"),
        pytest.param(b"5\r\nhelloX\r\n", id="longer-than-said"),
        pytest.param(b"1" * 16 + b"\r\n", id="too-many-digits"),
        pytest.param(b"0\r\nx\0: y\r\n\r\n", id="trailer"),
        pytest.param(b"5;" + b"a" * MAX_CHUNK_LINE_BYTES, id="endless-extension"),
    ],
)
def test_what_is_no_chunk_is_refused(data: bytes) -> None:
    with pytest.raises(FramingError):
        fed(data, [])


@given(sizes=st.lists(st.integers(1, 400), max_size=6), limit=st.integers(0, 2_000))
def test_a_body_over_the_limit_is_known_before_it_is_kept(sizes: list[int], limit: int) -> None:
    body = ChunkedBody(limit)
    for size in sizes:
        body.feed(b"%x\r\n" % size)
        if body.is_too_large:
            break
        body.feed(b"x" * size + b"\r\n")
    assert body.is_too_large is (sum(sizes) > limit)
    assert len(body.content()) <= limit


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        pytest.param(["GET / HTTP/1.1"], 400, id="no-host"),
        pytest.param(["GET / HTTP/3.0", "host: x"], 505, id="version"),
        pytest.param(["BREW / HTTP/1.1", "host: x"], 501, id="method"),
        pytest.param(["GET / HTTP/1.1", "host: x", "transfer-encoding: gzip"], 501, id="coding"),
        pytest.param(
            ["GET / HTTP/1.1", "host: x", "transfer-encoding: chunked", "transfer-encoding: chunked"], 501, id="twice"
        ),
        pytest.param(["POST / HTTP/1.1", "host: x", "transfer-encoding: chunked", "content-length: 5"], 400, id="both"),
        pytest.param(["POST / HTTP/1.0", "transfer-encoding: chunked"], 400, id="chunks-of-old"),
        pytest.param(["POST / HTTP/1.1", "host: x", "content-length: " + "9" * 30], 400, id="endless"),
        pytest.param(["POST / HTTP/1.1", "host: x", "content-length: 5", "content-length: 5"], 400, id="two-lengths"),
    ],
)
def test_what_could_be_taken_for_two_things_is_refused(lines: list[str], status: int) -> None:
    with pytest.raises(FramingError) as caught:
        read_head("\r\n".join([*lines, "", ""]).encode(), cut_with_h11)
    assert caught.value.status == status
