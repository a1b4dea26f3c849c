"""A schema under strict mode is closed, asks for every property and stays simple; seals survive or are known broken."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mock_provider.dialects.openai_logprobs import logprobs_of
from mock_provider.dialects.openai_sealed import is_sealed, seal
from mock_provider.dialects.openai_strict_schema import MAX_LEVELS, strict_problem
from mock_provider.json_values import Json, JsonObject

LEAF: JsonObject = {"type": "string"}


def closed(**properties: Json) -> JsonObject:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def nested(levels: int) -> JsonObject:
    schema = closed(a=LEAF)
    for _ in range(levels):
        schema = closed(a=schema)
    return schema


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        pytest.param(closed(a=LEAF, b={"type": ["string", "null"]}), None, id="sound"),
        pytest.param(closed(), None, id="empty"),
        pytest.param(closed(a={"anyOf": [closed(b=LEAF), LEAF]}), None, id="any-of"),
        pytest.param({**closed(a={"$ref": "#/$defs/x"}), "$defs": {"x": closed(b=LEAF)}}, None, id="definitions"),
        pytest.param({"type": "object", "properties": {}}, "In context=(), 'additionalProperties'", id="open"),
        pytest.param(
            closed(a={"type": "object"}), "In context=('properties', 'a'), 'additionalProperties'", id="open-inside"
        ),
        pytest.param(
            closed(a={"type": "array", "items": {"type": "object"}}),
            "In context=('properties', 'a', 'items'), 'additionalProperties'",
            id="open-item",
        ),
        pytest.param({**closed(a=LEAF), "required": []}, "Missing 'a'", id="optional"),
        pytest.param({**closed(a=LEAF), "required": ["a", "b"]}, "'required' holds 'b'", id="required-of-nothing"),
        pytest.param(closed(a={"allOf": [LEAF]}), "('properties', 'a'), 'allOf' is not permitted", id="all-of"),
        pytest.param(closed(a={"anyOf": [{"type": "object"}]}), "('properties', 'a', 'anyOf', '0')", id="any-of-open"),
        pytest.param({"anyOf": [closed()]}, "got 'type: \"None\"'", id="root"),
        pytest.param(nested(MAX_LEVELS), "Exceeded max depth of 10", id="deep"),
        pytest.param(
            {**closed(a=LEAF), "$defs": {"x": {"type": "object"}}}, "In context=('$defs', 'x')", id="definition"
        ),
    ],
)
def test_strict_schemas(schema: JsonObject, problem: str | None) -> None:
    found = strict_problem(schema)
    assert found is None if problem is None else problem in str(found)


@given(st.text())
def test_a_seal_is_known_again_and_a_changed_one_is_not(text: str) -> None:
    sealed = seal(text)
    assert is_sealed(sealed)
    assert not is_sealed(sealed + "QUJD")
    assert not is_sealed(sealed.replace("mock_sealed_", ""))


@pytest.mark.parametrize("text", ["", "gAAAA", "mock_sealed_", "mock_sealed_ü", "mock_sealed_0123456789abcdefQQ=="])
def test_what_was_never_sealed_is_not_known(text: str) -> None:
    assert not is_sealed(text)


@given(st.text(max_size=20), st.integers(0, 5))
def test_the_tokens_add_up_to_the_text_and_none_is_more_than_certain(text: str, top: int) -> None:
    tokens = logprobs_of(text, top)
    assert "".join(str(token["token"]) for token in tokens) == text  # type: ignore[call-overload, index] # JSON by construction
    for token in tokens:
        assert isinstance(token, dict)
        assert float(str(token["logprob"])) <= 0
        assert len(token["top_logprobs"]) == top  # type: ignore[arg-type] # JSON by construction
