"""The fastest reader of JSON and the standard library's read the same, and refuse the same."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mock_provider.json_values import Json
from mock_provider.strict_json import FAST, WORTH_BYTES, FastReader, parse, parse_strictly

FAST.load()  # which the first requests do without


def outcome(data: bytes, *, is_fast: bool) -> str:
    """What a reader makes of a document, spelled so that 1, 1.0 and true differ."""
    try:
        return json.dumps(parse(data) if is_fast else parse_strictly(data))
    except (ValueError, RecursionError):
        return "refused"


def test_the_fast_reader_is_loaded_when_it_is_worth_it() -> None:
    reader = FastReader()
    first = reader.read
    assert [reader.read(b"1"), reader.read == first] == [1, True]
    assert [reader.read(b" " * WORTH_BYTES + b"2"), reader.read == first, reader.read(b"3")] == [2, False, 3]


SPELLINGS = {
    "negative-zero": b"[-0, -0.0, 0e0, -0E+1]",
    "integers": b"[12345678901234567890, -9223372036854775809, 18446744073709551616, %d]" % 10**60,
    "longest-integer": b"1" * 4300,
    "too-long-an-integer": b"1" * 4301,
    "floats": b"[0.1, 5e-324, 1e-400, 2.2250738585072011e-308, 9007199254740993.0, 1.7976931348623157e308]",
    "infinite": b"1e400",
    "rounded-to-infinite": b"17976931348623158079e289",
    "not-a-number": b"[NaN]",
    "infinity": b"-Infinity",
    "leading-zero": b"01",
    "open-fraction": b"1.",
    "open-exponent": b"1e+",
    "half-a-character": b'"\\ud83d"',
    "two-halves": b'"\\ud83d\\ude00"',
    "halves-the-wrong-way": b'"\\ude00\\ud83d"',
    "half-in-a-key": b'{"\\ud800": 1}',
    "half-in-utf-8": b'"\xed\xa0\x80"',
    "overlong": b'"\xc0\x80"',
    "beyond-unicode": b'"\xf4\x90\x80\x80"',
    "no-utf-8": b'"\xff"',
    "control": b'"\x01"',
    "tab": b'"a\tb"',
    "delete": b'"\x7f"',
    "escapes": b'"\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000\\u00e9"',
    "unknown-escape": b'"\\x41"',
    "short-escape": b'"\\u12"',
    "mark": b"\xef\xbb\xbf[1]",
    "wide": '{"a": 1}'.encode("utf-16-le"),
    "wide-with-mark": '{"a": 1}'.encode("utf-16"),
    "key-twice": b'{"a": 1, "b": 2, "a": 3}',
    "comma": b"[1,]",
    "object-comma": b'{"a": 1,}',
    "two-documents": b"1 2",
    "nothing": b"",
    "spaces": b" \t\r\n[ 1 , 2 ] \n",
    "other-space": b"\x0b[1]",
    "zero-behind": b"[1]\x00",
    "deep": b"[" * 500 + b"]" * 500,
    "too-deep": b"[" * 200_000 + b"]" * 200_000,
}


@pytest.mark.parametrize("data", SPELLINGS.values(), ids=SPELLINGS)
def test_a_spelling_means_the_same_to_both(data: bytes) -> None:
    assert outcome(data, is_fast=True) == outcome(data, is_fast=False)


VALUES: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@given(value=VALUES, is_ascii=st.booleans(), indent=st.sampled_from([None, 1]))
def test_a_document_is_read_as_it_was_written(value: Json, is_ascii: bool, indent: int | None) -> None:
    data = json.dumps(value, ensure_ascii=is_ascii, indent=indent).encode("utf-8", "surrogatepass")
    assert outcome(data, is_fast=True) == outcome(data, is_fast=False) == json.dumps(value)


@given(value=VALUES, data=st.data())
def test_a_document_with_bytes_changed_means_the_same_to_both(value: Json, data: st.DataObject) -> None:
    good = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    at = data.draw(st.integers(0, len(good)))
    with_change = data.draw(st.binary(max_size=3) | st.sampled_from([b",", b'"', b"\\", b"1", b"e", b".", b"]", b"}"]))
    changed = good[:at] + with_change + good[at + data.draw(st.integers(0, 3)) :]
    assert outcome(changed, is_fast=True) == outcome(changed, is_fast=False)


@given(
    whole=st.integers(-(10**30), 10**30),
    fraction=st.none() | st.integers(0, 10**25),
    exponent=st.none() | st.integers(-340, 320),
)
def test_any_number_is_the_same_to_both(whole: int, fraction: int | None, exponent: int | None) -> None:
    text = f"{whole}{'' if fraction is None else f'.{fraction}'}{'' if exponent is None else f'e{exponent}'}"
    assert outcome(text.encode(), is_fast=True) == outcome(text.encode(), is_fast=False)
