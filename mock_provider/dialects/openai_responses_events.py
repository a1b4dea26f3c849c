"""A reply as the events of a Responses stream.

Room: pure; the Responses dialect comes in.
Source: the provider's published API reference, "Streaming events"; every event carries its number in the stream.
"""

from __future__ import annotations

from collections.abc import Sequence

from mock_provider.asked import Asked
from mock_provider.dialects.codec import Reply
from mock_provider.dialects.openai_responses_output import (
    Ending,
    Group,
    arrange,
    call_item,
    ending_of,
    is_open,
    response_object,
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
)


def write_events(asked: Asked, reply: Reply) -> Sequence[Item]:
    """Write an answer as events: the response opens, its items come one by one, the finished response ends it."""
    return _Writer(asked, reply).items()


class _Writer:
    """Writes the events of one response, counting them."""

    def __init__(self, asked: Asked, reply: Reply) -> None:
        self._asked = asked
        self._reply = reply
        self._items: list[Item] = []
        self._number = 0
        self._index = 0

    def items(self) -> list[Item]:
        """All events."""
        asked, reply = self._asked, self._reply
        if asked.body.get("background") is True:
            queued = response_object(asked, reply, Ending("queued"), [], None)
            self._event("response.created", {"response": queued})
            self._event("response.queued", {"response": queued})
        opening = response_object(asked, reply, Ending("in_progress"), [], None)
        if not self._items:
            self._event("response.created", {"response": opening})
        self._event("response.in_progress", {"response": opening})
        groups = arrange(asked, reply)
        for group in groups:
            self._group(group)
        ending = ending_of(reply)
        if ending.status is not None:
            output: list[Json] = [group.item for group in groups if group.item]
            closing = response_object(asked, reply, ending, output, reply.counts)
            for _ in range(reply.stream.end_marks):
                self._event(f"response.{ending.status}", {"response": closing})
        return self._items

    def _event(self, kind: str, fields: JsonObject, *, is_piece: bool = False) -> None:
        data = encode_json({"type": kind, "sequence_number": self._number, **fields})
        self._number += 1
        self._items.append(Send(b"event: " + kind.encode("ascii", "replace") + b"\ndata: " + data + b"\n\n", is_piece))

    def _deltas(self, kind: str, place: JsonObject, text: str, *, has_logprobs: bool = False) -> None:
        """One event a piece; what all of them share is spelled once."""
        head = f'event: {kind}\ndata: {{"type":"{kind}","sequence_number":'.encode("ascii")
        middle = b"," + encode_json(place)[1:-1] + b',"delta":'
        tail = b',"logprobs":[]}\n\n' if has_logprobs else b"}\n\n"
        is_dear = has_logprobs and wants_logprobs(self._asked)
        for piece in split_text(text, self._reply.stream.split):
            if is_dear:
                tail = b',"logprobs":' + encode_json(text_logprobs(self._asked, piece)) + b"}\n\n"
            number = str(self._number).encode("ascii")
            self._items.append(Send(head + number + middle + encode_json(piece) + tail, is_piece=True))
            self._number += 1

    def _group(self, group: Group) -> None:
        if not group.kind:
            for part in group.parts:
                self._between(part)
            return
        place: JsonObject = {"item_id": group.item["id"], "output_index": self._index}
        if group.call is not None:
            self._call(group, place)
        elif group.kind == "message":
            self._message(group, place)
        else:
            self._reasoning(group, place)
        self._event("response.output_item.done", {"output_index": self._index, "item": group.item})
        self._index += 1

    def _added(self, item: JsonObject, *, is_piece: bool = False) -> None:
        self._event("response.output_item.added", {"output_index": self._index, "item": item}, is_piece=is_piece)

    def _call(self, group: Group, place: JsonObject) -> None:
        call = group.call
        if call is None:
            return
        opening = call_item(group.kind, str(group.item["id"]), call, "", "in_progress")
        self._added(opening, is_piece=True)
        kind, field = (
            ("response.function_call_arguments", "arguments")
            if group.kind == "function_call"
            else ("response.custom_tool_call_input", "input")
        )
        self._deltas(f"{kind}.delta", place, call.arguments)
        for part in group.parts[1:]:
            self._between(part)
        self._event(f"{kind}.done", {**place, field: call.arguments})

    def _message(self, group: Group, place: JsonObject) -> None:
        self._added({**group.item, "status": "in_progress", "content": []})
        open_kind = ""
        said: list[str] = []
        index = -1

        def close() -> None:
            if open_kind:
                self._part_done(open_kind, "".join(said), {**place, "content_index": index})
                said.clear()

        for part in group.parts:
            if not isinstance(part, Text | RefusalText):
                self._between(part)
                continue
            kind = "output_text" if isinstance(part, Text) else "refusal"
            if kind != open_kind:
                close()
                open_kind, index = kind, index + 1
                opening = text_part(self._asked, kind, "")
                self._event("response.content_part.added", {**place, "content_index": index, "part": opening})
            said.append(part.text)
            is_text = kind == "output_text"
            here: JsonObject = {**place, "content_index": index}
            self._deltas(f"response.{kind}.delta", here, part.text, has_logprobs=is_text)
        close()

    def _part_done(self, kind: str, text: str, here: JsonObject) -> None:
        part = text_part(self._asked, kind, text)
        if kind == "refusal":
            self._event("response.refusal.done", {**here, "refusal": text})
        else:
            self._event("response.output_text.done", {**here, "text": text, "logprobs": part["logprobs"]})
        self._event("response.content_part.done", {**here, "part": part})

    def _reasoning(self, group: Group, place: JsonObject) -> None:
        is_plain = is_open(self._reply)
        if is_plain:
            kind, part_kind, here = "response.reasoning_text", "reasoning_text", {**place, "content_index": 0}
            part_event = "response.content_part"
            empty: JsonObject = {**group.item, "content": []}
        else:
            kind, part_kind, here = "response.reasoning_summary_text", "summary_text", {**place, "summary_index": 0}
            part_event = "response.reasoning_summary_part"
            empty = {**group.item, "summary": [], "encrypted_content": ""}
        self._added(empty)
        self._event(f"{part_event}.added", {**here, "part": {"type": part_kind, "text": ""}})
        said: list[str] = []
        for part in group.parts:
            if isinstance(part, Reasoning):
                said.append(part.text)
                self._deltas(f"{kind}.delta", here, part.text)
            else:
                self._between(part)
        text = "".join(said)
        self._event(f"{kind}.done", {**here, "text": text})
        self._event(f"{part_event}.done", {**here, "part": {"type": part_kind, "text": text}})

    def _between(self, part: Part) -> None:
        """What the script puts between the pieces of the answer."""
        if isinstance(part, AtGate):
            self._items.append(Wait(part.name))
        elif isinstance(part, Break):
            self._items.append(Die(part.kind))
        elif isinstance(part, Malformed):
            data = part.text.encode("utf-8", "surrogatepass")
            self._items.append(Send(b"event: response.output_text.delta\ndata: " + data + b"\n\n", is_piece=True))
        elif isinstance(part, RawBytes):
            self._items.append(Send(part.data, is_piece=True))
        elif isinstance(part, Comment):
            self._items.append(Send(b": " + part.text.encode("utf-8", "replace") + b"\n\n"))
        elif isinstance(part, ErrorEvent):
            error: JsonObject = {"code": part.code or "server_error", "message": part.message, "param": None}
            self._event("error", error, is_piece=True)
