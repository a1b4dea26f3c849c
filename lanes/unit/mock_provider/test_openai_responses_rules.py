"""Responses requests that the provider refuses, each with its status, rule and words, met by its published client."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import openai
import pytest

from mock_provider.json_values import Json, JsonObject
from mock_provider.replies import reasoning, script, step, text, tool_call
from mock_provider.script import ScriptLike

if TYPE_CHECKING:
    from lanes.unit.mock_provider.conftest import Play, Spoken

Start = Callable[[ScriptLike], "Play"]
Speak = Callable[[ScriptLike], "Spoken"]
AUTHORIZED = {"authorization": "Bearer sk-test-0001"}
USER: JsonObject = {"role": "user", "content": "x"}
CALL: JsonObject = {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"}
OUTPUT: JsonObject = {"type": "function_call_output", "call_id": "call_1", "output": "4"}
CUSTOM_CALL: JsonObject = {"type": "custom_tool_call", "call_id": "call_2", "name": "g", "input": ""}
CUSTOM_OUTPUT: JsonObject = {"type": "custom_tool_call_output", "call_id": "call_2", "output": "4"}
SAID: JsonObject = {"type": "message", "role": "assistant", "content": "y"}
THOUGHT: JsonObject = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAAforeign=="}
OPEN: JsonObject = {"type": "object", "properties": {"a": {"type": "string"}}}
CLOSED: JsonObject = {**OPEN, "additionalProperties": False, "required": ["a"]}


def function(name: Json = "f", **more: Json) -> JsonObject:
    return {"type": "function", "name": name, "parameters": OPEN, **more}


def without(item: JsonObject, name: str) -> JsonObject:
    return {key: value for key, value in item.items() if key != name}


def case(name: str, body: JsonObject, rule: str, param: str | None, code: str | None, words: str) -> object:
    return pytest.param(body, rule, param, code, words, id=name)


CASES = [
    case(
        "model",
        {"model": "", "input": "x"},
        "missing_field",
        "model",
        "missing_required_parameter",
        "parameter: 'model'",
    ),
    case("model-type", {"model": 1, "input": "x"}, "wrong_type", "model", "invalid_type", "but got an integer"),
    case("input", {}, "missing_field", "input", "missing_required_parameter", "One of 'input' or"),
    case("input-type", {"input": 1}, "wrong_type", "input", "invalid_type", "one of a string or array"),
    case("input-empty", {"input": []}, "empty_array", "input", "empty_array", "minimum length 1"),
    case("item-type", {"input": ["x"]}, "wrong_type", "input[0]", "invalid_type", "expected an input item"),
    case("item-kind", {"input": [{"type": "tool"}]}, "unknown_item_type", "input[0].type", "invalid_value", "'tool'"),
    case("no-kind", {"input": [{}]}, "missing_field", "input[0].type", "missing_required_parameter", "input[0].type"),
    case(
        "role",
        {"input": [{"role": "tool", "content": "x"}]},
        "unknown_role",
        "input[0].role",
        "invalid_value",
        "Invalid value: 'tool'. Supported values are: 'assistant', 'system', 'developer', and 'user'.",
    ),
    case("role-type", {"input": [{"role": 1, "content": ""}]}, "wrong_type", "input[0].role", "invalid_type", "one of"),
    case(
        "no-role",
        {"input": [{"type": "message", "content": "x"}]},
        "missing_field",
        "input[0].role",
        "missing_required_parameter",
        "'input[0].role'",
    ),
    case(
        "content", {"input": [{"role": "user"}]}, "missing_field", "input[0].content", "missing_required_parameter", ""
    ),
    case(
        "content-null",
        {"input": [{"role": "user", "content": None}]},
        "wrong_type",
        "input[0].content",
        "invalid_type",
        "but got null instead",
    ),
    case(
        "part-of-the-older-endpoint",
        {"input": [{"role": "user", "content": [{"type": "text", "text": "x"}]}]},
        "unknown_content_part",
        "input[0].content[0].type",
        "invalid_value",
        "Invalid value: 'text'. Supported values are: 'input_text', 'input_image'",
    ),
    case(
        "part-of-the-other-role",
        {"input": [{"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}]},
        "content_part_of_other_role",
        "input[0].content[0]",
        "invalid_value",
        "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'.",
    ),
    case(
        "part-text",
        {"input": [{"role": "user", "content": [{"type": "input_text"}]}]},
        "missing_field",
        "input[0].content[0].text",
        "missing_required_parameter",
        "",
    ),
    case(
        "image",
        {"input": [{"role": "user", "content": [{"type": "input_image"}]}]},
        "missing_field",
        "input[0].content[0].image_url",
        "missing_required_parameter",
        "",
    ),
    case(
        "chat-calls",
        {"input": [{"role": "assistant", "content": "x", "tool_calls": []}]},
        "chat_field",
        "input[0].tool_calls",
        "unknown_parameter",
        "Unknown parameter: 'input[0].tool_calls'.",
    ),
    case(
        "orphan-output",
        {"input": [USER, OUTPUT]},
        "orphan_tool_result",
        "input",
        None,
        "No tool call found for function call output with call_id call_1.",
    ),
    case(
        "orphan-custom-output",
        {"input": [USER, CUSTOM_OUTPUT]},
        "orphan_tool_result",
        "input",
        None,
        "No tool call found for custom tool call output with call_id call_2.",
    ),
    case(
        "output-of-another-kind",
        {"input": [USER, CALL, {**CUSTOM_OUTPUT, "call_id": "call_1"}]},
        "orphan_tool_result",
        "input",
        None,
        "No tool call found for custom tool call output",
    ),
    case(
        "output-before-its-call", {"input": [OUTPUT, CALL]}, "orphan_tool_result", "input", None, "No tool call found"
    ),
    case(
        "unanswered",
        {"input": [USER, CALL, SAID]},
        "unanswered_tool_call",
        "input",
        None,
        "No tool output found for function call call_1.",
    ),
    case(
        "unanswered-custom",
        {"input": [USER, CUSTOM_CALL]},
        "unanswered_tool_call",
        "input",
        None,
        "No tool output found for custom tool call call_2.",
    ),
    case("two-outputs", {"input": [CALL, OUTPUT, OUTPUT]}, "duplicate_tool_result", "input", None, "call_1"),
    case("two-calls", {"input": [CALL, CALL, OUTPUT]}, "duplicate_call_id", "input", None, "call_1"),
    case(
        "no-call-id",
        {"input": [without(CALL, "call_id"), OUTPUT]},
        "missing_field",
        "input[0].call_id",
        "missing_required_parameter",
        "",
    ),
    case(
        "empty-call-id", {"input": [{**CALL, "call_id": ""}]}, "empty_call_id", "input[0].call_id", "empty_string", ""
    ),
    case(
        "long-call-id",
        {"input": [{**CALL, "call_id": "c" * 65}]},
        "call_id_length",
        "input[0].call_id",
        "string_above_max_length",
        "maximum length 64, but got a string with length 65",
    ),
    case(
        "arguments-as-an-object",
        {"input": [{**CALL, "arguments": {}}, OUTPUT]},
        "wrong_type",
        "input[0].arguments",
        "invalid_type",
        "expected a string, but got an object instead",
    ),
    case(
        "call-name",
        {"input": [{**CALL, "name": "a.b"}, OUTPUT]},
        "name_pattern",
        "input[0].name",
        "invalid_value",
        "does not match pattern",
    ),
    case(
        "no-output",
        {"input": [CALL, without(OUTPUT, "output")]},
        "missing_field",
        "input[1].output",
        "missing_required_parameter",
        "",
    ),
    case(
        "output-type", {"input": [CALL, {**OUTPUT, "output": {}}]}, "wrong_type", "input[1].output", "invalid_type", ""
    ),
    case(
        "id-of-another-kind",
        {"input": [{**CALL, "id": "msg_1"}, OUTPUT]},
        "id_prefix",
        "input[0].id",
        "invalid_value",
        "Invalid 'input[0].id': 'msg_1'. Expected an ID that begins with 'fc'.",
    ),
    case(
        "same-id-twice",
        {"input": [{**SAID, "id": "msg_1"}, {**SAID, "id": "msg_1"}]},
        "duplicate_item",
        "input",
        None,
        "Duplicate item found with id msg_1.",
    ),
    case(
        "foreign-seal",
        {"input": [USER, THOUGHT, SAID]},
        "bad_encrypted_content",
        None,
        "invalid_encrypted_content",
        "The encrypted content gAAA...gn== could not be verified.",
    ),
    case(
        "no-summary",
        {"input": [without(THOUGHT, "summary"), SAID]},
        "missing_field",
        "input[0].summary",
        "missing_required_parameter",
        "",
    ),
    case("moved", {"messages": []}, "moved_field", "messages", "unsupported_parameter", "has moved to 'input'"),
    case(
        "moved-format",
        {"input": "x", "response_format": {}},
        "moved_field",
        "response_format",
        "unsupported_parameter",
        "has moved to 'text.format'",
    ),
    case("store", {"input": "x", "store": "no"}, "wrong_type", "store", "invalid_type", "expected a boolean"),
    case("instructions", {"input": "x", "instructions": 1}, "wrong_type", "instructions", "invalid_type", ""),
    case("warm", {"input": "x", "temperature": 3}, "out_of_range", "temperature", "decimal_above_max_value", "<= 2"),
    case(
        "few-tokens",
        {"input": "x", "max_output_tokens": 15},
        "out_of_range",
        "max_output_tokens",
        "integer_below_min_value",
        "Expected a value >= 16, but got 15 instead",
    ),
    case(
        "half-a-token", {"input": "x", "max_output_tokens": 20.5}, "wrong_type", "max_output_tokens", "invalid_type", ""
    ),
    case("truncation", {"input": "x", "truncation": "on"}, "unknown_word", "truncation", "invalid_value", "'on'"),
    case(
        "effort",
        {"input": "x", "reasoning": {"effort": "huge"}},
        "unknown_word",
        "reasoning.effort",
        "invalid_value",
        "",
    ),
    case("include", {"input": "x", "include": ["all"]}, "unknown_word", "include[0]", "invalid_value", "'all'"),
    case("metadata", {"input": "x", "metadata": {"a": 1}}, "wrong_type", "metadata.a", "invalid_type", ""),
    case(
        "metadata-length",
        {"input": "x", "metadata": {"a": "v" * 513}},
        "pair_length",
        "metadata.a",
        "string_above_max_length",
        "",
    ),
    case(
        "options-without-stream",
        {"input": "x", "stream_options": {"include_obfuscation": False}},
        "stream_options_without_stream",
        "stream_options",
        None,
        "only allowed when 'stream' is enabled",
    ),
    case(
        "previous-of-another-kind",
        {"input": "x", "previous_response_id": "chatcmpl-1"},
        "id_prefix",
        "previous_response_id",
        "invalid_value",
        "begins with 'resp'",
    ),
    case(
        "unknown-previous",
        {"input": "x", "previous_response_id": "resp_1"},
        "unknown_response",
        "previous_response_id",
        "previous_response_not_found",
        "Previous response with id 'resp_1' not found.",
    ),
    case(
        "two-histories",
        {"input": "x", "previous_response_id": "resp_1", "conversation": "conv_1"},
        "two_histories",
        None,
        "mutually_exclusive_parameters",
        "",
    ),
    case(
        "background-unkept",
        {"input": "x", "background": True, "store": False},
        "background_without_store",
        "background",
        None,
        "",
    ),
    case("tools", {"input": "x", "tools": {}}, "wrong_type", "tools", "invalid_type", "an array of objects"),
    case(
        "tool-kind", {"input": "x", "tools": [{"type": "f"}]}, "unknown_tool_type", "tools[0].type", "invalid_value", ""
    ),
    case(
        "tool-of-the-older-endpoint",
        {"input": "x", "tools": [{"type": "function", "function": {"name": "f"}}]},
        "missing_field",
        "tools[0].name",
        "missing_required_parameter",
        "Missing required parameter: 'tools[0].name'.",
    ),
    case("tool-name", {"input": "x", "tools": [function("a b")]}, "name_pattern", "tools[0].name", "invalid_value", ""),
    case(
        "tool-name-length",
        {"input": "x", "tools": [function("f" * 65)]},
        "name_length",
        "tools[0].name",
        "string_above_max_length",
        "",
    ),
    case(
        "same-tool-twice",
        {"input": "x", "tools": [function(), {"type": "custom", "name": "f"}]},
        "duplicate_tool_name",
        "tools[1].name",
        "invalid_value",
        "tool names must be unique",
    ),
    case(
        "too-many-tools",
        {"input": "x", "tools": [function(f"f{at}") for at in range(129)]},
        "too_many_tools",
        "tools",
        "array_above_max_length",
        "maximum length 128",
    ),
    case(
        "bad-schema",
        {"input": "x", "tools": [function(parameters={"type": "object", "properties": {"a": {"type": "text"}}})]},
        "bad_tool_schema",
        "tools[0].parameters",
        "invalid_function_parameters",
        "Invalid schema for function 'f': 'text' is not valid under any of the given schemas",
    ),
    case(
        "schema-of-a-list",
        {"input": "x", "tools": [function(parameters={"type": "array"})]},
        "bad_tool_schema",
        "tools[0].parameters",
        "invalid_function_parameters",
        "schema must be a JSON Schema of 'type: \"object\"', got 'type: \"array\"'.",
    ),
    case(
        "open-schema-under-strict",
        {"input": "x", "tools": [function(strict=True)]},
        "bad_tool_schema",
        "tools[0].parameters",
        "invalid_function_parameters",
        "In context=(), 'additionalProperties' is required to be supplied and to be false.",
    ),
    case(
        "grammar",
        {"input": "x", "tools": [{"type": "custom", "name": "g", "format": {"type": "grammar", "syntax": "lark"}}]},
        "missing_field",
        "tools[0].format.definition",
        "missing_required_parameter",
        "",
    ),
    case(
        "choice-without-tools",
        {"input": "x", "tool_choice": "required"},
        "tool_choice_without_tools",
        "tool_choice",
        None,
        "Tool choice 'required' must be specified with 'tools' parameter.",
    ),
    case(
        "choice-not-offered",
        {"input": "x", "tools": [function()], "tool_choice": {"type": "function", "name": "g"}},
        "tool_choice_not_offered",
        "tool_choice",
        None,
        "Tool choice 'g' not found in 'tools' parameter.",
    ),
    case(
        "choice", {"input": "x", "tool_choice": "any"}, "unknown_tool_choice", "tool_choice", "invalid_value", "'any'"
    ),
    case(
        "format-name",
        {"input": "x", "text": {"format": {"type": "json_schema", "schema": OPEN}}},
        "missing_field",
        "text.format.name",
        "missing_required_parameter",
        "Missing required parameter: 'text.format.name'.",
    ),
    case(
        "format-schema",
        {"input": "x", "text": {"format": {"type": "json_schema", "name": "n", "strict": True, "schema": OPEN}}},
        "bad_response_schema",
        "text.format.schema",
        "invalid_json_schema",
        "Invalid schema for response_format 'n': In context=()",
    ),
    case(
        "format-kind",
        {"input": "x", "text": {"format": {"type": "xml"}}},
        "unknown_response_format",
        "text.format.type",
        "invalid_value",
        "",
    ),
    case(
        "json-unsaid",
        {"input": "x", "text": {"format": {"type": "json_object"}}},
        "json_word_missing",
        "input",
        None,
        "must contain the word 'json' in some form to use 'text.format' of type 'json_object'.",
    ),
]


@pytest.mark.parametrize(("body", "rule", "param", "code", "words"), CASES)
def test_a_malformed_request_gets_the_providers_refusal(
    play: Start, body: JsonObject, rule: str, param: str | None, code: str | None, words: str
) -> None:
    run = play(script(step("never")))
    answer = run.client.post("/responses", json={"model": "m", **body}, headers=AUTHORIZED)
    error = answer.json()["error"]
    assert (answer.status_code, error["type"], error["param"], error["code"]) == (
        400,
        "invalid_request_error",
        param,
        code,
    )
    assert words in error["message"]
    assert (run.mock.journal[0].rule, run.mock.verify().ok) == (rule, False)


def test_a_sound_request_with_everything_is_answered(play: Start) -> None:
    run = play(script(step("hi")))
    body: JsonObject = {
        "model": "m",
        "input": [
            {"role": "developer", "content": "answer in json"},
            {
                "role": "user",
                "content": [{"type": "input_text", "text": "x"}, {"type": "input_image", "image_url": "d"}],
            },
            CALL,
            CUSTOM_CALL,
            CUSTOM_OUTPUT,
            OUTPUT,
            SAID,
            USER,
        ],
        "tools": [
            function("f", parameters=CLOSED, strict=True),
            {"type": "custom", "name": "g", "format": {"type": "text"}},
            {"type": "web_search"},
            {"type": "mcp", "server_label": "s", "server_url": "https://example.org"},
        ],
        "tool_choice": {"type": "mcp", "server_label": "s"},
        "text": {"format": {"type": "json_object"}, "verbosity": "low"},
        "reasoning": {"effort": "minimal", "summary": "auto"},
        "include": ["reasoning.encrypted_content"],
        "metadata": {"a": "b"},
        "truncation": "auto",
        "stream": True,
        "stream_options": {"include_obfuscation": False},
    }
    assert run.client.post("/responses", json=body, headers=AUTHORIZED).status_code == 200
    assert run.mock.verify().ok


def first_answer(said: Spoken, **more: Json) -> list[JsonObject]:
    response = said.client.responses.create(model="m", input="x", **more)  # type: ignore[call-overload] # any options
    return [item.model_dump(exclude_unset=True) for item in response.output]


THINKING = script(step(reasoning("hm"), tool_call("f", id="call_1")), step(text("never"), optional=True))


def test_reasoning_without_what_it_led_to_is_refused(speak: Speak) -> None:
    said = speak(THINKING)
    thought, _ = first_answer(said)
    words = f"Item '{thought['id']}' of type 'reasoning' was provided without its required following item."
    with pytest.raises(openai.BadRequestError, match=words):
        said.client.responses.create(model="m", input=[USER, thought, USER])  # type: ignore[list-item] # plain mappings
    assert said.mock.journal[1].rule == "reasoning_without_item"


def test_a_call_without_the_reasoning_that_led_to_it_is_refused(speak: Speak) -> None:
    said = speak(THINKING)
    thought, call = first_answer(said)
    words = (
        f"'{call['id']}' of type 'function_call' was provided without its required 'reasoning' item: '{thought['id']}'"
    )
    with pytest.raises(openai.BadRequestError, match=words):
        said.client.responses.create(model="m", input=[USER, call, OUTPUT])  # type: ignore[list-item] # plain mappings


def test_reasoning_that_was_not_kept_is_only_known_by_its_seal(speak: Speak) -> None:
    said = speak(THINKING)
    thought, call = first_answer(said, store=False)
    history = [USER, without(thought, "encrypted_content"), call, OUTPUT]
    with pytest.raises(openai.NotFoundError, match="not persisted when `store` is set to false"):
        said.client.responses.create(model="m", input=history)  # type: ignore[arg-type] # plain mappings
    said.client.responses.create(model="m", input=[USER, thought, call, OUTPUT])  # type: ignore[list-item] # plain mappings


def test_kept_items_may_be_named_instead_of_sent(speak: Speak) -> None:
    said = speak(script(step(reasoning("hm"), tool_call("f", id="call_1")), step("end", expect={"messages": 3})))
    references: list[Json] = [{"type": "item_reference", "id": item["id"]} for item in first_answer(said)]
    answer = said.client.responses.create(model="m", input=[USER, *references, OUTPUT])  # type: ignore[list-item] # plain mappings
    assert answer.output_text == "end"
    with pytest.raises(openai.NotFoundError, match="Item with id 'msg_9' not found"):
        said.client.responses.create(model="m", input=[{"type": "item_reference", "id": "msg_9"}])


def test_a_continued_response_wants_its_calls_answered(speak: Speak) -> None:
    said = speak(THINKING)
    first = said.client.responses.create(model="m", input="x")
    with pytest.raises(openai.BadRequestError, match=r"No tool output found for function call call_1\."):
        said.client.responses.create(model="m", input="go on", previous_response_id=first.id)


def test_a_response_that_was_not_kept_cannot_be_continued(speak: Speak) -> None:
    said = speak(script(step("hi")))
    first = said.client.responses.create(model="m", input="x", store=False)
    with pytest.raises(openai.BadRequestError) as caught:
        said.client.responses.create(model="m", input="y", previous_response_id=first.id)
    assert caught.value.code == "previous_response_not_found"


def test_a_synchronous_response_cannot_be_cancelled(speak: Speak) -> None:
    said = speak(script(step("hi")))
    first = said.client.responses.create(model="m", input="x")
    with pytest.raises(openai.BadRequestError, match="Cannot cancel a synchronous response"):
        said.client.responses.cancel(first.id)


def test_an_unknown_conversation_is_refused(speak: Speak) -> None:
    said = speak(script(step("hi", optional=True)))
    with pytest.raises(openai.NotFoundError, match="Conversation with id 'conv_1' not found"):
        said.client.responses.create(model="m", input="x", conversation="conv_1")


@pytest.mark.parametrize(
    ("key", "code"), [pytest.param("", None, id="none"), pytest.param("sk-wrong-0001", "invalid_api_key", id="wrong")]
)
def test_keys_are_checked(play: Start, key: str, code: str | None) -> None:
    run = play(script(step("never"), api_key="sk-right-0001"))
    headers = {"authorization": f"Bearer {key}"} if key else {}
    answer = run.client.post("/responses", json={"model": "m", "input": "x"}, headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, code)


def test_an_unknown_address_names_the_known_ones(play: Start) -> None:
    run = play(script(step("never")))
    answer = run.client.post("/responses/resp_1/steer", json={}, headers=AUTHORIZED)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (404, "unknown_url")
    assert "openai_responses: POST /v1/responses, POST /v1/responses/input_tokens" in error["message"]
