"""A reply as a Converse message: its blocks, its stop reason, its counts.

Room: pure; the Bedrock dialect and its streams come in.
Source: the service model that AWS publishes with its clients (ConverseResponse, TokenUsage). It has a place for tokens
read from a cache, and none for those of reasoning, which the output tokens hold.
"""

from __future__ import annotations

import json

from mock_provider.dialects.anthropic_output import signature_of
from mock_provider.dialects.codec import Counts, Reply, SaidCall
from mock_provider.json_values import Json, JsonObject
from mock_provider.steps import Reasoning, RefusalText, Text, ToolCall

STOP_REASONS = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "content_filter": "content_filtered",
}
LATENCY_MS = 1  # of a clock that nobody looks at


def stop_reason(reply: Reply) -> str | None:
    """The dialect's word for the finish; a call whose arguments are no object is a malformed one."""
    if reply.finish == "tool_calls" and any(input_of(call) is None for call in reply.calls):
        return "malformed_tool_use"
    return None if reply.finish is None else STOP_REASONS.get(reply.finish, reply.finish)


def input_of(call: SaidCall) -> JsonObject | None:
    """The arguments of a call; None when they are no object."""
    try:
        value: Json = json.loads(call.arguments or "{}")
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def use_fields(call: SaidCall) -> JsonObject:
    """A tool use without its input."""
    return {"name": call.name} if call.id is None else {"toolUseId": call.id, "name": call.name}


def usage_fields(counts: Counts) -> JsonObject:
    """Spell the counts; the tokens from the cache are not part of the input tokens, but of the total."""
    return {
        "inputTokens": counts.input - counts.cached,
        "outputTokens": counts.output,
        "totalTokens": counts.input + counts.output,
        "cacheReadInputTokens": counts.cached,
        "cacheWriteInputTokens": 0,
    }


def content_blocks(reply: Reply) -> list[Json]:
    """The blocks of a whole message: neighbouring texts are one block."""
    blocks: list[Json] = []
    calls = iter(reply.calls)
    texts: list[str] = []
    is_thought = False

    def close() -> None:
        text = "".join(texts)
        if texts and is_thought:
            blocks.append({"reasoningContent": {"reasoningText": {"text": text, "signature": signature_of(text)}}})
        elif texts:
            blocks.append({"text": text})
        texts.clear()

    for part in reply.parts:
        if isinstance(part, Text | RefusalText | Reasoning):
            if isinstance(part, Reasoning) is not is_thought:
                close()
            is_thought = isinstance(part, Reasoning)
            texts.append(part.text)
        elif isinstance(part, ToolCall):
            close()
            call = next(calls)
            value = input_of(call)
            blocks.append({"toolUse": {**use_fields(call), "input": call.arguments if value is None else value}})
    close()
    return blocks


def response_fields(reply: Reply) -> JsonObject:
    """A whole answer."""
    response: JsonObject = {"output": {"message": {"role": "assistant", "content": content_blocks(reply)}}}
    reason = stop_reason(reply)
    if reason is not None:
        response["stopReason"] = reason
    if reply.counts is not None:
        response["usage"] = usage_fields(reply.counts)
    return {**response, "metrics": {"latencyMs": LATENCY_MS}}
