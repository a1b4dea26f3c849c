"""Split server-sent events off a byte stream.

Room: pure; knows no dialect. Who needs a socket is in the wrong room.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from harness.errors import PeerError

MAX_EVENT_BYTES = 1 << 20  # a peer that never ends its event must not fill memory; 64 times h11's 16 KiB for headers

# Only these end a line. str.splitlines and HTTP line iterators also cut at U+2028, U+2029 and U+0085.
_LINE_END = re.compile(rb"\r\n?|\n")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class SseEvent:
    """One dispatched event; id is the last id the stream gave, on this event or before it."""

    event: str
    data: str
    id: str = ""


class SseDecoder:
    """Turn bytes into events, in whatever pieces they arrive.

    Shape: feed(bytes) returns the events completed by these bytes, oldest first; a partial event is kept. Bytes
    become text only when their line is complete; what is not UTF-8 becomes U+FFFD. comments counts the comment
    lines so far: they carry nothing, and they show that the peer is alive.
    Limits: one event up to MAX_EVENT_BYTES, comments not counted.
    Raises: PeerError naming the byte where the too long event begins, after the events before it were returned.
    Source: WHATWG HTML, "Server-sent events", parsing. The end mark `[DONE]` is the chat dialect's, not SSE's.
    """

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self.comments = 0
        self._max_event_bytes = max_event_bytes
        self._line = bytearray()
        self._after_cr = False
        self._first_line = True
        self._offset = 0
        self._event_offset = 0
        self._event_bytes = 0
        self._event = ""
        self._data: list[str] = []
        self._last_id = ""
        self._broken: PeerError | None = None

    def feed(self, data: bytes) -> tuple[SseEvent, ...]:
        """Take the next bytes and return the events they complete."""
        if self._broken is not None:
            raise self._broken
        events: list[SseEvent] = []
        position = 0
        if self._after_cr and data:
            self._after_cr = False
            if data.startswith(b"\n"):
                position = 1
                self._event_offset += self._event_offset == self._offset
        try:
            for match in _LINE_END.finditer(data, position):
                line = data[position : match.start()]
                if self._line:
                    self._line += line
                    line = bytes(self._line)
                    self._line.clear()
                position = match.end()
                self._after_cr = position == len(data) and data.endswith(b"\r")
                event = self._take_line(line, self._offset + position)
                if event is not None:
                    events.append(event)
            self._line += data[position:]
            self._offset += len(data)
            self._hold_line()
        except PeerError as error:
            self._broken = error
            if not events:
                raise
        return tuple(events)

    def end(self) -> None:
        """The stream ended: what was not ended by a blank line is no event and is dropped.

        Raises: PeerError when the limit was passed and no later feed said so.
        """
        if self._broken is not None:
            raise self._broken

    def _take_line(self, line: bytes, end_offset: int) -> SseEvent | None:
        if self._first_line:
            self._first_line = False
            line = line.removeprefix(_BYTE_ORDER_MARK)
        if not line:
            event = SseEvent(self._event or "message", "\n".join(self._data), self._last_id) if self._data else None
            self._start_event(end_offset)
            return event
        if line.startswith(b":"):
            self.comments += 1
            return None
        self._check_size(len(line))
        self._event_bytes += len(line)
        name, _, value = line.decode("utf-8", "replace").partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._event = value
        elif name == "id" and "\0" not in value:
            self._last_id = value
        return None

    def _start_event(self, offset: int) -> None:
        self._event = ""
        self._data.clear()
        self._event_offset = offset
        self._event_bytes = 0

    def _hold_line(self) -> None:
        if self._first_line and self._line.startswith(_BYTE_ORDER_MARK):
            self._first_line = False
            del self._line[: len(_BYTE_ORDER_MARK)]
        if self._line.startswith(b":"):
            del self._line[1:]  # nobody reads it, so an endless comment costs no memory
        self._check_size(len(self._line))

    def _check_size(self, line_bytes: int) -> None:
        if self._event_bytes + line_bytes > self._max_event_bytes:
            raise PeerError(
                f"the event that begins at byte {self._event_offset} is longer than {self._max_event_bytes} bytes",
                where="event stream",
                expected="an event ended by a blank line within the limit",
                code="EVENT_TOO_LONG",
            )
