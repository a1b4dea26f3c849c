"""Conditions hold or give a difference field by field."""

from __future__ import annotations

import pytest

from mock_provider.asked import Asked
from mock_provider.dialects.codec import Received
from mock_provider.dialects.openai_chat import read
from mock_provider.expect import compare
from mock_provider.json_values import Json, JsonObject
from mock_provider.kept import Kept
from mock_provider.script import build_script

SCRIPT = build_script({"version": 1, "steps": [{"reply": "x"}]})
BODY: JsonObject = {
    "model": "m-small",
    "temperature": 0,
    "messages": [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": [{"type": "text", "text": "read"}, {"type": "text", "text": "the README"}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "Five Lanes"},
    ],
    "tools": [
        {"type": "function", "function": {"name": "read_file", "parameters": {"type": "object", "properties": {}}}},
        {"type": "function", "function": {"name": "shell"}},
    ],
}


def asked() -> Asked:
    found = read(Received(BODY, {"x-team": "red"}, "", SCRIPT, Kept()))
    assert isinstance(found, Asked)
    return found


def differences(expect: JsonObject) -> list[str]:
    script = build_script({"version": 1, "steps": [{"expect": expect, "reply": "x"}]})
    return [str(one) for one in compare(script.conversations[0].steps()[0].expect, asked()).differences]


@pytest.mark.parametrize(
    "expect",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"system": "brief"}, id="system"),
        pytest.param({"last_user": "the README"}, id="second-text-part"),
        pytest.param({"last_user": {"equals": "read"}}, id="one-part-equals"),
        pytest.param({"user_contains": "read"}, id="any-user-message"),
        pytest.param({"any_message": "Five"}, id="tool-result-is-a-message"),
        pytest.param({"model": "m-small"}, id="model"),
        pytest.param({"tools": ["read_file"]}, id="tools-include"),
        pytest.param({"tools": {"exactly": ["shell", "read_file"]}}, id="tools-exactly"),
        pytest.param({"tools": {"absent": ["write_file"]}}, id="tools-absent"),
        pytest.param({"messages": 4}, id="count"),
        pytest.param({"messages": {"min": 2}}, id="count-at-least"),
        pytest.param({"tool_result": "Five"}, id="result"),
        pytest.param({"tool_result": [{"name": "read_file", "regex": "^Five (?P<what>.*)$"}]}, id="result-by-name"),
        pytest.param({"tool_result": {"call": "c1", "equals": "Five Lanes"}}, id="result-by-call"),
        pytest.param({"options": {"temperature": 0}}, id="option"),
        pytest.param({"options": {"temperature": 0.0}}, id="zero-is-zero"),
        pytest.param({"headers": {"X-Team": "red"}}, id="header"),
        pytest.param({"json_path": {"messages[-1].role": "tool", "temperature": {"equals": 0}}}, id="path"),
        pytest.param({"absent": ["max_tokens", "messages[9]"]}, id="absent"),
        pytest.param({"stream": False}, id="not-streaming"),
    ],
)
def test_a_condition_holds(expect: JsonObject) -> None:
    assert differences(expect) == []


@pytest.mark.parametrize(
    ("expect", "said"),
    [
        pytest.param({"system": {"absent": True}}, 'system: expected nothing, found "be brief"', id="system"),
        pytest.param(
            {"last_user": "x"}, 'last_user: expected a text containing "x", found "read\\nthe README"', id="user"
        ),
        pytest.param({"model": "m"}, 'model: expected the text "m", found "m-small"', id="model"),
        pytest.param(
            {"tools": ["grep", "shell"]},
            "tools: expected [grep, shell] among them, found [read_file, shell], without grep",
            id="tools",
        ),
        pytest.param(
            {"tools": {"exactly": ["shell"]}}, "tools: expected exactly [shell], found [read_file, shell]", id="exactly"
        ),
        pytest.param({"messages": 2}, "messages: expected 2, found 4", id="count"),
        pytest.param({"messages": {"min": 5, "max": 6}}, "messages: expected 5 to 6, found 4", id="range"),
        pytest.param(
            {"tool_result": {"name": "shell"}}, "tool_result[name shell]: expected a tool result, found none", id="name"
        ),
        pytest.param(
            {"tool_result": {"regex": "six"}},
            'tool_result: expected a text matching "six", found "Five Lanes"',
            id="result",
        ),
        pytest.param(
            {"options": {"temperature": False}}, 'options.temperature: expected "false", found "0"', id="0-is-not-false"
        ),
        pytest.param({"options": {"top_p": 1}}, 'options.top_p: expected "1", found none', id="option"),
        pytest.param(
            {"headers": {"x-team": "blue"}}, 'headers.x-team: expected the text "blue", found "red"', id="header"
        ),
        pytest.param(
            {"json_path": {"messages[0].role": "user"}},
            'messages[0].role: expected "\\"user\\"", found "\\"system\\""',
            id="path",
        ),
        pytest.param({"absent": ["temperature"]}, 'temperature: expected nothing, found "0"', id="absent"),
        pytest.param({"stream": True}, "stream: expected true, found false", id="stream"),
    ],
)
def test_a_condition_that_does_not_hold_says_expected_and_found(expect: JsonObject, said: str) -> None:
    assert differences(expect) == [said]


def test_every_condition_is_reported_not_only_the_first() -> None:
    expect: dict[str, Json] = {"model": "m", "messages": 2, "stream": True}
    assert len(differences(expect)) == 3


def test_an_older_tool_result_does_not_satisfy_the_present_round() -> None:
    messages = BODY["messages"]
    assert isinstance(messages, list)
    later = [*messages, {"role": "assistant", "content": "done"}, {"role": "user", "content": "again"}]
    found = read(Received({**BODY, "messages": later}, {}, "", SCRIPT, Kept()))
    assert isinstance(found, Asked)
    rules = [{"contains": "Five"}, {"contains": "Five", "anywhere": True}]
    steps = [{"expect": {"tool_result": rule}, "reply": "x"} for rule in rules]
    script = build_script({"version": 1, "steps": steps})  # type: ignore[dict-item] # invariance of nested lists
    fits = [not compare(step.expect, found).differences for step in script.conversations[0].steps()]
    assert fits == [False, True]
