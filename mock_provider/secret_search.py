"""Searching documents, as they are spelled, for what may be a secret: nearly as fast as memory is read.

Room: pure; removing secrets comes in, with documents that mostly have none.
Whether one rare character is there at all is found out twenty times as fast as whether a word is.
What is found here may still turn out harmless; what is not found is not there.
"""

from __future__ import annotations

import re

MAX_SHORT_BYTES = 256  # which a pattern goes through as fast as several characters are looked for
MIN_LONG_BYTES = 12  # longer words are searched for in steps of their length, which needs no help
# Characters of requests, mostly prose and JSON, the most frequent first; all others are rarer.
_FREQUENT = b'etaoinsrhldcumfpgwybvk",:.{}_0123456789-/ETAOINSRHLDCUMFPGWYBVKxjqz()\\'

# What no document with a secret of a known form, as spelled, can do without: a character, and a word with it. A pattern
# that begins with several plain characters is found several times as fast as one that begins with a common one.
_SEALS = tuple(
    (character, re.compile(pattern))
    for character, pattern in (
        (b"-", rb"sk-"),
        (b"-", rb"xox[abp]-"),
        (b"_", rb"gh[opsu]_"),
        (b"J", rb"eyJ"),
        (b"K", rb"AKIA"),
        (b"z", rb"AIza"),
        (b"\\", rb"\\u00"),  # escapes that can spell a character of a form or of a value; others cannot
        (b"/", rb"\\/"),
        (b"B", rb"B(?i:earer|asic)"),
        (b"b", rb"b(?i:earer|asic)"),
    )
)


def may_have_form(data: bytes) -> bool:
    """Whether a document, as spelled, may have a secret by its form."""
    for character, seal in _SEALS:  # noqa: SIM110 - in every request's way, where a generator would cost as much
        # `in` would make an exception of each look, and take three times as long.
        if data.find(character) >= 0 and seal.search(data):
            return True
    return False


class Finder:
    """Looks for some values. Shape: none of them is empty."""

    __slots__ = ("_telling", "_values")

    def __init__(self, values: tuple[bytes, ...]) -> None:
        needed = [value for value in values if not any(other != value and other in value for other in values)]
        self._values = tuple((_rarest(value), value) for value in dict.fromkeys(needed))
        single = (_rarest_character(value) for value in needed)
        telling = b"".join({*single, *(character for character, _ in _SEALS)})
        self._telling = re.compile(b"[%b]" % re.escape(telling))

    def is_plain(self, data: bytes) -> bool:
        """Whether this is short, and has no character without which there is no value and no secret by its form."""
        return len(data) <= MAX_SHORT_BYTES and not self._telling.search(data)

    def may_find(self, data: bytes) -> bool:
        """Whether one of the values, or a secret by its form, may be there; at once for a short text of plain words."""
        if self.is_plain(data):
            return False
        return self.finds(data) or may_have_form(data)

    def finds(self, data: bytes) -> bool:
        """Whether one of the values is there."""
        for rarest, value in self._values:  # noqa: SIM110 - as above
            if data.find(rarest) >= 0 and data.find(value) >= 0:
                return True
        return False


def _rarest(value: bytes) -> bytes:
    """What of a value is found, or found missing, the fastest: one character, but all of a long one."""
    return value if len(value) >= MIN_LONG_BYTES else _rarest_character(value)


def _rarest_character(value: bytes) -> bytes:
    """The character of a value that others have the least."""
    places = [_FREQUENT.find(character) for character in value]
    at = max(range(len(value)), key=lambda at: places[at] if places[at] >= 0 else len(_FREQUENT))
    return value[at : at + 1]
