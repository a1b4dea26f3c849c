"""Requests in the chat completions form: what is sent, what is left out, and what goes back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.errors import UsageError
from harness.model.call import ModelRequest, ToolSchema
from harness.model.chunks import BlockEnd
from harness.model.messages import (
    AttachmentRef,
    CallId,
    ContentBlock,
    ImageBlock,
    JsonObject,
    Message,
    MessageId,
    ModelSource,
    PluginSource,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    ToolSource,
    UserSource,
)
from harness.wire.chat_request import NO_OUTPUT, encode_request
from harness.wire.openai_chat import ChatStream, encode_body

CASES = Path(__file__).parents[2] / "cases" / "sse"
PICTURE = ImageBlock(AttachmentRef("sha256-1", "image/png", 10, 1, 1))


def user(*blocks: ContentBlock | str) -> Message:
    content = tuple(TextBlock(block) if isinstance(block, str) else block for block in blocks)
    return Message(MessageId("u"), "user", content, UserSource())


def assistant(*blocks: ContentBlock, provider: str = "deepseek") -> Message:
    return Message(MessageId("a"), "assistant", blocks, ModelSource(provider, "m"))


def call(call_id: str, arguments: str = "{}") -> ToolCallBlock:
    return ToolCallBlock(CallId(call_id), "f", arguments)


def result(call_id: str, *texts: str) -> Message:
    block = ToolResultBlock(CallId(call_id), tuple(TextBlock(text) for text in texts))
    return Message(MessageId(f"r{call_id}"), "user", (block,), ToolSource(CallId(call_id)))


def request(*messages: Message, provider: str = "deepseek", **options: Any) -> ModelRequest:
    return ModelRequest(provider, "m-small", messages, **options)


def sent(*messages: Message, provider: str = "deepseek") -> list[Any]:
    body: dict[str, Any] = json.loads(encode_body(encode_request(request(*messages, provider=provider))))
    listed: list[Any] = body["messages"]
    return listed


def test_a_bare_request_streams_with_usage_and_holds_nothing_else() -> None:
    assert encode_request(request(user("hi"))) == {
        "model": "m-small",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_a_full_request_carries_every_option_under_its_wire_name() -> None:
    schema = ToolSchema("f", "does it", {"type": "object", "properties": {}})
    full = request(
        user("hi"),
        system="be brief",
        tools=(schema,),
        temperature=0.0,
        max_tokens=77,
        stop=("END",),
        reasoning_effort="high",
    )
    assert encode_request(full) == {
        "model": "m-small",
        "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "f",
                    "description": "does it",
                    "parameters": {"type": "object", "properties": {}},
                },
            }
        ],
        "temperature": 0.0,
        "max_tokens": 77,
        "stop": ["END"],
        "reasoning_effort": "high",
    }


def test_openai_itself_knows_the_token_limit_by_its_newer_name() -> None:
    body = encode_request(request(user("hi"), provider="openai", max_tokens=5))
    assert (body.get("max_completion_tokens"), "max_tokens" in body) == (5, False)


def test_B21_no_field_names_a_session_or_a_user() -> None:
    body = encode_request(request(user("hi"), system="s", max_tokens=1))
    assert set(body) == {"model", "messages", "stream", "stream_options", "max_tokens"}


def test_S10_an_assistant_without_text_has_an_empty_content_and_never_null() -> None:
    assert sent(user("go"), assistant(call("c")), result("c", "ok"))[1] == {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
    }


def test_S10_reasoning_goes_back_only_where_a_call_was_made_or_follows_before_the_next_prompt() -> None:
    messages = sent(
        user("one"),
        assistant(ReasoningBlock("r1"), TextBlock("plain answer")),
        user("two"),
        assistant(ReasoningBlock("r2"), TextBlock("let me see")),
        assistant(ReasoningBlock("r3"), call("c")),
        result("c", "ok"),
        assistant(ReasoningBlock("r4"), TextBlock("done")),
        user("three"),
    )
    assert [message.get("reasoning_content") for message in messages if message["role"] == "assistant"] == [
        None,
        "r2",
        "r3",
        None,
    ]


def test_S10_reasoning_never_goes_to_another_provider() -> None:
    history = (user("go"), assistant(ReasoningBlock("r"), call("c"), provider="deepseek"), result("c", "ok"))
    assert "reasoning_content" not in sent(*history, provider="openai")[1]


def test_case_B10_reasoning_comes_back_with_its_call_in_every_later_request() -> None:
    def turn(name: str) -> Message:
        chunks = ChatStream().feed((CASES / name).read_bytes())
        return assistant(*(chunk.block for chunk in chunks if isinstance(chunk, BlockEnd)))

    history = (user("How large is plan.md?"), turn("B10-turn1.sse"), result("call_size", "120"))
    later = (*history, turn("B10-turn2.sse"), user("thanks"))
    of_the_call = {
        "role": "assistant",
        "content": "",
        "reasoning_content": "I need the file size first.",
        "tool_calls": [
            {
                "id": "call_size",
                "type": "function",
                "function": {"name": "file_size", "arguments": '{"path":"plan.md"}'},
            }
        ],
    }
    assert (sent(*history)[1], sent(*later)[1], sent(*later)[3]) == (
        of_the_call,
        of_the_call,
        {"role": "assistant", "content": "plan.md is 120 bytes."},
    )


def test_each_tool_result_is_its_own_message_and_an_empty_one_says_so() -> None:
    both = Message(
        MessageId("b"),
        "user",
        (
            ToolResultBlock(CallId("c1"), (TextBlock("x"), TextBlock("y"))),
            ToolResultBlock(CallId("c2"), (TextBlock(""),), is_error=True),
            TextBlock("and go on"),
        ),
        UserSource(),
    )
    assert sent(both) == [
        {"role": "tool", "tool_call_id": "c1", "content": "xy"},
        {"role": "tool", "tool_call_id": "c2", "content": NO_OUTPUT},
        {"role": "user", "content": "and go on"},
    ]


def test_a_message_without_blocks_is_an_empty_message() -> None:
    bare = Message(MessageId("s"), "system", (), PluginSource("p"))
    assert sent(user(), bare, user(ReasoningBlock("never shown"))) == [
        {"role": "user", "content": ""},
        {"role": "system", "content": ""},
        {"role": "user", "content": ""},
    ]


def test_arguments_go_back_as_the_model_wrote_them_and_empty_ones_as_an_empty_object() -> None:
    calls = sent(user("go"), assistant(call("a", ""), call("b", "{not json")))[1]["tool_calls"]
    assert [one["function"]["arguments"] for one in calls] == ["{}", "{not json"]


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(user("look", PICTURE), id="in-a-prompt"),
        pytest.param(
            Message(MessageId("r"), "user", (ToolResultBlock(CallId("c"), (PICTURE,)),), ToolSource(CallId("c"))),
            id="in-a-result",
        ),
    ],
)
def test_pictures_are_refused_and_never_left_out(message: Message) -> None:
    with pytest.raises(UsageError) as caught:
        encode_request(request(message))
    assert (caught.value.error_code, "sha256-1" in str(caught.value)) == ("UNSUPPORTED_CONTENT", True)


@pytest.mark.parametrize("text", ["half \ud83d end", "\udcb2", "tail \ud800", "whole 🧪", "caf\udce9.txt"], ids=ascii)
def test_case_B16_every_string_can_be_sent_and_parses_to_itself(text: str) -> None:
    history = (user(text), assistant(TextBlock(text), call("c", text)), result("c", text))
    body = encode_body(encode_request(request(*history)))
    messages = json.loads(body.decode("utf-8"))["messages"]
    assert [
        messages[0]["content"],
        messages[1]["content"],
        messages[1]["tool_calls"][0]["function"]["arguments"],
        messages[2]["content"],
    ] == [text] * 4


def test_R01_equal_requests_give_equal_bytes_whatever_the_order_of_keys() -> None:
    schemas: tuple[JsonObject, ...] = ({"type": "object", "properties": {}}, {"properties": {}, "type": "object"})
    bodies = [encode_body(encode_request(request(tools=(ToolSchema("f", "d", schema),)))) for schema in schemas]
    assert bodies[0] == bodies[1]


def test_R02_a_longer_history_extends_a_shorter_one() -> None:
    history = (
        user("one"),
        assistant(ReasoningBlock("r1"), call("c")),
        result("c", "ok"),
        assistant(ReasoningBlock("r2"), TextBlock("done")),
        user("two"),
        assistant(ReasoningBlock("r3"), TextBlock("yes")),
        user("three"),
    )
    whole = sent(*history)
    assert [sent(*history[:n]) for n in range(len(history))] == [whole[:n] for n in range(len(history))]
