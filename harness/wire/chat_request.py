"""A model request in the chat completions form, as OpenAI, DeepSeek and compatible servers take it.

Room: pure; openai_chat offers it to the provider's shell.
"""

from __future__ import annotations

from collections.abc import Sequence

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
from harness.wire.pictures import Pictures, data_url, picture_refused
from harness.wire.tool_names import legal_name

NO_OUTPUT = "(no output)"  # an empty tool result is refused by some servers and read as "no answer yet" by some models
PICTURES_FOLLOW = "(no text; its pictures follow behind the tool results)"


def encode_request(request: ModelRequest, pictures: Pictures | None = None) -> JsonObject:
    """The body that asks for this answer as a stream with usage.

    Shape: a JSON object. Optional fields are left out, never null. No field names a session or a user. A tool message
    holds text only and nothing may stand between two of them, so the pictures of tool results follow the last one in
    a message of the user.
    Raises: UsageError [UNSUPPORTED_CONTENT] for pictures without their bytes: dropping them would change what was
    asked.
    Source: OpenAI API reference, "Create chat completion", messages: image_url parts stand in user messages only.
    """
    messages: list[Json] = []
    if request.system:
        messages.append({"role": "system", "content": request.system})
    returned = _reasoning_returned(request)
    shown: list[Json] = []
    for position, message in enumerate(request.messages):
        results = [block for block in message.content if isinstance(block, ToolResultBlock)]
        if shown and not results:
            messages.append({"role": "user", "content": shown})
            shown = []
        if message.role == "assistant":
            messages.append(_assistant_message(message, with_reasoning=position in returned))
            continue
        for result in results:
            seen = _shown(result, pictures)
            text = _text([block for block in result.content if isinstance(block, TextBlock)])
            text = text or (PICTURES_FOLLOW if seen else NO_OUTPUT)
            messages.append({"role": "tool", "tool_call_id": result.tool_call_id, "content": text})
            shown = [*shown, *seen]
        content = _content(message, pictures)
        if content or not results:
            messages.append({"role": message.role, "content": content})
    if shown:
        messages.append({"role": "user", "content": shown})
    body: dict[str, Json] = {
        "model": request.model,
        "messages": messages,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if request.tools:
        body["tools"] = [_tool(schema) for schema in request.tools]
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.max_tokens is not None:
        # OpenAI's reasoning models refuse the older name, most other servers know only that one.
        body["max_completion_tokens" if request.provider == "openai" else "max_tokens"] = request.max_tokens
    if request.stop:
        body["stop"] = list(request.stop)
    if request.reasoning_effort is not None:
        body["reasoning_effort"] = request.reasoning_effort
    return body


def _reasoning_returned(request: ModelRequest) -> frozenset[int]:
    """Positions of the assistant messages whose reasoning goes back: those that carry a call, or precede one.

    Source: https://api-docs.deepseek.com/guides/thinking_mode.md, tool calls. Between two messages of the user every
    assistant message up to the last one with a call must carry its reasoning again; the final answer need not. A
    service never gets the reasoning of another one: it would be an unknown field there.
    """
    returned: set[int] = set()
    call_follows = False
    for position in range(len(request.messages) - 1, -1, -1):
        message = request.messages[position]
        if message.role == "assistant":
            call_follows = call_follows or any(isinstance(block, ToolCallBlock) for block in message.content)
            if call_follows and isinstance(message.source, ModelSource) and message.source.provider == request.provider:
                returned.add(position)
        elif not any(isinstance(block, ToolResultBlock) for block in message.content):
            call_follows = False
    return frozenset(returned)


def settled(messages: Sequence[Message], first: int, provider: str) -> int:
    """How far the messages from first on are encoded the same alone, among the others, and whatever comes later.

    Shape: an assistant message whose reasoning goes back only if a call follows waits until that is known, and so
    do tool results with pictures, which stand behind the last result of their run.
    """
    waiting: int | None = None
    for position in range(first, len(messages)):
        message = messages[position]
        results = [block for block in message.content if isinstance(block, ToolResultBlock)]
        calls = message.role == "assistant" and any(isinstance(block, ToolCallBlock) for block in message.content)
        if calls or (message.role != "assistant" and not results):
            waiting = None
        elif waiting is None and (
            any(isinstance(block, ReasoningBlock) for block in message.content)
            or any(not isinstance(part, TextBlock) for result in results for part in result.content)
        ):
            waiting = position
    return len(messages) if waiting is None else waiting


def _assistant_message(message: Message, *, with_reasoning: bool) -> JsonObject:
    calls: list[Json] = [
        {
            "id": block.id,
            "type": "function",
            "function": {"name": legal_name(block.name), "arguments": block.arguments or "{}"},
        }
        for block in message.content
        if isinstance(block, ToolCallBlock)
    ]
    encoded: dict[str, Json] = {"role": "assistant", "content": _text(message.content)}
    reasoning = "".join(block.text for block in message.content if isinstance(block, ReasoningBlock))
    if with_reasoning and reasoning:
        encoded["reasoning_content"] = reasoning
    if calls:
        encoded["tool_calls"] = calls
    return encoded


def _shown(result: ToolResultBlock, pictures: Pictures | None) -> list[Json]:
    """The pictures of a tool result as parts of the message that follows the results."""
    parts: list[Json] = [_picture(block, pictures) for block in result.content if isinstance(block, ImageBlock)]
    return [{"type": "text", "text": f"pictures of tool call {result.tool_call_id}:"}, *parts] if parts else []


def _content(message: Message, pictures: Pictures | None) -> str | list[Json]:
    """What a message that is no answer says: plain text, or parts where it holds pictures."""
    if message.role != "user" or not any(isinstance(block, ImageBlock) for block in message.content):
        return _text(message.content)
    parts: list[Json] = []
    for block in message.content:
        if isinstance(block, TextBlock) and block.text:
            parts.append({"type": "text", "text": block.text})
        elif isinstance(block, ImageBlock):
            parts.append(_picture(block, pictures))
    return parts


def _picture(block: ImageBlock, pictures: Pictures | None) -> JsonObject:
    return {"type": "image_url", "image_url": {"url": data_url(block, pictures)}}


def _text(content: Sequence[ContentBlock]) -> str:
    parts: list[str] = []
    for block in content:
        if isinstance(block, TextBlock):
            parts.append(block.text)
        elif isinstance(block, ImageBlock):
            raise picture_refused(block)
    return "".join(parts)


def _tool(schema: ToolSchema) -> JsonObject:
    return {
        "type": "function",
        "function": {
            "name": schema.name,
            "description": schema.description,
            "parameters": schema.parameters,
        },
    }
