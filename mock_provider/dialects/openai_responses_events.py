"""A reply as the events of a Responses stream.

Room: pure; the Responses dialect comes in. Events are made one by one as they are sent.
Source: the provider's published API reference, "Streaming events"; every event carries its number in the stream.
"""

from __future__ import annotations

from collections.abc import Iterator

from mock_provider.asked import Asked
from mock_provider.dialects.codec import Reply, SaidCall
from mock_provider.dialects.openai_responses_output import (
    Ending,
    Group,
    arrange,
    call_item,
    ending_of,
    is_open,
    response_object,
    runs,
    text_logprobs,
    text_part,
    wants_logprobs,
)
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


def write_events(asked: Asked, reply: Reply) -> Iterator[Item]:
    """Write an answer as events: the response opens, its items come one by one, the finished response ends it."""
    return _Writer(asked, reply).items()


class _Writer:
    """Writes the events of one response, counting them."""

    def __init__(self, asked: Asked, reply: Reply) -> None:
        self._asked = asked
        self._reply = reply
        self._number = 0
        self._index = 0

    def items(self) -> Iterator[Item]:
        """All events."""
        asked, reply = self._asked, self._reply
        opening = response_object(asked, reply, Ending("in_progress"), [], None)
        first = opening
        if asked.body.get("background") is True:
            first = response_object(asked, reply, Ending("queued"), [], None)
        yield self._event("response.created", {"response": first})
        if first is not opening:
            yield self._event("response.queued", {"response": first})
        yield self._event("response.in_progress", {"response": opening})
        groups = arrange(asked, reply)
        for group in groups:
            yield from self._group(group)
        ending = ending_of(reply)
        if ending.status is not None:
            output: list[Json] = [group.item for group in groups if group.item]
            closing = response_object(asked, reply, ending, output, reply.counts)
            for _ in range(reply.stream.end_marks):
                yield self._event(f"response.{ending.status}", {"response": closing})

    def _event(self, kind: str, fields: JsonObject, *, is_piece: bool = False) -> Send:
        data = encode_json({"type": kind, "sequence_number": self._number, **fields})
        self._number += 1
        return Send(b"event: " + kind.encode("ascii", "replace") + b"\ndata: " + data + b"\n\n", is_piece)

    def _deltas(self, kind: str, place: JsonObject, text: str, *, has_logprobs: bool = False) -> Iterator[Item]:
        """One event a piece; what all of them share is spelled once."""
        head = f'event: {kind}\ndata: {{"type":"{kind}","sequence_number":'.encode("ascii")
        middle = b"," + encode_json(place)[1:-1] + b',"delta":'
        tail = b',"logprobs":[]}\n\n' if has_logprobs else b"}\n\n"
        is_dear = has_logprobs and wants_logprobs(self._asked)
        for piece in split_text(text, self._reply.stream.split):
            if is_dear:
                tail = b',"logprobs":' + encode_json(text_logprobs(self._asked, piece)) + b"}\n\n"
            yield Send(head + b"%d" % self._number + middle + encode_json(piece) + tail, True)
            self._number += 1

    def _group(self, group: Group) -> Iterator[Item]:
        if not group.kind:
            for part in group.parts:
                yield from self._between(part)
            return
        first = group.parts[0] if group.parts else None
        if isinstance(first, ToolCall) and first.index is not None:
            self._index = first.index
        place: JsonObject = {"item_id": group.item["id"], "output_index": self._index}
        if group.call is not None:
            yield from self._call(group, group.call, place)
        elif group.kind == "message":
            yield from self._message(group, place)
        else:
            yield from self._reasoning(group, place)
        yield self._event("response.output_item.done", {"output_index": self._index, "item": group.item})
        self._index += 1

    def _added(self, item: JsonObject, *, is_piece: bool = False) -> Send:
        return self._event("response.output_item.added", {"output_index": self._index, "item": item}, is_piece=is_piece)

    def _call(self, group: Group, call: SaidCall, place: JsonObject) -> Iterator[Item]:
        yield self._added(call_item(group.kind, str(group.item["id"]), call, "", "in_progress"), is_piece=True)
        kind, field = (
            ("response.function_call_arguments", "arguments")
            if group.kind == "function_call"
            else ("response.custom_tool_call_input", "input")
        )
        yield from self._deltas(f"{kind}.delta", place, call.arguments)
        for part in group.parts[1:]:
            yield from self._between(part)
        yield self._event(f"{kind}.done", {**place, field: call.arguments})

    def _message(self, group: Group, place: JsonObject) -> Iterator[Item]:
        yield self._added({**group.item, "status": "in_progress", "content": []})
        whole = iter(runs(group.parts))
        kind, text = "", ""
        index = -1
        for part in group.parts:
            if not isinstance(part, Text | RefusalText):
                yield from self._between(part)
                continue
            here = "output_text" if isinstance(part, Text) else "refusal"
            if here != kind:
                if kind:
                    yield from self._part_done(kind, text, {**place, "content_index": index})
                kind, text = next(whole)
                index += 1
                opening = text_part(self._asked, kind, "")
                yield self._event("response.content_part.added", {**place, "content_index": index, "part": opening})
            spot: JsonObject = {**place, "content_index": index}
            yield from self._deltas(f"response.{kind}.delta", spot, part.text, has_logprobs=kind == "output_text")
        yield from self._part_done(kind, text, {**place, "content_index": index})

    def _part_done(self, kind: str, text: str, here: JsonObject) -> Iterator[Item]:
        part = text_part(self._asked, kind, text)
        if kind == "refusal":
            yield self._event("response.refusal.done", {**here, "refusal": text})
        else:
            yield self._event("response.output_text.done", {**here, "text": text, "logprobs": part["logprobs"]})
        yield self._event("response.content_part.done", {**here, "part": part})

    def _reasoning(self, group: Group, place: JsonObject) -> Iterator[Item]:
        if is_open(self._reply):
            kind, part_kind, part_event = "response.reasoning_text", "reasoning_text", "response.content_part"
            here: JsonObject = {**place, "content_index": 0}
            empty: JsonObject = {**group.item, "content": []}
        else:
            kind, part_kind = "response.reasoning_summary_text", "summary_text"
            part_event = "response.reasoning_summary_part"
            here = {**place, "summary_index": 0}
            empty = {**group.item, "summary": [], "encrypted_content": ""}
        yield self._added(empty)
        yield self._event(f"{part_event}.added", {**here, "part": {"type": part_kind, "text": ""}})
        for part in group.parts:
            if isinstance(part, Reasoning):
                yield from self._deltas(f"{kind}.delta", here, part.text)
            else:
                yield from self._between(part)
        text = "".join(part.text for part in group.parts if isinstance(part, Reasoning))
        yield self._event(f"{kind}.done", {**here, "text": text})
        yield self._event(f"{part_event}.done", {**here, "part": {"type": part_kind, "text": text}})

    def _between(self, part: Part) -> Iterator[Item]:
        """What the script puts between the pieces of the answer."""
        if isinstance(part, AtGate):
            yield Wait(part.name)
        elif isinstance(part, Break):
            yield Die(part.kind)
        elif isinstance(part, Malformed):
            data = part.text.encode("utf-8", "surrogatepass")
            yield Send(b"event: response.output_text.delta\ndata: " + data + b"\n\n", is_piece=True)
        elif isinstance(part, RawBytes):
            yield Send(part.data, is_piece=True)
        elif isinstance(part, Comment):
            yield Send(b": " + part.text.encode("utf-8", "replace") + b"\n\n")
        elif isinstance(part, ErrorEvent):
            error: JsonObject = {"code": part.code or "server_error", "message": part.message, "param": None}
            yield self._event("error", error, is_piece=True)
