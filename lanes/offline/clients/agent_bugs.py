"""An agent's requests as it should send them, and the mistakes that agents make in them, for each format.

Room: pure; the test of the mistakes and the drivers of the raw clients come in.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from lanes.offline.clients.asking import MAX_TOKENS, MODEL, QUESTION, TOOL, TOOL_SCHEMA, TOOL_TEXT, weather
from mock_provider.json_values import JsonObject

CALL_ID = "call_1"
GHENT = '{"city":"Ghent"}'
RESULT = weather("Ghent")
Way = Literal["chat", "responses", "messages"]
Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Bug:
    """One mistake.

    Shape: `breaks` changes a good second request; `rule` is how the journal calls what was broken, `words` how the
    provider does, by the format.
    """

    name: str
    breaks: Mapping[Way, Callable[[Body], None]]
    rule: Mapping[Way, str]
    words: Mapping[Way, str]


def first_request(way: Way) -> Body:
    """The agent asks, with its tool."""
    user = {"role": "user", "content": QUESTION}
    function: JsonObject = {"name": TOOL, "description": TOOL_TEXT, "parameters": copy.deepcopy(TOOL_SCHEMA)}
    if way == "chat":
        return {"model": MODEL, "messages": [user], "tools": [{"type": "function", "function": function}]}
    if way == "responses":
        return {"model": MODEL, "input": [user], "tools": [{"type": "function", **function}]}
    tool = {"name": TOOL, "description": TOOL_TEXT, "input_schema": copy.deepcopy(TOOL_SCHEMA)}
    return {"model": MODEL, "max_tokens": MAX_TOKENS, "messages": [user], "tools": [tool]}


def second_request(way: Way) -> Body:
    """The agent sends back what its tool said."""
    body = first_request(way)
    if way == "chat":
        call = {"id": CALL_ID, "type": "function", "function": {"name": TOOL, "arguments": GHENT}}
        body["messages"] += [
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": CALL_ID, "content": RESULT},
        ]
    elif way == "responses":
        body["input"] += [
            {"type": "function_call", "call_id": CALL_ID, "name": TOOL, "arguments": GHENT},
            {"type": "function_call_output", "call_id": CALL_ID, "output": RESULT},
        ]
    else:
        call = {"type": "tool_use", "id": CALL_ID, "name": TOOL, "input": {"city": "Ghent"}}
        result = {"type": "tool_result", "tool_use_id": CALL_ID, "content": RESULT}
        body["messages"] += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    return body


def _drop(body: Body, *way: str | int) -> None:
    at = _reach(body, way[:-1])
    del at[way[-1]]


def _set(body: Body, value: object, *way: str | int) -> None:
    _reach(body, way[:-1])[way[-1]] = value


def _reach(body: Body, way: tuple[str | int, ...]) -> Any:
    at: Any = body
    for name in way:
        at = at[name]
    return at


def _everywhere(rule: str) -> dict[Way, str]:
    return {"chat": rule, "responses": rule, "messages": rule}


_BAD_TYPE = "objekt"

BUGS: tuple[Bug, ...] = (
    Bug(
        "a-result-without-its-call",
        {
            "chat": lambda body: _drop(body, "messages", 1),
            "responses": lambda body: _drop(body, "input", 1),
            "messages": lambda body: _set(body, "I look.", "messages", 1, "content"),
        },
        _everywhere("orphan_tool_result"),
        {
            "chat": "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'",
            "responses": f"No tool call found for function call output with call_id {CALL_ID}",
            "messages": f"unexpected `tool_use_id` found in `tool_result` blocks: {CALL_ID}",
        },
    ),
    Bug(
        "a-call-without-its-result",
        {
            "chat": lambda body: _set(body, {"role": "user", "content": "and now?"}, "messages", 2),
            "responses": lambda body: _set(body, {"role": "user", "content": "and now?"}, "input", 2),
            "messages": lambda body: _set(body, "and now?", "messages", 2, "content"),
        },
        _everywhere("unanswered_tool_call"),
        {
            "chat": "An assistant message with 'tool_calls' must be followed by tool messages",
            "responses": f"No tool output found for function call {CALL_ID}",
            "messages": "`tool_use` ids were found without `tool_result` blocks immediately after",
        },
    ),
    Bug(
        "a-result-that-names-no-call",
        {
            "chat": lambda body: _drop(body, "messages", 2, "tool_call_id"),
            "responses": lambda body: _drop(body, "input", 2, "call_id"),
            "messages": lambda body: _drop(body, "messages", 2, "content", 0, "tool_use_id"),
        },
        _everywhere("missing_field"),
        {
            "chat": "Missing required parameter: 'messages[2].tool_call_id'",
            "responses": "Missing required parameter: 'input[2].call_id'",
            "messages": "tool_use_id: Field required",
        },
    ),
    Bug(
        "a-role-that-is-none",
        {
            "chat": lambda body: _set(body, "bot", "messages", 0, "role"),
            "responses": lambda body: _set(body, "bot", "input", 0, "role"),
            "messages": lambda body: _set(body, "bot", "messages", 0, "role"),
        },
        _everywhere("unknown_role"),
        {
            "chat": "Invalid value: 'bot'. Supported values are",
            "responses": "Invalid value: 'bot'. Supported values are",
            "messages": "messages.0.role: Input should be 'user' or 'assistant'",
        },
    ),
    Bug(
        "a-schema-that-is-none",
        {
            "chat": lambda body: _set(body, _BAD_TYPE, "tools", 0, "function", "parameters", "type"),
            "responses": lambda body: _set(body, _BAD_TYPE, "tools", 0, "parameters", "type"),
            "messages": lambda body: _set(body, _BAD_TYPE, "tools", 0, "input_schema", "properties", "city", "type"),
        },
        _everywhere("bad_tool_schema"),
        {
            "chat": f"Invalid schema for function '{TOOL}'",
            "responses": f"Invalid schema for function '{TOOL}'",
            "messages": "tools.0.custom.input_schema: JSON schema is invalid",
        },
    ),
)
