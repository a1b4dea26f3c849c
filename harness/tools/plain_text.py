r"""Turn bytes and names from the outside into text that any log, wire and terminal can hold.

Room: pure; every tool may come in.
"""

from __future__ import annotations

import re

_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_LINE_ENDS = re.compile(r"[\t\n\r]")
_SHOWN = re.compile(r"\\x(0[1-9a-f]|1[0-9a-f]|7f|[89a-f][0-9a-f])")
_CONTINUATION = 0b10


def _escaped(match: re.Match[str]) -> str:
    code = ord(match.group())
    if 0xDC80 <= code <= 0xDCFF:  # how surrogateescape carries a byte that is not UTF-8
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _unescaped(match: re.Match[str]) -> str:
    code = int(match.group(1), 16)
    return chr(code if code < 0x80 else code + 0xDC00)


def printable(text: str) -> str:
    r"""The text with control characters and lone surrogates spelled as \xNN or \uNNNN; tab and line ends stay."""
    return _UNPRINTABLE.sub(_escaped, text)


def printable_name(name: str) -> str:
    r"""The name of a file in one line: as printable does it, and tab and line ends spelled \xNN too."""
    return printable(_LINE_ENDS.sub(_escaped, name))


def name_of_printable(shown: str) -> str:
    r"""The name that printable_name showed; an \xNN that it would not have written stays as it is."""
    return _SHOWN.sub(_unescaped, shown)


def decode_output(data: bytes) -> tuple[str, bool]:
    r"""Bytes of a command as text, and whether they were plain text.

    Shape: what is not UTF-8, and every control character but tab, newline and carriage return, is spelled \xNN.
    """
    raw = data.decode("utf-8", "surrogateescape")
    text = printable(raw)
    return text, text == raw


def is_binary(data: bytes) -> bool:
    """Whether a file of these bytes cannot be shown as text: a NUL, or not UTF-8."""
    if b"\0" in data:
        return True
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return True
    return False


def whole_characters(head: bytes, tail: bytes) -> tuple[bytes, bytes]:
    """The two pieces left of a cut, without the parts of a character the cut went through."""
    for length in range(1, min(4, len(head)) + 1):
        lead = head[-length]
        if lead >> 6 == _CONTINUATION:
            continue
        needed = 4 if lead >= 0xF0 else 3 if lead >= 0xE0 else 2 if lead >= 0xC0 else 1
        if needed > length:
            head = head[:-length]
        break
    start = 0
    while start < min(3, len(tail)) and tail[start] >> 6 == _CONTINUATION:
        start += 1
    return head, tail[start:]
