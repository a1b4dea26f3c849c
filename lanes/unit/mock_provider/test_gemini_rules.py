"""What the Gemini endpoints refuse: each rule with the status and the words of the provider."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

import mock_provider
from mock_provider.dialects.gemini_signatures import signature_of
from mock_provider.json_values import Json, JsonObject
from mock_provider.mock import Mock
from mock_provider.replies import script, step

KEY = {"x-goog-api-key": "AIza-test-0001"}
USER: JsonObject = {"role": "user", "parts": [{"text": "hi"}]}
CALL: JsonObject = {"functionCall": {"name": "look", "args": {}}}
CALLS: JsonObject = {"role": "model", "parts": [CALL]}
RESPONSE: JsonObject = {"functionResponse": {"name": "look", "response": {"result": "x"}}}
RESULT: JsonObject = {"role": "user", "parts": [RESPONSE]}


def sent(mock: Mock, body: Json, model: str = "gemini-2.5-flash", method: str = "generateContent") -> httpx.Response:
    """Send one request."""
    with httpx.Client(transport=mock_provider.transport(mock), base_url="http://mock.invalid", headers=KEY) as client:
        return client.post(f"/v1beta/models/{model}:{method}", json=body)


def asked(*contents: Json, **more: Json) -> JsonObject:
    """A request with these contents."""
    return {"contents": list(contents) or [USER], **more}


def declared(*declarations: JsonObject, **more: Json) -> JsonObject:
    """A request with these functions."""
    return asked(tools=[{"functionDeclarations": list(declarations)}], **more)


def schema(**fields: Json) -> JsonObject:
    """A request with a function of these parameters."""
    return declared({"name": "look", "parameters": fields})


def config(**fields: Json) -> JsonObject:
    """A request with this configuration."""
    return asked(generationConfig=fields)


TOOL: JsonObject = {"name": "look", "parameters": {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}}}
HERE = "GenerateContentRequest"
PARAMETERS = f"{HERE}.tools[0].function_declarations[0].parameters"
REFUSED = [
    # types, as the provider reads JSON into its messages
    pytest.param([], "wrong_type", "Root element must be a message", id="no-object"),
    pytest.param(
        {"contents": "hi"},
        "wrong_type",
        "Invalid value at 'contents[0]' (type.googleapis.com/google.ai.generativelanguage.v1beta.Content), \"hi\"",
        id="content-is-text",
    ),
    pytest.param(
        asked({"role": "user", "parts": [{"text": 7}]}),
        "wrong_type",
        "Invalid value at 'contents[0].parts[0].text' (TYPE_STRING), 7",
        id="text-is-number",
    ),
    pytest.param(
        asked({"role": "user", "parts": [{"text": {}}]}),
        "wrong_type",
        "Invalid value at 'contents[0].parts[0].text' (TYPE_STRING), Starting an object on a scalar field",
        id="text-is-object",
    ),
    pytest.param(
        asked({"role": [], "parts": []}),
        "wrong_type",
        "Unknown name \"role\" at 'contents[0]': Proto field is not repeating, cannot start list.",
        id="role-is-list",
    ),
    pytest.param(
        config(temperature="warm"),
        "wrong_type",
        "Invalid value at 'generation_config.temperature' (TYPE_FLOAT), \"warm\"",
        id="number-is-text",
    ),
    pytest.param(config(maxOutputTokens=1.5), "wrong_type", "(TYPE_INT32), 1.5", id="integer-has-fraction"),
    pytest.param(config(responseLogprobs="yes"), "wrong_type", '(TYPE_BOOL), "yes"', id="flag-is-text"),
    pytest.param(
        asked({"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": "%%"}}]}),
        "bad_base64",
        'Base64 decoding failed for "%%"',
        id="no-base64",
    ),
    pytest.param(
        asked(safetySettings=[{"category": "RUDE"}]), "wrong_type", 'v1beta.HarmCategory), "RUDE"', id="no-enum"
    ),
    pytest.param(
        asked({"role": "user", "parts": [{"functionCall": {"name": "f", "args": []}}]}),
        "wrong_type",
        "Proto field is not repeating",
        id="args-are-a-list",
    ),
    # contents
    pytest.param({"contents": []}, "empty_array", f"* {HERE}.contents: contents is not specified", id="no-contents"),
    pytest.param({}, "empty_array", "contents is not specified", id="nothing"),
    pytest.param(
        asked({"role": "assistant", "parts": [{"text": "x"}]}),
        "unknown_role",
        "Please use a valid role: user, model.",
        id="role",
    ),
    pytest.param(asked({"role": "system", "parts": [{"text": "x"}]}), "unknown_role", "valid role", id="system-role"),
    pytest.param(asked({"role": "tool", "parts": [{"text": "x"}]}), "unknown_role", "valid role", id="tool-says-text"),
    pytest.param(
        asked({"role": "user", "parts": []}),
        "missing_content",
        f"* {HERE}.contents[0].parts: contents.parts must not be empty.",
        id="no-parts",
    ),
    pytest.param(
        asked({"role": "user", "parts": [{}]}),
        "missing_content",
        "parts[0].data: required oneof field 'data' must have one initialized field",
        id="empty-part",
    ),
    pytest.param(
        asked({"role": "user", "parts": [{"text": "a", "functionCall": {"name": "f"}}]}),
        "unknown_content_part",
        "oneof field 'data' is already set. Cannot set 'functionCall'",
        id="two-in-a-part",
    ),
    pytest.param(
        asked(USER, {"role": "model", "parts": [{"functionCall": {}}]}),
        "missing_field",
        "contents[1].parts[0].function_call.name: Name cannot be empty.",
        id="call-without-name",
    ),
    pytest.param(
        asked(systemInstruction={"parts": []}), "missing_content", "system_instruction.parts", id="empty-system"
    ),
    # turns
    pytest.param(
        asked(USER, RESULT),
        "orphan_tool_result",
        "function response turn comes immediately after a function call turn",
        id="orphan-response",
    ),
    pytest.param(
        asked(USER, CALLS, USER),
        "unanswered_tool_call",
        "number of function response parts is equal to the number of function call parts",
        id="unanswered",
    ),
    pytest.param(
        asked(USER, CALLS), "unanswered_tool_call", "number of function response parts", id="ends-with-a-call"
    ),
    pytest.param(
        asked(USER, {"role": "model", "parts": [CALL, CALL]}, RESULT),
        "unanswered_tool_call",
        "number of function response parts",
        id="one-of-two-answered",
    ),
    pytest.param(
        asked(USER, CALLS, {"role": "user", "parts": [RESPONSE, RESPONSE]}),
        "orphan_tool_result",
        "number of function response parts",
        id="answered-twice",
    ),
    pytest.param(
        asked(USER, CALLS, {"role": "user", "parts": [{"functionResponse": {"name": "other", "response": {}}}]}),
        "orphan_tool_result",
        "'other'",
        id="other-name",
    ),
    pytest.param(
        asked(CALLS, RESULT),
        "misplaced_tool_call",
        "function call turn comes immediately after a user turn",
        id="begins-with-a-call",
    ),
    pytest.param(
        asked(USER, {"role": "model", "parts": [{"text": "a", "thoughtSignature": "bm8="}]}, USER),
        "wrong_signature",
        "Corrupted thought signature.",
        id="strange-signature",
    ),
    # tools
    pytest.param(asked(tools=[{}]), "missing_field", f"* {HERE}.tools[0].tool_type", id="empty-tool"),
    pytest.param(
        declared({"name": "1st"}),
        "name_pattern",
        "tools[0].function_declarations[0].name: [FIELD_INVALID] Invalid function name.",
        id="name-begins-with-digit",
    ),
    pytest.param(declared({"name": "a b"}), "name_pattern", "Invalid function name", id="name-has-space"),
    pytest.param(declared({"description": "x"}), "name_pattern", "Invalid function name", id="no-name"),
    pytest.param(
        declared(TOOL, TOOL), "duplicate_tool_name", "Duplicate function declaration found: look", id="same-name"
    ),
    pytest.param(declared({**TOOL, "parametersJsonSchema": {}}), "bad_tool_schema", "only one of", id="two-schemas"),
    pytest.param(
        declared({"name": "look", "parametersJsonSchema": {"type": "thing"}}),
        "bad_tool_schema",
        "parameters_json_schema",
        id="no-json-schema",
    ),
    pytest.param(
        schema(type="object", additionalProperties=False),
        "bad_tool_schema",
        "Unknown name \"additionalProperties\" at 'tools[0].function_declarations[0].parameters': Cannot find field.",
        id="unknown-keyword",
    ),
    pytest.param(
        schema(type="object", properties={"a": {"type": "string", "const": "x"}}),
        "bad_tool_schema",
        "parameters.properties[0].value': Cannot find field.",
        id="unknown-keyword-inside",
    ),
    pytest.param(
        schema(type=["object", "null"]),
        "wrong_type",
        "Proto field is not repeating, cannot start list.",
        id="two-types",
    ),
    pytest.param(schema(type="thing"), "wrong_type", 'v1beta.Type), "thing"', id="unknown-type"),
    pytest.param(
        schema(type="object", properties={"a": {"type": "array"}}),
        "bad_tool_schema",
        f"* {PARAMETERS}.properties[a].items: missing field.",
        id="array-without-items",
    ),
    pytest.param(
        schema(type="object", properties={"a": {"description": "?"}}),
        "bad_tool_schema",
        "properties[a].type: must be specified when not using one_of, any_of or all_of fields",
        id="no-type",
    ),
    pytest.param(
        schema(type="object", properties={}, required=["a"]),
        "bad_tool_schema",
        f"* {PARAMETERS}.required[0]: property is not defined",
        id="required-is-unknown",
    ),
    pytest.param(
        schema(type="object", properties={"a": {"type": "integer", "enum": ["1"]}}),
        "bad_tool_schema",
        "enum: only allowed for STRING type",
        id="enum-of-integers",
    ),
    pytest.param(
        schema(type="object", properties={"a": {"type": "string", "format": "uri"}}),
        "bad_tool_schema",
        "only 'enum' and 'date-time' are supported for STRING type",
        id="format",
    ),
    pytest.param(
        schema(type="string", properties={"a": {"type": "string"}}),
        "bad_tool_schema",
        "properties: only allowed for OBJECT type",
        id="properties-of-a-text",
    ),
    pytest.param(
        schema(type="object", properties={"a": {"anyOf": [{"type": "array"}]}}),
        "bad_tool_schema",
        "properties[a].any_of[0].items: missing field.",
        id="branch",
    ),
    pytest.param(
        asked(toolConfig={"functionCallingConfig": {"mode": "ANY"}}),
        "tool_choice_without_tools",
        "Function calling config is set without function_declarations.",
        id="any-of-none",
    ),
    pytest.param(
        declared(TOOL, toolConfig={"functionCallingConfig": {"mode": "AUTO", "allowedFunctionNames": ["look"]}}),
        "unknown_tool_choice",
        "only when function calling mode is ANY",
        id="allowed-but-auto",
    ),
    pytest.param(
        declared(TOOL, toolConfig={"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["leap"]}}),
        "tool_choice_not_offered",
        "leap is not a declared function",
        id="allowed-but-unknown",
    ),
    # configuration
    pytest.param(config(temperature=2.1), "out_of_range", "temperature must be in the range [0.0, 2.0].", id="hot"),
    pytest.param(config(topP=-1), "out_of_range", "top_p must be in the range", id="top-p"),
    pytest.param(config(maxOutputTokens=0), "out_of_range", "max_output_tokens must be positive.", id="no-tokens"),
    pytest.param(config(candidateCount=9), "out_of_range", "candidate_count", id="nine-candidates"),
    pytest.param(config(stopSequences=list("abcdef")), "out_of_range", "stop_sequences", id="six-stops"),
    pytest.param(
        config(thinkingConfig={"thinkingBudget": 1, "thinkingLevel": "LOW"}),
        "bad_option",
        "only one of thinking budget and thinking level",
        id="budget-and-level",
    ),
    pytest.param(config(responseMimeType="text/html"), "bad_option", "response_mime_type", id="mime-type"),
    pytest.param(
        config(responseSchema={"type": "STRING"}),
        "bad_option",
        "only allowed when response_mime_type",
        id="schema-of-text",
    ),
    pytest.param(
        config(responseMimeType="application/json", responseSchema={"type": "ARRAY"}),
        "bad_schema",
        f"* {HERE}.generation_config.response_schema.items: missing field.",
        id="answer-schema",
    ),
    pytest.param(
        config(responseMimeType="application/json", responseJsonSchema={"type": "thing"}),
        "bad_schema",
        "response_json_schema",
        id="answer-json-schema",
    ),
    pytest.param(
        declared(TOOL, generationConfig={"responseMimeType": "application/json"}),
        "bad_option",
        "Function calling with a response mime type: 'application/json' is unsupported",
        id="json-and-tools",
    ),
]


@pytest.mark.parametrize(("body", "rule", "words"), REFUSED)
def test_a_request_is_refused_in_the_words_of_the_provider(body: Json, rule: str, words: str) -> None:
    mock = Mock(script(step("never", optional=True)))
    answer = sent(mock, body)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["status"]) == (400, 400, "INVALID_ARGUMENT")
    assert (mock.journal[0].rule, words in error["message"]) == (rule, True), error["message"]


def test_a_wrong_field_is_named_in_the_details() -> None:
    answer = sent(Mock(script(step("never", optional=True))), schema(type="object", const=1))
    details = answer.json()["error"]["details"]
    assert [(detail["@type"], detail["fieldViolations"][0]["field"]) for detail in details] == [
        ("type.googleapis.com/google.rpc.BadRequest", "tools[0].function_declarations[0].parameters")
    ]


ACCEPTED = [
    pytest.param(asked({"parts": [{"text": "hi"}]}), id="no-role"),
    pytest.param(asked(USER, {"role": "model", "parts": [{"text": "a"}]}, USER), id="three-turns"),
    pytest.param(asked(USER, CALLS, RESULT), id="call-and-response"),
    pytest.param(asked(USER, CALLS, {"role": "function", "parts": [RESPONSE]}), id="role-function"),
    pytest.param(asked(USER, CALLS, {"role": "tool", "parts": [RESPONSE]}), id="role-tool"),
    pytest.param(asked(USER, CALLS, RESULT, CALLS, RESULT), id="two-steps"),
    pytest.param(
        asked(USER, CALLS, CALLS, {"role": "user", "parts": [RESPONSE, RESPONSE]}), id="calls-in-chunks-of-a-stream"
    ),
    pytest.param(
        asked(USER, {"role": "model", "parts": [{"text": "hm", "thought": True}, CALL]}, RESULT), id="thought"
    ),
    pytest.param(
        asked(USER, {"role": "model", "parts": [{**CALL, "thoughtSignature": signature_of("hm")}]}, RESULT), id="signed"
    ),
    pytest.param(
        asked(
            USER, {"role": "model", "parts": [{**CALL, "thoughtSignature": "skip_thought_signature_validator"}]}, RESULT
        ),
        id="signature-that-stands-for-none",
    ),
    pytest.param(schema(type="object", properties={}), id="function-without-parameters"),
    pytest.param(
        schema(type="OBJECT", properties={"a": {"anyOf": [{"type": "STRING"}, {"type": "NULL"}]}}), id="any-of"
    ),
    pytest.param(
        declared({"name": "look", "parametersJsonSchema": {"type": "object", "additionalProperties": False}}),
        id="json-schema",
    ),
    pytest.param(asked(tools=[{"googleSearch": {}}]), id="search"),
    pytest.param(config(temperature="0.5", maxOutputTokens="7", topK=None), id="numbers-as-texts"),
    pytest.param(config(responseMimeType="text/x.enum", responseSchema={"type": "STRING", "enum": ["a"]}), id="enum"),
]


@pytest.mark.parametrize("body", ACCEPTED)
def test_what_the_provider_takes_is_taken(body: Json) -> None:
    answer = sent(Mock(script(step("ok"))), body)
    assert answer.status_code == 200, answer.text


def test_gemini_3_takes_json_together_with_tools() -> None:
    body = declared(TOOL, generationConfig={"responseMimeType": "application/json"})
    assert sent(Mock(script(step("{}"))), body, "gemini-3-pro-preview").status_code == 200


@pytest.mark.parametrize(
    ("contents", "refused"),
    [
        pytest.param([USER, CALLS, RESULT], True, id="unsigned"),
        pytest.param(
            [
                USER,
                {"role": "model", "parts": [{**CALL, "thoughtSignature": signature_of("x")}, CALL]},
                {"role": "user", "parts": [RESPONSE, RESPONSE]},
            ],
            False,
            id="first-of-two-signed",
        ),
        pytest.param(
            [USER, CALLS, RESULT, {"role": "model", "parts": [{"text": "a"}]}, USER], False, id="in-an-older-turn"
        ),
    ],
)
def test_gemini_3_wants_the_signature_of_each_step_of_this_turn_back(contents: list[Json], refused: bool) -> None:
    mock = Mock(script(step("ok", optional=True)))
    answer = sent(mock, asked(*contents), "gemini-3-pro-preview")
    assert (answer.status_code, mock.journal[0].rule) == ((400, "missing_signature") if refused else (200, None))


@pytest.mark.parametrize(
    ("body", "place"),
    [
        pytest.param(asked(novelty=1), "novelty", id="top"),
        pytest.param(config(novelty=1), "generation_config.novelty", id="inside"),
    ],
)
def test_unknown_fields_are_noted_and_refused_where_the_script_is_strict(body: Json, place: str) -> None:
    mock = Mock(script(step("ok")))
    assert (sent(mock, body).status_code, mock.journal[0].extra_fields) == (200, (place,))
    strict = sent(Mock(script(step("never", optional=True), strict_fields=True)), body)
    assert (strict.status_code, "Cannot find field." in strict.json()["error"]["message"]) == (400, True)


BATCH = "batchEmbedContents"
EMBED = {"model": "models/e", "content": {"parts": [{"text": "x"}]}}


@pytest.mark.parametrize(
    ("method", "body", "rule"),
    [
        pytest.param("embedContent", {"content": {"parts": []}}, "missing_content", id="empty"),
        pytest.param("embedContent", {**EMBED, "outputDimensionality": 0}, "out_of_range", id="no-dimensions"),
        pytest.param("embedContent", {**EMBED, "taskType": "GUESSING"}, "wrong_type", id="task"),
        pytest.param(BATCH, {"requests": []}, "empty_array", id="no-requests"),
        pytest.param(BATCH, {"requests": [EMBED] * 101}, "too_many_inputs", id="101-requests"),
        pytest.param(BATCH, {"requests": [{**EMBED, "model": "models/f"}]}, "wrong_model", id="other-model"),
        pytest.param("countTokens", {"contents": []}, "empty_array", id="nothing-to-count"),
    ],
)
def test_embeddings_and_counts_are_refused_by_their_own_rules(method: str, body: JsonObject, rule: str) -> None:
    mock = Mock(script(step("never", optional=True)))
    assert (sent(mock, body, "e", method).status_code, mock.journal[0].rule) == (400, rule)


@pytest.mark.parametrize("method", ["generateContent", "countTokens", "embedContent", BATCH])
def test_a_model_that_is_not_listed_is_not_found(method: str) -> None:
    bodies: dict[str, Callable[[], Json]] = {"embedContent": lambda: EMBED, BATCH: lambda: {"requests": [EMBED]}}
    mock = Mock(script(step("never", optional=True), models=["a"]))
    answer = sent(mock, bodies.get(method, asked)(), "e", method)
    error = answer.json()["error"]
    assert (answer.status_code, error["status"], "models/e is not found" in error["message"]) == (
        404,
        "NOT_FOUND",
        True,
    )
