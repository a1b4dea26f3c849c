"""Cutting texts into stream pieces, and counting tokens by a local rule.

Room: pure; the dialects come in.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable

from mock_provider.steps import Split

MAX_KEPT_LENGTH = 16 << 10  # characters; the pieces of a longer text are made anew
BYTES_PER_TOKEN = 4  # the rule of thumb of the providers' own guides for English; only its determinism matters here


def split_text(text: str, split: Split) -> tuple[str, ...]:
    """Cut a text as the plan says; the sum of the pieces is the text. An empty text is no piece."""
    return _split_again(text, split) if len(text) <= MAX_KEPT_LENGTH else _split(text, split)


def _split(text: str, split: Split) -> tuple[str, ...]:
    if not text:
        return ()
    if split.by == "chars":
        return tuple(text[at : at + split.size] for at in range(0, len(text), split.size))
    if split.by == "words":
        words = re.findall(r"\s*\S+\s?|\s+", text)
        if "".join(words) == text:
            return tuple("".join(words[at : at + split.size]) for at in range(0, len(words), split.size))
    if split.by == "list":
        return _listed(text, split.pieces)
    return (text,)


# A step that is played again says the same text in the same pieces; the first of them waits for all of them.
_split_again = functools.lru_cache(maxsize=16)(_split)


def _listed(text: str, pieces: tuple[str, ...]) -> tuple[str, ...]:
    """Use the listed pieces while they agree with the text; what is left is one more piece."""
    taken: list[str] = []
    rest = text
    for piece in pieces:
        if not piece or not rest.startswith(piece):
            break
        taken.append(piece)
        rest = rest[len(piece) :]
    return (*taken, rest) if rest else tuple(taken)


def count_tokens(*texts: str) -> int:
    """Count tokens without any vocabulary: bytes of UTF-8 by four, rounded up."""
    return tokens_of(size_bytes(texts))


def size_bytes(texts: Iterable[str]) -> int:
    """How long texts are in UTF-8, all together."""
    size = 0
    for text in texts:
        size += len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return size


def tokens_of(size: int) -> int:
    """Count the tokens of so many bytes."""
    return -(-size // BYTES_PER_TOKEN)
