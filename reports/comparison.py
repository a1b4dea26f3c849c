"""Comparison: where one of our own output files says something else than what the evidence gives.

Room: pure. Verification comes in with what a file holds and what it should hold.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence

from lanes.record import Json

SHOWN = 5  # differences of one file that are told one by one
_WIDTH = 80


def differences(name: str, told: str, given: str) -> list[str]:
    """What a file tells against what it should tell, the first of them in words, and how many more there are.

    Shape: of JSON by place, of everything else by line; empty when the two are equal.
    """
    if told == given:
        return []
    found = list(_of_json(told, given)) if name.endswith(".json") else []
    found = found or list(_of_lines(told, given))
    shown = found[:SHOWN]
    return shown + ([f"and {len(found) - SHOWN} more places"] if len(found) > SHOWN else [])


def _of_json(told: str, given: str) -> Iterator[str]:
    try:
        one, other = json.loads(told), json.loads(given)
    except (ValueError, RecursionError) as error:
        yield f"the file is no JSON: {error!s:.80}"
        return
    yield from _of_values("", one, other)


def _of_values(place: str, told: Json, given: Json) -> Iterator[str]:
    if isinstance(told, Mapping) and isinstance(given, Mapping):
        for name in sorted({*told, *given}):
            inner = f"{place}.{name}" if place else name
            if name not in told or name not in given:
                yield f"{inner}: {'is not there' if name not in told else 'is added'}"
            else:
                yield from _of_values(inner, told[name], given[name])
    elif isinstance(told, list) and isinstance(given, list):
        yield from _of_lists(place, told, given)
    elif told != given:
        yield f"{place}: it says {_short(told)}, the evidence gives {_short(given)}"


def _of_lists(place: str, told: Sequence[Json], given: Sequence[Json]) -> Iterator[str]:
    one, other = _by_name(told), _by_name(given)
    if one is None or other is None:
        one = {str(number): value for number, value in enumerate(told)}
        other = {str(number): value for number, value in enumerate(given)}
    for name in dict.fromkeys((*other, *one)):
        if name not in one or name not in other:
            yield f"{place}[{name[:_WIDTH]}]: {'is not there' if name not in one else 'is added'}"
        else:
            yield from _of_values(f"{place}[{name[:_WIDTH]}]", one[name], other[name])


def _by_name(values: Sequence[Json]) -> dict[str, Json] | None:
    """The objects of a list by what names them, None where something does not."""
    found: dict[str, Json] = {}
    for value in values:
        name = (value.get("id") or value.get("node_id")) if isinstance(value, Mapping) else None
        if not isinstance(name, str) or name in found:
            return None
        found[name] = value
    return found


def _of_lines(told: str, given: str) -> Iterator[str]:
    for number, (one, other) in enumerate(itertools.zip_longest(told.splitlines(), given.splitlines()), start=1):
        if one != other:
            yield f"line {number}: it says {_short(one)}, the evidence gives {_short(other)}"


def _short(value: Json) -> str:
    if value is None:
        return "nothing"
    text = json.dumps(value, ensure_ascii=True, sort_keys=True)
    return text if len(text) <= _WIDTH else f"{text[:_WIDTH]}…"
