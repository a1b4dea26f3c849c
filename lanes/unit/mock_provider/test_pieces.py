"""Texts are cut as the plan says and never lose a character."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mock_provider.pieces import count_tokens, split_text
from mock_provider.steps import Split

SPLITS = st.one_of(
    st.just(Split()),
    st.builds(Split, st.just("chars"), st.integers(1, 5)),
    st.builds(Split, st.just("words"), st.integers(1, 3)),
    st.builds(Split, st.just("list"), st.just(0), st.lists(st.text(max_size=3)).map(tuple)),
)


@given(st.text(), SPLITS)
def test_the_pieces_add_up_to_the_text_and_none_is_empty(text: str, split: Split) -> None:
    pieces = split_text(text, split)
    assert "".join(pieces) == text
    assert "" not in pieces


@pytest.mark.parametrize(
    ("split", "pieces"),
    [
        pytest.param(Split(), ("one two  three",), id="whole"),
        pytest.param(Split("chars", 5), ("one t", "wo  t", "hree"), id="chars"),
        pytest.param(Split("words", 1), ("one ", "two ", " three"), id="words"),
        pytest.param(Split("words", 2), ("one two ", " three"), id="two-words"),
        pytest.param(Split("list", 0, ("one", " two  three")), ("one", " two  three"), id="list"),
        pytest.param(Split("list", 0, ("one", "x")), ("one", " two  three"), id="list-that-differs"),
    ],
)
def test_a_text_is_cut_as_the_plan_says(split: Split, pieces: tuple[str, ...]) -> None:
    assert split_text("one two  three", split) == pieces


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("üü", 1), ("\ud83d", 1)])
def test_tokens_are_bytes_by_four(text: str, tokens: int) -> None:
    assert count_tokens(text) == tokens
