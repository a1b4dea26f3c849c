"""Any bytes become text, and a cut never splits a character."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from harness.tools.plain_text import decode_output, whole_characters

CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


@given(st.binary(max_size=200))
def test_any_bytes_become_text_without_control_characters(data: bytes) -> None:
    text, is_plain = decode_output(data)
    assert CONTROL.findall(text) == []
    assert not is_plain or text.encode("utf-8") == data


@given(st.text(max_size=40), st.data())
def test_a_cut_at_any_byte_leaves_whole_characters_on_both_sides(text: str, data: st.DataObject) -> None:
    encoded = text.encode("utf-8", "replace")
    at = data.draw(st.integers(0, len(encoded)))
    head, tail = whole_characters(encoded[:at], encoded[at:])
    lost = len(encoded) - len(head) - len(tail)
    assert (encoded.startswith(head), encoded.endswith(tail), lost <= 4) == (True, True, True)
    head.decode()
    tail.decode()
