"""Answers of Messages, Gemini and Ollama read back, whole and streamed.

Room: pure; decoding comes in.
Source: as the dialects of these names.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from mock_provider.json_values import Json, JsonObject
from mock_provider.recording.said import (
    Said,
    SaidCounts,
    SaidPart,
    a_count,
    a_text,
    a_text_or_none,
    an_object,
    events_of,
    failure_of,
    merged,
    objects,
    read_json,
)

MESSAGES_FINISH = {"end_turn": "stop", "tool_use": "tool_calls", "max_tokens": "length", "refusal": "content_filter"}
_GEMINI_FINISH = {"STOP": "stop", "MAX_TOKENS": "length", "SAFETY": "content_filter"}


def _word(value: Json, words: Mapping[str, str]) -> str | None:
    told = a_text_or_none(value)
    return None if told is None else words.get(told, told)


def read_message(body: str, *, is_stream: bool) -> Said | None:
    """An answer of Messages."""
    if is_stream:
        return read_message_events(events_of(body))
    answer = an_object(read_json(body))
    if answer.get("type") == "error":
        return Said((), None, None, None, failure_of(answer.get("error")))
    if answer.get("type") != "message":
        return None
    parts: list[SaidPart] = []
    for block in objects(answer.get("content")):
        part = _block(block)
        if part is None:
            return None
        parts.append(part)
    finish = _word(answer.get("stop_reason"), MESSAGES_FINISH)
    return Said(merged(parts), finish, _message_counts(answer.get("usage")), a_text_or_none(answer.get("model")))


def _block(block: JsonObject) -> SaidPart | None:
    kind = block.get("type")
    if kind == "text":
        return SaidPart("text", a_text(block.get("text")))
    if kind == "thinking":
        return SaidPart("reasoning", a_text(block.get("thinking")))
    if kind == "tool_use":
        value = block.get("input")
        arguments = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        return SaidPart("call", arguments, a_text(block.get("name")), a_text_or_none(block.get("id")))
    return None


def read_message_events(events: Iterable[JsonObject]) -> Said | None:
    """An answer of Messages from its events."""
    parts: dict[int, SaidPart] = {}
    fragments: dict[int, str] = {}
    finish: str | None = None
    model: str | None = None
    usage: JsonObject = {}
    failure = None
    for event in events:
        kind = event.get("type")
        index = a_count(event.get("index"))
        delta = an_object(event.get("delta"))
        if kind == "message_start":
            message = an_object(event.get("message"))
            model = a_text_or_none(message.get("model"))
            usage |= an_object(message.get("usage"))
        elif kind == "content_block_start":
            part = _block(an_object(event.get("content_block")))
            if part is None:
                return None
            parts[index] = part
        elif kind == "content_block_delta" and index in parts:
            old = parts[index]
            if delta.get("type") == "input_json_delta":
                fragments[index] = fragments.get(index, "") + a_text(delta.get("partial_json"))
            else:
                more = a_text(delta.get("text")) + a_text(delta.get("thinking"))
                parts[index] = SaidPart(old.kind, old.text + more)
        elif kind == "message_delta":
            finish = _word(delta.get("stop_reason"), MESSAGES_FINISH)
            usage |= an_object(event.get("usage"))
        elif kind == "error":
            failure = failure_of(event.get("error"))
    listed = [
        SaidPart("call", fragments.get(index, part.text), part.name, part.id) if part.kind == "call" else part
        for index, part in sorted(parts.items())
    ]
    return Said(merged(listed), finish, _message_counts(usage), model, failure)


def _message_counts(usage: Json) -> SaidCounts | None:
    if not isinstance(usage, dict) or "output_tokens" not in usage:
        return None
    cached = a_count(usage.get("cache_read_input_tokens"))
    given = a_count(usage.get("input_tokens")) + a_count(usage.get("cache_creation_input_tokens")) + cached
    return SaidCounts(given, a_count(usage.get("output_tokens")), cached)


def read_gemini(body: str, *, is_stream: bool) -> Said | None:
    """An answer of Gemini: one response, an array of them, or a stream of events."""
    value = read_json(body)
    chunks = objects(value) if isinstance(value, list) else [value] if isinstance(value, dict) else []
    if is_stream and not chunks:
        chunks = events_of(body)
    if not chunks:
        return None
    parts: list[SaidPart] = []
    finish: str | None = None
    usage: JsonObject = {}
    model: str | None = None
    failure = None
    for chunk in chunks:
        if "error" in chunk:
            failure = failure_of(chunk["error"])
            continue
        candidates = objects(chunk.get("candidates"))
        if len(candidates) > 1 or "promptFeedback" in chunk:
            return None
        for candidate in candidates:
            for part in objects(an_object(candidate.get("content")).get("parts")):
                read = _gemini_part(part)
                if read is None:
                    return None
                parts.append(read)
            finish = _word(candidate.get("finishReason"), _GEMINI_FINISH) or finish
        usage |= an_object(chunk.get("usageMetadata"))
        model = a_text_or_none(chunk.get("modelVersion")) or model
    if finish == "stop" and any(part.kind == "call" for part in parts):
        finish = "tool_calls"
    return Said(merged(parts), finish, _gemini_counts(usage), model, failure)


def _gemini_part(part: JsonObject) -> SaidPart | None:
    call = part.get("functionCall")
    if isinstance(call, dict):
        arguments = json.dumps(call.get("args", {}), separators=(",", ":"), ensure_ascii=False)
        return SaidPart("call", arguments, a_text(call.get("name")), a_text_or_none(call.get("id")))
    if "text" not in part:
        return None
    return SaidPart("reasoning" if part.get("thought") is True else "text", a_text(part.get("text")))


def _gemini_counts(usage: JsonObject) -> SaidCounts | None:
    if "promptTokenCount" not in usage:
        return None
    thought = a_count(usage.get("thoughtsTokenCount"))
    given = a_count(usage.get("promptTokenCount"))
    cached = min(a_count(usage.get("cachedContentTokenCount")), given)
    return SaidCounts(given, a_count(usage.get("candidatesTokenCount")) + thought, cached, thought)


def read_ollama(body: str, *, is_stream: bool) -> Said | None:
    """An answer of Ollama: one object, or one object a line."""
    del is_stream
    parts: list[SaidPart] = []
    finish: str | None = None
    counts: SaidCounts | None = None
    model: str | None = None
    failure = None
    lines = [value for line in body.split("\n") if isinstance(value := read_json(line), dict)]
    if not lines:
        return None
    for line in lines:
        if "error" in line:
            failure = failure_of(line["error"])
            continue
        message = an_object(line.get("message")) or {"content": line.get("response"), "thinking": line.get("thinking")}
        parts.append(SaidPart("reasoning", a_text(message.get("thinking"))))
        parts.append(SaidPart("text", a_text(message.get("content"))))
        for call in objects(message.get("tool_calls")):
            inner = an_object(call.get("function"))
            arguments = json.dumps(inner.get("arguments", {}), separators=(",", ":"), ensure_ascii=False)
            parts.append(SaidPart("call", arguments, a_text(inner.get("name")), a_text_or_none(call.get("id"))))
        finish = a_text_or_none(line.get("done_reason")) or finish
        model = a_text_or_none(line.get("model")) or model
        if "eval_count" in line or "prompt_eval_count" in line:
            counts = SaidCounts(a_count(line.get("prompt_eval_count")), a_count(line.get("eval_count")))
    if finish == "stop" and any(part.kind == "call" for part in parts):
        finish = "tool_calls"
    return Said(merged(parts), finish, counts, model, failure)
