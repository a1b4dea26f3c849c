"""JSON as values: the type, one canonical spelling, equality that tells true from 1, and paths into a document.

Room: pure; anyone may come in.
"""

from __future__ import annotations

import json
import re
from typing import TypeAlias

from mock_provider.values import value

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
JsonObject: TypeAlias = "dict[str, Json]"
PathStep: TypeAlias = "str | int"

SCALARS: frozenset[type] = frozenset({str, int, float, bool, type(None)})  # the types of values in which none stands
MAX_DEPTH = 128  # real requests and schemas stay below 30; far below Python's own limit, so that walks may recurse
_PATH_PART = re.compile(
    r"""\.?(?P<name>[A-Za-z_$][A-Za-z0-9_$-]*)|\[(?P<index>-?\d+)\]|\[(?P<quoted>"(?:[^"\\]|\\.)*")\]"""
)


def encode_json(value: Json) -> bytes:
    """Spell a value for the wire: compact, key order kept, UTF-8.

    Limits: a lone surrogate has no UTF-8 form, so such a document is written with escapes throughout.
    """
    try:
        return _spell(value).encode("utf-8")
    except UnicodeEncodeError:
        return _spell_ascii(value).encode("ascii")


def canonical_json(value: Json) -> str:
    """Spell a value the one way that digests and comparisons use: sorted keys, ASCII, no spaces."""
    return _spell_canonical(value)


# Encoders made once: json.dumps makes one for every call that asks for anything but its defaults.
_spell = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, check_circular=False).encode
_spell_ascii = json.JSONEncoder(separators=(",", ":"), allow_nan=False, check_circular=False).encode
_spell_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":"), check_circular=False).encode


def is_same_json(left: Json, right: Json) -> bool:
    """Compare as JSON: 1 equals 1.0, neither equals true; key order does not count."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(is_same_json(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(is_same_json, left, right))
    return left == right


@value
class JsonPath:
    """A place in a document, such as `messages[-1].content` or `headers["x-a.b"]`.

    Shape: text is the spelling in the script; parts are the keys and indexes in order.
    """

    text: str
    parts: tuple[PathStep, ...]


@value
class Found:
    """The value at a path; its absence is None instead of a Found."""

    value: Json


def parse_path(text: str) -> JsonPath | None:
    """Read a path as a person writes it; None when it is not one."""
    rest = text.removeprefix("$.") if text.startswith("$.") else text
    parts: list[PathStep] = []
    position = 0
    while position < len(rest):
        found = _PATH_PART.match(rest, position)
        if found is None or (found.group("name") and (rest[position] == ".") is (position == 0)):
            return None
        if found.group("name"):
            parts.append(found.group("name"))
        elif found.group("index"):
            parts.append(int(found.group("index")))
        else:
            try:
                key = json.loads(found.group("quoted"))
            except ValueError:
                return None
            parts.append(str(key))
        position = found.end()
    return JsonPath(text, tuple(parts)) if parts else None


def find_value(document: Json, path: JsonPath) -> Found | None:
    """Follow a path; None when a key or index on the way is absent."""
    here = document
    for part in path.parts:
        if isinstance(part, str):
            if not isinstance(here, dict) or part not in here:
                return None
            here = here[part]
        else:
            if not isinstance(here, list) or not -len(here) <= part < len(here):
                return None
            here = here[part]
    return Found(here)


def is_too_deep(value: Json, limit: int = MAX_DEPTH) -> bool:
    """Whether lists and mappings are nested beyond the limit; does not recurse itself."""
    return objects_within(value, limit) is None


def objects_within(value: Json, limit: int = MAX_DEPTH) -> list[JsonObject] | None:
    """All objects in a document; None where lists and mappings are nested beyond the limit. Does not recurse itself."""
    found: list[JsonObject] = []
    level: list[Json] = [] if type(value) in SCALARS else [value]
    for _ in range(limit):
        below: list[Json] = []
        for here in level:
            if isinstance(here, dict):
                found.append(here)
                for item in here.values():  # of the few items of most objects a comprehension would cost more
                    if type(item) not in SCALARS:
                        below.append(item)
            elif isinstance(here, list):
                below += [item for item in here if type(item) not in SCALARS]
        if not below:
            return found
        level = below
    return None if level else found


def quote(text: str, limit: int = 80) -> str:
    """Show a text inside a message: quoted, on one line, cut to a limit that is said."""
    shown = text if len(text) <= limit else text[:limit]
    quoted = json.dumps(shown, ensure_ascii=False)
    return quoted if len(text) <= limit else f"{quoted}… ({len(text)} characters)"
