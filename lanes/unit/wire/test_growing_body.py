"""A body that grew is byte for byte the body encoded whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import InternalError, UsageError
from harness.model.call import ModelRequest, ToolSchema
from harness.model.messages import (
    CallId,
    ContentBlock,
    Json,
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
from harness.model.view import MessageView
from harness.wire import anthropic_messages, openai_chat, openai_responses
from harness.wire.growing_body import GrowingBody, Growth
from harness.wire.json_text import encode_json

DIALECTS = {"chat": openai_chat, "messages": anthropic_messages, "responses": openai_responses}
NO_LIST = Growth("model", lambda messages, first, provider: first)


def user(text: str) -> Message:
    return Message(MessageId("u"), "user", (TextBlock(text),), UserSource())


def assistant(*blocks: ContentBlock, provider: str = "p", replay: dict[str, Json] | None = None) -> Message:
    return Message(MessageId("a"), "assistant", blocks, ModelSource(provider, "m", replay))


def result(call_id: str, text: str, *, is_error: bool = False) -> Message:
    block = ToolResultBlock(CallId(call_id), (TextBlock(text),), is_error)
    return Message(MessageId("r"), "user", (block,), ToolSource(CallId(call_id)))


TEXTS = st.text(st.characters(codec=None, categories=None), max_size=4)
BLOCKS = st.one_of(
    st.builds(TextBlock, TEXTS),
    st.builds(ReasoningBlock, TEXTS),
    st.builds(ToolCallBlock, st.sampled_from([CallId("c1"), CallId("c/2")]), TEXTS, TEXTS | st.just('{"a":1}')),
)
ITEM = st.builds(dict, type=st.just("reasoning"), encrypted_content=TEXTS)
ENTRY = st.none() | st.builds(dict, signature=TEXTS) | st.builds(dict, data=TEXTS) | st.builds(dict, item=ITEM)


@st.composite
def answers(draw: Callable[[Any], Any]) -> Message:
    blocks = tuple(draw(st.lists(BLOCKS, max_size=3)))
    entries: Sequence[Json] = [draw(ENTRY) for _ in blocks]
    return assistant(*blocks, provider=draw(st.sampled_from(["p", "q"])), replay={"entries": tuple(entries)})


MESSAGES = st.one_of(
    st.builds(user, TEXTS),
    answers(),
    st.sampled_from(
        [
            assistant(ReasoningBlock("why"), TextBlock("so")),
            assistant(ReasoningBlock("how"), ToolCallBlock(CallId("c1"), "f", "{}")),
        ]
    ),
    st.builds(result, st.sampled_from(["c1", "c/2"]), TEXTS, is_error=st.booleans()),
    st.builds(
        lambda text: Message(MessageId("s"), "system", (TextBlock(text),), PluginSource("plugin")),
        TEXTS,
    ),
)
FRAMES = st.builds(
    lambda system, tools, limit: {"system": system, "tools": tools, "max_tokens": limit},
    st.none() | st.just("") | TEXTS,
    st.sampled_from([(), (ToolSchema("f", "d", {"messages": []}),)]),
    st.none() | st.just(9),
)


@pytest.mark.parametrize("name", sorted(DIALECTS))
@given(data=st.data())
def test_a_conversation_that_grows_gives_the_bytes_of_the_plain_encoder_at_every_request(
    name: str, data: st.DataObject
) -> None:
    dialect = DIALECTS[name]
    bodies = GrowingBody(dialect.encode_request, dialect.GROWTH)
    entries: list[Message] = []
    frame = data.draw(FRAMES)
    for _ in range(data.draw(st.integers(1, 6))):
        change = data.draw(st.sampled_from(["grow", "grow", "grow", "replace", "frame", "tuple", "provider"]))
        entries = list(entries[data.draw(st.integers(0, 2)) :]) if change == "replace" else entries
        entries.extend(data.draw(st.lists(MESSAGES, max_size=3)))
        frame = data.draw(FRAMES) if change == "frame" else frame
        provider = "q" if change == "provider" else "p"
        messages = tuple(entries) if change == "tuple" else MessageView(entries)
        request = ModelRequest(provider, "m", messages, **frame)
        assert bodies.encode(request) == dialect.encode_body(dialect.encode_request(request))


class Counter:
    """The chat encoder, telling how many messages it was given each time."""

    def __init__(self) -> None:
        self.counts: list[int] = []

    def __call__(self, request: ModelRequest) -> Any:
        self.counts.append(len(request.messages))
        return openai_chat.encode_request(request)


def sizes(*requests: Sequence[Message], growth: Growth = openai_chat.GROWTH) -> list[int]:
    """How many messages each of the requests had encoded, frames apart."""
    counter = Counter()
    bodies = GrowingBody(counter, growth)
    encoded = []
    for messages in requests:
        counter.counts.clear()
        bodies.encode(ModelRequest("p", "m", messages))
        encoded.append(sum(counter.counts))
    return encoded


def test_only_new_messages_are_encoded_again() -> None:
    entries: list[Message] = []
    views = []
    for number in range(50):
        entries += [user(f"{number}"), assistant(TextBlock("ok"))]
        views.append(MessageView(entries))
    assert sizes(*views) == [2] * 50
    assert sizes(*views, growth=anthropic_messages.GROWTH) == [2, *[4] * 49]


def test_reasoning_waits_unsettled_until_it_is_known_whether_a_call_follows() -> None:
    entries: list[Message] = [user("a"), assistant(ReasoningBlock("why"), TextBlock("well"))]
    views = [MessageView(entries)]
    for new in (assistant(ReasoningBlock("how"), ToolCallBlock(CallId("c1"), "f", "{}")), result("c1", "x")):
        entries.append(new)
        views.append(MessageView(entries))
    assert sizes(*views) == [2, 2, 1]


def test_a_view_of_another_list_or_a_tuple_is_encoded_whole() -> None:
    entries = [user("a"), user("b")]
    assert sizes(MessageView(entries), MessageView(list(entries)), tuple(entries), tuple(entries)) == [2, 2, 2, 2]


def test_a_message_the_dialect_refuses_leaves_the_kept_part_right() -> None:
    def encode_request(request: ModelRequest) -> Any:
        if any(message.id == "bad" for message in request.messages):
            raise UsageError("no")
        return openai_chat.encode_request(request)

    bodies = GrowingBody(encode_request, openai_chat.GROWTH)
    entries = [user("a")]
    bodies.encode(ModelRequest("p", "m", MessageView(entries)))
    entries.append(user("b"))
    spoiled = MessageView([*entries, Message(MessageId("bad"), "user", (), UserSource())])
    with pytest.raises(UsageError):
        bodies.encode(ModelRequest("p", "m", spoiled))
    entries.append(user("c"))
    request = ModelRequest("p", "m", MessageView(entries))
    assert bodies.encode(request) == encode_json(openai_chat.encode_request(request))


def test_a_dialect_without_that_list_is_an_error_of_ours() -> None:
    with pytest.raises(InternalError, match="model is no list"):
        GrowingBody(openai_chat.encode_request, NO_LIST).encode(ModelRequest("p", "m", ()))
