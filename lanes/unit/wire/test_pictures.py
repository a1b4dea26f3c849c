"""Pictures in requests: where each dialect takes them, and who refuses them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.errors import InternalError, UsageError
from harness.model.call import ModelRequest
from harness.model.messages import (
    AttachmentRef,
    CallId,
    ContentBlock,
    ImageBlock,
    Message,
    MessageId,
    ModelSource,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    ToolSource,
    UserSource,
)
from harness.model.view import MessageView
from harness.wire import anthropic_messages, openai_chat, openai_responses
from harness.wire.chat_request import PICTURES_FOLLOW
from harness.wire.growing_body import GrowingBody
from harness.wire.pictures import pictures_in

FIRST, SECOND = (AttachmentRef(f"sha256:{number}", "image/png", 3, 1, 1) for number in (1, 2))
PICTURES = {"sha256:1": b"\xff\x00", "sha256:2": b"two"}
BASE64 = {"sha256:1": "/wA=", "sha256:2": "dHdv"}
DIALECTS = {"chat": openai_chat, "messages": anthropic_messages, "responses": openai_responses}


def user(*parts: ContentBlock | str) -> Message:
    content = tuple(TextBlock(part) if isinstance(part, str) else part for part in parts)
    return Message(MessageId("u"), "user", content, UserSource())


def calls(*ids: str) -> Message:
    blocks = tuple(ToolCallBlock(CallId(call_id), "f", "{}") for call_id in ids)
    return Message(MessageId("a"), "assistant", blocks, ModelSource("p", "m"))


def result(call_id: str, *parts: TextBlock | ImageBlock) -> Message:
    block = ToolResultBlock(CallId(call_id), parts)
    return Message(MessageId(f"r{call_id}"), "user", (block,), ToolSource(CallId(call_id)))


def request(*messages: Message) -> ModelRequest:
    return ModelRequest("p", "m", messages)


def chat(*messages: Message) -> list[Any]:
    body: dict[str, Any] = json.loads(openai_chat.encode_body(openai_chat.encode_request(request(*messages), PICTURES)))
    listed: list[Any] = body["messages"]
    return listed


def shown(reference: AttachmentRef) -> dict[str, Any]:
    url = f"data:image/png;base64,{BASE64[reference.attachment_id]}"
    return {"type": "image_url", "image_url": {"url": url}}


def written(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def test_chat_a_prompt_with_pictures_is_a_list_of_parts_in_their_order() -> None:
    assert chat(user("see", ImageBlock(FIRST), "", "and", ImageBlock(SECOND)), user("plain")) == [
        {"role": "user", "content": [written("see"), shown(FIRST), written("and"), shown(SECOND)]},
        {"role": "user", "content": "plain"},
    ]


def test_chat_pictures_of_tool_results_follow_the_last_result_of_their_run() -> None:
    """Nothing may stand between an answer's tool messages, and a tool message holds text only."""
    history = [
        user("go"),
        calls("c1", "c2", "c3"),
        result("c1", TextBlock("one"), ImageBlock(FIRST)),
        result("c2", ImageBlock(SECOND)),
        result("c3", TextBlock("three")),
    ]
    expected = [
        {"role": "tool", "tool_call_id": "c1", "content": "one"},
        {"role": "tool", "tool_call_id": "c2", "content": PICTURES_FOLLOW},
        {"role": "tool", "tool_call_id": "c3", "content": "three"},
        {
            "role": "user",
            "content": [
                written("pictures of tool call c1:"),
                shown(FIRST),
                written("pictures of tool call c2:"),
                shown(SECOND),
            ],
        },
    ]
    assert (chat(*history)[2:], chat(*history, user("next"))[2:]) == (
        expected,
        [*expected, {"role": "user", "content": "next"}],
    )
    assert chat(*history, calls("c4"))[2:6] == expected


def test_messages_pictures_stand_where_they_were_put() -> None:
    def source(reference: AttachmentRef) -> dict[str, Any]:
        data = BASE64[reference.attachment_id]
        return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}

    history = (
        user("see", ImageBlock(FIRST)),
        calls("c1", "c2"),
        result("c1", TextBlock("shot"), ImageBlock(SECOND)),
        result("c2", ImageBlock(FIRST)),
    )
    body = anthropic_messages.encode_request(request(*history), PICTURES)
    assert json.loads(anthropic_messages.encode_body(body))["messages"][::2] == [
        {"role": "user", "content": [written("see"), source(FIRST)]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": [written("shot"), source(SECOND)]},
                {"type": "tool_result", "tool_use_id": "c2", "content": [source(FIRST)]},
            ],
        },
    ]


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize(
    "message",
    [
        pytest.param(user("look", ImageBlock(FIRST)), id="prompt"),
        pytest.param(result("c", ImageBlock(FIRST)), id="result"),
    ],
)
def test_a_text_only_route_refuses_a_picture_and_names_it(name: str, message: Message) -> None:
    dialect = DIALECTS[name]
    bodies = GrowingBody(dialect.encode_request, dialect.GROWTH)
    with pytest.raises(UsageError) as caught:
        bodies.encode(ModelRequest("p", "m", MessageView([user("hi"), message])))
    assert str(caught.value) == (
        "model request: a message holds the picture sha256:1, here only text can be sent [UNSUPPORTED_CONTENT]\n"
        "  expected: text\n"
        "  fix: choose a model route that takes pictures, or leave the picture out"
    )


@pytest.mark.parametrize("name", DIALECTS)
def test_a_picture_in_an_answer_is_refused_on_every_route(name: str) -> None:
    answer = Message(MessageId("a"), "assistant", (ImageBlock(FIRST),), ModelSource("p", "m"))
    with pytest.raises(UsageError) as caught:
        DIALECTS[name].encode_request(request(answer), PICTURES)
    assert caught.value.error_code == "UNSUPPORTED_CONTENT"


@pytest.mark.parametrize("name", DIALECTS)
def test_a_picture_whose_bytes_nobody_read_is_our_own_fault(name: str) -> None:
    with pytest.raises(InternalError):
        DIALECTS[name].encode_request(request(user(ImageBlock(FIRST))), {})


@pytest.mark.parametrize("name", DIALECTS)
def test_a_request_of_text_is_the_same_with_and_without_a_reader(name: str) -> None:
    dialect = DIALECTS[name]
    asked = request(user("go"), calls("c1"), result("c1", TextBlock("x")), result("c2"), user())
    assert dialect.encode_request(asked, PICTURES) == dialect.encode_request(asked)


def test_the_pictures_of_a_request_are_found_once_each_wherever_they_stand() -> None:
    renamed = AttachmentRef(FIRST.attachment_id, "image/png", 3, 1, 1, "a.png")
    history = (user(ImageBlock(SECOND), ImageBlock(renamed)), result("c", ImageBlock(FIRST)), user(ImageBlock(SECOND)))
    assert (pictures_in(request(*history)), pictures_in(request(user("x")))) == ((SECOND, renamed, FIRST), ())
