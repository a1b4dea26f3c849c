"""Chat requests are refused with the provider's status, code and parameter."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from mock_provider.json_values import Json, JsonObject
from mock_provider.replies import script, step
from mock_provider.script import ScriptLike

if TYPE_CHECKING:
    from lanes.unit.mock_provider.conftest import Play

Start = Callable[[ScriptLike], "Play"]
USER: JsonObject = {"role": "user", "content": "x"}
CALL: JsonObject = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CALLS: JsonObject = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT: JsonObject = {"role": "tool", "tool_call_id": "c1", "content": "r"}


def tool(name: Json = "f", **more: Json) -> JsonObject:
    return {"type": "function", "function": {"name": name, **more}}


def messages(*given: JsonObject) -> JsonObject:
    return {"messages": list(given)}


CASES: list[tuple[str, JsonObject, str, str | None, str | None]] = [
    ("no-model", {"model": ""}, "missing_model", None, None),
    ("model-type", {"model": 3}, "wrong_type", "invalid_type", "model"),
    ("messages-type", {"messages": "x"}, "wrong_type", "invalid_type", "messages"),
    ("messages-empty", {"messages": []}, "empty_array", "empty_array", "messages"),
    ("message-type", {"messages": ["x"]}, "wrong_type", "invalid_type", "messages[0]"),
    ("no-role", messages({"content": "x"}), "missing_field", "missing_required_parameter", "messages[0].role"),
    ("unknown-role", messages({"role": "robot", "content": "x"}), "unknown_role", "invalid_value", "messages[0].role"),
    ("null-content", messages({"role": "user", "content": None}), "missing_content", None, "messages.[0].content"),
    ("no-content", messages({"role": "assistant"}), "missing_content", None, "messages.[0].content"),
    ("content-type", messages({"role": "user", "content": 3}), "wrong_type", "invalid_type", "messages[0].content"),
    ("content-empty", messages({"role": "user", "content": []}), "empty_array", "empty_array", "messages[0].content"),
    (
        "part-kind",
        messages({"role": "user", "content": [{"type": "txt"}]}),
        "unknown_content_part",
        "invalid_value",
        "messages[0].content[0].type",
    ),
    (
        "part-without-text",
        messages({"role": "user", "content": [{"type": "text"}]}),
        "missing_field",
        "missing_required_parameter",
        "messages[0].content[0].text",
    ),
    (
        "image-for-assistant",
        messages({"role": "assistant", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}),
        "unknown_content_part",
        "invalid_value",
        "messages[0].content[0].type",
    ),
    ("orphan-result", messages(USER, RESULT), "orphan_tool_result", None, "messages.[1].role"),
    (
        "result-without-id",
        messages({"role": "tool", "content": "r"}),
        "missing_field",
        "missing_required_parameter",
        "messages[0].tool_call_id",
    ),
    ("call-unanswered", messages(USER, CALLS, USER), "unanswered_tool_call", None, "messages.[2].role"),
    ("call-unanswered-at-the-end", messages(USER, CALLS), "unanswered_tool_call", None, "messages.[2].role"),
    ("result-twice", messages(USER, CALLS, RESULT, RESULT), "duplicate_tool_result", None, "messages.[3].tool_call_id"),
    ("result-too-late", messages(USER, CALLS, RESULT, USER, RESULT), "orphan_tool_result", None, "messages.[4].role"),
    (
        "call-id-twice",
        messages(USER, {**CALLS, "tool_calls": [CALL, CALL]}, RESULT),
        "duplicate_call_id",
        None,
        "messages.[1].tool_calls",
    ),
    ("calls-empty", messages({**CALLS, "tool_calls": []}), "empty_array", "empty_array", "messages[0].tool_calls"),
    (
        "arguments-not-a-string",
        messages({**CALLS, "tool_calls": [{**CALL, "function": {"name": "f", "arguments": {}}}]}),
        "wrong_type",
        "invalid_type",
        "messages[0].tool_calls[0].function.arguments",
    ),
    (
        "called-name-pattern",
        messages({**CALLS, "tool_calls": [{**CALL, "function": {"name": "a b", "arguments": "{}"}}]}),
        "name_pattern",
        "invalid_value",
        "messages[0].tool_calls[0].function.name",
    ),
    ("tools-empty", {"tools": []}, "empty_array", "empty_array", "tools"),
    ("tool-name-pattern", {"tools": [tool("read file")]}, "name_pattern", "invalid_value", "tools[0].function.name"),
    ("tool-name-long", {"tools": [tool("a" * 65)]}, "name_length", "string_above_max_length", "tools[0].function.name"),
    ("tool-name-twice", {"tools": [tool(), tool()]}, "duplicate_tool_name", "invalid_value", "tools[1].function.name"),
    (
        "too-many-tools",
        {"tools": [tool(f"f{at}") for at in range(129)]},
        "too_many_tools",
        "array_above_max_length",
        "tools",
    ),
    (
        "schema-not-an-object",
        {"tools": [tool(parameters={"type": "string"})]},
        "bad_tool_schema",
        "invalid_function_parameters",
        "tools[0].function.parameters",
    ),
    (
        "schema-unknown-type",
        {"tools": [tool(parameters={"type": "object", "properties": {"a": {"type": "strin"}}})]},
        "bad_tool_schema",
        "invalid_function_parameters",
        "tools[0].function.parameters",
    ),
    (
        "schema-required-is-text",
        {"tools": [tool(parameters={"type": "object", "required": "a"})]},
        "bad_tool_schema",
        "invalid_function_parameters",
        "tools[0].function.parameters",
    ),
    ("choice-without-tools", {"tool_choice": "auto"}, "tool_choice_without_tools", None, "tool_choice"),
    (
        "parallel-without-tools",
        {"parallel_tool_calls": True},
        "parallel_tool_calls_without_tools",
        None,
        "parallel_tool_calls",
    ),
    (
        "choice-unknown",
        {"tools": [tool()], "tool_choice": "any"},
        "unknown_tool_choice",
        "invalid_value",
        "tool_choice",
    ),
    (
        "choice-not-offered",
        {"tools": [tool()], "tool_choice": {"type": "function", "function": {"name": "g"}}},
        "tool_choice_not_offered",
        None,
        "tool_choice",
    ),
    ("temperature", {"temperature": 3}, "out_of_range", "decimal_above_max_value", "temperature"),
    ("temperature-type", {"temperature": "hot"}, "wrong_type", "invalid_type", "temperature"),
    ("max-tokens-zero", {"max_tokens": 0}, "out_of_range", "integer_below_min_value", "max_tokens"),
    ("max-tokens-type", {"max_tokens": 1.5}, "wrong_type", "invalid_type", "max_tokens"),
    (
        "two-limits",
        {"max_tokens": 1, "max_completion_tokens": 1},
        "two_token_limits",
        "invalid_parameter_combination",
        "max_tokens",
    ),
    ("stream-type", {"stream": "yes"}, "wrong_type", "invalid_type", "stream"),
    (
        "stream-options",
        {"stream_options": {"include_usage": True}},
        "stream_options_without_stream",
        None,
        "stream_options",
    ),
    ("stops", {"stop": ["a", "b", "c", "d", "e"]}, "too_many_stops", "array_above_max_length", "stop"),
    (
        "format",
        {"response_format": {"type": "xml"}},
        "unknown_response_format",
        "invalid_value",
        "response_format.type",
    ),
    ("format-json", {"response_format": {"type": "json_object"}}, "json_word_missing", None, "messages"),
    (
        "format-schema",
        {"response_format": {"type": "json_schema"}},
        "missing_field",
        "missing_required_parameter",
        "response_format.json_schema",
    ),
]


@pytest.mark.parametrize(("change", "rule", "code", "param"), [pytest.param(*case[1:], id=case[0]) for case in CASES])
def test_a_broken_request_gets_the_providers_own_refusal(
    play: Start, change: JsonObject, rule: str, code: str | None, param: str | None
) -> None:
    run = play(script(step("never")))
    body = {"model": "m", "messages": [USER], **change}
    answer = run.client.post("/chat/completions", json=body, headers={"authorization": "Bearer x"})
    refused = answer.json()["error"]
    assert (answer.status_code, refused["type"], refused["code"], refused["param"]) == (
        400,
        "invalid_request_error",
        code,
        param,
    )
    assert run.mock.journal[0].rule == rule
    assert [f"rule {rule}:" in problem for problem in run.mock.verify().invalid] == [True]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(messages(USER, CALLS, RESULT), id="tool-round"),
        pytest.param(messages({"role": "developer", "content": "x"}, USER), id="developer"),
        pytest.param(messages({"role": "user", "content": ""}), id="empty-text"),
        pytest.param(messages(USER, {"role": "assistant", "content": ""}, USER), id="empty-answer"),
        pytest.param({"tools": [tool(parameters={})]}, id="empty-schema"),
        pytest.param({"tools": [tool(parameters=None)], "tool_choice": "required"}, id="no-schema"),
        pytest.param({"tools": [tool()], "tool_choice": {"type": "function", "function": {"name": "f"}}}, id="choice"),
        pytest.param({"reasoning_effort": "low", "thinking": {"type": "enabled"}}, id="thinking"),
        pytest.param(
            {"response_format": {"type": "json_object"}, **messages({"role": "user", "content": "as JSON"})}, id="json"
        ),
        pytest.param({"stop": "x", "n": 1, "seed": 3, "user": "u", "max_completion_tokens": 5}, id="options"),
    ],
)
def test_a_sound_request_is_answered(play: Start, change: JsonObject) -> None:
    run = play(script(step("fine")))
    body = {"model": "m", "messages": [USER], **change}
    answer = run.client.post("/chat/completions", json=body, headers={"authorization": "Bearer x"})
    assert (answer.status_code, answer.json().get("error")) == (200, None)


def test_a_body_that_is_not_json_is_refused(play: Start) -> None:
    run = play(script(step("never")))
    answer = run.client.post("/chat/completions", content=b"{", headers={"authorization": "Bearer x"})
    assert (answer.status_code, answer.json()["error"]["message"][:52], run.mock.journal[0].rule) == (
        400,
        "We could not parse the JSON body of your request. (H",
        "not_json",
    )


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        pytest.param({}, None, id="no-key"),
        pytest.param({"authorization": "Bearer "}, None, id="empty-key"),
        pytest.param({"authorization": "Bearer wrong"}, "invalid_api_key", id="wrong-key"),
    ],
)
def test_a_missing_or_wrong_key_is_refused(play: Start, headers: dict[str, str], code: str | None) -> None:
    run = play(script(step("fine"), api_key="sk-right"))
    body = {"model": "m", "messages": [USER]}
    answer = run.client.post("/chat/completions", json=body, headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, code)
    assert (
        run.client.post("/chat/completions", json=body, headers={"authorization": "Bearer sk-right"}).status_code == 200
    )


def test_an_unlisted_model_is_refused(play: Start) -> None:
    run = play(script(step("fine"), models=["a", "b"]))
    answer = run.ask("x")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "model_not_found")


@pytest.mark.parametrize(
    ("strict", "status"), [pytest.param(False, 200, id="kept"), pytest.param(True, 400, id="refused")]
)
def test_extra_fields_are_journalled_or_refused(play: Start, strict: bool, status: int) -> None:
    run = play(script(step("fine"), strict_fields=strict))
    answer = run.ask("x", frobnicate=1)
    assert answer.status_code == status
    assert run.mock.journal[0].extra_fields == (() if strict else ("frobnicate",))


def test_the_deepseek_flavour_refuses_in_its_own_form(play: Start) -> None:
    run = play(script(step("never"), flavour="deepseek"))
    answers = [run.ask({"role": "robot", "content": "x"}), run.client.post("/chat/completions", json={})]
    assert [(one.status_code, one.json()["error"]["type"], one.json()["error"]["code"]) for one in answers] == [
        (400, "invalid_request_error", "invalid_value"),
        (401, "authentication_error", "invalid_request_error"),
    ]
