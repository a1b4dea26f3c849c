"""The bytes of request bodies whose messages are those of the body before and a few more.

Room: pure; the provider's shell keeps one for each model it reaches. What is kept can be thrown away at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from harness.errors import InternalError
from harness.model.call import ModelRequest
from harness.model.messages import Json, JsonObject, Message
from harness.model.view import MessageView
from harness.wire.json_text import encode_json

EncodeRequest = Callable[[ModelRequest], JsonObject]


class Growth(NamedTuple):
    """How the body of a dialect grows.

    Shape: list_name is the body's field that holds the messages, what comes from elsewhere in front of them.
    settled(messages, first, provider) gives a position from first on: the messages between the two are encoded
    alone as they are among all others, and no later message changes that.
    """

    list_name: str
    settled: Callable[[Sequence[Message], int, str], int]


class GrowingBody:
    """Encode one request after the other; the same bytes as encoding each one whole.

    Shape: what a view of a growing list had in common with the request before is not encoded again, and its bytes are
    kept; everything else starts anew. An error of the encoder passes through and leaves nothing half kept.
    Limits: time is that of the new messages, and copying the kept bytes once; memory is one body.
    """

    def __init__(self, encode_request: EncodeRequest, growth: Growth) -> None:
        self._encode_request = encode_request
        self._list_name, self._settled_in = growth
        self._frame: ModelRequest | None = None  # the last request without its messages
        self._head = self._tail = b""  # the body's bytes around the messages
        self._opened = False  # whether an entry of the list stands in the head already
        self._last: MessageView | None = None
        self._settled = 0
        self._kept = bytearray()

    def encode(self, request: ModelRequest) -> bytes:
        """The body of this request."""
        messages = request.messages
        frame = replace(request, messages=())
        if frame != self._frame:
            self._set_frame(frame)
        elif not self._goes_on(messages):
            self._forget()
        settled = self._settled_in(messages, self._settled, request.provider)
        self._kept += self._entries(frame, messages[self._settled : settled])
        self._last = messages if isinstance(messages, MessageView) else None
        self._settled = settled
        return b"".join((self._head, self._kept, self._entries(frame, messages[settled:]), self._tail))

    def _goes_on(self, messages: Sequence[Message]) -> bool:
        return self._last is not None and isinstance(messages, MessageView) and messages.extends(self._last)

    def _set_frame(self, frame: ModelRequest) -> None:
        self._frame = None
        self._forget()
        body = self._encode_request(frame)
        entries = _list_in(body, self._list_name)
        names = sorted(body)
        at = names.index(self._list_name)
        before = b"".join(_field(name, body[name]) + b"," for name in names[:at])
        after = b"".join(b"," + _field(name, body[name]) for name in names[at + 1 :])
        self._head = b"{" + before + _field(self._list_name, entries)[:-1]
        self._tail = b"]" + after + b"}"
        self._opened = bool(entries)
        self._frame = frame

    def _forget(self) -> None:
        self._last, self._settled, self._kept = None, 0, bytearray()

    def _entries(self, frame: ModelRequest, messages: Sequence[Message]) -> bytes:
        """The bytes of these messages alone, with the commas that what stands before them makes necessary."""
        if not messages:
            return b""
        alone = replace(frame, messages=tuple(messages), system=None, tools=())
        entries = _list_in(self._encode_request(alone), self._list_name)
        if not entries:
            return b""
        text = encode_json(entries)[1:-1]
        return b"," + text if self._opened or self._kept else text


def _field(name: str, value: Json) -> bytes:
    return encode_json(name) + b":" + encode_json(value)


def _list_in(body: JsonObject, name: str) -> list[Json] | tuple[Json, ...]:
    entries = body[name]
    if not isinstance(entries, list | tuple):
        raise InternalError(f"{name} is no list in this dialect", where="request body")
    return entries
