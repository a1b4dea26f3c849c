"""A reply as the chunks of a Gemini stream, as events or as the elements of one JSON array.

Room: pure; the Gemini dialect comes in. Chunks are made one by one as they are sent.
Source: the provider's published API reference for models.streamGenerateContent: an array unless `alt=sse` asks for
events; every chunk is a response of its own, the last one has the finish reason. Calls come whole.
"""

from __future__ import annotations

from collections.abc import Iterator

from mock_provider.asked import Asked
from mock_provider.dialects.codec import Reply
from mock_provider.dialects.gemini_output import (
    call_part,
    candidate_fields,
    ending_of,
    is_prompt_blocked,
    response_fields,
    signature,
    signed_at,
)
from mock_provider.dialects.gemini_refusals import event_error
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

EVENTS = "events"  # the form of a request that asks for events
_HOLE = "\x00piece\x00"  # stands for the text of a piece while what all pieces share is spelled; always spelled alike


def write_chunks(asked: Asked, reply: Reply) -> Iterator[Item]:
    """Write an answer as one response a piece, the last of them with the finish reason."""
    return _Writer(asked, reply).items()


class _Writer:
    """Writes the chunks of one answer, framed as the request asks."""

    def __init__(self, asked: Asked, reply: Reply) -> None:
        self._reply = reply
        self._calls = iter(reply.calls)
        self._has_events = asked.form == EVENTS
        self._choices = asked.choices
        self._where = signed_at(reply)
        self._is_first = True

    def items(self) -> Iterator[Item]:
        """All chunks, and what closes an array."""
        reply = self._reply
        for part in reply.parts:
            yield from self._part(part)
        if not is_prompt_blocked(reply):
            last: JsonObject = {"text": ""}
            if self._where == "text":
                last["thoughtSignature"] = signature(reply)
            ending = ending_of(reply)
            candidates: list[Json] = [candidate_fields(at, [last], ending) for at in range(self._choices)]
            yield self._framed(encode_json(response_fields(reply, candidates, is_over=True)))
        else:
            yield self._framed(encode_json(response_fields(reply, [], is_over=True)))
        if not self._has_events and reply.stream.end_marks:
            yield Send((b"[" if self._is_first else b"") + b"]" * reply.stream.end_marks)

    def _framed(self, data: bytes, *, is_piece: bool = False) -> Send:
        before, after = self._frame()
        return Send(before + data + after, is_piece)

    def _frame(self) -> tuple[bytes, bytes]:
        if self._has_events:
            return b"data: ", b"\r\n\r\n"
        before, self._is_first = (b"[" if self._is_first else b",\r\n"), False
        return before, b""

    def _chunk(self, part: JsonObject) -> bytes:
        candidates: list[Json] = [candidate_fields(at, [part], None) for at in range(self._choices)]
        return encode_json(response_fields(self._reply, candidates, is_over=False))

    def _texts(self, text: str, *, is_thought: bool) -> Iterator[Item]:
        """One chunk a piece; what all of them share is spelled once."""
        part: JsonObject = {"text": _HOLE, "thought": True} if is_thought else {"text": _HOLE}
        shared = self._chunk(part).split(encode_json(_HOLE), self._choices)
        for piece in split_text(text, self._reply.stream.split):
            yield self._framed(encode_json(piece).join(shared), is_piece=True)

    def _part(self, part: Part) -> Iterator[Item]:
        if isinstance(part, Text | RefusalText | Reasoning):
            yield from self._texts(part.text, is_thought=isinstance(part, Reasoning))
        elif isinstance(part, ToolCall):
            spelled = call_part(next(self._calls), self._reply, is_signed=self._where == "call")
            if spelled is not None:
                if self._where == "call":
                    self._where = ""
                yield self._framed(self._chunk(spelled), is_piece=True)
        elif isinstance(part, AtGate):
            yield Wait(part.name)
        elif isinstance(part, Break):
            yield Die(part.kind)
        elif isinstance(part, Malformed):
            yield self._framed(part.text.encode("utf-8", "surrogatepass"), is_piece=True)
        elif isinstance(part, RawBytes):
            yield Send(part.data, is_piece=True)
        elif isinstance(part, Comment):
            if self._has_events:
                yield Send(b": " + part.text.encode("utf-8", "replace") + b"\r\n\r\n")
        elif isinstance(part, ErrorEvent):
            yield self._framed(encode_json(event_error(part)), is_piece=True)
