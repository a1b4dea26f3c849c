"""What the messages endpoint refuses, in its own words.

Room: pure; only the messages dialect comes in.
Source: the error bodies of POST /v1/messages as the provider sends them, and its published API reference.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mock_provider.asked import Refusal
from mock_provider.dialects.json_schema import schema_problem
from mock_provider.json_values import Json, JsonObject

FIELDS = frozenset(
    {
        "cache_control",
        "container",
        "context_management",
        "inference_geo",
        "max_tokens",
        "mcp_servers",
        "messages",
        "metadata",
        "model",
        "output_config",
        "output_format",
        "service_tier",
        "speed",
        "stop_sequences",
        "stream",
        "system",
        "temperature",
        "thinking",
        "tool_choice",
        "tools",
        "top_k",
        "top_p",
    }
)
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_CALL_ID = re.compile(r"[a-zA-Z0-9_-]+")
_BLOCKS = {
    "user": ("text", "image", "document", "tool_result", "search_result", "container_upload"),
    "assistant": ("text", "thinking", "redacted_thinking", "tool_use", "server_tool_use"),
    "system": ("text",),
}
_FIELDS_OF_BLOCK: dict[str, tuple[tuple[str, type], ...]] = {
    "text": (("text", str),),
    "image": (("source", dict),),
    "document": (("source", dict),),
    "tool_result": (("tool_use_id", str),),
    "tool_use": (("id", str), ("name", str), ("input", dict)),
    "thinking": (("thinking", str), ("signature", str)),
    "redacted_thinking": (("data", str),),
}
_TYPE_WORDS = {str: "a valid string", dict: "a valid dictionary", list: "a valid list", int: "a valid integer"}
MIN_THINKING_TOKENS = 1024


def refuse_body(
    body: JsonObject, *, needs_limit: bool, has_sound_messages: bool, has_sound_tools: bool
) -> Refusal | None:
    """Check a whole request body. Shape: the first rule that is broken.

    has_sound_messages says that the messages are known to break no rule but the one about the end of the last, and
    has_sound_tools that the tools break none.
    """
    return (
        _required(body, needs_limit=needs_limit)
        or (refuse_last(body["messages"]) if has_sound_messages else _messages(body["messages"]))
        or _system(body.get("system"))
        or (None if has_sound_tools else _tools(body.get("tools")))
        or _tool_choice(body)
        or _options(body)
    )


def refuse(rule: str, message: str) -> Refusal:
    """A refusal of the usual kind."""
    return Refusal(400, rule, message)


def _required(body: JsonObject, *, needs_limit: bool) -> Refusal | None:
    wanted: list[tuple[str, type]] = [("model", str), ("messages", list)]
    if needs_limit:
        wanted.insert(1, ("max_tokens", int))
    for name, kind in wanted:
        if name not in body:
            return refuse("missing_field", f"{name}: Field required")
        value = body[name]
        if not isinstance(value, kind) or isinstance(value, bool):
            return refuse("wrong_type", f"{name}: Input should be {_TYPE_WORDS[kind]}")
    if not body["model"]:
        return refuse("missing_model", "model: String should have at least 1 character")
    limit = body.get("max_tokens")
    if isinstance(limit, int) and limit < 1:
        return refuse("out_of_range", "max_tokens: Input should be greater than or equal to 1")
    return None


def _messages(messages: Json) -> Refusal | None:
    if not isinstance(messages, list) or not messages:
        return refuse("empty_array", "messages: at least one message is required")
    checked: list[JsonObject] = []
    for at, message in enumerate(messages):
        if not isinstance(message, dict):
            return refuse("wrong_type", f"messages.{at}: Input should be a valid dictionary")
        problem = refuse_message(message, at, is_last=at == len(messages) - 1)
        if problem:
            return problem
        checked.append(message)
    if checked[0]["role"] != "user":
        return refuse("first_role", 'messages: first message must use the "user" role')
    return _pairs(checked) or _final_text(checked[-1])


def refuse_last(messages: Json | Sequence[Json]) -> Refusal | None:
    """Check how the last message ends."""
    last = messages[-1] if isinstance(messages, list) else None
    return _final_text(last) if isinstance(last, dict) else None


def refuse_message(message: JsonObject, at: int, *, is_last: bool) -> Refusal | None:
    """Check one message by itself."""
    for name in ("role", "content"):
        if name not in message:
            return refuse("missing_field", f"messages.{at}.{name}: Field required")
    role = message["role"]
    if role == "system" and at == 0:  # later ones are taken, as the message types of the provider's own client say
        text = (
            'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, '
            'not "system" as an input message role.'
        )
        return refuse("unknown_role", text)
    if not isinstance(role, str) or role not in _BLOCKS:
        return refuse("unknown_role", f"messages.{at}.role: Input should be 'user' or 'assistant'")
    content = message["content"]
    if not isinstance(content, str | list):
        return refuse("wrong_type", f"messages.{at}.content: Input should be a valid list")
    if not content:
        if is_last and role == "assistant":
            return None
        text = (
            f"messages.{at}: all messages must have non-empty content except for the optional final assistant message"
        )
        return refuse("missing_content", text)
    if isinstance(content, str):
        return None
    for number, block in enumerate(content):
        problem = _block(block, str(role), f"messages.{at}.content.{number}")
        if problem:
            return problem
    return None


def _block(block: Json, role: str, here: str) -> Refusal | None:
    if not isinstance(block, dict):
        return refuse("wrong_type", f"{here}: Input should be a valid dictionary")
    if "type" not in block:
        return refuse("missing_field", f"{here}.type: Field required")
    kind = str(block["type"])
    other = _BLOCKS["user"] if role == "assistant" else _BLOCKS["assistant"]
    if kind in other and kind not in _BLOCKS[role]:
        return refuse("block_in_wrong_role", f"{here}: `{kind}` blocks can only be in `{_owner(kind)}` messages")
    if kind not in _BLOCKS[role] and not kind.endswith(("_tool_result", "_tool_use")):
        known = ", ".join(f"'{word}'" for word in _BLOCKS[role])
        text = f"{here}: Input tag '{kind}' found using 'type' does not match any of the expected tags: {known}"
        return refuse("unknown_content_part", text)
    for name, wanted in _FIELDS_OF_BLOCK.get(kind, ()):
        if name not in block:
            return refuse("missing_field", f"{here}.{kind}.{name}: Field required")
        if not isinstance(block[name], wanted):
            return refuse("wrong_type", f"{here}.{kind}.{name}: Input should be {_TYPE_WORDS[wanted]}")
    if kind == "text" and not block["text"]:
        return refuse("missing_content", "messages: text content blocks must be non-empty")
    for name in ("id", "tool_use_id"):
        if kind in ("tool_use", "tool_result") and name in block and not _CALL_ID.fullmatch(str(block[name])):
            text = f"{here}.{kind}.{name}: String should match pattern '^[a-zA-Z0-9_-]+$'"
            return refuse("call_id_pattern", text)
    if kind == "tool_result":
        return _result_content(block.get("content"), f"{here}.tool_result.content")
    if kind == "tool_use" and not _TOOL_NAME.fullmatch(str(block["name"])):
        return refuse("name_pattern", f"{here}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
    return None


def _result_content(content: Json, here: str) -> Refusal | None:
    if content is None or isinstance(content, str):
        return None
    if not isinstance(content, list):
        return refuse("wrong_type", f"{here}: Input should be a valid list")
    for at, block in enumerate(content):
        if not isinstance(block, dict):
            return refuse("wrong_type", f"{here}.{at}: Input should be a valid dictionary")
        if "type" not in block:
            return refuse("missing_field", f"{here}.{at}.type: Field required")
        if block["type"] == "text" and not isinstance(block.get("text"), str):
            return refuse("missing_field", f"{here}.{at}.text.text: Field required")
    return None


def _owner(kind: str) -> str:
    return "user" if kind in _BLOCKS["user"] else "assistant"


def _ids(message: JsonObject, kind: str, name: str) -> list[str]:
    content = message["content"]
    blocks = content if isinstance(content, list) else []
    return [str(block[name]) for block in blocks if isinstance(block, dict) and block.get("type") == kind]


def _pairs(messages: list[JsonObject]) -> Refusal | None:
    """Every tool_use answered in the next message, every tool_result an answer to the message before."""
    seen: set[str] = set()
    open_ids: list[str] = []
    for at, message in enumerate(messages):
        answered = _ids(message, "tool_result", "tool_use_id")
        for number, call_id in enumerate(answered):
            if call_id not in open_ids:
                text = (
                    f"messages.{at}.content.{number}: unexpected `tool_use_id` found in `tool_result` blocks: "
                    f"{call_id}. Each `tool_result` block must have a corresponding `tool_use` block "
                    "in the previous message."
                )
                return refuse("orphan_tool_result", text)
            if call_id in answered[:number]:
                text = (
                    f"messages.{at}.content.{number}: each tool_use must have a single result. "
                    f"Found multiple `tool_result` blocks with id: {call_id}"
                )
                return refuse("duplicate_tool_result", text)
        missing = [call_id for call_id in open_ids if call_id not in answered]
        if missing:
            return _unanswered(missing, at - 1)
        open_ids = _ids(message, "tool_use", "id")
        if len(set(open_ids)) != len(open_ids) or seen & set(open_ids):
            return refuse("duplicate_call_id", f"messages.{at}.content: `tool_use` ids must be unique")
        seen |= set(open_ids)
    return _unanswered(open_ids, len(messages) - 1) if open_ids else None


def _unanswered(missing: list[str], at: int) -> Refusal:
    text = (
        f"messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block "
        "in the next message."
    )
    return refuse("unanswered_tool_call", text)


def _final_text(message: JsonObject) -> Refusal | None:
    content = message["content"]
    last = content[-1] if isinstance(content, list) and content else content
    text = last.get("text") if isinstance(last, dict) else last
    if message["role"] == "assistant" and isinstance(text, str) and text != text.rstrip():
        return refuse("trailing_space", "messages: final assistant content cannot end with trailing whitespace")
    return None


def _system(system: Json) -> Refusal | None:
    if system is None or isinstance(system, str):
        return None
    if not isinstance(system, list):
        return refuse("wrong_type", "system: Input should be a valid list")
    for at, block in enumerate(system):
        if not isinstance(block, dict) or block.get("type") != "text" or not isinstance(block.get("text"), str):
            return refuse("wrong_type", f"system.{at}: Input should be a text block")
        if not block["text"]:
            return refuse("missing_content", "system: text content blocks must be non-empty")
    return None


def _tools(tools: Json) -> Refusal | None:
    if tools is None:
        return None
    if not isinstance(tools, list):
        return refuse("wrong_type", "tools: Input should be a valid list")
    names: list[str] = []
    for at, tool in enumerate(tools):
        if not isinstance(tool, dict):
            return refuse("wrong_type", f"tools.{at}: Input should be a valid dictionary")
        problem = refuse_tool(tool, at)
        if problem:
            return problem
        names.append(str(tool.get("name")))
    if len(set(names)) != len(names):
        return refuse("duplicate_tool_name", "tools: Tool names must be unique.")
    return None


def refuse_tool(tool: JsonObject, at: int) -> Refusal | None:
    """Check one tool by itself."""
    if tool.get("type", "custom") != "custom":
        return None  # tools the provider runs itself; their fields are its own affair
    here = f"tools.{at}.custom"
    for name in ("name", "input_schema"):
        if name not in tool:
            return refuse("missing_field", f"{here}.{name}: Field required")
    if not isinstance(tool["name"], str) or not _TOOL_NAME.fullmatch(tool["name"]):
        return refuse("name_pattern", f"{here}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
    schema = tool["input_schema"]
    if not isinstance(schema, dict):
        return refuse("bad_tool_schema", f"{here}.input_schema: Input should be a valid dictionary")
    if "type" not in schema:
        return refuse("bad_tool_schema", f"{here}.input_schema.type: Field required")
    if schema["type"] != "object":
        return refuse("bad_tool_schema", f"{here}.input_schema.type: Input should be 'object'")
    if schema_problem(schema):
        text = (
            f"{here}.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12 "
            "(https://json-schema.org/draft/2020-12)."
        )
        return refuse("bad_tool_schema", text)
    return None


def _tool_choice(body: JsonObject) -> Refusal | None:
    choice = body.get("tool_choice")
    if choice is None:
        return None
    tools = body.get("tools")
    if not isinstance(tools, list) or not tools:
        return refuse("tool_choice_without_tools", "tool_choice may only be specified while providing tools")
    if not isinstance(choice, dict) or choice.get("type") not in ("auto", "any", "tool", "none"):
        return refuse("unknown_tool_choice", "tool_choice: Input tag does not match 'auto', 'any', 'tool', 'none'")
    names = [tool.get("name") for tool in tools if isinstance(tool, dict)]
    if choice["type"] == "tool" and choice.get("name") not in names:
        return refuse("tool_choice_not_offered", f"Tool '{choice.get('name')}' not found in provided tools")
    return None


def _options(body: JsonObject) -> Refusal | None:
    for name, most in (("temperature", 1.0), ("top_p", 1.0)):
        value = body.get(name)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float):
            return refuse("wrong_type", f"{name}: Input should be a valid number")
        if not 0 <= value <= most:
            return refuse("out_of_range", f"{name}: range: 0..1")
    stream = body.get("stream")
    if stream is not None and not isinstance(stream, bool):
        return refuse("wrong_type", "stream: Input should be a valid boolean")
    stops = body.get("stop_sequences")
    if stops is not None and (not isinstance(stops, list) or any(not isinstance(word, str) for word in stops)):
        return refuse("wrong_type", "stop_sequences: Input should be a valid list")
    return _thinking(body)


def _thinking(body: JsonObject) -> Refusal | None:
    thinking = body.get("thinking")
    if not isinstance(thinking, dict) or thinking.get("type") != "enabled":
        return None
    budget, limit = thinking.get("budget_tokens"), body.get("max_tokens")
    if not isinstance(budget, int):
        return refuse("missing_field", "thinking.enabled.budget_tokens: Field required")
    if budget < MIN_THINKING_TOKENS:
        text = f"thinking.enabled.budget_tokens: Input should be greater than or equal to {MIN_THINKING_TOKENS}"
        return refuse("out_of_range", text)
    if isinstance(limit, int) and limit <= budget:
        return refuse("out_of_range", "`max_tokens` must be greater than `thinking.budget_tokens`.")
    return None
