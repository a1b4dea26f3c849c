"""Read a peer's JSON field by field: each function takes what the wire says or names what is wrong with it.

Room: pure; the dialects may come in.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.errors import PeerError
from harness.model.messages import JsonObject
from harness.wire.json_text import parse_json

MAX_COUNT = 2**53 - 1  # the largest number a log holds; no answer has as many tokens


def object_in(data: str) -> JsonObject:
    """The JSON object an event carries."""
    try:
        payload = parse_json(data)
    except PeerError as error:
        raise PeerError(f"an event is not JSON: {error.what}: {data!r}") from None
    if not isinstance(payload, Mapping):
        raise PeerError(f"an event is not a JSON object: {data!r}")
    return payload


def text_of(holder: JsonObject, name: str) -> str:
    """The text of a field; absent and null are the empty text."""
    value = holder.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise PeerError(f"{name} is not text")
    return value


def object_of(holder: JsonObject, name: str) -> JsonObject:
    """The object of a field; absent and null are the empty object."""
    value = holder.get(name)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise PeerError(f"{name} is not a JSON object")
    return value


def objects_of(holder: JsonObject, name: str) -> tuple[JsonObject, ...]:
    """The objects of a list; absent and null are the empty list."""
    value = holder.get(name)
    if value is None:
        return ()
    if not isinstance(value, list):
        raise PeerError(f"{name} is not a list")
    found: list[JsonObject] = []
    for item in value:
        if not isinstance(item, Mapping):
            raise PeerError(f"{name} holds something that is no JSON object")
        found.append(item)
    return tuple(found)


def count_of(holder: JsonObject, name: str) -> int | None:
    """A count that was really given: a whole number from 0 up to MAX_COUNT. Anything else says nothing."""
    value = holder.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_COUNT else None
