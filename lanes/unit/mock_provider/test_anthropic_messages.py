"""Messages answers, whole and streamed, and the refusals of that endpoint."""

from __future__ import annotations

import json
from collections.abc import Mapping

import httpx
import pytest

import mock_provider
from mock_provider.dialects.anthropic_output import signature_of
from mock_provider.json_values import Json, JsonObject
from mock_provider.mock import Mock
from mock_provider.replies import error_event, reasoning, refusal, script, step, text, tool_call
from mock_provider.script import ScriptLike

HEADERS = {"x-api-key": "sk-ant-test-0001", "anthropic-version": "2023-06-01"}
USER: JsonObject = {"role": "user", "content": "x"}
USE: JsonObject = {"type": "tool_use", "id": "t1", "name": "f", "input": {}}
CALLS: JsonObject = {"role": "assistant", "content": [USE]}
RESULT: JsonObject = {"type": "tool_result", "tool_use_id": "t1", "content": "r"}
ANSWER: JsonObject = {"role": "user", "content": [RESULT]}


def send(
    played: ScriptLike | Mock,
    *bodies: Mapping[str, Json],
    path: str = "/v1/messages",
    headers: Mapping[str, str] = HEADERS,
) -> tuple[Mock, list[httpx.Response]]:
    face = mock_provider.transport(played)
    with httpx.Client(transport=face, base_url="http://mock.invalid") as client:
        whole = [{"model": "m", "max_tokens": 9, "messages": [USER], **body} for body in bodies]
        return face.mock, [client.post(path, json=body, headers=headers) for body in whole]


def events(answer: httpx.Response) -> list[JsonObject]:
    found: list[JsonObject] = []
    for block in answer.content.decode("utf-8").split("\n\n")[:-1]:
        name, data = block.split("\n")
        event: JsonObject = json.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        found.append(event)
    return found


def test_a_whole_answer_has_every_field() -> None:
    played = script(
        step(
            reasoning("hm"),
            text("a"),
            text("b"),
            tool_call("f", {"a": 1}),
            usage={"input": 10, "cached": 4, "output": 3},
        )
    )
    _, [answer] = send(played, {})
    content = answer.json()
    assert str(content.pop("id")).startswith("mock-msg-")
    assert str(content["content"][2].pop("id")).startswith("mock-call-")
    assert (answer.headers["request-id"][:9], content) == (
        "mock-req-",
        {
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": signature_of("hm")},
                {"type": "text", "text": "ab"},
                {"type": "tool_use", "name": "f", "input": {"a": 1}},
            ],
            "stop_reason": "tool_use",
            "stop_sequence": None,
            "usage": {
                "input_tokens": 6,
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 4,
                "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
                "output_tokens": 3,
                "output_tokens_details": {"thinking_tokens": 1},
                "service_tier": "standard",
            },
        },
    )


def test_a_stream_opens_blocks_one_by_one_and_closes_with_reason_and_usage() -> None:
    played = script(
        step(
            reasoning("hm"),
            text("one two"),
            tool_call("f", {"a": 1}, id="t1"),
            usage={"input": 5, "output": 2},
            stream={"split": "words"},
        )
    )
    _, [answer] = send(played, {"stream": True})
    found = events(answer)
    opening, closing = found[0]["message"], found[-2]
    assert isinstance(opening, dict)
    assert (opening["content"], opening["stop_reason"]) == ([], None)
    assert found[1:-2] == [
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "thinking", "thinking": "", "signature": ""},
        },
        {"type": "ping"},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "signature_delta", "signature": signature_of("hm")},
        },
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "one "}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "two"}},
        {"type": "content_block_stop", "index": 1},
        {
            "type": "content_block_start",
            "index": 2,
            "content_block": {"type": "tool_use", "id": "t1", "name": "f", "input": {}},
        },
        {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": '{"a":1}'}},
        {"type": "content_block_stop", "index": 2},
    ]
    assert closing == {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use", "stop_sequence": None},
        "usage": {
            "input_tokens": 5,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": 2,
            "output_tokens_details": {"thinking_tokens": 1},
        },
    }
    assert found[-1] == {"type": "message_stop"}


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        pytest.param({}, "end_turn", id="stop"),
        pytest.param({"finish": "length"}, "max_tokens", id="length"),
        pytest.param({"finish": "content_filter"}, "refusal", id="filter"),
        pytest.param({"finish": None}, None, id="left-out"),
        pytest.param({"finish": {"raw": "pause_turn"}}, "pause_turn", id="raw"),
    ],
)
def test_the_stop_reason_is_the_dialects_word(more: dict[str, Json], reason: str | None) -> None:
    _, [answer] = send(script(step("hi", **more)), {})
    assert answer.json()["stop_reason"] == reason


def test_a_refusal_is_text_with_its_own_reason() -> None:
    _, [answer] = send(script(step(refusal("no"))), {})
    assert (answer.json()["content"], answer.json()["stop_reason"]) == ([{"type": "text", "text": "no"}], "refusal")


def test_an_error_in_the_stream_has_the_dialects_event() -> None:
    _, [answer] = send(script(step(text("a"), error_event("busy", type="overloaded_error"))), {"stream": True})
    assert {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}} in events(answer)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (503, "api_error"),
        (529, "overloaded_error"),
    ],
)
def test_an_error_status_has_the_dialects_form(status: int, kind: str) -> None:
    _, [answer] = send(script(step(http_error={"status": status})), {})
    content = answer.json()
    assert (answer.status_code, content["type"], content["error"]["type"]) == (status, "error", kind)


def test_one_script_serves_both_dialects_with_the_same_conversation_rules() -> None:
    first = step(tool_call("f", {}, id="t1"), expect={"system": "brief", "last_user": "x", "messages": 2})
    second = step("done", expect={"tool_result": {"name": "f", "equals": "r"}, "messages": 4})
    calls = [{"id": "t1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    chat = [
        {"role": "system", "content": "be brief"},
        USER,
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "t1", "content": "r"},
    ]
    face = mock_provider.transport(script(first, second))
    with httpx.Client(transport=face, base_url="http://mock.invalid/v1") as client:
        for messages in (chat[:2], chat):
            answer = client.post("/chat/completions", json={"model": "m", "messages": messages}, headers=HEADERS)
            assert answer.status_code == 401
            client.post(
                "/chat/completions", json={"model": "m", "messages": messages}, headers={"authorization": "Bearer x"}
            ).raise_for_status()
    mock, answers = send(
        script(first, second),
        {"system": "be brief"},
        {"system": [{"type": "text", "text": "be brief"}], "messages": [USER, CALLS, ANSWER]},
    )
    assert [answer.status_code for answer in answers] == [200, 200]
    assert mock.verify().ok


def test_tokens_are_counted_without_taking_a_step() -> None:
    mock, [answer] = send(
        script(step("x", optional=True)),
        {"messages": [{"role": "user", "content": "sixteen bytes..."}]},
        path="/v1/messages/count_tokens",
    )
    assert (answer.json(), mock.verify().used, mock.verify().ok) == ({"input_tokens": 4}, 0, True)


@pytest.mark.parametrize(
    "path", ["/v1/messages", "/messages", "/anthropic/v1/messages", "/v1/messages?beta=true", "/c/a/v1/messages"]
)
def test_versioned_and_root_paths_are_served(path: str) -> None:
    played = script(conversations={"a": {"steps": [step("hi")]}})
    _, [answer] = send(played, {}, path=path)
    assert answer.status_code == 200


def test_models_are_listed_in_the_dialects_form() -> None:
    face = mock_provider.transport(script(step("x", optional=True), models=["a"]))
    with httpx.Client(transport=face, base_url="http://mock.invalid", headers=HEADERS) as client:
        listed = client.get("/v1/models").json()
    card = listed["data"][0]
    assert (card["id"], card["created_at"], card["lifecycle"]) == ("a", "2023-11-14T22:13:20Z", "active")
    assert listed == {
        "data": [card],
        "has_more": False,
        "first_id": "a",
        "last_id": "a",
    }


def tool(name: str = "f", **more: Json) -> JsonObject:
    return {"name": name, "input_schema": {"type": "object", "properties": {}}, **more}


@pytest.mark.parametrize(
    ("change", "rule", "begins"),
    [
        pytest.param(
            {"max_tokens": None}, "wrong_type", "max_tokens: Input should be a valid integer", id="limit-type"
        ),
        pytest.param({"max_tokens": 0}, "out_of_range", "max_tokens: Input should be greater", id="limit-zero"),
        pytest.param({"messages": []}, "empty_array", "messages: at least one message", id="no-messages"),
        pytest.param(
            {"messages": [{"role": "system", "content": "x"}]}, "unknown_role", "messages: Unexpected role", id="system"
        ),
        pytest.param(
            {"messages": [{"role": "tool", "content": "x"}]}, "unknown_role", "messages.0.role: Input", id="role"
        ),
        pytest.param(
            {"messages": [{"role": "user"}]}, "missing_field", "messages.0.content: Field required", id="content"
        ),
        pytest.param(
            {"messages": [{"role": "user", "content": ""}]}, "missing_content", "messages.0: all messages", id="empty"
        ),
        pytest.param(
            {"messages": [{"role": "user", "content": [{"type": "text", "text": ""}]}]},
            "missing_content",
            "messages: text content blocks",
            id="empty-block",
        ),
        pytest.param(
            {"messages": [{"role": "user", "content": [{"type": "txt"}]}]},
            "unknown_content_part",
            "messages.0.content.0: Input tag 'txt'",
            id="block-kind",
        ),
        pytest.param(
            {"messages": [{"role": "user", "content": [USE]}]},
            "block_in_wrong_role",
            "messages.0.content.0: `tool_use`",
            id="use-by-user",
        ),
        pytest.param(
            {"messages": [{"role": "assistant", "content": "x"}]}, "first_role", "messages: first message", id="first"
        ),
        pytest.param(
            {"messages": [USER, ANSWER]},
            "orphan_tool_result",
            "messages.1.content.0: unexpected `tool_use_id`",
            id="orphan",
        ),
        pytest.param(
            {"messages": [USER, CALLS]},
            "unanswered_tool_call",
            "messages.1: `tool_use` ids were found",
            id="unanswered-end",
        ),
        pytest.param(
            {"messages": [USER, CALLS, USER]}, "unanswered_tool_call", "messages.1: `tool_use` ids", id="unanswered"
        ),
        pytest.param(
            {"messages": [USER, CALLS, {"role": "user", "content": [RESULT, RESULT]}]},
            "duplicate_tool_result",
            "messages.2.content.1: each tool_use must have a single result",
            id="two-results",
        ),
        pytest.param(
            {"messages": [USER, CALLS, ANSWER, CALLS, ANSWER]},
            "duplicate_call_id",
            "messages.3.content: `tool_use` ids must be unique",
            id="id-again",
        ),
        pytest.param(
            {"messages": [USER, {"role": "assistant", "content": "x "}]},
            "trailing_space",
            "messages: final assistant",
            id="space",
        ),
        pytest.param(
            {"tools": [tool(), tool()]}, "duplicate_tool_name", "tools: Tool names must be unique.", id="names"
        ),
        pytest.param(
            {"messages": [USER, {"role": "assistant", "content": [{**USE, "id": "call 1"}]}]},
            "call_id_pattern",
            "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
            id="id-of-a-call",
        ),
        pytest.param(
            {"messages": [USER, CALLS, {"role": "user", "content": [{**RESULT, "tool_use_id": "a.b"}]}]},
            "call_id_pattern",
            "messages.2.content.0.tool_result.tool_use_id: String should match pattern",
            id="id-of-a-result",
        ),
        pytest.param({"tools": [tool("a b")]}, "name_pattern", "tools.0.custom.name: String should match", id="name"),
        pytest.param(
            {"tools": [{"name": "f"}]}, "missing_field", "tools.0.custom.input_schema: Field required", id="no-schema"
        ),
        pytest.param(
            {"tools": [tool(input_schema={"type": "string"})]},
            "bad_tool_schema",
            "tools.0.custom.input_schema.type",
            id="schema",
        ),
        pytest.param(
            {"tools": [tool(input_schema={"type": "object", "properties": {"a": {"type": "x"}}})]},
            "bad_tool_schema",
            "tools.0.custom.input_schema: JSON schema is invalid",
            id="schema-inside",
        ),
        pytest.param(
            {"tool_choice": {"type": "auto"}}, "tool_choice_without_tools", "tool_choice may only", id="choice"
        ),
        pytest.param(
            {"tools": [tool()], "tool_choice": {"type": "tool", "name": "g"}},
            "tool_choice_not_offered",
            "Tool 'g'",
            id="choice-name",
        ),
        pytest.param({"temperature": 1.5}, "out_of_range", "temperature: range: 0..1", id="temperature"),
        pytest.param(
            {"thinking": {"type": "enabled", "budget_tokens": 5}}, "out_of_range", "thinking.enabled", id="thinking"
        ),
        pytest.param(
            {"system": [{"type": "image"}]}, "wrong_type", "system.0: Input should be a text block", id="system-block"
        ),
    ],
)
def test_a_broken_request_gets_the_providers_own_refusal(change: JsonObject, rule: str, begins: str) -> None:
    mock, [answer] = send(script(step("never")), change)
    content = answer.json()
    assert (answer.status_code, content["type"], content["error"]["type"]) == (400, "error", "invalid_request_error")
    assert content["error"]["message"].startswith(begins)
    assert mock.journal[0].rule == rule


@pytest.mark.parametrize(
    ("headers", "status", "message"),
    [
        pytest.param({"anthropic-version": "2023-06-01"}, 401, "x-api-key header is required", id="no-key"),
        pytest.param({**HEADERS, "x-api-key": "wrong"}, 401, "invalid x-api-key", id="wrong-key"),
        pytest.param({"x-api-key": "right"}, 400, "anthropic-version: header is required", id="no-version"),
        pytest.param({**HEADERS, "x-api-key": "right"}, 200, None, id="right"),
        pytest.param({"anthropic-version": "1", "authorization": "Bearer right"}, 200, None, id="bearer"),
    ],
)
def test_key_and_version_are_checked(headers: dict[str, str], status: int, message: str | None) -> None:
    _, [answer] = send(script(step("hi"), api_key="right"), {}, headers=headers)
    assert (answer.status_code, answer.json().get("error", {}).get("message")) == (status, message)


def test_an_unmatched_request_keeps_the_dialects_form() -> None:
    _, [answer] = send(script(step("hi", expect={"last_user": "y"})), {})
    content = answer.json()
    assert (answer.status_code, content["type"], content["error"]["code"]) == (400, "error", "mock_unmatched")
    assert "[SCRIPT_MISMATCH]" in content["error"]["message"]


def test_a_later_system_message_is_taken_and_counts_as_one() -> None:
    later: list[Json] = [USER, {"role": "system", "content": [{"type": "text", "text": "be brief"}]}]
    mock, [answer] = send(script(step("hi", expect={"system": "brief", "messages": 2})), {"messages": later})
    assert (answer.status_code, mock.verify().ok) == (200, True)


def test_a_later_system_message_holds_nothing_but_text() -> None:
    image: JsonObject = {"type": "image", "source": {"type": "url", "url": "https://a.example/b.png"}}
    later: list[Json] = [USER, {"role": "system", "content": [image]}]
    mock, [answer] = send(script(step("hi", optional=True)), {"messages": later})
    assert (answer.status_code, mock.journal.entries[0].rule) == (400, "unknown_content_part")


@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "stream"])
def test_thinking_tokens_are_counted_apart(is_stream: bool) -> None:
    usage: JsonObject = {"input": 9, "output": 7, "reasoning": 4}
    _, [answer] = send(script(step(reasoning("hm"), text("hi"), usage=usage)), {"stream": is_stream})
    counted = [event for event in events(answer) if event["type"] == "message_delta"] if is_stream else [answer.json()]
    assert [one["usage"]["output_tokens_details"] for one in counted] == [{"thinking_tokens": 4}]
