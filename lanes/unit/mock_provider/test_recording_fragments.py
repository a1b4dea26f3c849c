"""A key that a model says a few letters at a time is taken out of the stream, and nothing else is."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mock_provider.errors import RecordingError
from mock_provider.json_values import Json, JsonObject
from mock_provider.recording.cassette import Facts
from mock_provider.recording.cleaning import Cleaner
from mock_provider.recording.exchanges import Seen
from mock_provider.recording.fragments import clean_fragments, joined_texts
from mock_provider.recording.storing import compose_recording

KEY = "canary-key-0417"
SHAPED = "sk-" + "c4n4ry" * 4


def spans_of(text: str) -> list[tuple[int, int]]:
    """Where the key stands."""
    found: list[tuple[int, int]] = []
    at = text.find(KEY)
    while at >= 0:
        found.append((at, at + len(KEY)))
        at = text.find(KEY, at + len(KEY))
    return found


def event(text: str) -> JsonObject:
    return {"id": "a", "choices": [{"index": 0, "delta": {"content": text}}]}


def seen(answer: str) -> Seen:
    body: JsonObject = {"model": "m", "messages": [{"role": "user", "content": "x"}], "stream": True}
    headers = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
    return Seen(
        1,
        "POST",
        "/v1/chat/completions",
        headers,
        json.dumps(body).encode(),
        200,
        "OK",
        [("content-type", "text/event-stream")],
        [(0, answer.encode())],
        is_complete=True,
    )


def cut(text: str, cuts: list[int]) -> list[str]:
    return [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]


@given(st.lists(st.sampled_from(["a ", KEY, KEY[:5], "."]), min_size=1, max_size=5), st.data())
def test_however_a_text_is_cut_its_fragments_add_up_to_the_clean_one(words: list[str], data: st.DataObject) -> None:
    whole = "".join(words)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), min_size=1, max_size=6)))
    events: list[Json] = [event(piece) for piece in cut(whole, cuts)]
    cleaned = clean_fragments(events, spans_of, "redacted")
    texts = [text for text in joined_texts(cleaned) if not set(text) <= {"a"} or text == whole]
    assert whole.replace(KEY, "redacted") in [*texts, ""]
    untouched = [old is new for old, new in zip(events, cleaned, strict=True)]
    assert all(untouched) is (KEY not in whole)


@pytest.mark.parametrize("secret", [KEY, SHAPED])
@pytest.mark.parametrize("end", ["\n\n", "\r\n\r\n"], ids=["lf", "crlf"])
def test_case_B36_a_key_in_fragments_of_a_stream_is_in_no_file(secret: str, end: str) -> None:
    pieces = cut(f"the key is {secret}, use it", list(range(2, 20 + len(secret), 3)))
    answer = "".join(f"data: {json.dumps(event(piece))}{end}" for piece in pieces) + f"data: [DONE]{end}"
    recording = compose_recording([seen(answer)], Facts("127.0.0.1", None), "http://127.0.0.1:1")
    assert (recording.problems, secret in str(recording.files)) == ((), False)
    assert "text: the key is redacted, use it" in recording.files["script.yaml"]


def test_fragments_of_two_places_are_two_texts() -> None:
    events: list[Json] = [{"a": "sk-", "b": ["x", "y"]}, "z", {"b": ["X", "Y"], "a": "1"}]
    assert joined_texts(events) == ["sk-1", "xX", "yY", "z"]


def test_fragments_that_still_add_up_to_a_secret_refuse_the_recording(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cleaner, "_joined", lambda self, texts: list(texts))
    later = json.dumps({"type": "response.completed", "response": {"status": "failed"}})
    pieces = cut(KEY, [7])
    said = "".join(f"data: {json.dumps({'type': 'd', 'delta': piece})}\n\n" for piece in pieces)
    one = seen(f"{said}data: {later}\n\n")
    one.target = "/v1/responses"
    one.body = json.dumps({"model": "m", "input": "x", "stream": True}).encode()
    with pytest.raises(RecordingError, match="a secret is still in answer 1, in fragments: a hidden value"):
        compose_recording([one], Facts("127.0.0.1", None), "http://127.0.0.1:1")


@pytest.mark.parametrize(
    "words", ["a basic understanding of it", "the bearer instruments", "Basic knowledge. Bearer token."]
)
def test_words_that_people_write_are_no_keys(words: str) -> None:
    answer = "".join(f"data: {json.dumps(event(piece))}\n\n" for piece in cut(words, [4, 9])) + "data: [DONE]\n\n"
    recording = compose_recording([seen(answer)], Facts("127.0.0.1", None), "http://127.0.0.1:1")
    assert f"text: {words}" in recording.files["script.yaml"]
