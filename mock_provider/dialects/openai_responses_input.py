"""The input items of a Responses request, read as messages.

Room: pure; the Responses dialect comes in.
Source: the provider's published API reference, "Create a model response", input.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mock_provider.asked import AskedCall, AskedMessage, AskedResult, Role
from mock_provider.json_values import Json, JsonObject

CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
OUTPUTS = {"function_call_output": "function_call", "custom_tool_call_output": "custom_tool_call"}
ROLES: Mapping[str, Role] = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
_PICTURES = ("input_image", "input_file")


def own_items(body: JsonObject) -> list[JsonObject]:
    """The items a request itself brings; a bare text is one user message."""
    given = body.get("input")
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": given}]
    return [item for item in given if isinstance(item, dict)] if isinstance(given, list) else []


def kind_of_item(item: JsonObject) -> str:
    """The type of an item; a message may leave it out."""
    return str(item.get("type") or "message")


def read_messages(body: JsonObject, items: Sequence[JsonObject]) -> tuple[AskedMessage, ...]:
    """Read instructions and items. Shape: neighbouring items of the model make one message, as in other dialects."""
    found: list[AskedMessage] = [*read_instructions(body)]
    names: dict[str, str] = {}
    texts: list[str] = []
    calls: list[AskedCall] = []

    def close() -> None:
        if texts or calls:
            found.append(AskedMessage("assistant", tuple(texts), tuple(calls)))
            texts.clear()
            calls.clear()

    for item in items:
        kind = kind_of_item(item)
        if kind == "message":
            role = ROLES[str(item["role"])]
            said, pictures = read_content(item.get("content"))
            if role == "assistant":
                texts.extend(said)
                continue
            close()
            found.append(AskedMessage(role, said, (), (), pictures))
        elif kind in CALLS:
            call = AskedCall(str(item.get("call_id", "")), str(item["name"]), str(item[CALLS[kind]]))
            names[call.id] = call.name
            calls.append(call)
        elif kind in OUTPUTS:
            close()
            said, pictures = read_content(item.get("output"))
            call_id = str(item.get("call_id", ""))
            result = AskedResult(call_id, names.get(call_id, ""), "\n".join(said))
            found.append(AskedMessage("tool", (), (), (result,), pictures))
    close()
    return tuple(found)


def read_instructions(body: JsonObject) -> tuple[AskedMessage, ...]:
    """The instructions as a message, if there are any."""
    instructions = body.get("instructions")
    return (AskedMessage("system", (instructions,)),) if isinstance(instructions, str) and instructions else ()


def read_content(content: Json) -> tuple[tuple[str, ...], int]:
    """The texts of a content, and how many pictures and files stand in it."""
    if isinstance(content, str):
        return ((content,) if content else ()), 0
    parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    texts = tuple(str(part.get("text", part.get("refusal", ""))) for part in parts if part.get("type") not in _PICTURES)
    return tuple(filter(None, texts)), sum(part.get("type") in _PICTURES for part in parts)


def custom_names(tools: Json) -> frozenset[str]:
    """Names of the offered tools that take free text instead of arguments, in the form of either endpoint."""
    names: set[str] = set()
    for tool in tools if isinstance(tools, list) else []:
        if isinstance(tool, dict) and tool.get("type") == "custom":
            inner = tool.get("custom", tool)
            names.add(str(inner.get("name")) if isinstance(inner, dict) else "")
    return frozenset(names)
