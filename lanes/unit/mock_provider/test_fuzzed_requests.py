"""Whatever a client sends, the answer is a provider's: never an exception, never a 500, never a step for nonsense."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mock_provider.dialects.openai_sealed import seal
from mock_provider.faults import Head
from mock_provider.incoming import Incoming
from mock_provider.json_values import Json, JsonObject
from mock_provider.mock import Mock
from mock_provider.replies import script, step

HEADERS = {"authorization": "Bearer sk-x-000001", "anthropic-version": "2023-06-01", "content-type": "application/json"}
PLAYED = script(step("hi {{request.model}}", expect={"last_user": "x"}, repeat="forever", optional=True))
CHAT: JsonObject = {
    "model": "m",
    "temperature": 0,
    "max_tokens": 5,
    "stream": False,
    "stop": ["a"],
    "n": 1,
    "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}},
    "tool_choice": {"type": "function", "function": {"name": "f"}},
    "tools": [
        {
            "type": "function",
            "function": {"name": "f", "parameters": {"type": "object", "properties": {"a": {"anyOf": [{}]}}}},
        }
    ],
    "messages": [
        {"role": "system", "content": "s"},
        {"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "image_url", "image_url": {"url": "u"}}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c", "content": "r"},
    ],
}
MESSAGES: JsonObject = {
    "model": "m",
    "max_tokens": 5000,
    "system": [{"type": "text", "text": "s"}],
    "thinking": {"type": "enabled", "budget_tokens": 2000},
    "stop_sequences": ["a"],
    "tool_choice": {"type": "tool", "name": "f"},
    "tools": [{"name": "f", "input_schema": {"type": "object", "required": ["a"], "enum": []}}, {"type": "web_search"}],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "x"}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "r"}]}],
        },
    ],
}
RESPONSES: JsonObject = {
    "model": "m",
    "instructions": "s",
    "store": True,
    "include": ["message.output_text.logprobs"],
    "top_logprobs": 1,
    "max_output_tokens": 16,
    "metadata": {"a": "b"},
    "reasoning": {"effort": "low"},
    "text": {"format": {"type": "json_schema", "name": "a", "schema": {"type": "object"}}, "verbosity": "low"},
    "tool_choice": {"type": "function", "name": "f"},
    "tools": [
        {"type": "function", "name": "f", "strict": False, "parameters": {"type": "object", "properties": {"a": {}}}},
        {"type": "custom", "name": "g", "format": {"type": "grammar", "syntax": "lark", "definition": "d"}},
    ],
    "input": [
        {"role": "user", "content": [{"type": "input_text", "text": "x"}, {"type": "input_image", "image_url": "u"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": seal("t")},
        {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "y"}]},
        {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "custom_tool_call", "call_id": "d", "name": "g", "input": ""},
        {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "r"}]},
        {"type": "custom_tool_call_output", "call_id": "d", "output": "r"},
    ],
}
EMBEDDINGS: JsonObject = {"model": "m", "input": ["x", [1, 2]], "dimensions": 4, "encoding_format": "float"}
GEMINI: JsonObject = {
    "model": "models/m",
    "systemInstruction": {"parts": [{"text": "s"}]},
    "generationConfig": {"temperature": 0, "stopSequences": ["a"], "thinkingConfig": {"thinkingBudget": 1}},
    "safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "OFF"}],
    "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}},
    "tools": [
        {
            "functionDeclarations": [
                {
                    "name": "f",
                    "parameters": {"type": "OBJECT", "properties": {"a": {"anyOf": [{"type": "STRING"}]}}},
                },
                {"name": "g", "parametersJsonSchema": {"type": "object"}},
            ]
        }
    ],
    "contents": [
        {"role": "user", "parts": [{"text": "x"}, {"inlineData": {"mimeType": "image/png", "data": "aGk="}}]},
        {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"a": "b"}, "id": "c"}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "f", "id": "c", "response": {"result": "r"}}}]},
    ],
}
GEMINI_EMBEDDINGS: JsonObject = {
    "requests": [{"model": "models/m", "content": {"parts": [{"text": "x"}]}, "outputDimensionality": 4}]
}
OLLAMA: JsonObject = {
    "model": "m",
    "stream": False,
    "think": "low",
    "format": {"type": "object"},
    "keep_alive": "5m",
    "options": {"temperature": 0, "stop": ["a"], "num_ctx": 1},
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
    "messages": [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "x", "images": ["aGk="]},
        {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": {"a": "b"}}}]},
        {"role": "tool", "tool_name": "f", "tool_call_id": "c", "content": "r"},
    ],
}
GENERATE: JsonObject = {"model": "m", "prompt": "x", "suffix": "y", "system": "s", "raw": False, "images": ["aGk="]}
CONVERSE: JsonObject = {
    "model": "m",
    "system": [{"text": "s"}],
    "inferenceConfig": {"maxTokens": 1, "temperature": 0, "stopSequences": ["a"]},
    "toolConfig": {
        "tools": [{"toolSpec": {"name": "f", "inputSchema": {"json": {"type": "object"}}}}],
        "toolChoice": {"tool": {"name": "f"}},
    },
    "outputConfig": {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": {"schema": "{}"}}}},
    "messages": [
        {"role": "user", "content": [{"text": "x"}, {"image": {"format": "png", "source": {"bytes": "aGk="}}}]},
        {
            "role": "assistant",
            "content": [
                {"reasoningContent": {"reasoningText": {"text": "t", "signature": "s"}}},
                {"toolUse": {"toolUseId": "c", "name": "f", "input": {}}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"toolResult": {"toolUseId": "c", "content": [{"text": "r"}, {"json": {}}], "status": "error"}}
            ],
        },
    ],
}
VALUES: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "role", "name", "text"]), inner)
    ),
    max_leaves=4,
)


def paths(value: Json, here: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Every place in a document."""
    found = [here]
    if isinstance(value, dict):
        found += [path for key, item in value.items() for path in paths(item, (*here, key))]
    if isinstance(value, list):
        found += [path for at, item in enumerate(value) for path in paths(item, (*here, at))]
    return found


def changed(document: Json, path: tuple[str | int, ...], value: Json, *, removed: bool) -> Json:
    """The document with one place replaced or taken out."""
    if not path:
        return value
    first, rest = path[0], path[1:]
    if isinstance(document, dict):
        copy = dict(document)
        if not rest and removed:
            del copy[str(first)]
        else:
            copy[str(first)] = changed(document[str(first)], rest, value, removed=removed)
        return copy
    assert isinstance(document, list)
    assert isinstance(first, int)
    items = list(document)
    if not rest and removed:
        del items[first]
    else:
        items[first] = changed(items[first], rest, value, removed=removed)
    return items


def status_of(mock: Mock, target: str, body: bytes) -> int:
    exchange = mock.handle(Incoming("POST", target, HEADERS, body))
    heads = [action for action in exchange.plan.actions if isinstance(action, Head)]
    assert len(heads) == 1
    return heads[0].status


DIALECTS = [
    pytest.param("/v1/chat/completions", CHAT, id="openai_chat"),
    pytest.param("/v1/responses", RESPONSES, id="openai_responses"),
    pytest.param("/v1/embeddings", EMBEDDINGS, id="embeddings"),
    pytest.param("/v1/messages", MESSAGES, id="anthropic_messages"),
    pytest.param("/v1/models/m:generateContent", GEMINI, id="gemini"),
    pytest.param("/v1/models/m:batchEmbedContents", GEMINI_EMBEDDINGS, id="gemini-embeddings"),
    pytest.param("/api/chat", OLLAMA, id="ollama"),
    pytest.param("/api/generate", GENERATE, id="ollama-generate"),
    pytest.param("/api/embed", {"model": "m", "input": ["x"], "dimensions": 4}, id="ollama-embeddings"),
    pytest.param("/model/m/converse", CONVERSE, id="bedrock"),
]
TARGETS = [
    "/v1/chat/completions",
    "/v1/responses",
    "/v1/embeddings",
    "/v1/messages",
    "/v1/models/m:generateContent",
    "/v1/models/m:batchEmbedContents",
    "/api/chat",
    "/api/generate",
    "/api/embed",
    "/model/m/converse",
    "/model/m/invoke",
    "/model/m/count-tokens",
]


@pytest.mark.parametrize(("target", "sound"), DIALECTS)
def test_the_sound_document_is_answered(target: str, sound: JsonObject) -> None:
    assert status_of(Mock(PLAYED), target, json.dumps(sound).encode()) == 200


@pytest.mark.parametrize(("target", "sound"), DIALECTS)
@given(data=st.data())
def test_a_document_with_one_place_changed_is_answered_or_refused(
    target: str, sound: JsonObject, data: st.DataObject
) -> None:
    path = data.draw(st.sampled_from(paths(sound)))
    document = changed(sound, path, data.draw(VALUES), removed=data.draw(st.booleans()))
    mock = Mock(PLAYED)
    status = status_of(mock, target, json.dumps(document).encode())
    assert status == 200 or 400 <= status < 500
    assert mock.verify().ok is (status == 200)


@pytest.mark.parametrize("target", TARGETS)
@given(body=st.binary(max_size=200) | VALUES.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_refused(target: str, body: bytes) -> None:
    assert 400 <= status_of(Mock(PLAYED), target, body) < 500


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("depth", [100, 200, 900, 100_000])
def test_a_body_nested_too_deeply_is_refused(target: str, depth: int) -> None:
    body = b'{"model": ' + b'[{"a": ' * depth + b"1" + b"}]" * depth + b"}"
    mock = Mock(PLAYED)
    assert status_of(mock, target, body) == 400
    assert mock.journal[0].rule in ("too_deep", "not_json")


@given(
    target=st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=40).map(lambda path: f"/{path}"),
    method=st.sampled_from(["GET", "POST", "HEAD", "PUT"]),
)
def test_any_address_has_an_answer(target: str, method: str) -> None:
    exchange = Mock(PLAYED).handle(Incoming(method, target, HEADERS, b""))
    heads = [action for action in exchange.plan.actions if isinstance(action, Head)]
    assert [head.status in {200, 400, 401, 404, 405} for head in heads] == [True]
