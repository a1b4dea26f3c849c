"""Our JSON reader with places agrees with the standard library's."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mock_provider.errors import ScriptError
from mock_provider.script_json import parse_json
from mock_provider.script_source import plain

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(VALUES, st.sampled_from([None, 1, "\t"]), st.booleans())
def test_every_document_reads_as_the_standard_library_reads_it(
    value: object, indent: int | str | None, ascii_only: bool
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    assert plain(parse_json(text, "x")) == json.loads(text)


@given(st.text(alphabet='{}[]",:0123456789truefalsn \\ue.-+', max_size=30))
def test_a_text_is_refused_exactly_when_the_standard_library_refuses_it(text: str) -> None:
    try:
        expected = json.loads(text, parse_constant=_refuse)
    except ValueError:
        with pytest.raises(ScriptError):
            parse_json(text, "x")
    else:
        assert plain(parse_json(text, "x")) == expected


def _refuse(word: str) -> None:
    raise ValueError(word)
