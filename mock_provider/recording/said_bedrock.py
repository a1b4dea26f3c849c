"""Answers of Bedrock read back: Converse and InvokeModel, whole and in frames.

Room: pure; decoding comes in.
Source: as dialects.bedrock. A stream comes as the lines that frames are spelled in.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence

from mock_provider.json_values import Json, JsonObject
from mock_provider.recording.frames import Frame, parse_frames
from mock_provider.recording.said import (
    Said,
    SaidCounts,
    SaidPart,
    a_count,
    a_text,
    a_text_or_none,
    an_object,
    merged,
    objects,
    read_json,
)
from mock_provider.recording.said_others import MESSAGES_FINISH, read_message, read_message_events

FINISH = {**MESSAGES_FINISH, "content_filtered": "content_filter"}


def read_bedrock(body: str, *, is_stream: bool) -> Said | None:
    """An answer of Converse, or of a model that is invoked with Anthropic messages."""
    if is_stream:
        return _stream(parse_frames(body))
    answer = an_object(read_json(body))
    if answer.get("type") == "message":
        return read_message(body, is_stream=False)
    message = an_object(an_object(answer.get("output")).get("message"))
    if not message:
        return None
    parts: list[SaidPart] = []
    for block in objects(message.get("content")):
        use, thought = block.get("toolUse"), an_object(block.get("reasoningContent"))
        if isinstance(use, dict):
            arguments = json.dumps(use.get("input", {}), separators=(",", ":"), ensure_ascii=False)
            parts.append(SaidPart("call", arguments, a_text(use.get("name")), a_text_or_none(use.get("toolUseId"))))
        elif thought:
            parts.append(SaidPart("reasoning", a_text(an_object(thought.get("reasoningText")).get("text"))))
        elif "text" in block:
            parts.append(SaidPart("text", a_text(block.get("text"))))
        else:
            return None
    return Said(merged(parts), _finish(answer.get("stopReason")), _counts(answer.get("usage")), None)


def _finish(value: Json) -> str | None:
    told = a_text_or_none(value)
    return None if told is None else FINISH.get(told, told)


def _counts(value: Json) -> SaidCounts | None:
    usage = an_object(value)
    if not usage:
        return None
    cached = a_count(usage.get("cacheReadInputTokens"))
    given = a_count(usage.get("inputTokens")) + a_count(usage.get("cacheWriteInputTokens")) + cached
    return SaidCounts(given, a_count(usage.get("outputTokens")), cached)


def _failure(one: Frame) -> tuple[str, str | None, str | None] | None:
    """What an exception frame says; None for any other frame."""
    if one.header(":message-type") == "event":
        return None
    kind = one.header(":exception-type") or one.header(":error-code")
    message = a_text(an_object(read_json(one.payload)).get("message")) or one.header(":error-message")
    return message, kind or None, None


def _stream(frames: Sequence[Frame]) -> Said | None:
    if any(one.header(":event-type") == "chunk" for one in frames):
        return _chunks(frames)
    parts: dict[int, SaidPart] = {}
    finish: str | None = None
    usage: Json = None
    failure = None
    for one in frames:
        failure = _failure(one) or failure
        kind, event = one.header(":event-type"), an_object(read_json(one.payload))
        index = a_count(event.get("contentBlockIndex"))
        if kind == "contentBlockStart":
            use = an_object(an_object(event.get("start")).get("toolUse"))
            if not use:
                return None
            parts[index] = SaidPart("call", "", a_text(use.get("name")), a_text_or_none(use.get("toolUseId")))
        elif kind == "contentBlockDelta":
            grown = _grown(parts.get(index), an_object(event.get("delta")))
            if grown is None:
                return None
            parts[index] = grown
        elif kind == "messageStop":
            finish = _finish(event.get("stopReason"))
        elif kind == "metadata":
            usage = event.get("usage")
    listed = [part for _, part in sorted(parts.items())]
    return Said(merged(listed), finish, _counts(usage), None, failure)


def _grown(part: SaidPart | None, delta: JsonObject) -> SaidPart | None:
    """A block with one more fragment; None for a fragment that a script cannot say."""
    use, thought = an_object(delta.get("toolUse")), delta.get("reasoningContent")
    if part is not None and part.kind == "call":
        return SaidPart("call", part.text + a_text(use.get("input")), part.name, part.id) if use else None
    if isinstance(thought, dict):
        if not thought.keys() <= {"text", "signature"}:
            return None
        return SaidPart("reasoning", (part.text if part else "") + a_text(thought.get("text")))
    if "text" not in delta:
        return None
    return SaidPart("text", (part.text if part else "") + a_text(delta.get("text")))


def _chunks(frames: Sequence[Frame]) -> Said | None:
    """A stream of a model that is invoked: each frame holds an event of its own format."""
    events: list[JsonObject] = []
    failure = None
    for one in frames:
        failure = _failure(one) or failure
        inner = inside_chunk(one.payload)
        if inner is not None:
            events.append(an_object(read_json(inner)))
    said = read_message_events(events)
    if said is None or not any("type" in event for event in events):
        return None
    return Said(said.parts, said.finish, said.counts, said.model, failure or said.failure)


def inside_chunk(payload: str) -> str | None:
    """The text in the payload of a chunk; None for a payload that is none."""
    held = an_object(read_json(payload)).get("bytes")
    if not isinstance(held, str):
        return None
    try:
        return base64.b64decode(held, validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return None
