"""What the Ollama endpoints refuse: each rule with its words."""

from __future__ import annotations

import httpx
import pytest

import mock_provider
from mock_provider.json_values import Json, JsonObject
from mock_provider.mock import Mock
from mock_provider.replies import script, step

USER: JsonObject = {"role": "user", "content": "hi"}
CALL: JsonObject = {"function": {"name": "look", "arguments": {}}}
CALLS: JsonObject = {"role": "assistant", "content": "", "tool_calls": [CALL]}
TOOL: JsonObject = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}


def sent(mock: Mock, body: Json, path: str = "/api/chat") -> httpx.Response:
    """Send one request."""
    with httpx.Client(transport=mock_provider.transport(mock), base_url="http://mock.invalid") as client:
        return client.post(path, json=body)


def chat(*messages: Json, **more: Json) -> JsonObject:
    """A chat request."""
    return {"model": "m", "messages": list(messages) or [USER], "stream": False, **more}


def tool(**function: Json) -> JsonObject:
    """A request with one tool."""
    return chat(tools=[{"type": "function", "function": function}])


def calling(**call: Json) -> JsonObject:
    """A request whose history has a call."""
    return chat(USER, {"role": "assistant", "tool_calls": [call]}, {"role": "tool", "content": "x"})


UNMARSHAL = "json: cannot unmarshal"
REFUSED = [
    # types, in the words of the JSON decoder
    pytest.param([], "wrong_type", f"{UNMARSHAL} array into Go value of type api.ChatRequest", id="no-object"),
    pytest.param(
        chat(model=7),
        "wrong_type",
        f"{UNMARSHAL} number into Go struct field ChatRequest.model of type string",
        id="model-is-number",
    ),
    pytest.param(
        {"model": "m", "messages": "hi"},
        "wrong_type",
        f"{UNMARSHAL} string into Go struct field ChatRequest.messages of type []api.Message",
        id="messages-are-text",
    ),
    pytest.param(chat("hi"), "wrong_type", "ChatRequest.messages of type api.Message", id="message-is-text"),
    pytest.param(
        chat({"role": "user", "content": [{"type": "text", "text": "hi"}]}),
        "wrong_type",
        f"{UNMARSHAL} array into Go struct field ChatRequest.messages.content of type string",
        id="content-is-list",
    ),
    pytest.param(chat(stream="no"), "wrong_type", "ChatRequest.stream of type bool", id="stream-is-text"),
    pytest.param(chat(options=[1]), "wrong_type", "of type map[string]interface {}", id="options-are-list"),
    pytest.param(chat(top_logprobs=True), "wrong_type", f"{UNMARSHAL} bool", id="count-is-flag"),
    pytest.param(
        chat({"role": "user", "content": "x", "images": ["%%"]}),
        "bad_base64",
        "illegal base64 data at input byte 0",
        id="picture",
    ),
    pytest.param(
        chat({"role": "user", "content": "x", "images": [{}]}), "wrong_type", "api.ImageData", id="picture-object"
    ),
    # model and options
    pytest.param({"messages": [USER]}, "missing_model", "model is required", id="no-model"),
    pytest.param(chat(think="hard"), "bad_option", 'invalid think value: "hard" (must be', id="think-word"),
    pytest.param(chat(think=1), "wrong_type", "think must be a boolean or string", id="think-number"),
    pytest.param(chat(format="xml"), "bad_option", 'expected "json" or a valid JSON Schema object', id="format-word"),
    pytest.param(chat(format=[1]), "bad_option", 'expected "json" or a valid JSON Schema object', id="format-list"),
    pytest.param(chat(format={"type": "thing"}), "bad_schema", "invalid JSON schema in format", id="format-schema"),
    pytest.param(chat(keep_alive="soon"), "bad_option", 'time: invalid duration "soon"', id="duration"),
    pytest.param(chat(keep_alive=[1]), "wrong_type", "keep_alive", id="duration-list"),
    pytest.param(chat(top_logprobs=21), "out_of_range", "top_logprobs must be between 0 and 20", id="logprobs"),
    pytest.param(
        chat(options={"temperature": "hot"}),
        "wrong_type",
        'option "temperature" must be of type float32',
        id="temperature",
    ),
    pytest.param(
        chat(options={"num_ctx": "big"}), "wrong_type", 'option "num_ctx" must be of type integer', id="context"
    ),
    pytest.param(chat(options={"stop": "."}), "wrong_type", 'option "stop" must be of type array', id="stop"),
    pytest.param(chat(options={"stop": [1]}), "wrong_type", 'option "stop" must be of an array of strings', id="stops"),
    # history
    pytest.param(chat({"role": "bot", "content": "x"}), "unknown_role", "invalid role: bot, role must be", id="role"),
    pytest.param(chat({"content": "x"}), "unknown_role", "invalid role: ,", id="no-role"),
    pytest.param(chat(USER, {"role": "tool", "content": "x"}), "orphan_tool_result", "messages[1]", id="orphan-result"),
    pytest.param(
        chat(USER, CALLS, {"role": "tool", "tool_name": "leap", "content": "x"}),
        "orphan_tool_result",
        "messages[2]: a tool message for 'leap' must follow",
        id="other-name",
    ),
    pytest.param(
        chat(USER, CALLS, {"role": "tool", "content": "x"}, {"role": "tool", "content": "y"}),
        "orphan_tool_result",
        "messages[3]",
        id="answered-twice",
    ),
    pytest.param(
        chat(USER, CALLS, USER), "unanswered_tool_call", "messages[2]: expected tool messages", id="unanswered"
    ),
    pytest.param(chat(USER, CALLS), "unanswered_tool_call", "look", id="ends-with-a-call"),
    pytest.param(
        calling(function={"name": "look", "arguments": '{"a": 1}'}),
        "wrong_type",
        f"{UNMARSHAL} string into Go struct field ChatRequest.messages.tool_calls.function.arguments of type "
        "api.ToolCallFunctionArguments",
        id="arguments-are-text",
    ),
    pytest.param(calling(name="look"), "wrong_type", "of type api.ToolCallFunction", id="call-without-function"),
    pytest.param(calling(function={"arguments": {}}), "wrong_type", "function.name of type string", id="nameless-call"),
    # tools
    pytest.param(chat(tools=[TOOL, TOOL]), "duplicate_tool_name", "a function 'look' already", id="same-name"),
    pytest.param(tool(description="x"), "missing_field", "tools[0]: a function needs a name", id="nameless-tool"),
    pytest.param(chat(tools=["look"]), "wrong_type", "ChatRequest.tools", id="tool-is-text"),
    pytest.param(
        tool(name="look", parameters=[]), "wrong_type", "api.ToolFunctionParameters", id="parameters-are-list"
    ),
    pytest.param(
        tool(name="look", parameters={"type": "thing"}), "bad_tool_schema", "are no JSON schema", id="parameters"
    ),
]


@pytest.mark.parametrize(("body", "rule", "words"), REFUSED)
def test_a_chat_request_is_refused(body: Json, rule: str, words: str) -> None:
    mock = Mock(script(step("never", optional=True)))
    answer = sent(mock, body)
    assert (answer.status_code, mock.journal[0].rule) == (400, rule), answer.text
    assert words in answer.json()["error"]


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        pytest.param({"prompt": "x"}, "missing_model", id="no-model"),
        pytest.param({"model": "m", "prompt": 1}, "wrong_type", id="prompt-is-number"),
        pytest.param({"model": "m", "prompt": "x", "raw": True, "system": "s"}, "bad_option", id="raw-with-system"),
        pytest.param({"model": "m", "prompt": "x", "images": ["%"]}, "bad_base64", id="picture"),
    ],
)
def test_a_generate_request_is_refused(body: Json, rule: str) -> None:
    mock = Mock(script(step("never", optional=True)))
    assert (sent(mock, body, "/api/generate").status_code, mock.journal[0].rule) == (400, rule)


@pytest.mark.parametrize(
    ("path", "body", "rule"),
    [
        pytest.param("/api/embed", {"model": "e", "input": [1]}, "wrong_type", id="input-of-numbers"),
        pytest.param("/api/embed", {"input": "x"}, "missing_model", id="no-model"),
        pytest.param("/api/embed", {"model": "e", "input": "x", "dimensions": "8"}, "wrong_type", id="dimensions"),
        pytest.param("/api/embeddings", {"model": "e", "prompt": ["x"]}, "wrong_type", id="prompts"),
        pytest.param("/api/show", {}, "missing_model", id="show-nothing"),
        pytest.param("/api/show", [], "wrong_type", id="show-a-list"),
    ],
)
def test_embeddings_and_models_are_refused_by_their_own_rules(path: str, body: Json, rule: str) -> None:
    mock = Mock(script(step("never", optional=True)))
    assert (sent(mock, body, path).status_code, mock.journal[0].rule) == (400, rule)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(chat({"role": "User", "content": "hi"}), id="role-in-capitals"),
        pytest.param(chat(USER, CALLS, {"role": "tool", "tool_name": "look", "content": "x"}), id="call-and-result"),
        pytest.param(chat({"role": "user", "content": None}), id="null-is-absent"),
        pytest.param(chat(think="max", format="json", keep_alive=-1, options={"seed": 1, "other": "x"}), id="options"),
        pytest.param(chat(format={"type": "object", "properties": {"a": {"type": "string"}}}), id="schema"),
        pytest.param(chat(tools=[{"type": "function", "function": {"name": "look"}}]), id="tool-without-parameters"),
    ],
)
def test_what_the_server_takes_is_taken(body: Json) -> None:
    answer = sent(Mock(script(step("ok"))), body)
    assert answer.status_code == 200, answer.text


def test_unknown_fields_are_noted_and_refused_where_the_script_is_strict() -> None:
    mock = Mock(script(step("ok")))
    assert (sent(mock, chat(novelty=1)).status_code, mock.journal[0].extra_fields) == (200, ("novelty",))
    strict = sent(Mock(script(step("never", optional=True), strict_fields=True)), chat(novelty=1))
    assert (strict.status_code, strict.json()) == (400, {"error": 'json: unknown field "novelty"'})
