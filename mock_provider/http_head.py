"""The head of an HTTP/1.1 request, read strictly: what two readers could take for two things is refused.

Room: pure; the connection comes in. Cutting the lines is a library's, h11 or httptools; what may stand in them is ours,
so that both lead to the same answer.
Source: RFC 9112 sections 2.2, 3, 5, 6.1 to 6.3, 7.1; RFC 9110 section 7.2.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

HeaderLines: TypeAlias = "list[tuple[bytes, bytes]]"
CutLines: TypeAlias = "Callable[[bytes], HeaderLines]"  # a whole head → its headers; ValueError when it is none

HEAD_END = b"\r\n\r\n"
METHODS = frozenset({b"GET", b"HEAD", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS"})
MAX_LENGTH_DIGITS = 18  # more would be over any limit, and over what 64 bits hold
MAX_CHUNK_LINE_BYTES = 4096  # a size, and extensions that nobody sends
_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([\x21-\x7e]+) HTTP/([0-9])\.([0-9])\r\n")
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)|(?<!\r)\n|\r\n[ \t]")
_LENGTH = re.compile(rb"\r\ncontent-length[ \t]*:", re.IGNORECASE)
_CODING = re.compile(rb"\r\ntransfer-encoding[ \t]*:[ \t]*([^\r]*)", re.IGNORECASE)
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[\t\x20-\x7e\x80-\xff]*)?")


class FramingError(Exception):
    """Bytes that are no request of HTTP/1.1, or one that is not spoken here. Shape: status is the answer's."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


@dataclass(frozen=True, slots=True)
class RequestHead:
    """A request without its body.

    Shape: header names in lower case, repeated ones joined. length_bytes None means a body in chunks. is_last says that
    the connection is not to be used again, is_modern that the client knows chunks.
    """

    method: str
    target: str
    headers: Mapping[str, str]
    length_bytes: int | None
    is_modern: bool
    is_last: bool
    expects_go_on: bool


def read_head(block: bytes, cut_lines: CutLines) -> RequestHead:
    """Read a head, the empty line included. Raises: FramingError."""
    line = _LINE.match(block)
    if line is None or _CONTROL.search(block):
        raise FramingError(400)
    method, target, major, minor = line.groups()
    if major != b"1":
        raise FramingError(505)
    if method not in METHODS:
        raise FramingError(501)
    if not target.startswith((b"/", b"http://", b"https://")):
        raise FramingError(400)
    is_modern = minor != b"0"
    codings = _CODING.findall(block)
    lengths = len(_LENGTH.findall(block))
    if codings and (codings[0].strip().lower() != b"chunked" or len(codings) > 1):
        raise FramingError(501)
    if lengths > 1 or (codings and (lengths or not is_modern)):
        raise FramingError(400)
    try:
        lines = cut_lines(block)
    except ValueError:
        raise FramingError(400) from None
    hosts = 0
    headers: dict[str, str] = {}
    for raw_name, raw_value in lines:
        name, value = raw_name.decode("ascii").lower(), raw_value.strip(b" \t").decode("latin-1")
        hosts += name == "host"
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    if hosts > 1 or (is_modern and not hosts):
        raise FramingError(400)
    length = headers.get("content-length", "0")
    if not length.isascii() or not length.isdigit() or len(length) > MAX_LENGTH_DIGITS:
        raise FramingError(400)
    options = [option.strip() for option in headers.get("connection", "").lower().split(",")]
    return RequestHead(
        method=method.decode("ascii"),
        target=target.decode("ascii"),
        headers=headers,
        length_bytes=None if codings else int(length),
        is_modern=is_modern,
        is_last=not is_modern or "close" in options,
        expects_go_on=is_modern and headers.get("expect", "").lower() == "100-continue",
    )


class ChunkedBody:
    """A body in chunks, in whatever pieces it arrives. Limits: limit_bytes for the content; trailers are dropped."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._parts: list[bytes] = []
        self._rest = b""
        self._wanted = -1  # bytes of this chunk still to come, with its line end; -1: a line with a size
        self._is_ending = False
        self.size_bytes = 0

    @property
    def is_too_large(self) -> bool:
        """Whether it is over the limit."""
        return self.size_bytes > self._limit_bytes

    def content(self) -> bytes:
        """Everything so far."""
        return b"".join(self._parts)

    def feed(self, data: bytes) -> bytes | None:
        """Take bytes. Shape: what came after the body, None while it goes on. Raises: FramingError."""
        data = self._rest + data
        at = 0
        while not self.is_too_large:
            if self._wanted > 0:
                part = data[at : at + self._wanted]
                at += len(part)
                self._wanted -= len(part)
                self._parts.append(part)
                if self._wanted:
                    break
                self._close_chunk()
                continue
            end = data.find(b"\n", at, at + MAX_CHUNK_LINE_BYTES)
            if end < 0:
                if len(data) - at >= MAX_CHUNK_LINE_BYTES:
                    raise FramingError(400)
                break
            line = data[at : end + 1]
            at = end + 1
            if not line.endswith(b"\r\n"):
                raise FramingError(400)
            if self._take_line(line[:-2]):
                return data[at:]
        self._rest = data[at:] if at < len(data) else b""
        return None

    def _take_line(self, line: bytes) -> bool:
        """Read a line between chunks. Shape: whether it was the last one of the body."""
        if self._is_ending:
            if line and _CONTROL.search(line):
                raise FramingError(400)
            return not line
        size = _CHUNK.fullmatch(line)
        if size is None:
            raise FramingError(400)
        count = int(size.group(1), 16)
        self._is_ending = count == 0
        self.size_bytes += count
        self._wanted = count + 2 if count else -1
        return False

    def _close_chunk(self) -> None:
        """Take the line end off the chunk that is complete."""
        self._wanted = -1
        tail = self._parts.pop()
        if len(tail) == 1:  # it came in two pieces
            tail = self._parts.pop() + tail
        if not tail.endswith(b"\r\n"):
            raise FramingError(400)
        self._parts.append(tail[:-2])


def cut_with_h11(block: bytes) -> HeaderLines:
    """Cut a head into its headers with h11, which httpx brings along. Raises: ValueError."""
    import h11

    reader = h11.Connection(h11.SERVER, max_incomplete_event_size=len(block) + 1)
    try:
        reader.receive_data(block)
        event = reader.next_event()
    except h11.RemoteProtocolError as error:
        raise ValueError(str(error)) from None
    if not isinstance(event, h11.Request):
        raise ValueError("no request")
    return list(event.headers)


class _Lines:
    """What httptools calls while it reads a head."""

    def __init__(self) -> None:
        self.lines: HeaderLines = []

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header."""
        self.lines.append((name, value))


def cut_with_httptools(block: bytes) -> HeaderLines:
    """Cut a head into its headers with httptools, which is several times as fast. Raises: ValueError."""
    import httptools

    found = _Lines()
    try:
        httptools.HttpRequestParser(found).feed_data(block)
    except httptools.HttpParserUpgrade:
        pass  # a wish that we do not grant; the head was read
    except httptools.HttpParserError as error:
        raise ValueError(str(error)) from None
    return found.lines
