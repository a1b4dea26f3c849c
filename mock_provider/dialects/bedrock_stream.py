"""A reply as the frames of a Converse stream.

Room: pure; the Bedrock dialect comes in. Frames are made one by one as they are sent.
Source: the service model that AWS publishes with its clients (ConverseStreamOutput). Texts begin without an event of
their own, tool uses have one; the counts come in a `metadata` event behind the end of the message.
"""

from __future__ import annotations

from collections.abc import Iterator

from mock_provider.asked import Asked
from mock_provider.dialects.anthropic_output import signature_of
from mock_provider.dialects.bedrock_frames import event, exception
from mock_provider.dialects.bedrock_output import LATENCY_MS, stop_reason, usage_fields, use_fields
from mock_provider.dialects.bedrock_refusals import exception_of
from mock_provider.dialects.codec import Reply
from mock_provider.faults import Die, Item, Send, Wait
from mock_provider.json_values import JsonObject, encode_json
from mock_provider.pieces import split_text
from mock_provider.steps import (
    AtGate,
    Break,
    Comment,
    ErrorEvent,
    Malformed,
    Part,
    RawBytes,
    Reasoning,
    RefusalText,
    Text,
    ToolCall,
)


def write_frames(asked: Asked, reply: Reply) -> Iterator[Item]:
    """Write an answer as events: the message opens, its blocks come one by one, then the reason and the counts."""
    del asked
    return _Writer(reply).items()


class _Writer:
    """Writes the events of one message, keeping track of the open block."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self._calls = iter(reply.calls)
        self._index = -1
        self._open = ""
        self._thought = ""

    def items(self) -> Iterator[Item]:
        """All events."""
        yield _event("messageStart", {"role": "assistant"})
        for part in self._reply.parts:
            yield from self._part(part)
        yield from self._close()
        reason = stop_reason(self._reply)
        for _ in range(self._reply.stream.end_marks):
            yield _event("messageStop", {} if reason is None else {"stopReason": reason})
        if self._reply.counts is not None:
            metrics: JsonObject = {"latencyMs": LATENCY_MS}
            for _ in range(self._reply.usage_times):
                yield _event("metadata", {"usage": usage_fields(self._reply.counts), "metrics": metrics})

    def _close(self) -> Iterator[Item]:
        if not self._open:
            return
        if self._open == "thought":
            yield self._delta({"reasoningContent": {"signature": signature_of(self._thought)}})
            self._thought = ""
        yield _event("contentBlockStop", {"contentBlockIndex": self._index})
        self._open = ""

    def _begin(self, kind: str) -> Iterator[Item]:
        yield from self._close()
        self._index += 1
        self._open = kind

    def _delta(self, delta: JsonObject, *, is_piece: bool = False) -> Send:
        return _event("contentBlockDelta", {"delta": delta, "contentBlockIndex": self._index}, is_piece=is_piece)

    def _part(self, part: Part) -> Iterator[Item]:
        if isinstance(part, Text | RefusalText | Reasoning):
            kind = "thought" if isinstance(part, Reasoning) else "text"
            if self._open != kind:
                yield from self._begin(kind)
            if kind == "thought":
                self._thought += part.text
            for piece in split_text(part.text, self._reply.stream.split):
                delta: JsonObject = {"text": piece}
                yield self._delta({"reasoningContent": delta} if kind == "thought" else delta, is_piece=True)
        elif isinstance(part, ToolCall):
            call = next(self._calls)
            yield from self._begin("tool")
            start: JsonObject = {"start": {"toolUse": use_fields(call)}, "contentBlockIndex": self._index}
            yield _event("contentBlockStart", start, is_piece=True)
            for piece in split_text(call.arguments, self._reply.stream.split):
                yield self._delta({"toolUse": {"input": piece}}, is_piece=True)
        elif isinstance(part, AtGate):
            yield Wait(part.name)
        elif isinstance(part, Break):
            yield Die(part.kind)
        elif isinstance(part, Malformed):
            yield Send(event("contentBlockDelta", part.text.encode("utf-8", "surrogatepass")), is_piece=True)
        elif isinstance(part, RawBytes):
            yield Send(part.data, is_piece=True)
        elif isinstance(part, ErrorEvent):
            yield Send(exception(exception_of(part), encode_json({"message": part.message})), is_piece=True)
        elif isinstance(part, Comment):
            return  # frames have no place for one


def _event(kind: str, content: JsonObject, *, is_piece: bool = False) -> Send:
    return Send(event(kind, encode_json(content)), is_piece)
