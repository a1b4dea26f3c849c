"""Answers as HTTP/1.1 has them on the wire: heads, and whole answers with their head.

Room: pure; the connection and whoever writes for it come in.
Source: RFC 9112 sections 4, 5, 6.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from http import HTTPStatus
from typing import NamedTuple

from mock_provider.actions import Head
from mock_provider.filled import ID_LENGTH, Filled, Pattern

USUAL_HEADERS = 3
_PHRASES = {status.value: status.phrase for status in HTTPStatus}


class Framing(NamedTuple):
    """How the client wants it. Shape: has_chunks False is HTTP/1.0, which learns the end of a body from the close."""

    is_last: bool = False
    has_chunks: bool = True
    has_body: bool = True


def spell_head(head: Head, framing: Framing) -> bytes:
    """The head of an answer on the wire."""
    headers = head.headers
    if len(headers) == USUAL_HEADERS:  # those of every answer, and the request's id as the last
        before, after = _spell_usual(head.status, headers[:-1], headers[-1][0], head.length, framing)
        return b"%b%b%b" % (before, headers[-1][1].encode("latin-1", "replace"), after)
    return _spell(head.status, headers, head.length, framing).encode("latin-1", "replace")


def _spell(status: int, headers: Sequence[tuple[str, str]], length: int | None, framing: Framing) -> str:
    lines = [f"HTTP/1.1 {status} {_PHRASES.get(status, '')}"]
    lines += [f"{name}: {value}" for name, value in headers]
    if length is not None:
        lines.append(f"content-length: {length}")
    elif framing.has_chunks:
        lines.append("transfer-encoding: chunked")
    if framing.is_last:
        lines.append("connection: close")
    lines.append("\r\n")
    return "\r\n".join(lines)


@functools.lru_cache(maxsize=1024)
def _spell_usual(
    status: int, headers: tuple[tuple[str, str], ...], last: str, length: int | None, framing: Framing
) -> tuple[bytes, bytes]:
    """What stands before the value of the last header, and what after; only that differs between usual answers."""
    spelled = _spell(status, (*headers, (last, "\n")), length, framing)  # no header can hold a line end
    before, _, after = spelled.encode("latin-1", "replace").partition(b": \n")
    return before + b": ", after


def spell_filled(filled: Filled, framing: Framing) -> bytes:
    """A whole answer on the wire, with its head."""
    pattern, digits = filled.pattern, filled.digits
    template = pattern.spelled.get(framing) or _spell_pattern(pattern, framing)
    if pattern.offsets:
        counts = filled.counts
        size = pattern.spelled_bytes + len(pattern.count_format % counts)
        first = digits[: pattern.has_request_id]
        return template % (*first, size, *digits[len(first) :], *counts)
    return template % digits


_PLACE = b"\0" * ID_LENGTH  # no head and no JSON holds such a character


def cut_filled(pattern: Pattern, counted: int, framing: Framing) -> tuple[bytes, ...]:
    """A whole answer on the wire, cut where the digits of its ids belong. Shape: a place for them between two parts."""
    filled = Filled(pattern, (_PLACE,) * len(pattern.marks), counted)
    first, *others = spell_filled(filled, framing).split(_PLACE)
    cut = [first]
    for part in others:
        cut += (_PLACE, part)
    return tuple(cut)


def _spell_pattern(pattern: Pattern, framing: Framing) -> bytes:
    """A whole answer as a template for the digits of its ids, and where it tells counts for its length and for them."""
    head = _spell(pattern.head.status, pattern.head.headers, pattern.spelled_bytes, framing)
    if pattern.offsets:
        before, _, after = head.partition(f"\r\ncontent-length: {pattern.spelled_bytes}\r\n")
        head = f"{before}\r\ncontent-length: %d\r\n{after}"
    spelled = pattern.spelled[framing] = head.encode("ascii") + pattern.text
    return spelled
