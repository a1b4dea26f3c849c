"""Binary frames become lines and lines become the same frames; what is damaged is seen."""

from __future__ import annotations

import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mock_provider.dialects.bedrock_frames import event, exception, frame
from mock_provider.recording.frames import Frame, encode_frames, parse_frames, read_frames, spell_frames

NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)
FRAMES = st.builds(
    Frame,
    st.dictionaries(NAMES, st.text(st.characters(codec="utf-8"), max_size=20), max_size=4).map(
        lambda headers: tuple(headers.items())
    ),
    st.one_of(
        st.text(st.characters(codec="utf-8"), max_size=50),
        st.sampled_from(
            ['{"a":1}', '{"a": 1}', "[1e2]", '"a"', "null", '{"a":1,"a":2}', '"\\ud800"', "{}\n", "\u2028"]
        ),
    ),
)
STREAM = event("messageStart", b'{"role":"assistant"}') + exception("throttlingException", b'{"message":"m"}')


@given(st.lists(FRAMES, max_size=4))
def test_lines_give_back_the_bytes_whatever_the_frames_hold(frames: list[Frame]) -> None:
    sent = b"".join(encode_frames(frames))
    read = read_frames(sent)
    assert read == frames
    assert b"".join(encode_frames(parse_frames(spell_frames(read)))) == sent


def test_every_cut_and_every_turned_bit_is_seen() -> None:
    ends = {0, len(event("messageStart", b'{"role":"assistant"}')), len(STREAM)}
    assert {end for end in range(len(STREAM) + 1) if read_frames(STREAM[:end]) is not None} == ends
    turned = [STREAM[:at] + bytes((STREAM[at] ^ 1 << at % 8,)) + STREAM[at + 1 :] for at in range(len(STREAM))]
    assert [one for one in turned if read_frames(one) is not None] == []


def _with_headers(headers: bytes) -> bytes:
    """A frame with sound checksums around these headers."""
    prelude = struct.pack(">II", 16 + len(headers), len(headers))
    message = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers
    return message + struct.pack(">I", zlib.crc32(message))


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(frame((), b"\xff"), id="payload-that-is-no-text"),
        pytest.param(_with_headers(b"\x01a\x04\0\0\0\1"), id="header-of-another-type"),
        pytest.param(_with_headers(b"\x01a\x07\0\x09x"), id="header-beyond-its-end"),
        pytest.param(_with_headers(b"\x01a"), id="header-without-a-value"),
        pytest.param(_with_headers(b"\x01\xff\x07\0\0"), id="name-that-is-no-text"),
    ],
)
def test_what_no_line_can_spell_is_told_apart(data: bytes) -> None:
    assert read_frames(data) is None
