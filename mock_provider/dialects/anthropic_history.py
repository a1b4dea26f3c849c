"""The messages of a messages request, read and found sound in one go, from where the last request ended.

Room: pure; the messages dialect comes in. What is wrong with messages that are not sound is said by the rules.
Source: as anthropic_rules.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from mock_provider.asked import AskedCall, AskedMessage, AskedResult
from mock_provider.dialects.anthropic_rules import refuse_message, refuse_tool
from mock_provider.json_values import Json, JsonObject
from mock_provider.known import Growing, fold
from mock_provider.pieces import size_bytes

_ROLES: Mapping[str, Literal["system", "user", "assistant"]] = {
    "system": "system",
    "user": "user",
    "assistant": "assistant",
}
_PLAIN_ROLES: Mapping[str, Literal["user", "assistant"]] = {"user": "user", "assistant": "assistant"}

# Messages, names of calls by their ids, calls that wait for a result, the size of all that is said, how many messages
# were sent; None when something is wrong.
Heard: TypeAlias = "tuple[Growing[AskedMessage], Mapping[str, str], tuple[str, ...], int, int] | None"
Offered: TypeAlias = "tuple[tuple[str, ...], bool]"  # names of tools, and whether no rule about a tool is broken
_NO_TOOLS: Offered = ((), True)


def read_sound(messages: Sequence[Json]) -> tuple[tuple[AskedMessage, ...], int] | None:
    """Read messages. Shape: with the size in bytes of all that is said; None when a rule may be broken."""
    start: Heard = (Growing(), {}, (), 0, 0)
    heard = fold(_hear, start, messages)
    return None if heard is None or heard[2] or not heard[4] else (heard[0].all(), heard[3])


def weigh(messages: Sequence[Json]) -> int | None:
    """The size in bytes of all that is said, as read_sound has it; None as there."""
    start: Heard = (Growing(), {}, (), 0, 0)
    heard = fold(_hear, start, messages)
    return None if heard is None or heard[2] or not heard[4] else heard[3]


def read_any(messages: Sequence[Json]) -> tuple[tuple[AskedMessage, ...], int]:
    """Read messages that the rules took. Shape: as read_sound."""
    found: list[AskedMessage] = []
    names: dict[str, str] = {}
    for message in messages:
        if isinstance(message, dict):
            found += _read_message(message, names)
    return tuple(found), sum(size_bytes(asked.said()) for asked in found)


def read_tools(tools: Json) -> Offered:
    """Read the offered tools."""
    return fold(_offer, _NO_TOOLS, tools) if isinstance(tools, list) else _NO_TOOLS


def _hear(heard: Heard, messages: Sequence[Json]) -> Heard:
    """Messages after those before them. Plain texts are read at a glance, others by the rules."""
    if heard is None:
        return None
    before, known, waiting, size, count = heard
    names = dict(known)
    new: list[AskedMessage] = []
    for message in messages:
        if not isinstance(message, dict):
            return None
        role, content = message.get("role"), message.get("content")
        plain = _PLAIN_ROLES.get(role) if type(role) is str else None
        if plain is not None and type(content) is str and content and (count or plain == "user"):
            if waiting:
                return None
            new.append(AskedMessage(plain, (content,)))
            size += len(content) if content.isascii() else size_bytes((content,))
        else:
            if refuse_message(message, count, is_last=False) or (role != "user" and not count):
                return None
            answered = _ids(content, "tool_result", "tool_use_id")
            if len(set(answered)) < len(answered) or set(answered) != set(waiting):
                return None
            waiting = _ids(content, "tool_use", "id")
            if len(set(waiting)) < len(waiting) or not names.keys().isdisjoint(waiting):
                return None
            read = _read_message(message, names)
            new += read
            for asked in read:
                size += size_bytes(asked.said())
        count += 1
    return before.plus(new), names, waiting, size, count


def _ids(content: Json, kind: str, name: str) -> tuple[str, ...]:
    blocks = content if isinstance(content, list) else []
    return tuple([str(block[name]) for block in blocks if isinstance(block, dict) and block.get("type") == kind])


def _read_message(message: JsonObject, names: dict[str, str]) -> list[AskedMessage]:
    """Read one message, and note the names of its calls; each tool result becomes a message, as in other dialects."""
    content = message["content"]
    blocks: list[Json] = content if isinstance(content, list) else [{"type": "text", "text": content}]
    inside = [block for block in blocks if isinstance(block, dict)]
    texts = tuple(str(block["text"]) for block in inside if block["type"] == "text" and block["text"])
    calls = tuple(
        AskedCall(str(block["id"]), str(block["name"]), json.dumps(block["input"]))
        for block in inside
        if block["type"] == "tool_use"
    )
    names.update({call.id: call.name for call in calls})
    results = [_result(block, names) for block in inside if block["type"] == "tool_result"]
    images = sum(block["type"] in ("image", "document") for block in inside)
    found = [AskedMessage("tool", (), (), (result,)) for result in results]
    if texts or calls or images or not results:
        found.append(AskedMessage(_ROLES[str(message["role"])], texts, calls, (), images))
    return found


def _result(block: JsonObject, names: Mapping[str, str]) -> AskedResult:
    content = block.get("content", "")
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    texts = [str(part["text"]) for part in parts if isinstance(part, dict) and part.get("type") == "text"]
    call_id = str(block["tool_use_id"])
    return AskedResult(call_id, names.get(call_id, ""), "\n".join(texts), block.get("is_error") is True)


def _offer(before: Offered, tools: Sequence[Json]) -> Offered:
    names, is_sound = list(before[0]), before[1]
    for at, tool in enumerate(tools):
        if not isinstance(tool, dict):
            is_sound = False
            continue
        is_sound = is_sound and refuse_tool(tool, at) is None
        names.append(str(tool.get("name")))
    return tuple(names), is_sound and len(set(names)) == len(names)
