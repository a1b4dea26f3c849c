"""What the Converse and InvokeModel operations refuse: each rule with the words of the service."""

from __future__ import annotations

import httpx
import pytest

import mock_provider
from mock_provider.json_values import Json, JsonObject
from mock_provider.mock import Mock
from mock_provider.replies import script, step

BEARER = {"authorization": "Bearer test-key-0001"}
USER: JsonObject = {"role": "user", "content": [{"text": "hi"}]}
SAID: JsonObject = {"role": "assistant", "content": [{"text": "yes"}]}
USE: JsonObject = {"toolUse": {"toolUseId": "t1", "name": "look", "input": {}}}
USES: JsonObject = {"role": "assistant", "content": [USE]}
RESULT: JsonObject = {"toolResult": {"toolUseId": "t1", "content": [{"text": "x"}]}}
RESULTS: JsonObject = {"role": "user", "content": [RESULT]}
SPEC: JsonObject = {"toolSpec": {"name": "look", "inputSchema": {"json": {"type": "object"}}}}
TOOLS: JsonObject = {"tools": [SPEC]}
CLAUDE: JsonObject = {
    "anthropic_version": "bedrock-2023-05-31",
    "max_tokens": 9,
    "messages": [{"role": "user", "content": "hi"}],
}


def sent(mock: Mock, body: Json, operation: str = "converse") -> httpx.Response:
    """Send one request."""
    with httpx.Client(transport=mock_provider.transport(mock), base_url="http://mock.invalid") as client:
        return client.post(f"/model/m/{operation}", json=body, headers=BEARER)


def asked(*messages: Json, **more: Json) -> JsonObject:
    """A request with these messages."""
    return {"messages": list(messages) or [USER], **more}


def user(*blocks: Json) -> JsonObject:
    """A request with one message of these blocks."""
    return asked({"role": "user", "content": list(blocks)})


def result(**more: Json) -> JsonObject:
    """A request with a tool result that has these members beside its id."""
    return asked(
        USER, USES, {"role": "user", "content": [{"toolResult": {"toolUseId": "t1", **more}}]}, toolConfig=TOOLS
    )


def spec(name: Json = "look", schema: Json = None) -> JsonObject:
    """A request with one tool."""
    chosen: Json = {"type": "object"} if schema is None else schema
    return asked(toolConfig={"tools": [{"toolSpec": {"name": name, "inputSchema": {"json": chosen}}}]})


ONE = "1 validation error detected: "
FAILED = "failed to satisfy constraint: Member must"
REFUSED = [
    # members, as the services check them
    pytest.param(
        asked({"role": "bot", "content": []}),
        "unknown_role",
        f"{ONE}Value 'bot' at 'messages.1.member.role' {FAILED} satisfy enum value set: [user, assistant, system]",
        id="role",
    ),
    pytest.param(
        asked({"content": []}),
        "missing_field",
        f"{ONE}Value at 'messages.1.member.role' {FAILED} not be null",
        id="no-role",
    ),
    pytest.param(asked({}), "missing_field", "2 validation errors detected: ", id="no-role-and-no-content"),
    pytest.param(user({}), "unknown_content_part", "messages.1.member.content.1.member", id="empty-block"),
    pytest.param(user({"text": "a", "image": {}}), "unknown_content_part", "exactly one of", id="two-in-a-block"),
    pytest.param(
        asked(inferenceConfig={"maxTokens": 0}),
        "out_of_range",
        f"{ONE}Value '0' at 'inferenceConfig.maxTokens' {FAILED} have value greater than or equal to 1",
        id="no-tokens",
    ),
    pytest.param(
        asked(inferenceConfig={"temperature": 1.5}),
        "out_of_range",
        f"Value '1.5' at 'inferenceConfig.temperature' {FAILED} have value less than or equal to 1",
        id="hot",
    ),
    pytest.param(
        spec("a b"),
        "name_pattern",
        f"{ONE}Value 'a b' at 'toolConfig.tools.1.member.toolSpec.name' {FAILED} satisfy regular expression pattern: "
        "[a-zA-Z0-9_-]+",
        id="tool-name",
    ),
    pytest.param(spec("a" * 65), "name_pattern", "have length less than or equal to 64", id="long-tool-name"),
    pytest.param(spec(""), "name_pattern", "have length greater than or equal to 1", id="empty-tool-name"),
    pytest.param(
        asked(USER, {"role": "assistant", "content": [{"toolUse": {"toolUseId": "a b", "name": "f", "input": {}}}]}),
        "name_pattern",
        "[a-zA-Z0-9_.:-]+",
        id="tool-use-id",
    ),
    pytest.param(asked(toolConfig={}), "missing_field", "'toolConfig.tools'", id="no-tools"),
    pytest.param(asked(toolConfig={"tools": []}), "empty_array", "greater than or equal to 1", id="empty-tools"),
    pytest.param(asked(system=[{"text": ""}]), "out_of_range", "'system.1.member.text'", id="empty-system"),
    # conversation
    pytest.param({}, "empty_array", "A conversation must start with a user message.", id="nothing"),
    pytest.param(asked(SAID), "first_role", "A conversation must start with a user message.", id="assistant-first"),
    pytest.param(
        asked(USER, USER), "role_order", "A conversation must alternate between user and assistant roles.", id="twice"
    ),
    pytest.param(
        asked({"role": "user", "content": []}),
        "missing_content",
        "The content field in the Message object at messages.0 is empty.",
        id="no-content",
    ),
    pytest.param(
        user({"text": " "}),
        "missing_content",
        "The text field in the ContentBlock object at messages.0.content.0 is blank.",
        id="blank",
    ),
    pytest.param(user(USE), "block_in_wrong_role", "messages.0.content.0", id="user-calls"),
    pytest.param(
        asked(USER, {"role": "assistant", "content": [RESULT]}),
        "block_in_wrong_role",
        "messages.1.content.0",
        id="assistant-answers",
    ),
    pytest.param(
        asked(USER, {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t", "name": "f", "input": "x"}}]}),
        "wrong_type",
        "messages.1.content.0.toolUse.input is invalid. Provide a json object.",
        id="input-is-text",
    ),
    pytest.param(
        asked(RESULTS, toolConfig=TOOLS),
        "orphan_tool_result",
        "The number of toolResult blocks at messages.0.content exceeds the number of toolUse blocks of previous turn.",
        id="orphan-result",
    ),
    pytest.param(
        asked(USER, USES, USER, toolConfig=TOOLS),
        "unanswered_tool_call",
        "Expected toolResult blocks at messages.2.content for the following Ids: t1",
        id="unanswered",
    ),
    pytest.param(
        asked(USER, USES, toolConfig=TOOLS), "unanswered_tool_call", "messages.2.content", id="ends-with-a-call"
    ),
    pytest.param(
        asked(USER, {"role": "assistant", "content": [USE, USE]}, RESULTS, toolConfig=TOOLS),
        "duplicate_call_id",
        "ids must be unique",
        id="same-id",
    ),
    pytest.param(
        asked(USER, USES, RESULTS),
        "missing_tools",
        "The toolConfig field must be defined when using toolUse and toolResult content blocks.",
        id="no-tool-config",
    ),
    pytest.param(
        result(content=[], status="error"),
        "missing_content",
        "messages.2.content.0.toolResult cannot be empty when status value is error.",
        id="empty-error",
    ),
    pytest.param(result(content=[], status="lost"), "unknown_word", "[success, error]", id="status"),
    # tools and output
    pytest.param(
        asked(toolConfig={"tools": [SPEC, SPEC]}), "duplicate_tool_name", "Tool names must be unique.", id="same-name"
    ),
    pytest.param(
        spec(schema={}),
        "bad_tool_schema",
        "The value at toolConfig.tools.0.toolSpec.inputSchema.json.type must be one of the following: object.",
        id="schema-without-type",
    ),
    pytest.param(spec(schema="x"), "bad_tool_schema", "Provide a json object.", id="schema-is-text"),
    pytest.param(
        spec(schema={"type": "object", "required": "a"}), "bad_tool_schema", "JSON schema is invalid", id="schema"
    ),
    pytest.param(
        asked(toolConfig={**TOOLS, "toolChoice": {"tool": {"name": "leap"}}}),
        "tool_choice_not_offered",
        "Tool 'leap' not found in provided tools",
        id="choice",
    ),
    pytest.param(
        asked(outputConfig={"textFormat": {"type": "json_schema", "structure": {"jsonSchema": {"schema": "{"}}}}),
        "bad_schema",
        "is not valid JSON",
        id="output-schema",
    ),
]


@pytest.mark.parametrize(("body", "rule", "words"), REFUSED)
def test_a_converse_request_is_refused_in_the_words_of_the_service(body: Json, rule: str, words: str) -> None:
    mock = Mock(script(step("never", optional=True)))
    answer = sent(mock, body)
    assert (answer.status_code, answer.headers["x-amzn-errortype"]) == (400, "ValidationException")
    assert (mock.journal[0].rule, words in answer.json()["message"]) == (rule, True), answer.text


@pytest.mark.parametrize(
    ("body", "words"),
    [
        pytest.param([], "must be a structure", id="no-object"),
        pytest.param({"messages": "hi"}, "STRING_VALUE can not be converted to a List at messages", id="text"),
        pytest.param(asked("hi"), "STRING_VALUE can not be converted to Message at messages.1.member", id="message"),
        pytest.param(user({"text": 7}), "NUMBER_VALUE can not be converted to String", id="number"),
        pytest.param(asked(inferenceConfig={"maxTokens": True}), "TRUE_VALUE can not be", id="flag"),
    ],
)
def test_a_wrong_type_cannot_be_read_at_all(body: Json, words: str) -> None:
    answer = sent(Mock(script(step("never", optional=True))), body)
    assert (answer.status_code, answer.headers["x-amzn-errortype"]) == (400, "SerializationException")
    assert words in answer.json()["message"]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(asked(USER, SAID, USER), id="three-turns"),
        pytest.param(asked({"role": "system", "content": [{"text": "s"}]}, USER), id="system-message"),
        pytest.param(asked(USER, USES, RESULTS, toolConfig=TOOLS), id="call-and-result"),
        pytest.param(
            asked(USER, USES, {"role": "user", "content": [RESULT, {"text": "so?"}]}, toolConfig=TOOLS), id="and-text"
        ),
        pytest.param(result(content=[], status="success"), id="empty-result"),
        pytest.param(user({"text": "a"}, {"cachePoint": {"type": "default"}}), id="cache-point"),
        pytest.param(asked(toolConfig={**TOOLS, "toolChoice": {"tool": {"name": "look"}}}), id="choice"),
        pytest.param(
            asked(outputConfig={"textFormat": {"type": "json_schema", "structure": {"jsonSchema": {"schema": "{}"}}}}),
            id="output-schema",
        ),
        pytest.param(
            asked(
                USER, {"role": "assistant", "content": [{"reasoningContent": {"reasoningText": {"text": "hm"}}}]}, USER
            ),
            id="reasoning",
        ),
        pytest.param(asked(additionalModelRequestFields={"top_k": 9}, requestMetadata={"a": "b"}), id="more"),
    ],
)
def test_what_the_service_takes_is_taken(body: Json) -> None:
    answer = sent(Mock(script(step("ok"))), body)
    assert answer.status_code == 200, answer.text


def test_unknown_members_are_noted_and_refused_where_the_script_is_strict() -> None:
    mock = Mock(script(step("ok")))
    assert sent(mock, user({"text": "a", "novelty": 1})).status_code == 200
    assert mock.journal[0].extra_fields == ("messages.1.member.content.1.member.novelty",)
    strict = sent(Mock(script(step("never", optional=True), strict_fields=True)), asked(novelty=1))
    assert (strict.status_code, "extraneous key [novelty]" in strict.json()["message"]) == (400, True)


@pytest.mark.parametrize(
    ("body", "rule", "words"),
    [
        pytest.param([], "wrong_type", "expected type: JSONObject", id="no-object"),
        pytest.param(
            {"messages": []}, "missing_version", "required key [anthropic_version] not found", id="no-version"
        ),
        pytest.param(
            {**CLAUDE, "anthropic_version": "2023-06-01"}, "missing_version", "not a valid enum value", id="version"
        ),
        pytest.param({**CLAUDE, "model": "m"}, "extra_field", "model: Extra inputs are not permitted", id="model"),
        pytest.param({**CLAUDE, "stream": True}, "extra_field", "stream: Extra inputs", id="stream"),
        pytest.param({**CLAUDE, "messages": []}, "empty_array", "at least one message is required", id="no-messages"),
        pytest.param({**CLAUDE, "max_tokens": 0}, "out_of_range", "max_tokens", id="no-tokens"),
        pytest.param({"inputText": ""}, "bad_input", "#/inputText: expected minLength: 1", id="empty-text"),
        pytest.param({"inputText": 1}, "bad_input", "#/inputText: expected type: String", id="text-is-number"),
        pytest.param({"inputText": "x", "dimensions": 7}, "out_of_range", "#/dimensions: 7", id="dimensions"),
    ],
)
def test_an_invoke_request_is_refused_by_the_rules_of_its_format(body: Json, rule: str, words: str) -> None:
    mock = Mock(script(step("never", optional=True)))
    answer = sent(mock, body, "invoke")
    assert (answer.status_code, answer.headers["x-amzn-errortype"]) == (400, "ValidationException")
    assert (mock.journal[0].rule, words in answer.json()["message"]) == (rule, True), answer.text


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        pytest.param({}, "unknown_content_part", id="neither"),
        pytest.param({"converse": {"messages": []}}, "empty_array", id="no-messages"),
        pytest.param({"invokeModel": {"body": "%%"}}, "bad_base64", id="no-base64"),
        pytest.param({"invokeModel": {"body": "e30"}}, "bad_base64", id="no-padding"),
        pytest.param({"invokeModel": {"body": "eHg="}}, "not_json", id="no-json"),
    ],
)
def test_counting_is_refused_like_the_request_that_is_counted(given: JsonObject, rule: str) -> None:
    mock = Mock(script(step("never", optional=True)))
    assert (sent(mock, {"input": given}, "count-tokens").status_code, mock.journal[0].rule) == (400, rule)
