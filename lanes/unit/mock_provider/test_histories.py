"""A history that is found sound while it is read is one that the rules take, and reads the same from any beginning."""

from __future__ import annotations

import json
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mock_provider.asked import Asked, Refusal
from mock_provider.dialects import (
    anthropic_history,
    anthropic_rules,
    gemini,
    gemini_history,
    gemini_tool_rules,
    openai_chat_history,
    openai_chat_rules,
    openai_responses,
    openai_responses_history,
    openai_responses_tool_rules,
)
from mock_provider.dialects.codec import Received, count_input
from mock_provider.dialects.gemini_signatures import signature_of
from mock_provider.dialects.openai_sealed import seal
from mock_provider.dialects.openai_tool_rules import Offered
from mock_provider.dialects.table import DIALECTS
from mock_provider.json_reader import Reader
from mock_provider.json_values import Json, JsonObject
from mock_provider.kept import Kept
from mock_provider.mock import Mock
from mock_provider.script import as_script

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


ITEM_TEXTS: st.SearchStrategy[Json] = st.sampled_from(["x", "ü", "", None, 1]) | st.lists(
    st.sampled_from(
        [{"type": "input_text", "text": "x"}, {"type": "output_text", "text": "y"}, {"type": "input_image"}, 1]
    ),
    max_size=2,
)
ITEM: st.SearchStrategy[Json] = st.one_of(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "assistant", "developer", "other"]), "content": ITEM_TEXTS},
        optional={"type": st.just("message"), "id": st.sampled_from(["msg_1", "msg_2", "x", "msg_mock_0_0"])},
    ),
    st.builds(
        lambda kind, call_id: {"type": kind, "call_id": call_id, "name": "f", "arguments": "{}", "input": "i"},
        st.sampled_from(["function_call", "custom_tool_call"]),
        IDS,
    ),
    st.builds(
        lambda kind, call_id: {"type": kind, "call_id": call_id, "output": "ü"},
        st.sampled_from(["function_call_output", "custom_tool_call_output"]),
        IDS,
    ),
    st.sampled_from(
        [
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {"type": "reasoning", "summary": [], "encrypted_content": "x"},
            {"type": "reasoning", "summary": [], "encrypted_content": seal("thought")},
            {"type": "item_reference", "id": "msg_1"},
            {"type": "web_search_call"},
            {"type": "other"},
            1,
        ]
    ),
)

PART: st.SearchStrategy[Json] = st.one_of(
    st.builds(lambda text: {"text": text}, st.sampled_from(["x", "ü", "", None])),
    st.builds(
        lambda name, more: {"functionCall": {"name": name, "args": {"a": 1}}, **more},
        st.sampled_from(["f", "g", ""]),
        st.sampled_from([{}, {"thoughtSignature": signature_of("thought")}, {"thought_signature": "eA=="}]),
    ),
    st.builds(
        lambda name, result: {"functionResponse": {"name": name, "response": result}},
        st.sampled_from(["f", "g"]),
        st.sampled_from([{"result": "r"}, {"error": "e"}, {"other": 1}]),
    ),
    st.sampled_from(
        [{"text": "t", "thought": True}, {"inlineData": {"mimeType": "image/png", "data": "eA=="}}, {"unknown": 1}, {}]
    ),
)
CONTENT: st.SearchStrategy[Json] = st.fixed_dictionaries(
    {"parts": st.lists(PART, min_size=1, max_size=2)},
    optional={"role": st.sampled_from(["user", "model", "model", "function", "other"])},
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
        assert openai_chat_history.weigh_history(items) == (None if expected is None else expected[1])


@given(messages=st.lists(ANTHROPIC, max_size=5), others=st.lists(ANTHROPIC, max_size=2))
def test_a_messages_history_is_sound_if_the_rules_take_it(messages: list[Json], others: list[Json]) -> None:
    for plain, items in zip(beginnings(messages, others), known(beginnings(messages, others)), strict=True):
        body: JsonObject = {"model": "m", "messages": plain, "max_tokens": 1}
        sound = anthropic_history.read_sound(plain)
        refusal = refuse(body, is_sound=False)
        assert anthropic_history.read_sound(items) == sound
        assert anthropic_history.weigh(items) == (None if sound is None else sound[1])
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


def spoken(dialect: str, body: JsonObject, model: str = "m") -> Asked | Refusal | JsonObject:
    """A body as its dialect reads it, without what tells a list of a request from one put together."""
    script = as_script({"version": 1, "steps": [{"reply": "hi"}]})
    return DIALECTS[dialect].read(Received(body, {}, "", script, Kept(), "", {"model": model}))


def shown(read: Asked | Refusal | JsonObject) -> object:
    """All of it, the size of what is said as it is counted."""
    return (read.messages, read.tools, read.extra_fields, count_input(read)) if isinstance(read, Asked) else read


@given(items=st.lists(ITEM, max_size=6), others=st.lists(ITEM, max_size=2))
def test_input_items_are_read_from_any_beginning_as_they_are_without(items: list[Json], others: list[Json]) -> None:
    lists = beginnings(items, others)
    for plain, listed in zip(lists, known(lists), strict=True):
        body: JsonObject = {"model": "m", "instructions": "be kind", "input": plain}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(openai_responses, "read_sound", lambda *_, **__: None)
            expected = shown(spoken("openai_responses", body))
        assert shown(spoken("openai_responses", {**body, "input": listed})) == expected
        assert shown(spoken("openai_responses", body)) == expected


@given(
    contents=st.lists(CONTENT, max_size=6),
    others=st.lists(CONTENT, max_size=2),
    model=st.sampled_from(["gemini-2.5-pro", "gemini-3-pro"]),
)
def test_contents_are_read_from_any_beginning_as_they_are_without(
    contents: list[Json], others: list[Json], model: str
) -> None:
    lists = beginnings(contents, others)
    for plain, listed in zip(lists, known(lists), strict=True):
        body: JsonObject = {"systemInstruction": {"parts": [{"text": "be kind"}]}, "contents": plain}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(gemini, "read_sound", lambda *_, **__: None)
            expected = shown(spoken("gemini", body, model))
        assert shown(spoken("gemini", {**body, "contents": listed}, model)) == expected
        assert shown(spoken("gemini", body, model)) == expected


RESPONSES_TOOLS: list[Json] = [
    {"type": "function", "name": "f", "parameters": {"type": "object"}},
    {"type": "function", "name": "g", "parameters": {"type": "array"}},
    {"type": "function", "name": "h"},
    {"type": "custom", "name": "f"},
    {"type": "web_search"},
    1,
]
GEMINI_TOOLS: list[Json] = [
    {"functionDeclarations": [{"name": "f"}, {"name": "g", "parameters": {"type": "OBJECT"}}]},
    {"functionDeclarations": [{"name": "h"}]},
    {"functionDeclarations": [{"name": "not a name"}]},
    {"googleSearch": {}, "unknown": 1},
    {},
]


@pytest.mark.parametrize(
    ("dialect", "room", "offered", "asked"),
    [
        ("openai_responses", openai_responses_tool_rules, RESPONSES_TOOLS, {"model": "m", "input": "x"}),
        ("gemini", gemini_tool_rules, GEMINI_TOOLS, {"contents": [{"parts": [{"text": "x"}]}]}),
    ],
    ids=["openai_responses", "gemini"],
)
@given(data=st.data())
def test_tools_are_taken_from_any_beginning_as_they_are_without(
    dialect: str, room: ModuleType, offered: list[Json], asked: JsonObject, data: st.DataObject
) -> None:
    tools = data.draw(st.lists(st.sampled_from(offered), max_size=4))
    lists = beginnings(tools, [])
    for plain, listed in zip(lists, known(lists), strict=True):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(room, "fold", lambda *_: None)
            expected = shown(spoken(dialect, {**asked, "tools": plain}))
        assert shown(spoken(dialect, {**asked, "tools": listed})) == expected


@pytest.mark.parametrize(
    ("dialect", "path", "name", "said", "wrong"),
    [
        (
            "openai_responses",
            "/v1/responses",
            "input",
            {"role": "user", "content": "x" * 200},
            {"type": "function_call_output", "call_id": "none", "output": "x"},
        ),
        (
            "gemini",
            "/v1beta/models/m:generateContent",
            "contents",
            {"role": "user", "parts": [{"text": "x" * 200}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {}}}]},
        ),
    ],
    ids=["openai_responses", "gemini"],
)
def test_an_early_message_that_changes_is_seen_in_a_history_that_is_known(
    monkeypatch: pytest.MonkeyPatch, dialect: str, path: str, name: str, said: JsonObject, wrong: JsonObject
) -> None:
    looked_at: list[object] = []
    rooms = {
        "openai_responses": (openai_responses_history, "refuse_item"),
        "gemini": (gemini_history, "refuse_content"),
    }
    room, rule = rooms[dialect]
    check = getattr(room, rule)

    def watched(item: JsonObject, *given: object, **more: object) -> object:
        looked_at.append(item)
        return check(item, *given, **more)

    monkeypatch.setattr(room, rule, watched)
    mock = Mock({"version": 1, "steps": [{"reply": "hi", "repeat": "forever"}]})
    headers = {"authorization": "Bearer x", "x-goog-api-key": "x"}

    def ask(*items: JsonObject) -> int | None:
        listed: list[Json] = list(items)
        caller = mock.recognize("POST", path, headers)
        mock.answer(caller, json.dumps({"model": "m", name: listed}).encode())
        return mock.journal[-1].status

    history = [said] * 10
    assert [ask(*history), ask(*history, said), ask(*history, said, said)] == [200, 200, 200]
    assert len(looked_at) == 12
    assert [ask(wrong, *history[1:], said, said), ask(*history, said, said, said)] == [400, 200]
