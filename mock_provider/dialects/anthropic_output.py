"""A reply as an Anthropic message: its content blocks, its stop reason, its counts.

Room: pure; the messages dialect and its event stream come in.
Source: as anthropic_messages.
"""

from __future__ import annotations

import hashlib
import json

from mock_provider.dialects.codec import Counts, Reply, SaidCall
from mock_provider.json_values import Json, JsonObject
from mock_provider.steps import ErrorEvent, Reasoning, RefusalText, Text, ToolCall

STOP_REASONS = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "content_filter": "refusal"}


def stop_reason(reply: Reply) -> str | None:
    """The dialect's word for the finish."""
    if reply.finish == "stop" and reply.refusal:
        return "refusal"
    return None if reply.finish is None else STOP_REASONS.get(reply.finish, reply.finish)


def usage_of(counts: Counts) -> JsonObject:
    """Spell the counts; here the cached tokens are not part of the input tokens."""
    thinking: JsonObject = {"output_tokens_details": {"thinking_tokens": counts.reasoning}} if counts.reasoning else {}
    return {
        "input_tokens": counts.input - counts.cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": counts.cached,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
        "output_tokens": counts.output,
        **thinking,
        "service_tier": "standard",
    }


def signature_of(thinking: str) -> str:
    """A signature that a client has to send back; it depends on the text alone."""
    return f"mock-signature-{hashlib.sha256(thinking.encode('utf-8', 'surrogatepass')).hexdigest()[:24]}"


def message_fields(reply: Reply, content: list[Json], reason: str | None, counts: Counts | None) -> JsonObject:
    """A message as far as it has come."""
    message: JsonObject = {
        "id": reply.id,
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "content": content,
        "stop_reason": reason,
        "stop_sequence": None,
    }
    if counts:
        message["usage"] = usage_of(counts)
    return message


def content_blocks(reply: Reply) -> list[Json]:
    """The blocks of a whole message: neighbouring texts are one block."""
    blocks: list[Json] = []
    calls = iter(reply.calls)
    texts: list[str] = []
    kind = ""

    def close() -> None:
        if texts and kind == "text":
            blocks.append({"type": "text", "text": "".join(texts)})
        elif texts:
            thinking = "".join(texts)
            blocks.append({"type": "thinking", "thinking": thinking, "signature": signature_of(thinking)})
        texts.clear()

    for part in reply.parts:
        if isinstance(part, Text | RefusalText | Reasoning):
            wanted = "thinking" if isinstance(part, Reasoning) else "text"
            if wanted != kind:
                close()
            kind = wanted
            texts.append(part.text)
        elif isinstance(part, ToolCall):
            close()
            blocks.append(_tool_use(next(calls)))
    close()
    return blocks


def _tool_use(call: SaidCall) -> JsonObject:
    spelled: JsonObject = {"type": "tool_use"} if call.id is None else {"type": "tool_use", "id": call.id}
    try:
        value: Json = json.loads(call.arguments or "{}")
    except ValueError:
        value = call.arguments  # what never became JSON stays a text, which no client takes for an input
    return {**spelled, "name": call.name, "input": value}


def error_fields(part: ErrorEvent) -> JsonObject:
    """An error inside a 200."""
    kind = "api_error" if part.kind == "server_error" else part.kind
    return {"type": "error", "error": {"type": kind, "message": part.message}}
