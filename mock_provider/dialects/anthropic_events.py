"""A reply as the events of an Anthropic message stream.

Room: pure; the messages dialect comes in. Events are made one by one as they are sent.
Source: the provider's published API reference, streaming messages.
"""

from __future__ import annotations

from collections.abc import Iterator

from mock_provider.asked import Asked
from mock_provider.dialects.anthropic_output import (
    error_fields,
    message_fields,
    signature_of,
    stop_reason,
    usage_of,
)
from mock_provider.dialects.codec import Counts, Reply
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

COUNTED_AT_THE_END = (
    "input_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "output_tokens",
    "output_tokens_details",
)


def write_events(asked: Asked, reply: Reply) -> Iterator[Item]:
    """Write an answer as named events: the message opens, its blocks come one by one, then the reason and the end."""
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
        counts = self._reply.counts
        opening = Counts(counts.input, min(counts.output, 1), counts.cached, 0) if counts else None
        yield _event({"type": "message_start", "message": message_fields(self._reply, [], None, opening)})
        for part in self._reply.parts:
            yield from self._part(part)
        yield from self._close()
        closing: JsonObject = {
            "type": "message_delta",
            "delta": {"stop_reason": stop_reason(self._reply), "stop_sequence": None},
        }
        if counts:
            spelled = usage_of(counts)
            closing["usage"] = {name: spelled[name] for name in COUNTED_AT_THE_END if name in spelled}
        for _ in range(self._reply.usage_times):
            yield _event(closing)
        for _ in range(self._reply.stream.end_marks):
            yield _event({"type": "message_stop"})

    def _close(self) -> Iterator[Item]:
        if not self._open:
            return
        if self._open == "thinking":
            delta: JsonObject = {"type": "signature_delta", "signature": signature_of(self._thought)}
            yield _event({"type": "content_block_delta", "index": self._index, "delta": delta})
            self._thought = ""
        yield _event({"type": "content_block_stop", "index": self._index})
        self._open = ""

    def _begin(
        self, kind: str, block: JsonObject, *, index: int | None = None, is_piece: bool = False
    ) -> Iterator[Item]:
        yield from self._close()
        self._index = self._index + 1 if index is None else index
        self._open = kind
        start: JsonObject = {"type": "content_block_start", "index": self._index, "content_block": block}
        yield _event(start, is_piece=is_piece)
        if self._index == 0:
            yield _event({"type": "ping"})

    def _deltas(self, kind: str, field: str, text: str) -> Iterator[Item]:
        """One event a piece; what all of them share is spelled once."""
        place = f'"index":{self._index},"delta":{{"type":"{kind}","{field}":'
        before = f'event: content_block_delta\ndata: {{"type":"content_block_delta",{place}'.encode("ascii")
        for piece in split_text(text, self._reply.stream.split):
            yield Send(before + encode_json(piece) + b"}}\n\n", True)

    def _part(self, part: Part) -> Iterator[Item]:
        if isinstance(part, Text | RefusalText):
            if self._open != "text":
                yield from self._begin("text", {"type": "text", "text": ""})
            yield from self._deltas("text_delta", "text", part.text)
        elif isinstance(part, Reasoning):
            if self._open != "thinking":
                yield from self._begin("thinking", {"type": "thinking", "thinking": "", "signature": ""})
            self._thought += part.text
            yield from self._deltas("thinking_delta", "thinking", part.text)
        elif isinstance(part, ToolCall):
            call = next(self._calls)
            spelled: JsonObject = {} if call.id is None else {"id": call.id}
            block: JsonObject = {"type": "tool_use", **spelled, "name": call.name, "input": {}}
            yield from self._begin("tool", block, index=part.index, is_piece=True)
            yield from self._deltas("input_json_delta", "partial_json", call.arguments)
        elif isinstance(part, AtGate):
            yield Wait(part.name)
        elif isinstance(part, Break):
            yield Die(part.kind)
        elif isinstance(part, Malformed):
            data = part.text.encode("utf-8", "surrogatepass")
            yield Send(b"event: content_block_delta\ndata: " + data + b"\n\n", is_piece=True)
        elif isinstance(part, RawBytes):
            yield Send(part.data, is_piece=True)
        elif isinstance(part, Comment):
            yield Send(b": " + part.text.encode("utf-8", "replace") + b"\n\n")
        elif isinstance(part, ErrorEvent):
            yield _event(error_fields(part), is_piece=True)


def _event(data: JsonObject, *, is_piece: bool = False) -> Send:
    name = str(data["type"]).encode("ascii")
    return Send(b"event: " + name + b"\ndata: " + encode_json(data) + b"\n\n", is_piece)
