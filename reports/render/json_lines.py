"""Writing JSON in pieces: sorted, in ASCII, with what is large on lines of its own and made only as it is written.

Room: pure. The renderers of JSON come in. Quick to write, quick to compare by line, and never whole in memory.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from lanes.record import Json
from reports.render.characters import as_unicode

_SUSPECT = re.compile(r"\\u(d[89a-f]|fff[ef])")  # halves of pairs, also those of whole characters, and non-characters

_encode = json.JSONEncoder(sort_keys=True, ensure_ascii=True).encode


@dataclass(frozen=True, slots=True)
class Late:
    """A list whose entries are made as they are written, one after the other."""

    entries: Callable[[], Iterable[Value]]


Value: TypeAlias = "Json | Late | Mapping[str, Value] | Sequence[Value]"


def json_pieces(value: Value, open_levels: int) -> Iterator[str]:
    """A JSON document that ends in a newline.

    Shape: objects and lists up to open_levels deep have their members on lines of their own; deeper ones are one line.
    """
    yield from _written(value, 0, open_levels)
    yield "\n"


def _written(value: Value, depth: int, open_levels: int) -> Iterator[str]:
    if depth > open_levels and not isinstance(value, Late):
        yield _line(value)
    elif isinstance(value, Late):
        yield from _members("[]", ((None, each) for each in value.entries()), depth, open_levels)
    elif value and isinstance(value, dict):
        yield from _members("{}", sorted(value.items()), depth, open_levels)
    elif value and isinstance(value, list):
        yield from _members("[]", ((None, each) for each in value), depth, open_levels)
    else:
        yield _line(value)


def _line(value: Value) -> str:
    text = _encode(value)
    return _encode(_cleaned(value)) if _SUSPECT.search(text) else text


def _members(brackets: str, entries: Iterable[tuple[str | None, Value]], depth: int, open_levels: int) -> Iterator[str]:
    between = f",\n{' ' * (depth + 1)}"
    before = f"{brackets[0]}{between[1:]}"
    is_empty = True
    for name, item in entries:
        start = before if name is None else f"{before}{json.dumps(as_unicode(name))}: "
        before = between
        is_empty = False
        if depth >= open_levels and not isinstance(item, Late):
            yield f"{start}{_line(item)}"  # one piece a line: a large board has a million of them
        else:
            yield start
            yield from _written(item, depth + 1, open_levels)
    yield brackets if is_empty else f"\n{' ' * depth}{brackets[1]}"


def _cleaned(value: Value) -> Value:
    if isinstance(value, str):
        return as_unicode(value)
    if isinstance(value, Mapping):
        return {as_unicode(name): _cleaned(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_cleaned(item) for item in value]
    return value
