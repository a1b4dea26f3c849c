"""Embeddings are unit vectors from the text alone, in the spelling that was asked for."""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING

import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mock_provider.dialects.openai_embeddings import vector_of
from mock_provider.json_values import Json, JsonObject
from mock_provider.replies import script, step
from mock_provider.script import ScriptLike

if TYPE_CHECKING:
    from lanes.unit.mock_provider.conftest import Play, Spoken

Start = Callable[[ScriptLike], "Play"]
Speak = Callable[[ScriptLike], "Spoken"]
IDLE = script(step("never", optional=True))
AUTHORIZED = {"authorization": "Bearer sk-test-0001"}


def nearness(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    return math.fsum(left * right for left, right in zip(one, other, strict=True))


@given(st.text(max_size=30), st.integers(1, 64))
def test_every_vector_has_length_one_and_numbers_of_four_bytes(text: str, size: int) -> None:
    vector = vector_of(text, size)
    assert len(vector) == size
    assert nearness(vector, vector) == pytest.approx(1, abs=1e-5)
    assert struct.unpack(f"<{size}f", struct.pack(f"<{size}f", *vector)) == vector


def test_texts_that_share_words_are_near_each_other_and_still_apart() -> None:
    question = vector_of("Where are the lanes described?", 1536)
    near, far = vector_of("The lanes are described here.", 1536), vector_of("Bread needs yeast and time", 1536)
    assert nearness(question, near) > 0.6
    assert abs(nearness(question, far)) < 0.2
    assert vector_of("a b", 64) != vector_of("b a", 64)


def test_the_client_gets_the_same_numbers_in_both_spellings(speak: Speak) -> None:
    said = speak(IDLE)
    plain = said.client.embeddings.create(model="m", input="hello", encoding_format="float")
    packed = said.client.with_options().embeddings.with_raw_response.create(
        model="m", input="hello", encoding_format="base64"
    )
    spelled = packed.http_response.json()["data"][0]["embedding"]
    numbers = list(struct.unpack("<1536f", base64.b64decode(spelled)))
    assert plain.data[0].embedding == numbers
    assert plain.usage.model_dump() == {"prompt_tokens": 2, "total_tokens": 2}


def test_a_client_that_names_no_spelling_decodes_what_it_gets(play: Start) -> None:
    run = play(IDLE)
    with openai.OpenAI(api_key="sk-test-0001", base_url="http://mock.invalid/v1", http_client=run.client) as client:  # type: ignore[arg-type] # the client takes both libraries, its types name one
        answer = client.embeddings.create(model="text-embedding-3-large", input=["a", "b"], dimensions=8)
    assert [one.embedding for one in answer.data] == [list(vector_of(text, 8)) for text in ("a", "b")]
    assert [one.index for one in answer.data] == [0, 1]


@pytest.mark.parametrize(
    ("model", "size"),
    [
        pytest.param("text-embedding-3-large", 3072, id="large"),
        pytest.param("text-embedding-3-small", 1536, id="small"),
        pytest.param("anything", 1536, id="other"),
    ],
)
def test_models_have_their_sizes(play: Start, model: str, size: int) -> None:
    body = {"model": model, "input": "x"}
    answer = play(IDLE).client.post("/embeddings", json=body, headers=AUTHORIZED).json()
    assert (len(answer["data"][0]["embedding"]), answer["model"]) == (size, model)


def test_tokens_may_be_given_as_numbers(play: Start) -> None:
    run = play(IDLE)

    def usage(what: Json) -> Json:
        answer = run.client.post("/embeddings", json={"model": "m", "input": what}, headers=AUTHORIZED).json()
        return [len(answer["data"]), answer["usage"]["total_tokens"]]

    assert [usage([1, 2, 3]), usage([[1, 2], [3]]), usage(["a", [7]])] == [[1, 3], [2, 3], [2, 2]]


@pytest.mark.parametrize(
    ("body", "rule", "words"),
    [
        pytest.param({"input": "x"}, "missing_model", "you must provide a model parameter", id="model"),
        pytest.param({"model": 1, "input": "x"}, "wrong_type", "expected a string", id="model-type"),
        pytest.param({"model": "m"}, "missing_field", "'input'", id="input"),
        pytest.param({"model": "m", "input": ["a", ""]}, "bad_input", "'$.input' is invalid.", id="empty-text"),
        pytest.param({"model": "m", "input": []}, "bad_input", "'$.input' is invalid.", id="empty-list"),
        pytest.param({"model": "m", "input": {"a": 1}}, "bad_input", "'$.input' is invalid.", id="object"),
        pytest.param({"model": "m", "input": [-1]}, "bad_input", "'$.input' is invalid.", id="negative-token"),
        pytest.param({"model": "m", "input": ["x"] * 2049}, "too_many_inputs", "maximum length 2048", id="many"),
        pytest.param({"model": "m", "input": "long" * 8193}, "too_many_tokens", "8192 tokens", id="long"),
        pytest.param({"model": "m", "input": "x", "dimensions": 0}, "out_of_range", ">= 1", id="no-dimension"),
        pytest.param({"model": "m", "input": "x", "dimensions": 1537}, "out_of_range", "<= 1536", id="dimensions"),
        pytest.param({"model": "m", "input": "x", "dimensions": "8"}, "wrong_type", "an integer", id="dimension-type"),
        pytest.param(
            {"model": "text-embedding-ada-002", "input": "x", "dimensions": 8},
            "fixed_dimensions",
            "does not support specifying dimensions",
            id="fixed",
        ),
        pytest.param(
            {"model": "m", "input": "x", "encoding_format": "hex"}, "unknown_word", "'float' and 'base64'", id="format"
        ),
    ],
)
def test_a_malformed_request_is_refused(play: Start, body: JsonObject, rule: str, words: str) -> None:
    run = play(IDLE)
    answer = run.client.post("/embeddings", json=body, headers=AUTHORIZED)
    assert (answer.status_code, run.mock.journal[0].rule) == (400, rule)
    assert words in answer.json()["error"]["message"]


def test_other_models_and_fields_are_refused_when_the_script_says_so(play: Start) -> None:
    run = play(script(step("never", optional=True), models=["m"], strict_fields=True))
    bodies: list[JsonObject] = [{"model": "n", "input": "x"}, {"model": "m", "input": "x", "novelty": 1}]
    answers = [run.client.post("/embeddings", json=body, headers=AUTHORIZED) for body in bodies]
    assert [
        (answer.status_code, entry.rule) for answer, entry in zip(answers, run.mock.journal.entries, strict=True)
    ] == [
        (404, "unknown_model"),
        (400, "extra_field"),
    ]
