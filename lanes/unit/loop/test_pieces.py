"""A text that comes in pieces is cleaned as if it had come whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.loop.pieces import PieceFilter
from harness.loop.redaction import Secrets

FORMS = st.lists(st.text("ab", min_size=8, max_size=11), min_size=1, max_size=3)


@given(FORMS, st.text("abc", max_size=60), st.data())
def test_S12_the_filter_gives_what_the_whole_text_would_give_for_every_way_to_cut_it(
    values: list[str], whole: str, data: st.DataObject
) -> None:
    secrets = Secrets(tuple(values))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    filtered = PieceFilter(secrets.forms, secrets.stand_in)
    pieces = [filtered.feed(whole[start:end]) for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    assert "".join([*pieces, filtered.end()]) == secrets.text(whole)


@pytest.mark.parametrize(
    ("pieces", "given"),
    [
        pytest.param(("example", "-key!"), ("", "<>!", ""), id="cut-in-two"),
        pytest.param(("my exam", "ples"), ("my ", "examples", ""), id="only-its-beginning"),
        pytest.param(("example-key", "-two", "."), ("", "<>", ".", ""), id="the-longer-of-two-that-begin-alike"),
        pytest.param(("example-key", "-tw"), ("", "", "<>-tw"), id="the-shorter-at-the-end"),
        pytest.param(("ordinary", " text"), ("ordinary", " text", ""), id="nothing-held-back"),
    ],
)
def test_S12_only_what_may_begin_a_secret_waits_for_the_next_piece(
    pieces: tuple[str, ...], given: tuple[str, ...]
) -> None:
    filtered = PieceFilter(("example-key-two", "example-key"), "<>")
    assert (*(filtered.feed(piece) for piece in pieces), filtered.end()) == given
