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

_SORTED = json.JSONEncoder(sort_keys=True, ensure_ascii=True)


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
    if isinstance(value, Late):
        yield from _members("[]", ((None, each) for each in value.entries()), depth, open_levels)
    elif value and isinstance(value, dict) and depth <= open_levels:
        yield from _members("{}", sorted(value.items()), depth, open_levels)
    elif value and isinstance(value, list) and depth <= open_levels:
        yield from _members("[]", ((None, each) for each in value), depth, open_levels)
    else:
        text = _SORTED.encode(value)
        yield _SORTED.encode(_cleaned(value)) if _SUSPECT.search(text) else text


def _members(brackets: str, entries: Iterable[tuple[str | None, Value]], depth: int, open_levels: int) -> Iterator[str]:
    before, between = brackets[0], f",\n{' ' * (depth + 1)}"
    is_empty = True
    for name, item in entries:
        yield f"{before}{between[1:]}" if is_empty else between
        is_empty = False
        if name is not None:
            yield f"{json.dumps(as_unicode(name))}: "
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
