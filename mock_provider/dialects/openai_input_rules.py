"""What the Responses endpoint refuses about single input items, in its own words.

Room: pure; only the Responses rules come in. How items hang together is checked in openai_history_rules.
Source: as openai_responses_rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mock_provider.asked import Refusal
from mock_provider.dialects.openai_refusals import (
    empty,
    empty_text,
    listed,
    missing,
    too_long,
    unknown_value,
    wrong_type,
)
from mock_provider.dialects.openai_sealed import is_sealed
from mock_provider.dialects.openai_tool_rules import refuse_name
from mock_provider.json_values import Json, JsonObject

ITEM_KINDS = (
    "additional_tools",
    "apply_patch_call",
    "apply_patch_call_output",
    "code_interpreter_call",
    "compaction",
    "compaction_trigger",
    "computer_call",
    "computer_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
    "file_search_call",
    "function_call",
    "function_call_output",
    "image_generation_call",
    "item_reference",
    "local_shell_call",
    "local_shell_call_output",
    "mcp_approval_request",
    "mcp_approval_response",
    "mcp_call",
    "mcp_list_tools",
    "message",
    "reasoning",
    "shell_call",
    "shell_call_output",
    "tool_search_call",
    "tool_search_output",
    "web_search_call",
)
ROLES = ("assistant", "system", "developer", "user")
MAX_CALL_ID = 64
_PREFIXES: Mapping[str, str] = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "custom_tool_call": "ctc",
}
_TEXTS: Mapping[str, Sequence[str]] = {
    "function_call": ("call_id", "name", "arguments"),
    "custom_tool_call": ("call_id", "name", "input"),
    "function_call_output": ("call_id",),
    "custom_tool_call_output": ("call_id",),
    "item_reference": ("id",),
}
_SENT_PARTS = ("input_text", "input_image", "input_file", "input_audio")
_SAID_PARTS = ("output_text", "refusal")
_GIVEN_PARTS = ("input_text", "input_image", "input_file")
_ALL_PARTS = ("input_text", "input_image", "output_text", "refusal", "input_file", "input_audio", "summary_text")
_CHAT_FIELDS = ("tool_calls", "tool_call_id", "function_call")  # of the older endpoint: they would be lost in silence


def refuse_input(body: JsonObject, *, is_open: bool) -> Refusal | None:
    """Check the input. Shape: is_open lets reasoning through that is not sealed."""
    given = body.get("input")
    has_other = any(body.get(name) is not None for name in ("previous_response_id", "prompt", "conversation"))
    if given is None:
        if has_other:
            return None
        text = "One of 'input' or 'previous_response_id' or 'prompt' or 'conversation_id' must be provided."
        return Refusal(400, "missing_field", text, code="missing_required_parameter", param="input")
    if isinstance(given, str):
        return None
    if not isinstance(given, list):
        return wrong_type("input", "one of a string or array of input items", given)
    if not given and not has_other:
        return empty("input")
    for at, item in enumerate(given):
        if not isinstance(item, dict):
            return wrong_type(f"input[{at}]", "an input item", item)
        problem = refuse_item(item, f"input[{at}]", is_open=is_open)
        if problem:
            return problem
    return None


def refuse_item(item: JsonObject, here: str, *, is_open: bool) -> Refusal | None:
    """Check one item by itself. Shape: here is its place; is_open as in refuse_input."""
    kind = item.get("type")
    if kind is None:
        if "role" not in item:
            return missing(f"{here}.type")
        kind = "message"
    if not isinstance(kind, str) or kind not in ITEM_KINDS:
        return unknown_value("unknown_item_type", f"{here}.type", kind, ITEM_KINDS)
    problem = _id(item, kind, here) or _texts(item, kind, here)
    if problem:
        return problem
    if kind == "message":
        return _message(item, here)
    if kind == "reasoning":
        return _reasoning(item, here, is_open=is_open)
    if kind in ("function_call_output", "custom_tool_call_output"):
        if "output" not in item:
            return missing(f"{here}.output")
        return _content(item["output"], f"{here}.output", _GIVEN_PARTS)
    return None


def _id(item: JsonObject, kind: str, here: str) -> Refusal | None:
    name = item.get("id")
    if name is None or kind not in _PREFIXES:
        return None
    if not isinstance(name, str):
        return wrong_type(f"{here}.id", "a string", name)
    if name.startswith(_PREFIXES[kind]):
        return None
    text = f"Invalid '{here}.id': '{name}'. Expected an ID that begins with '{_PREFIXES[kind]}'."
    return Refusal(400, "id_prefix", text, code="invalid_value", param=f"{here}.id")


def _texts(item: JsonObject, kind: str, here: str) -> Refusal | None:
    for name in _TEXTS.get(kind, ()):
        if name not in item:
            return missing(f"{here}.{name}")
        value = item[name]
        if not isinstance(value, str):
            return wrong_type(f"{here}.{name}", "a string", value)
        if name == "call_id" and not value:
            return empty_text("empty_call_id", f"{here}.{name}")
        if name == "call_id" and len(value) > MAX_CALL_ID:
            return too_long("call_id_length", f"{here}.{name}", len(value), MAX_CALL_ID)
        if name == "name":
            problem = refuse_name(value, f"{here}.name")
            if problem:
                return problem
    return None


def _message(item: JsonObject, here: str) -> Refusal | None:
    if "role" not in item:
        return missing(f"{here}.role")
    role = item["role"]
    if not isinstance(role, str):
        return wrong_type(f"{here}.role", f"one of {listed(ROLES)}", role)
    if role not in ROLES:
        return unknown_value("unknown_role", f"{here}.role", role, ROLES)
    foreign = next((name for name in _CHAT_FIELDS if item.get(name) is not None), None)
    if foreign is not None:
        text = f"Unknown parameter: '{here}.{foreign}'."
        return Refusal(400, "chat_field", text, code="unknown_parameter", param=f"{here}.{foreign}")
    if "content" not in item:
        return missing(f"{here}.content")
    return _content(item["content"], f"{here}.content", _SAID_PARTS if role == "assistant" else _SENT_PARTS)


def _content(content: Json, here: str, known: Sequence[str]) -> Refusal | None:
    if isinstance(content, str):
        return None
    if not isinstance(content, list):
        return wrong_type(here, "one of a string or array of content parts", content)
    for at, part in enumerate(content):
        if not isinstance(part, dict):
            return wrong_type(f"{here}[{at}]", "an object", part)
        problem = _part(part, f"{here}[{at}]", known)
        if problem:
            return problem
    return None


def _part(part: JsonObject, here: str, known: Sequence[str]) -> Refusal | None:
    if "type" not in part:
        return missing(f"{here}.type")
    kind = part["type"]
    if not isinstance(kind, str) or kind not in _ALL_PARTS:
        return unknown_value("unknown_content_part", f"{here}.type", kind, _ALL_PARTS)
    if kind not in known:
        return unknown_value("content_part_of_other_role", here, kind, known)
    if kind in ("input_text", "output_text", "refusal"):
        name = "refusal" if kind == "refusal" else "text"
        if name not in part:
            return missing(f"{here}.{name}")
        return None if isinstance(part[name], str) else wrong_type(f"{here}.{name}", "a string", part[name])
    if kind == "input_image" and part.get("image_url") is None and part.get("file_id") is None:
        return missing(f"{here}.image_url")
    if kind == "input_image" and not isinstance(part.get("image_url", ""), str | None):
        return wrong_type(f"{here}.image_url", "a string", part["image_url"])
    return None


def _reasoning(item: JsonObject, here: str, *, is_open: bool) -> Refusal | None:
    if "summary" not in item:
        return missing(f"{here}.summary")
    if not isinstance(item["summary"], list):
        return wrong_type(f"{here}.summary", "an array of objects", item["summary"])
    sealed = item.get("encrypted_content")
    if sealed is None or is_open:
        return None
    if not isinstance(sealed, str):
        return wrong_type(f"{here}.encrypted_content", "a string", sealed)
    if is_sealed(sealed):
        return None
    text = (
        f"The encrypted content {sealed[:4]}...{sealed[-4:]} could not be verified. "
        "Reason: Encrypted content could not be decrypted or parsed."
    )
    return Refusal(400, "bad_encrypted_content", text, code="invalid_encrypted_content")
