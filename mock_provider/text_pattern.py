"""Regular expressions of a script, held to a time: one that goes astray fails its request instead of the server.

Room: pure; the conditions come in. The standard library cannot stop a match that has begun, and looking at a pattern
does not tell which texts it is slow on; see docs/decisions/0009-regular-expressions-are-timed.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Protocol, cast

MAX_MATCH_S = 0.25  # a sound pattern takes a thousandth of it on a whole conversation; others wait this long once


class _Match(Protocol):
    def groupdict(self) -> dict[str, str | None]: ...


class _Compiled(Protocol):
    groupindex: Mapping[str, int]

    def search(self, text: str, *, timeout: float) -> _Match | None: ...


class PatternError(ValueError):
    """No regular expression; the text says why."""


class PatternTooSlow(Exception):  # noqa: N818 - deciding makes an answer of it, with a code of its own
    """A match that took too long. Shape: pattern as in the script, length of the text in characters."""

    def __init__(self, pattern: str, length: int) -> None:
        super().__init__(pattern)
        self.pattern = pattern
        self.length = length


class TextPattern:
    """A regular expression in the syntax of Python's `re`. Raises: PatternError. Limits: MAX_MATCH_S a search."""

    __slots__ = ("_compiled", "text")

    def __init__(self, text: str) -> None:
        import regex  # not at the top: most scripts have no regular expression, and it takes a while

        try:
            re.compile(text)  # the syntax is that of the standard library, its errors are the known ones
            self._compiled = cast("_Compiled", regex.compile(text))
        except (re.error, regex.error, RecursionError, OverflowError) as error:
            raise PatternError(str(error)) from None
        self.text = text

    def group_names(self) -> frozenset[str]:
        """The names of its groups."""
        return frozenset(self._compiled.groupindex)

    def search(self, text: str) -> dict[str, str] | None:
        """The named groups of the first place that fits, None without one. Raises: PatternTooSlow."""
        try:
            found = self._compiled.search(text, timeout=MAX_MATCH_S)
        except TimeoutError:
            raise PatternTooSlow(self.text, len(text)) from None
        return None if found is None else {name: value or "" for name, value in found.groupdict().items()}
