"""What a model cannot do is refused as its provider would refuse it."""

from __future__ import annotations

import json

import pytest

from mock_provider.errors import ScriptError
from mock_provider.exchange import Exchange
from mock_provider.incoming import Incoming
from mock_provider.json_values import Json, JsonObject
from mock_provider.mock import Mock
from mock_provider.replies import script, step
from mock_provider.script import build_script
from mock_provider.steps import ModelFacts

MODELS: list[Json] = [{"name": "m", "images": False, "max_output_tokens": 100, "context_tokens": 50}, "free"]
PICTURE = "iVBORw0KGgo="
CHAT_PICTURE: JsonObject = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}"}}
PATHS = {
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
    "anthropic_messages": "/v1/messages",
    "gemini": "/v1beta/models/{model}:generateContent",
    "bedrock": "/model/{model}/converse",
}
KINDS = {"gemini": "INVALID_ARGUMENT", "bedrock": "ValidationException"}


def user(content: Json) -> list[Json]:
    return [{"role": "user", "content": content}]


def request(dialect: str, fault: str, model: str = "m") -> JsonObject:
    """A request that breaks one rule."""
    content: Json = "x" * 400 if fault == "context" else "x"
    limit = 101 if fault == "output" else 100
    if dialect == "openai_chat":
        shown: Json = [CHAT_PICTURE] if fault == "images" else content
        return {"model": model, "messages": user(shown), "max_completion_tokens": limit}
    if dialect == "openai_responses":
        picture: Json = [{"type": "input_image", "image_url": f"data:image/png;base64,{PICTURE}", "detail": "auto"}]
        return {"model": model, "input": user(picture if fault == "images" else content), "max_output_tokens": limit}
    if dialect == "gemini":
        inline: Json = {"inlineData": {"mimeType": "image/png", "data": PICTURE}}
        parts: list[Json] = [inline if fault == "images" else {"text": content}]
        return {"contents": [{"role": "user", "parts": parts}], "generationConfig": {"maxOutputTokens": limit}}
    if dialect == "bedrock":
        block: Json = {"image": {"format": "png", "source": {"bytes": PICTURE}}}
        said: list[Json] = [block if fault == "images" else {"text": content}]
        return {"messages": user(said), "inferenceConfig": {"maxTokens": limit}}
    source: JsonObject = {"type": "base64", "media_type": "image/png", "data": PICTURE}
    image: Json = [{"type": "image", "source": source}]
    return {"model": model, "messages": user(image if fault == "images" else content), "max_tokens": limit}


def send(mock: Mock, dialect: str, body: JsonObject, model: str = "m") -> tuple[Exchange, JsonObject]:
    headers = {"authorization": "Bearer x", "x-api-key": "sk-x-000001"}
    if dialect == "gemini":
        headers["x-goog-api-key"] = "sk-x-000001"
    if dialect == "anthropic_messages":
        headers["anthropic-version"] = "2023-06-01"
    exchange = mock.handle(Incoming("POST", PATHS[dialect].format(model=model), headers, json.dumps(body).encode()))
    data = b"".join(action.data for action, _ in exchange.plan if hasattr(action, "data"))
    return exchange, json.loads(data)


@pytest.mark.parametrize("dialect", list(PATHS))
@pytest.mark.parametrize(
    ("fault", "rule"),
    [
        pytest.param("images", "images_to_text_model", id="pictures"),
        pytest.param("output", "max_tokens_above_limit", id="output"),
        pytest.param("context", "context_overflow", id="context"),
    ],
)
def test_a_model_refuses_what_is_beyond_it(dialect: str, fault: str, rule: str) -> None:
    mock = Mock(script(step("hi", optional=True), models=MODELS))
    exchange, told = send(mock, dialect, request(dialect, fault))
    headers = exchange.plan.head.headers if exchange.plan.head else ()
    assert exchange.entry is not None
    assert (exchange.entry.status, exchange.entry.rule) == (400, rule)
    assert KINDS.get(dialect, "invalid_request_error") in json.dumps([told, headers])
    assert len(mock.verify().invalid) == 1


@pytest.mark.parametrize(
    ("dialect", "fault", "message"),
    [
        pytest.param(
            "openai_chat",
            "output",
            "max_tokens is too large: 101. This model supports at most 100 completion tokens, "
            "whereas you provided 101.",
            id="chat",
        ),
        pytest.param(
            "anthropic_messages",
            "output",
            "max_tokens: 101 > 100, which is the maximum allowed number of output tokens for m",
            id="messages",
        ),
        pytest.param("anthropic_messages", "context", "prompt is too long: 100 tokens > 50 maximum", id="too-long"),
    ],
)
def test_the_refusal_names_the_numbers(dialect: str, fault: str, message: str) -> None:
    error = send(Mock(script(step("hi"), models=MODELS)), dialect, request(dialect, fault))[1]["error"]
    assert isinstance(error, dict)
    assert error["message"] == message


@pytest.mark.parametrize("dialect", list(PATHS))
@pytest.mark.parametrize("fault", ["images", "output", "context"])
def test_a_model_without_limits_takes_everything(dialect: str, fault: str) -> None:
    exchange, _ = send(Mock(script(step("hi"), models=MODELS)), dialect, request(dialect, fault, "free"), "free")
    assert exchange.entry is not None
    assert exchange.entry.status == 200


def test_models_are_read_with_and_without_facts() -> None:
    built = build_script(script(step("hi"), models=MODELS))
    assert (built.models, built.facts) == (("m", "free"), (ModelFacts("m", False, 100, 50),))


@pytest.mark.parametrize(
    ("models", "what"),
    [
        pytest.param([{"images": False}], "'name' is missing", id="no-name"),
        pytest.param(["a", "a"], "model 'a' is listed twice", id="twice"),
        pytest.param([3], "found the number 3", id="number"),
        pytest.param([{"name": "a", "max_tokens": 1}], "unknown key 'max_tokens'", id="key"),
        pytest.param([{"name": "a", "max_output_tokens": 0}], "0 is out of range", id="zero"),
    ],
)
def test_a_mistake_in_the_models_is_told(models: list[Json], what: str) -> None:
    with pytest.raises(ScriptError, match=what):
        build_script(script(step("hi"), models=models))
