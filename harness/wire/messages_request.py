"""A model request in the Messages form, as Anthropic and compatible servers take it.

Room: pure; anthropic_messages offers it to the provider's shell.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from harness.errors import PeerError
from harness.model.call import ModelRequest, ToolSchema
from harness.model.messages import (
    ContentBlock,
    ImageBlock,
    Json,
    JsonObject,
    Message,
    ModelSource,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from harness.wire.chat_request import NO_OUTPUT
from harness.wire.json_text import is_too_deep, parse_json
from harness.wire.pictures import Pictures, base64_of, picture_refused
from harness.wire.tool_names import legal_name

MAX_TOKENS = 8192  # the wire demands a ceiling; this one is within the limit of every model that speaks it
EMPTY_TEXT = "(empty message)"  # the wire refuses an empty text

_ID_CHARACTERS = re.compile(r"[^a-zA-Z0-9_-]")


def encode_request(request: ModelRequest, pictures: Pictures | None = None) -> JsonObject:
    """The body that asks for this answer as a stream.

    Shape: a JSON object. Optional fields are left out, never null; no field names a session or a user. Neighbouring
    messages of one role become one message, tool results in front, because the wire wants the results of all calls
    directly behind them.
    Raises: UsageError [UNSUPPORTED_CONTENT] for pictures without their bytes: dropping them would change what was
    asked.
    Source: Anthropic API reference, "Create a Message", content: image blocks stand in user messages and tool results.
    """
    messages: list[Json] = []
    run: list[Json] = []
    run_role = ""
    for message in request.messages:
        role = "assistant" if message.role == "assistant" else "user"
        blocks = (
            _assistant_blocks(message, request.provider) if role == "assistant" else _user_blocks(message, pictures)
        )
        if not blocks:
            continue
        if role != run_role and run:
            messages.append(_message(run_role, run))
            run = []
        run_role = role
        run = [*run, *blocks]
    if run:
        messages.append(_message(run_role, run))
    body: dict[str, Json] = {
        "model": request.model,
        "max_tokens": request.max_tokens if request.max_tokens is not None else MAX_TOKENS,
        "messages": messages,
        "stream": True,
    }
    if request.system:
        body["system"] = request.system
    if request.tools:
        body["tools"] = [_tool(schema) for schema in request.tools]
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.stop:
        body["stop_sequences"] = list(request.stop)
    if request.reasoning_effort is not None:
        body["output_config"] = {"effort": request.reasoning_effort}
    return body


def settled(messages: Sequence[Message], first: int, provider: str) -> int:
    """How far the messages from first on are encoded the same alone, among the others, and whatever comes later.

    Shape: the last place where the user speaks directly after an assistant message that is sent; no run crosses it.
    """
    for position in range(len(messages) - 1, first, -1):
        before = messages[position - 1]
        if (
            messages[position].role != "assistant"
            and before.role == "assistant"
            and _assistant_blocks(before, provider)
        ):
            return position
    return first


def _message(role: str, blocks: list[Json]) -> JsonObject:
    results = [block for block in blocks if _is_result(block)]
    return {"role": role, "content": [*results, *(block for block in blocks if not _is_result(block))]}


def _is_result(block: Json) -> bool:
    return isinstance(block, Mapping) and block.get("type") == "tool_result"


def _assistant_blocks(message: Message, provider: str) -> list[Json]:
    source = message.source
    entries: Json = None
    if isinstance(source, ModelSource) and source.provider == provider and source.replay_state is not None:
        entries = source.replay_state.get("entries")
    if not isinstance(entries, list | tuple) or len(entries) != len(message.content):
        entries = [None] * len(message.content)
    blocks: list[Json] = []
    for block, entry in zip(message.content, entries, strict=True):
        if isinstance(block, TextBlock):
            if block.text:
                blocks.append({"type": "text", "text": block.text})
        elif isinstance(block, ReasoningBlock):
            blocks.extend(_thinking(block, entry))
        elif isinstance(block, ToolCallBlock):
            call: JsonObject = {
                "type": "tool_use",
                "id": _call_id(block.id),
                "name": legal_name(block.name),
                "input": _input(block.arguments),
            }
            blocks.append(call)
        elif isinstance(block, ImageBlock):
            raise picture_refused(block)
    return blocks


def _thinking(block: ReasoningBlock, entry: Json) -> list[Json]:
    """The reasoning as its service signed it; without the signature that service would refuse it, so it stays here."""
    if not isinstance(entry, Mapping):
        return []
    if isinstance(entry.get("data"), str):
        return [{"type": "redacted_thinking", "data": entry["data"]}]
    if isinstance(entry.get("signature"), str):
        return [{"type": "thinking", "thinking": block.text, "signature": entry["signature"]}]
    return []


def _user_blocks(message: Message, pictures: Pictures | None) -> list[Json]:
    blocks: list[Json] = []
    for block in message.content:
        if isinstance(block, TextBlock):
            if block.text:
                blocks.append({"type": "text", "text": block.text})
        elif isinstance(block, ToolResultBlock):
            result: dict[str, Json] = {
                "type": "tool_result",
                "tool_use_id": _call_id(block.tool_call_id),
                "content": _result_content(block.content, pictures),
            }
            if block.is_error:
                result["is_error"] = True
            blocks.append(result)
        elif isinstance(block, ImageBlock):
            blocks.append(_picture(block, pictures))
    return blocks or [{"type": "text", "text": EMPTY_TEXT}]


def _result_content(content: Sequence[ContentBlock], pictures: Pictures | None) -> str | list[Json]:
    """What a tool gave: plain text, or blocks where it gave pictures."""
    if not any(isinstance(block, ImageBlock) for block in content):
        return "".join(block.text for block in content if isinstance(block, TextBlock)) or NO_OUTPUT
    blocks: list[Json] = []
    for block in content:
        if isinstance(block, TextBlock) and block.text:
            blocks.append({"type": "text", "text": block.text})
        elif isinstance(block, ImageBlock):
            blocks.append(_picture(block, pictures))
    return blocks


def _picture(block: ImageBlock, pictures: Pictures | None) -> JsonObject:
    media_type = block.attachment.media_type
    return {
        "type": "image",
        "source": {"type": "base64", "media_type": media_type, "data": base64_of(block, pictures)},
    }


def _input(arguments: str) -> JsonObject:
    """The arguments as the object the wire wants; what is no object, or too deep, is kept as text under one name."""
    if not arguments.strip():
        return {}
    try:
        value = parse_json(arguments)
    except PeerError:
        value = None
    if not isinstance(value, Mapping) or is_too_deep(value):
        return {"invalid_arguments": arguments}
    return value


def _call_id(call_id: str) -> str:
    return _ID_CHARACTERS.sub("_", call_id) or "_"


def _tool(schema: ToolSchema) -> JsonObject:
    return {"name": schema.name, "description": schema.description, "input_schema": schema.parameters}
