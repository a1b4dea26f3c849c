"""A text that a stream brings in fragments is read and cleaned as a whole."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanes.fragments import clean_fragments, joined_texts
from lanes.redaction import REDACTED, Redactor

KEY = "canary-key-0417"
SHAPED = "sk-" + "c4n4ry" * 5


def stream(pieces: Sequence[str], *, key: str = "content") -> str:
    events = [{"id": "a", "choices": [{"index": 0, "delta": {key: piece}}]} for piece in pieces]
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"


def texts(body: str) -> list[str]:
    """What its fragments come to, without the ids."""
    return [text for text in joined_texts(body) if not set(text) <= {"a"}]


@given(st.lists(st.sampled_from(["a b", KEY, SHAPED, KEY[:5], "."]), min_size=1, max_size=4), st.data())
def test_case_B36_however_a_stream_is_cut_what_it_says_is_the_cleaned_text(
    words: list[str], data: st.DataObject
) -> None:
    whole, redactor = " ".join(words), Redactor(values={KEY})
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    pieces = [whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]

    body = redactor.body(stream(pieces).encode())

    assert texts(body) == [redactor.text(whole)]
    assert (KEY in "".join(joined_texts(body)), SHAPED in "".join(joined_texts(body))) == (False, False)


def test_the_stand_in_comes_where_the_secret_began_and_other_events_stay_byte_for_byte() -> None:
    before = stream(["it is can", "ary-", "key-0417 here", "and so on"])

    after = clean_fragments(before, Redactor(values={KEY}).spans, REDACTED)

    said = [json.loads(line[5:])["choices"][0]["delta"]["content"] for line in after.split("\n") if "{" in line]
    assert said == ["it is redacted", "", " here", "and so on"]
    assert after.split("\n")[6:] == before.split("\n")[6:]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(stream(["nothing ", "to see"]), id="nothing-in-it"),
        pytest.param("data: [DONE]\n\n", id="no-json"),
        pytest.param('data: {"a": ["x", 1, null, true]}\r\n\r\n', id="carriage-returns"),
        pytest.param("data: " + "[" * 5000 + "\n\n", id="nested-without-end"),
        pytest.param("", id="empty"),
    ],
)
def test_a_stream_without_secrets_stays_byte_for_byte(body: str) -> None:
    assert clean_fragments(body, Redactor(values={KEY}).spans, REDACTED) == body


def test_two_texts_of_one_stream_are_two() -> None:
    body = stream([KEY[:6]], key="reasoning_content") + stream([KEY[6:]])

    assert Redactor(values={KEY}).body(body.encode()) == body
