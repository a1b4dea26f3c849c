"""What a stream says in fragments: what stands at the same place of one event after the other is one text.

Room: pure; the cleaner comes in. A key that a model says a few letters at a time is in no single event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from mock_provider.json_values import Json

Span: TypeAlias = "tuple[int, int]"
Place: TypeAlias = "tuple[str | int, ...]"


def joined_texts(events: Sequence[Json]) -> list[str]:
    """Each text that the events say, put together from its fragments."""
    return ["".join(text for _, text in fragments) for fragments in _by_place(events).values()]


def clean_fragments(events: Sequence[Json], spans_of: Callable[[str], Sequence[Span]], stand_in: str) -> list[Json]:
    """The events without the spans of their joined texts; those that hold nothing of one are the same objects.

    Shape: spans come in order and do not overlap; stand_in takes the place of one in the fragment it begins in.
    """
    cleaned = list(events)
    for place, fragments in _by_place(events).items():
        if len(fragments) == 1:
            continue  # a text in one piece is cleaned where it stands
        spans = spans_of("".join(text for _, text in fragments))
        begin = 0
        for number, text in fragments:
            new = _without(text, begin, spans, stand_in)
            if new != text:
                cleaned[number] = _replaced(cleaned[number], place, new)
            begin += len(text)
    return cleaned


def _by_place(events: Sequence[Json]) -> dict[Place, list[tuple[int, str]]]:
    found: dict[Place, list[tuple[int, str]]] = {}
    for number, event in enumerate(events):
        for place, text in _texts(event, ()):
            found.setdefault(place, []).append((number, text))
    return found


def _texts(value: Json, place: Place) -> Iterator[tuple[Place, str]]:
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(item, (*place, key))
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _texts(item, (*place, at))


def _without(text: str, begin: int, spans: Sequence[Span], stand_in: str) -> str:
    """A fragment that begins at some place of its whole, without the spans of the whole."""
    end = begin + len(text)
    kept: list[str] = []
    at = begin
    for start, stop in spans:
        if stop <= begin or start >= end:
            continue
        kept.append(text[at - begin : max(start, at) - begin])
        if start >= begin:
            kept.append(stand_in)
        at = min(stop, end)
    return "".join([*kept, text[at - begin :]])


def _replaced(value: Json, place: Place, text: str) -> Json:
    """The value with another text at a place that it has."""
    if not place:
        return text
    here, rest = place[0], place[1:]
    if isinstance(value, dict):
        return {key: _replaced(item, rest, text) if key == here else item for key, item in value.items()}
    if isinstance(value, list):
        return [_replaced(item, rest, text) if at == here else item for at, item in enumerate(value)]
    return value
