"""A model request in the Responses form, as OpenAI and compatible servers take it.

Room: pure; openai_responses offers it to the provider's shell.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence

from harness.errors import UsageError
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
from harness.wire.pictures import Pictures, data_url, picture_refused
from harness.wire.tool_names import legal_name

MAX_CALL_ID_CHARS = 64  # the service refuses a longer call_id: "string too long", decolua/9router issue 393
ENCRYPTED_REASONING = "reasoning.encrypted_content"

# Models that do not reason answer "Encrypted content is not supported with this model" with status 400
# (pydantic/pydantic-ai issues 2865 and 3326). Their names are history and no longer grow in number.
_WITHOUT_REASONING = re.compile(r"(?:^|[/:])(?:chatgpt-4o|gpt-3\.5|gpt-4)(?![0-9])|-chat-latest$")


def encode_request(request: ModelRequest, pictures: Pictures | None = None) -> JsonObject:
    """The body that asks for this answer as a stream.

    Shape: a JSON object. Optional fields are left out, never null; no field names a session or a user. Nothing is
    stored by the service: every request carries the whole conversation, and the reasoning in it is sealed by the
    service and given back as it came. Each message is encoded alone. A summary of the reasoning is not asked for:
    organisations that are not verified get an error for asking.
    Raises: UsageError [UNSUPPORTED_CONTENT] for pictures without their bytes, [UNSUPPORTED_OPTION] for stop texts,
    which this form has no field for: dropping either would change what was asked.
    Source: OpenAI API reference, "Create a model response": input, instructions, store, include, reasoning,
    max_output_tokens.
    """
    if request.stop:
        raise UsageError(
            "this dialect has no stop texts",
            where="model request",
            fix="leave the stop texts out, or choose the dialect openai_chat",
            code="UNSUPPORTED_OPTION",
        )
    items: list[Json] = []
    for message in request.messages:
        if message.role == "assistant":
            items.extend(_assistant_items(message, request))
        else:
            items.extend(_other_items(message, pictures))
    body: dict[str, Json] = {"model": request.model, "input": items, "stream": True, "store": False}
    if not _WITHOUT_REASONING.search(request.model):
        body["include"] = [ENCRYPTED_REASONING]
    if request.system:
        body["instructions"] = request.system
    if request.tools:
        body["tools"] = [_tool(schema) for schema in request.tools]
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.max_tokens is not None:
        body["max_output_tokens"] = request.max_tokens
    if request.reasoning_effort is not None:
        body["reasoning"] = {"effort": request.reasoning_effort}
    return body


def settled(messages: Sequence[Message], first: int, provider: str) -> int:
    """How far the messages are encoded the same alone and among all others: each one is."""
    return len(messages)


def _assistant_items(message: Message, request: ModelRequest) -> list[Json]:
    """The items of one answer; reasoning that nothing follows is left out.

    Source: the service refuses such an item: "was provided without its required following item"
    (openai/openai-agents-python issue 1611). It stands there when an answer was cut before it said anything.
    """
    items: list[Json] = []
    last_said = 0
    for block, entry in zip(message.content, _entries(message, request), strict=True):
        if isinstance(block, ReasoningBlock):
            items.extend(_reasoning(entry))
            continue
        if isinstance(block, TextBlock) and block.text:
            items.append(_said(block, entry))
        elif isinstance(block, ToolCallBlock):
            call: JsonObject = {
                "type": "function_call",
                "call_id": _call_id(block.id),
                "name": legal_name(block.name),
                "arguments": block.arguments or "{}",
            }
            items.append(call)
        elif isinstance(block, ImageBlock):
            raise picture_refused(block)
        last_said = len(items)
    return items[:last_said]


def _entries(message: Message, request: ModelRequest) -> Sequence[Json]:
    """What this service wants back with each block; nothing when another model wrote the message.

    Source: OpenAI API reference, the response's input_transformations: reasoning is removed on model_mismatch.
    """
    source = message.source
    nothing = (None,) * len(message.content)
    if not isinstance(source, ModelSource) or source.replay_state is None:
        return nothing
    if (source.provider, source.model) != (request.provider, request.model):
        return nothing
    entries = source.replay_state.get("entries")
    if not isinstance(entries, list | tuple) or len(entries) != len(message.content):
        return nothing
    return entries


def _reasoning(entry: Json) -> list[Json]:
    """The reasoning item as the service gave it; without its content the service would look for it and not find it."""
    item = entry.get("item") if isinstance(entry, Mapping) else None
    return [item] if isinstance(item, Mapping) else []


def _said(block: TextBlock, entry: Json) -> JsonObject:
    """A text of the model, with its phase when it had one.

    Source: OpenAI API reference, input message: content as a string needs no id and no status; phase: preserve and
    resend it on all assistant messages.
    """
    said: dict[str, Json] = {"type": "message", "role": "assistant", "content": block.text}
    phase = entry.get("phase") if isinstance(entry, Mapping) else None
    if isinstance(phase, str):
        said["phase"] = phase
    return said


def _other_items(message: Message, pictures: Pictures | None) -> list[Json]:
    items: list[Json] = [
        {
            "type": "function_call_output",
            "call_id": _call_id(block.tool_call_id),
            "output": _output(block.content, pictures),
        }
        for block in message.content
        if isinstance(block, ToolResultBlock)
    ]
    parts = _parts(message.content, pictures)
    if parts or not items:
        empty: list[Json] = [{"type": "input_text", "text": ""}]
        items.append({"type": "message", "role": message.role, "content": parts or empty})
    return items


def _output(content: Sequence[ContentBlock], pictures: Pictures | None) -> str | list[Json]:
    """What a tool gave: plain text, or parts where it gave pictures.

    Source: OpenAI API reference, function_call_output, output: a string, or a list of input_text and input_image.
    """
    if any(isinstance(block, ImageBlock) for block in content):
        return _parts(content, pictures)
    return "".join(block.text for block in content if isinstance(block, TextBlock)) or NO_OUTPUT


def _parts(content: Sequence[ContentBlock], pictures: Pictures | None) -> list[Json]:
    parts: list[Json] = []
    for block in content:
        if isinstance(block, TextBlock) and block.text:
            parts.append({"type": "input_text", "text": block.text})
        elif isinstance(block, ImageBlock):
            parts.append({"type": "input_image", "detail": "auto", "image_url": data_url(block, pictures)})
    return parts


def _call_id(call_id: str) -> str:
    """The id, or a digest of exactly the longest length in place of a longer one that another service gave."""
    if len(call_id) <= MAX_CALL_ID_CHARS:
        return call_id
    return hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()


def _tool(schema: ToolSchema) -> JsonObject:
    """A tool of ours. strict is said because this form takes it for true when absent and then demands more of schemas.

    Source: OpenAI guide "Function calling", strict mode: the Responses form normalises schemas into it by default.
    """
    return {
        "type": "function",
        "name": schema.name,
        "description": schema.description,
        "parameters": schema.parameters,
        "strict": False,
    }
