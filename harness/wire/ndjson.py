"""One JSON object a line: bytes to frames and back.

Room: pure; the stdio surfaces and their clients may come in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from harness.errors import PeerError
from harness.model.messages import JsonObject
from harness.wire.json_text import encode_json, parse_json

_MARK = b"\xef\xbb\xbf"
_OBJECT = re.compile(rb"(?:\xef\xbb\xbf)?[ \t\r\n]*\{")
MAX_LINE_BYTES = 128 << 20  # one picture in base64 fits many times; an endless line stays bounded


@dataclass(frozen=True, slots=True)
class DroppedLine:
    """A line longer than the limit; it was dropped up to its newline and framing goes on.

    Units: limit_bytes is the limit it passed, without the newline.
    """

    limit_bytes: int


class LineSplitter:
    """Cut bytes into lines at LF, in whatever pieces they arrive.

    Shape: feed(bytes) returns the lines completed by these bytes, without their newline, oldest first. A too long
    line gives one DroppedLine as soon as the limit is passed. There is no end(): a last line without its newline is
    not processed.
    Limits: one line up to max_line_bytes, newline not counted; no more than that is ever held.
    """

    def __init__(self, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._max_line_bytes = max_line_bytes
        self._held = bytearray()
        self._dropping = False

    @property
    def is_between_lines(self) -> bool:
        """Whether the next byte begins a line."""
        return not self._held and not self._dropping

    def feed(self, data: bytes) -> tuple[bytes | DroppedLine, ...]:
        """Take the next bytes and return the lines they complete."""
        lines: list[bytes | DroppedLine] = []
        position = 0
        while True:
            end = data.find(b"\n", position)
            piece = data[position : len(data) if end < 0 else end]
            if not self._dropping and len(self._held) + len(piece) > self._max_line_bytes:
                self._dropping = True
                self._held = bytearray()
                lines.append(DroppedLine(self._max_line_bytes))
            if end < 0:
                if not self._dropping:
                    self._held += piece
                return tuple(lines)
            if not self._dropping:
                lines.append(bytes(self._held) + piece if self._held else piece)
            self._held = bytearray()
            self._dropping = False
            position = end + 1


class NdjsonDecoder:
    """Turn bytes into JSON objects, one a line.

    Shape: feed(bytes) returns the frames completed by these bytes, oldest first, and a DroppedLine for each too long
    line. Blank lines, malformed lines and lines that hold no object are left out in silence.
    """

    def __init__(self, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._max_line_bytes = max_line_bytes
        self._lines = LineSplitter(max_line_bytes)

    def feed(self, data: bytes) -> tuple[JsonObject | DroppedLine, ...]:
        """Take the next bytes and return the frames they complete."""
        if b"{" not in data and len(data) <= self._max_line_bytes and self._lines.is_between_lines:
            data = data[data.rfind(b"\n") + 1 :]  # a flood of noise: no line of it can hold an object
        frames: list[JsonObject | DroppedLine] = []
        for line in self._lines.feed(data):
            frame = line if isinstance(line, DroppedLine) else decode_frame(line)
            if frame is not None:
                frames.append(frame)
        return tuple(frames)


def decode_frame(line: bytes) -> JsonObject | None:
    """The object on this line; None when the line is blank, malformed or holds anything else.

    A byte order mark in front and a CR at the end are ignored.
    """
    if _OBJECT.match(line) is None:  # a flood of noise costs a look at the beginning of each line
        return None
    try:
        value = parse_json(line.removeprefix(_MARK))
    except PeerError:
        return None
    return value if isinstance(value, Mapping) else None


def encode_frame(frame: JsonObject) -> bytes:
    """One frame as a line: ASCII only, ended by LF, so that no reader finds another line end in it.

    Raises: ValueError for numbers that are not finite; nothing half-written can leave.
    """
    return encode_json(frame) + b"\n"
