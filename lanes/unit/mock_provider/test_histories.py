"""A history that is found sound while it is read is one that the rules take, and reads the same from any beginning."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from mock_provider.asked import Refusal
from mock_provider.dialects import anthropic_history, anthropic_rules, openai_chat_history, openai_chat_rules
from mock_provider.dialects.openai_tool_rules import Offered
from mock_provider.json_reader import Reader
from mock_provider.json_values import Json, JsonObject

IDS = st.sampled_from(["a", "b", "c"])
TEXTS: st.SearchStrategy[Json] = st.sampled_from(["x", "ü", "", "x ", None, 1])

CHAT_CALL: st.SearchStrategy[Json] = st.builds(
    lambda call_id, name, kind: {"id": call_id, "type": kind, kind: {"name": name, "arguments": "{}", "input": "i"}},
    IDS | st.just(1),
    st.sampled_from(["f", "bad name", ""]),
    st.sampled_from(["function", "function", "custom", "other"]),
)
CHAT_CONTENT: st.SearchStrategy[Json] = TEXTS | st.lists(
    st.sampled_from([{"type": "text", "text": "x"}, {"type": "refusal", "refusal": "r"}, {"type": "image_url"}, 1]),
    max_size=2,
)
CHAT: st.SearchStrategy[Json] = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["user", "assistant", "assistant", "tool", "tool", "system", "function", "other", 1]),
        "content": CHAT_CONTENT,
    },
    optional={
        "tool_calls": st.lists(CHAT_CALL, max_size=2) | st.none(),
        "tool_call_id": IDS,
        "name": st.just("f"),
        "function_call": st.sampled_from([None, {"name": "f", "arguments": "{}"}, {"name": "f"}, 1]),
    },
)

BLOCK: st.SearchStrategy[Json] = st.one_of(
    st.builds(lambda text: {"type": "text", "text": text}, TEXTS),
    st.builds(lambda call_id: {"type": "tool_use", "id": call_id, "name": "f", "input": {}}, IDS),
    st.builds(lambda call_id: {"type": "tool_result", "tool_use_id": call_id, "content": "r"}, IDS),
    st.sampled_from([{"type": "image", "source": {}}, {"type": "other"}, 1]),
)
ANTHROPIC: st.SearchStrategy[Json] = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["user", "user", "assistant", "assistant", "system", 1]),
        "content": TEXTS | st.lists(BLOCK, max_size=2),
    },
)


def known(lists: list[list[Json]]) -> list[list[Json]]:
    """The same lists as requests bring them, one after the other."""
    reader = Reader()
    found: list[list[Json]] = []
    for messages in lists:
        reading = reader.read(json.dumps({"messages": messages, "pad": "x" * 1_100}).encode())
        reader.remember(reading)
        assert isinstance(reading.value, dict)
        items = reading.value["messages"]
        assert isinstance(items, list)
        found.append(items)
    return found


def beginnings(messages: list[Json], others: list[Json]) -> list[list[Json]]:
    """Requests of an agent that goes on, and of one that goes another way in the middle."""
    middle = len(messages) // 2
    return [messages[:1], messages[:middle], messages[:middle] + others, messages[:-1], messages]


@given(messages=st.lists(CHAT, max_size=5), others=st.lists(CHAT, max_size=2))
def test_a_chat_history_is_sound_if_the_rules_take_it(messages: list[Json], others: list[Json]) -> None:
    for plain, items in zip(beginnings(messages, others), known(beginnings(messages, others)), strict=True):
        body: JsonObject = {"model": "m", "messages": plain}
        refusal = openai_chat_rules.refuse_body(body, Offered(), has_sound_messages=False)
        expected = openai_chat_history.read_history(plain) if plain else None
        assert (expected is None) == (refusal is not None)
        assert (openai_chat_history.read_history(items) if items else None) == expected


@given(messages=st.lists(ANTHROPIC, max_size=5), others=st.lists(ANTHROPIC, max_size=2))
def test_a_messages_history_is_sound_if_the_rules_take_it(messages: list[Json], others: list[Json]) -> None:
    for plain, items in zip(beginnings(messages, others), known(beginnings(messages, others)), strict=True):
        body: JsonObject = {"model": "m", "messages": plain, "max_tokens": 1}
        sound = anthropic_history.read_sound(plain)
        refusal = refuse(body, is_sound=False)
        assert anthropic_history.read_sound(items) == sound
        if sound is not None:
            assert (sound, refusal) == (anthropic_history.read_any(plain), refuse(body, is_sound=True))
        else:
            ends_empty = plain and isinstance(plain[-1], dict) and not plain[-1]["content"]
            assert refusal is not None or ends_empty


def refuse(body: JsonObject, *, is_sound: bool) -> Refusal | None:
    return anthropic_rules.refuse_body(body, needs_limit=True, has_sound_messages=is_sound, has_sound_tools=True)


TOOLS: list[Json] = [{"name": "f", "input_schema": {"type": "object"}}, {"name": "g"}, 1]


@given(tools=st.lists(st.sampled_from(TOOLS), max_size=3))
def test_tools_of_messages_are_sound_if_the_rules_take_them(tools: list[Json]) -> None:
    body: JsonObject = {"model": "m", "messages": [{"role": "user", "content": "x"}], "max_tokens": 1, "tools": tools}
    refusal = anthropic_rules.refuse_body(body, needs_limit=True, has_sound_messages=True, has_sound_tools=False)
    assert anthropic_history.read_tools(tools)[1] == (refusal is None)
