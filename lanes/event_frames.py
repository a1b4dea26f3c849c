"""Binary event streams as a cassette holds them: each frame a line of JSON, and back to the same bytes.

Room: pure; interaction, cassette and recording come in. A line is `{"headers": {…}, "payload": …}`, the payload as JSON
where that spells the same bytes again, else as the text it was. Only headers that are text are known: streams of models
have no others. The mock provider's recorder reads frames by itself: cassettes are read without the product.
Source: Smithy, "Amazon Event Stream".
"""

from __future__ import annotations

import base64
import binascii
import json
import struct
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from lanes.normalize import Json

STREAM_TYPE = "application/vnd.amazon.eventstream"
DATA = "data: "
_TEXT = 7
_PRELUDE = struct.Struct(">III")
_CHECKSUM = struct.Struct(">I")
_SIZE = struct.Struct(">H")


@dataclass(frozen=True, slots=True)
class EventFrame:
    """One frame. Shape: headers in their order; payload is text."""

    headers: tuple[tuple[str, str], ...]
    payload: str

    def encoded(self) -> bytes:
        """The bytes of the frame, with both checksums."""
        spelled = b"".join(_encode_header(name, value) for name, value in self.headers)
        payload = self.payload.encode("utf-8")
        total = _PRELUDE.size + len(spelled) + len(payload) + _CHECKSUM.size
        lengths = struct.pack(">II", total, len(spelled))
        message = lengths + _CHECKSUM.pack(zlib.crc32(lengths)) + spelled + payload
        return message + _CHECKSUM.pack(zlib.crc32(message))

    def line(self) -> str:
        """The frame as a cassette spells it."""
        value = _json(self.payload)
        is_plain = isinstance(value, dict | list) and _spelled(value) == self.payload
        return _spelled({"headers": dict(self.headers), "payload": value if is_plain else self.payload})


def _encode_header(name: str, value: str) -> bytes:
    key, text = name.encode("utf-8"), value.encode("utf-8")
    return bytes((len(key),)) + key + bytes((_TEXT,)) + _SIZE.pack(len(text)) + text


def decode_frames(data: bytes) -> tuple[EventFrame, ...] | None:
    """The frames of a whole stream; None when one is damaged, or holds something that is no text."""
    frames: list[EventFrame] = []
    try:
        while data:
            total, spelled, checksum = _PRELUDE.unpack_from(data)
            begin, end = _PRELUDE.size + spelled, total - _CHECKSUM.size
            is_sound = begin <= end <= len(data) and zlib.crc32(data[:8]) == checksum
            if not is_sound or zlib.crc32(data[:end]) != _CHECKSUM.unpack_from(data, end)[0]:
                return None
            headers = _decode_headers(data[_PRELUDE.size : begin])
            frames.append(EventFrame(headers, data[begin:end].decode("utf-8")))
            data = data[total:]
    except (struct.error, IndexError, ValueError):
        return None
    return tuple(frames)


def _decode_headers(data: bytes) -> tuple[tuple[str, str], ...]:
    found: list[tuple[str, str]] = []
    while data:
        named = 1 + data[0]
        (size,) = _SIZE.unpack_from(data, named + 1)
        end = named + 1 + _SIZE.size + size
        if data[named] != _TEXT or end > len(data):
            raise ValueError("a header that is no text")
        found.append((data[1:named].decode("utf-8"), data[named + 1 + _SIZE.size : end].decode("utf-8")))
        data = data[end:]
    return tuple(found)


def spell_lines(frames: Sequence[EventFrame]) -> str:
    """The text of a cassette's body."""
    return "".join(f"{frame.line()}\n" for frame in frames)


def parse_lines(text: str) -> tuple[EventFrame, ...] | None:
    """The frames of such a text; None when a line is none."""
    frames: list[EventFrame] = []
    for line in text.removesuffix("\n").split("\n") if text else []:
        value = _json(line)
        headers = value.get("headers") if isinstance(value, dict) and set(value) == {"headers", "payload"} else None
        if not isinstance(headers, dict) or not all(isinstance(one, str) for one in headers.values()):
            return None
        payload = cast("dict[str, Json]", value)["payload"]
        listed = tuple(cast("dict[str, str]", headers).items())
        frames.append(EventFrame(listed, payload if isinstance(payload, str) else _spelled(payload)))
    return tuple(frames)


def clean_frames(frames: Sequence[EventFrame], clean: Callable[[str], str]) -> tuple[EventFrame, ...]:
    """The frames without what clean takes out of them.

    Shape: clean gets the payloads as a stream of events, in which a secret may come in fragments, and gives as many
    lines back. What a chunk holds in base64 is cleaned inside.
    """
    insides = [_inside(frame.payload) for frame in frames]
    shown = [frame.payload if inner is None else inner for frame, inner in zip(frames, insides, strict=True)]
    lines = clean("\n".join(DATA + text.replace("\n", " ") for text in shown)).split("\n") if shown else []
    cleaned: list[EventFrame] = []
    for frame, inner, text, line in zip(frames, insides, shown, lines, strict=True):
        told = line.removeprefix(DATA)
        if told == text.replace("\n", " "):
            cleaned.append(frame)
        elif inner is None:
            cleaned.append(EventFrame(frame.headers, told))
        else:
            held = base64.b64encode(told.encode("utf-8")).decode("ascii")
            cleaned.append(EventFrame(frame.headers, _spelled({"bytes": held})))
    return tuple(cleaned)


def _inside(payload: str) -> str | None:
    value = _json(payload)
    held = value.get("bytes") if isinstance(value, dict) else None
    if not isinstance(held, str):
        return None
    try:
        return base64.b64decode(held, validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return None


def _json(text: str) -> Json:
    try:
        value: Json = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value


def _spelled(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
