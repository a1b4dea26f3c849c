"""Texts that a stream of events brings in fragments: seen as wholes, and cleaned as wholes.

Room: pure; redaction and recording come in. A model says a key a few letters at a time, so no single event holds it. It
knows no dialect: what stands at the same place of one event after the other is one text. The mock provider's recorder
and the agent's log clean by themselves: cassettes are made and read without the product.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import cast

from lanes.normalize import Json

DATA = "data:"
Place = tuple[str | int, ...]
Span = tuple[int, int]


def joined_texts(body: str) -> tuple[str, ...]:
    """Each text of a stream, put together from all its fragments; none for a body that is no stream."""
    texts: dict[Place, list[str]] = {}
    for event in _events(body.split("\n")).values():
        for place, text in _leaves(event, ()):
            texts.setdefault(place, []).append(text)
    return tuple("".join(parts) for parts in texts.values())


def clean_fragments(body: str, spans_of: Callable[[str], Sequence[Span]], stand_in: str) -> str:
    """The stream without the parts of its whole texts that spans_of names.

    Shape: stand_in comes in the fragment in which a part began. Events that hold no such part stay byte for byte.
    """
    lines = body.split("\n")
    events = _events(lines)
    fragments: dict[Place, list[tuple[int, str]]] = {}
    for number, event in events.items():
        for place, text in _leaves(event, ()):
            fragments.setdefault(place, []).append((number, text))
    changed: set[int] = set()
    for place, found in fragments.items():
        spans = spans_of("".join(text for _, text in found))
        for (number, text), new in zip(found, _without(found, spans, stand_in), strict=True):
            if new != text:
                events[number] = _with(events[number], place, new)
                changed.add(number)
    for number in changed:
        lines[number] = f"{DATA} {json.dumps(events[number], separators=(',', ':'))}"
    return "\n".join(lines)


def _events(lines: Sequence[str]) -> dict[int, Json]:
    """The JSON of each event, by the number of its line."""
    found: dict[int, Json] = {}
    for number, line in enumerate(lines):
        if line.startswith(DATA):
            try:
                found[number] = json.loads(line[len(DATA) :])
            except (ValueError, RecursionError):
                continue
    return found


def _leaves(value: Json, place: Place) -> Iterator[tuple[Place, str]]:
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, (*place, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _leaves(item, (*place, number))


def _without(found: Sequence[tuple[int, str]], spans: Sequence[Span], stand_in: str) -> list[str]:
    """The fragments without the spans of their whole."""
    cleaned: list[str] = []
    begin = 0
    for _, text in found:
        kept: list[str] = []
        at, end = begin, begin + len(text)
        for start, stop in spans:
            if stop <= at or start >= end:
                continue
            kept.append(text[at - begin : max(start - begin, at - begin)])
            if start >= begin:
                kept.append(stand_in)
            at = min(stop, end)
        kept.append(text[at - begin :])
        cleaned.append("".join(kept))
        begin = end
    return cleaned


def _with(value: Json, place: Place, text: str) -> Json:
    """The value with another text at that place."""
    if not place:
        return text
    first, rest = place[0], place[1:]
    if isinstance(value, dict):
        name = cast("str", first)
        return {**value, name: _with(value[name], rest, text)}
    items = list(cast("list[Json]", value))
    items[cast("int", first)] = _with(items[cast("int", first)], rest, text)
    return items
