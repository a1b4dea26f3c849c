"""Binary event streams in a recording: each frame a line of JSON that a person can read, and back again.

Room: pure; the recording comes in.
Source: as dialects.bedrock_frames, which writes frames. A line is `{"headers": {…}, "payload": …}`, the payload as JSON
where that spells the same bytes again, else as the text it was.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mock_provider.dialects.bedrock_frames import frame
from mock_provider.json_values import Json, JsonObject
from mock_provider.recording.said import a_text, an_object, read_json

STREAM_TYPE = "application/vnd.amazon.eventstream"
_TEXT = 7  # the type of a header that is text; streams of models have no others
_PRELUDE = struct.Struct(">III")
_NUMBER = struct.Struct(">I")
_SHORT = struct.Struct(">H")


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame. Shape: headers in their order; payload is text."""

    headers: tuple[tuple[str, str], ...]
    payload: str

    def header(self, name: str) -> str:
        """The value of a header, empty when there is none."""
        return next((value for key, value in self.headers if key == name), "")


def read_frames(data: bytes) -> list[Frame] | None:
    """The frames of a whole stream; None when one is damaged, or holds something that is no text."""
    frames: list[Frame] = []
    at = 0
    while at < len(data):
        if len(data) - at < _PRELUDE.size + _NUMBER.size:
            return None
        total, spelled, checksum = _PRELUDE.unpack_from(data, at)
        whole, end = data[at : at + total], at + total
        begin = _PRELUDE.size + spelled
        is_sound = end <= len(data) and total >= begin + _NUMBER.size and zlib.crc32(whole[:8]) == checksum
        if not is_sound or zlib.crc32(whole[:-4]) != _NUMBER.unpack(whole[-4:])[0]:
            return None
        headers = _read_headers(whole[_PRELUDE.size : begin])
        try:
            payload = whole[begin:-4].decode("utf-8")
        except UnicodeDecodeError:
            return None
        if headers is None:
            return None
        frames.append(Frame(headers, payload))
        at = end
    return frames


def _read_headers(data: bytes) -> tuple[tuple[str, str], ...] | None:
    found: list[tuple[str, str]] = []
    at = 0
    try:
        while at < len(data):
            name_end = at + 1 + data[at]
            (size,) = _SHORT.unpack_from(data, name_end + 1)
            end = name_end + 3 + size
            if data[name_end] != _TEXT or end > len(data):
                return None
            found.append((data[at + 1 : name_end].decode("utf-8"), data[name_end + 3 : end].decode("utf-8")))
            at = end
    except (IndexError, struct.error, UnicodeDecodeError):
        return None
    return tuple(found)


def spell_frames(frames: Iterable[Frame]) -> str:
    """The lines of a stream."""
    return "".join(f"{_spell(_line(one))}\n" for one in frames)


def _line(one: Frame) -> JsonObject:
    value = read_json(one.payload)
    is_plain = isinstance(value, dict | list) and _spell(value) == one.payload
    headers: JsonObject = dict(one.headers)
    return {"headers": headers, "payload": value if is_plain else one.payload}


def _spell(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def parse_frames(text: str) -> list[Frame]:
    """The frames that lines spell."""
    return [_frame(an_object(read_json(line))) for line in text.split("\n") if line]


def _frame(line: JsonObject) -> Frame:
    payload = line.get("payload")
    headers = tuple((name, a_text(value)) for name, value in an_object(line.get("headers")).items())
    return Frame(headers, payload if isinstance(payload, str) else _spell(payload))


def encode_frames(frames: Sequence[Frame]) -> list[bytes]:
    """The bytes of each frame."""
    return [frame(one.headers, one.payload.encode("utf-8")) for one in frames]
