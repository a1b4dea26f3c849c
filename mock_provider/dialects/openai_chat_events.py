"""A reply as the chunks of a chat completions stream.

Room: pure; the chat dialect comes in. Chunks are made one by one as they are sent, and what is the same in all of them
is spelled once: a reply of a thousand pieces must not keep its first one waiting.
Source: the published API schema of /v1/chat/completions, streaming; openai_flavours names the sources of the flavours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mock_provider.asked import Asked
from mock_provider.dialects.codec import Counts, Reply, SaidCall
from mock_provider.dialects.openai_flavours import FLAVOURS, finish_fields, reasoning_fields, usage_of
from mock_provider.dialects.openai_functions import asks_old_way, finish_of_old
from mock_provider.dialects.openai_logprobs import logprobs_of
from mock_provider.dialects.openai_responses_input import custom_names
from mock_provider.faults import Die, Item, Send, Wait
from mock_provider.json_values import Json, JsonObject, encode_json
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

DONE = b"data: [DONE]\n\n"


def write_chunks(asked: Asked, reply: Reply) -> Iterator[Item]:
    """Write an answer as events: a role first, then the parts, the finish reason, usage when asked for, end marks."""
    flavour = FLAVOURS[reply.flavour]
    if flavour.opening:
        yield Send(flavour.opening)
    for index in range(asked.choices):
        yield from _Writer(asked, reply, index).choice()
    if (asked.wants_usage or flavour.always_counts) and reply.counts:
        for _ in range(reply.usage_times):
            yield _Writer(asked, reply, 0).usage(reply.counts)
    for _ in range(reply.stream.end_marks):
        yield Send(DONE)


def chat_logprobs(asked: Asked, said: Mapping[str, Json]) -> JsonObject | None:
    """The probabilities of what is said, when they are asked for. Shape: one list a field, null for an empty one."""
    if asked.body.get("logprobs") is not True:
        return None
    top = asked.body.get("top_logprobs")
    fields: JsonObject = {"content": None, "refusal": None}
    for name in fields:
        text = said.get(name)
        if isinstance(text, str) and text:
            fields[name] = logprobs_of(text, top if isinstance(top, int) else 0)
    return fields


def error_fields(part: ErrorEvent) -> JsonObject:
    """An error inside a 200."""
    return {"error": {"message": part.message, "type": part.kind, "param": None, "code": part.code}}


class _Writer:
    """Writes the chunks of one choice.

    Shape: a chunk is opening, delta, what a choice says beside its delta, and closing.
    """

    def __init__(self, asked: Asked, reply: Reply, index: int) -> None:
        self._asked = asked
        self._reply = reply
        self._index = index
        self._flavour = FLAVOURS[reply.flavour]
        self._calls = iter(reply.calls)
        self._custom = custom_names(asked.body.get("tools"))
        self._is_old = bool(reply.calls) and asks_old_way(asked.body)
        self._has_logprobs = asked.body.get("logprobs") is True
        fields = encode_json(self._fields())[:-1]
        self._opening = b"data: " + fields + b',"choices":[{"index":%d,"delta":' % index
        extra: JsonObject = {**self._flavour.chunk, **({"usage": None} if asked.wants_usage else {})}
        self._closing = b"}]" + (b"," + encode_json(extra)[1:-1] if extra else b"") + b"}\n\n"
        self._beside = self._beside_delta(None, None)

    def _fields(self) -> JsonObject:
        return {
            "id": self._reply.id,
            "object": "chat.completion.chunk",
            "created": self._reply.created,
            "model": self._reply.model,
            "system_fingerprint": "fp_mock",
        }

    def _beside_delta(self, finish: str | None, logprobs: JsonObject | None) -> bytes:
        fields = {**finish_fields(self._reply.flavour, finish), **self._flavour.chunk_choice}
        return b',"logprobs":' + encode_json(logprobs) + b"," + encode_json(fields)[1:-1]

    def _chunk(self, delta: JsonObject, *, is_piece: bool = True) -> Send:
        return Send(self._opening + encode_json(delta) + self._beside + self._closing, is_piece)

    def _texts(self, field: str, text: str) -> Iterator[Item]:
        """One chunk a piece of a text that stands in one field."""
        before = self._opening + b'{"' + field.encode("ascii") + b'":'
        after = b"}" + self._beside + self._closing
        for piece in split_text(text, self._reply.stream.split):
            if self._has_logprobs and field in ("content", "refusal"):
                beside = self._beside_delta(None, chat_logprobs(self._asked, {field: piece}))
                after = b"}" + beside + self._closing
            yield Send(before + encode_json(piece) + after, True)

    def choice(self) -> Iterator[Item]:
        """All chunks of the choice."""
        yield self._chunk({"role": "assistant", "content": ""}, is_piece=False)
        for part in self._reply.parts:
            yield from self._part(part)
        finish = finish_of_old(self._reply.finish) if self._is_old else self._reply.finish
        if finish is not None:
            yield Send(self._opening + b"{}" + self._beside_delta(finish, None) + self._closing)

    def usage(self, counts: Counts) -> Send:
        """The closing chunk, without choices except where the service keeps an empty one."""
        choices: list[Json] = []
        if self._flavour.always_counts:
            choices.append(self._plain_choice(None))
        usage = usage_of(counts, self._reply.flavour)
        chunk: JsonObject = {**self._fields(), "choices": choices, **self._flavour.chunk, "usage": usage}
        return Send(b"data: " + encode_json(chunk) + b"\n\n")

    def _plain_choice(self, finish: str | None) -> JsonObject:
        choice: JsonObject = {"index": self._index, "delta": {"role": "assistant", "content": ""}, "logprobs": None}
        return {**choice, **finish_fields(self._reply.flavour, finish), **self._flavour.chunk_choice}

    def _part(self, part: Part) -> Iterator[Item]:
        if isinstance(part, Text):
            yield from self._texts("content", part.text)
        elif isinstance(part, RefusalText):
            yield from self._texts("refusal", part.text)
        elif isinstance(part, Reasoning):
            yield from self._reasoning(part.text)
        elif isinstance(part, ToolCall):
            call = next(self._calls)
            if not self._is_old:
                yield from self._call(call)
            elif call is self._reply.calls[0]:
                yield from self._old_call(call)
        elif isinstance(part, AtGate):
            yield Wait(part.name)
        elif isinstance(part, Break):
            yield Die(part.kind)
        elif isinstance(part, Malformed):
            yield Send(b"data: " + part.text.encode("utf-8", "surrogatepass") + b"\n\n", is_piece=True)
        elif isinstance(part, RawBytes):
            yield Send(part.data, is_piece=True)
        elif isinstance(part, Comment):
            yield Send(b": " + part.text.encode("utf-8", "replace") + b"\n\n")
        else:
            yield Send(b"data: " + encode_json(self._error(part)) + b"\n\n", is_piece=True)

    def _reasoning(self, text: str) -> Iterator[Item]:
        fields = self._flavour.reasoning
        if len(fields) == 1 and not self._flavour.has_details:
            yield from self._texts(fields[0], text)
            return
        for piece in split_text(text, self._reply.stream.split):
            yield self._chunk(reasoning_fields(self._reply.flavour, piece))

    def _error(self, part: ErrorEvent) -> JsonObject:
        if self._reply.flavour != "openrouter":
            return error_fields(part)
        error: JsonObject = {"code": part.code or part.kind, "message": part.message}
        return {**self._fields(), "choices": [self._plain_choice("error")], **self._flavour.chunk, "error": error}

    def _old_call(self, call: SaidCall) -> Iterator[Item]:
        yield self._chunk({"function_call": {"name": call.name, "arguments": ""}})
        for piece in split_text(call.arguments, self._reply.stream.split):
            yield self._chunk({"function_call": {"arguments": piece}})

    def _call(self, call: SaidCall) -> Iterator[Item]:
        """A call opens with id and name, its arguments follow in fragments."""
        opening: JsonObject = {"index": call.index}
        if call.id is not None:
            opening["id"] = call.id
        kind, field = ("custom", "input") if call.name in self._custom else ("function", "arguments")
        yield self._chunk({"tool_calls": [{**opening, "type": kind, kind: {"name": call.name, field: ""}}]})
        for piece in split_text(call.arguments, self._reply.stream.split):
            yield self._chunk({"tool_calls": [{"index": call.index, kind: {field: piece}}]})
