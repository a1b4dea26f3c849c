"""JSON on the wire: what is read, what is written, and what is refused on either way."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pytest

from harness.errors import PeerError
from harness.wire.json_text import MAX_DEPTH, encode_json, is_too_deep, parse_json


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("{", id="cut"),
        pytest.param("NaN", id="nan"),
        pytest.param("-Infinity", id="infinity"),
        pytest.param("1e999", id="overflow"),
        pytest.param("-1e999", id="negative-overflow"),
        pytest.param("9" * 5000, id="thousands-of-digits"),
        pytest.param("[" * 100_000, id="deep-nesting"),
        pytest.param(b"\xff", id="no-utf-8"),
        pytest.param(b"\xef\xbb\xbf1", id="byte-order-mark"),
        pytest.param('"\x00"', id="raw-control-character"),
    ],
)
def test_what_is_no_json_is_refused_by_one_error(text: str | bytes) -> None:
    with pytest.raises(PeerError) as caught:
        parse_json(text)
    assert caught.value.error_code == "MALFORMED_JSON"


@pytest.mark.parametrize("text", ['"half \\ud83d"', b'"half \\ud83d"'], ids=["text", "bytes"])
def test_case_B16_a_lone_surrogate_is_read_and_written_as_an_escape(text: str | bytes) -> None:
    value = parse_json(text)
    assert (value, encode_json(value)) == ("half \ud83d", b'"half \\ud83d"')


def test_the_largest_finite_numbers_are_read() -> None:
    assert parse_json("[1.7976931348623157e308, 1e-999, -0.0]") == [1.7976931348623157e308, 0.0, -0.0]


def test_writing_is_compact_sorted_and_ascii() -> None:
    assert encode_json({"b": [1, True, None], "a": "é\u2028"}) == b'{"a":"\\u00e9\\u2028","b":[1,true,null]}'


def test_read_only_mappings_and_tuples_are_written_like_objects_and_lists() -> None:
    assert encode_json(MappingProxyType({"a": (MappingProxyType({}),)})) == b'{"a":[{}]}'


@pytest.mark.parametrize(
    ("value", "error"),
    [(float("nan"), ValueError), (float("inf"), ValueError), ({1, 2}, TypeError), (b"bytes", TypeError)],
    ids=["nan", "infinity", "set", "bytes"],
)
def test_what_json_cannot_hold_is_not_written(value: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        encode_json(value)


@pytest.mark.parametrize("innermost", [[], {}, 1, "text"], ids=repr)
def test_depth_counts_what_holds_and_not_what_is_held(innermost: Any) -> None:
    value: Any = innermost
    holds = isinstance(innermost, list | dict)
    for _ in range(MAX_DEPTH - holds):
        value = (value,) if holds else MappingProxyType({"a": value, "b": 1})
    assert (is_too_deep(value), is_too_deep([value])) == (False, True)


def test_a_wide_value_is_not_deep() -> None:
    assert not is_too_deep([[n] for n in range(10_000)])
