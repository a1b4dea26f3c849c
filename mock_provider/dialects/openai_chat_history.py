"""The messages of a chat completions request, read and found sound in one go, from where the last request ended.

Room: pure; the chat dialect comes in. What is wrong with messages that are not sound is said by the rules.
Source: as openai_chat_rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from mock_provider.asked import AskedCall, AskedMessage, AskedResult, Role
from mock_provider.dialects.openai_chat_rules import refuse_message
from mock_provider.dialects.openai_functions import read_call
from mock_provider.dialects.openai_tool_rules import is_good_name
from mock_provider.json_values import Json, JsonObject
from mock_provider.known import Growing, fold
from mock_provider.pieces import size_bytes

_ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
_PLAIN_ROLES: Mapping[object, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
}
_CALLING = frozenset({"tool_calls", "function_call"})

# Messages, the names of the calls made last, those that wait for a result, the size of all that is said; None when
# something is wrong.
Heard: TypeAlias = "tuple[Growing[AskedMessage], Mapping[str, str], tuple[str, ...], int] | None"


def read_history(messages: Sequence[Json]) -> tuple[tuple[AskedMessage, ...], int] | None:
    """Read messages. Shape: with the size in bytes of all that is said; None when a rule is broken."""
    start: Heard = (Growing(), {}, (), 0)
    heard = fold(_hear, start, messages)
    return None if heard is None or heard[2] else (heard[0].all(), heard[3])


# As Heard, without the messages.
Weighed: TypeAlias = "tuple[Mapping[str, str], tuple[str, ...], int] | None"


def weigh_history(messages: Sequence[Json]) -> int | None:
    """The size in bytes of all that is said, as read_history has it, of messages that nobody reads; None as there."""
    start: Weighed = ({}, (), 0)
    weighed = fold(_weigh, start, messages) if messages else None
    return None if weighed is None or weighed[1] else weighed[2]


def _weigh(weighed: Weighed, messages: Sequence[Json]) -> Weighed:
    """As _hear, without making anything of the usual forms."""
    if weighed is None:
        return None
    names, waiting, size = weighed
    for message in messages:
        if not isinstance(message, dict):
            return None
        role, content = message.get("role"), message.get("content")
        if type(content) is str and type(role) is str and _CALLING.isdisjoint(message):
            if role in _PLAIN_ROLES:
                if waiting:
                    return None
                size += len(content) if content.isascii() else size_bytes((content,))
                continue
            call_id = message.get("tool_call_id")
            if role == "tool" and type(call_id) is str:
                if call_id not in waiting:
                    return None
                waiting = tuple([one for one in waiting if one != call_id])
                size += len(content) if content.isascii() else size_bytes((content,))
                continue
        calls = _usual_calls(message.get("tool_calls")) if role == "assistant" and not waiting else None
        if calls is not None and (content is None or type(content) is str) and message.get("function_call") is None:
            waiting = tuple([call.id for call in calls])
            if len(set(waiting)) < len(waiting):
                return None
            names = {call.id: call.name for call in calls}
            size += size_bytes((content or "", *[text for call in calls for text in (call.name, call.arguments)]))
            continue
        heard = _hear((Growing(), names, waiting, 0), (message,))
        if heard is None:
            return None
        names, waiting = heard[1], heard[2]
        size += heard[3]
    return names, waiting, size


def _hear(heard: Heard, messages: Sequence[Json]) -> Heard:
    """Messages after those before them. The usual forms are read at a glance, others by the rules."""
    if heard is None:
        return None
    before, names, waiting, size = heard
    new: list[AskedMessage] = []
    for message in messages:
        if not isinstance(message, dict):
            return None
        role, content = message.get("role"), message.get("content")
        if type(content) is str and type(role) is str and _CALLING.isdisjoint(message):
            plain = _PLAIN_ROLES.get(role)
            if plain is not None:
                if waiting:
                    return None
                new.append(AskedMessage(plain, (content,) if content else ()))
                size += len(content) if content.isascii() else size_bytes((content,))
                continue
            call_id = message.get("tool_call_id")
            if role == "tool" and type(call_id) is str:
                if call_id not in waiting:
                    return None
                waiting = tuple([one for one in waiting if one != call_id])
                result = AskedResult(call_id, names.get(call_id, str(message.get("name", ""))), content)
                new.append(AskedMessage("tool", (), (), (result,)))
                size += len(content) if content.isascii() else size_bytes((content,))
                continue
        calls = _usual_calls(message.get("tool_calls")) if role == "assistant" and not waiting else None
        if calls is not None and (content is None or type(content) is str) and message.get("function_call") is None:
            asked = AskedMessage("assistant", (content,) if content else (), calls)
        elif refuse_message(message, 0):
            return None
        else:
            asked = _read_message(message, str(role), names)
        if role == "tool":
            call_id = str(message["tool_call_id"])
            if call_id not in waiting:
                return None
            waiting = tuple(one for one in waiting if one != call_id)
        elif waiting:
            return None
        elif message.get("tool_calls"):
            waiting = tuple([call.id for call in asked.calls])
            if len(set(waiting)) < len(waiting):
                return None
            names = {call.id: call.name for call in asked.calls}
        new.append(asked)
        size += size_bytes(asked.said())
    return before.plus(new), names, waiting, size


def _usual_calls(calls: Json) -> tuple[AskedCall, ...] | None:
    """Calls of functions in which nothing is wrong; None for others, which the rules look at."""
    if type(calls) is not list or not calls:
        return None
    found: list[AskedCall] = []
    for call in calls:
        if type(call) is not dict or call.get("type") != "function":
            return None
        inner, call_id = call.get("function"), call.get("id")
        if type(inner) is not dict or type(call_id) is not str:
            return None
        name, arguments = inner.get("name"), inner.get("arguments")
        if type(name) is not str or type(arguments) is not str or not is_good_name(name):
            return None
        found.append(AskedCall(call_id, name, arguments))
    return tuple(found)


def _read_message(message: JsonObject, role: str, names: Mapping[str, str]) -> AskedMessage:
    texts, images = _texts(message.get("content"))
    if _ROLES[role] != "tool":
        calls = _calls(message.get("tool_calls")) or read_call(message.get("function_call"))
        return AskedMessage(_ROLES[role], texts, calls, (), images)
    call_id = str(message.get("tool_call_id", ""))
    result = AskedResult(call_id, names.get(call_id, str(message.get("name", ""))), "\n".join(texts))
    return AskedMessage("tool", (), (), (result,), images)


def _texts(content: Json) -> tuple[tuple[str, ...], int]:
    if isinstance(content, str):
        return ((content,) if content else ()), 0
    texts: list[str] = []
    images = 0
    for part in content if isinstance(content, list) else []:
        if isinstance(part, dict):
            if part.get("type") in ("text", "refusal"):
                texts.append(str(part.get(str(part["type"]), "")))
            elif part.get("type") == "image_url":
                images += 1
    return tuple(texts), images


def _calls(calls: Json) -> tuple[AskedCall, ...]:
    found: list[AskedCall] = []
    for call in calls if isinstance(calls, list) else []:
        if isinstance(call, dict):
            inner = call.get("function", call.get("custom"))
            inner = inner if isinstance(inner, dict) else {}
            arguments = inner.get("arguments", inner.get("input", ""))
            found.append(AskedCall(str(call["id"]), str(inner.get("name", "")), str(arguments)))
    return tuple(found)
