"""Volatile values to tokens, so that two runs of one story compare equal.

Room: pure; whoever compares or stores expected output may come in. Nothing here reads a clock, a path or a file.

What is volatile: places (the generated working folder and the session root), identities (session ids and other UUIDs),
times and waits. Sequence numbers stay, they are part of the contract. Normalising twice changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
SEPARATORS = frozenset("/\\")
TIME_KEYS = frozenset({"time", "time0", "createdAt", "delayMs"})  # integers of ms that differ between runs
GAP_KEYS = frozenset({"dt"})  # packed gaps between times
IDENTITY_KEYS = {"retryId": "retry", "compactionId": "compaction", "requestId": "request"}  # fields that hold an id


@dataclass(frozen=True, slots=True)
class Place:
    """One spelling of a folder and the token that stands for it."""

    spelling: str
    token: str


def places_of(spellings: Mapping[str, Sequence[str]]) -> tuple[Place, ...]:
    """Token to spellings, as a list with the longest spelling first, so that a parent never hides its child."""
    found = {
        Place(spelling.rstrip("/"), token)
        for token, many in spellings.items()
        for spelling in many
        if len(spelling) > 1
    }
    return tuple(sorted(found, key=lambda place: (-len(place.spelling), place.spelling)))


def replace_places(text: str, places: Sequence[Place]) -> str:
    """Put tokens where a place is spelled, but only at path boundaries: `/tmp/ab` is no part of `/tmp/abc`."""
    for place in places:
        text = _replace_at_boundaries(text, place)
    return text


def _replace_at_boundaries(text: str, place: Place) -> str:
    pieces: list[str] = []
    start = 0
    while (at := text.find(place.spelling, start)) >= 0:
        end = at + len(place.spelling)
        before_ok = at == 0 or not (text[at - 1].isalnum() or text[at - 1] in "_-." or text[at - 1] in SEPARATORS)
        after_ok = end == len(text) or not (text[end].isalnum() or text[end] in "_-")
        pieces.append(text[start:at])
        pieces.append(place.token if before_ok and after_ok else place.spelling)
        start = end
    pieces.append(text[start:])
    return "".join(pieces)


@dataclass(slots=True)
class Identities:
    """Names for ids in the order they are first seen: `<message-1>`, `<uuid-2>`.

    Shape: one object for one set of documents that belong together, so that an id gets the same token in all of them.
    """

    tokens: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def token(self, kind: str, value: str) -> str:
        """The token of this value; a value that already is a token stays."""
        if value.startswith("<") and value.endswith(">"):
            return value
        if value not in self.tokens:
            self.counts[kind] = self.counts.get(kind, 0) + 1
            self.tokens[value] = f"<{kind}-{self.counts[kind]}>"
        return self.tokens[value]

    def replace_in(self, text: str) -> str:
        """Tokens for every known id in the text, longest first, then for any UUID left."""
        for value in sorted(self.tokens, key=len, reverse=True):
            text = text.replace(value, self.tokens[value])
        return UUID.sub(lambda match: self.token("uuid", match.group()), text)


def normalize_text(text: str, places: Sequence[Place], identities: Identities | None = None) -> str:
    """A text for people: places, then identities."""
    text = replace_places(text, places)
    return text if identities is None else identities.replace_in(text)


def normalize_json(value: Json, places: Sequence[Place], identities: Identities) -> Json:
    """A JSON value with places and known identities replaced in every string, keys included."""
    if isinstance(value, str):
        return normalize_text(value, places, identities)
    if isinstance(value, list):
        return [normalize_json(item, places, identities) for item in value]
    if isinstance(value, dict):
        return {
            normalize_text(key, places, identities): normalize_json(item, places, identities)
            for key, item in value.items()
        }
    return value


def normalize_log(rows: Sequence[Json], places: Sequence[Place], identities: Identities) -> list[Json]:
    """The rows of a session log as one run of the story would always write them.

    Shape: row 0 is the header; the rows of several logs that name each other may follow each other. Message, retry,
    compaction, request and session ids become tokens in first-seen order; times, packed gaps and waits become 0; call
    ids stay, because the scripted or recorded model chose them.
    """
    for row in rows:
        _name_identities(row, identities)
    return [normalize_json(_without_times(row), places, identities) for row in rows]


def _name_identities(row: Json, identities: Identities) -> None:
    if not isinstance(row, dict):
        return
    if row.get("type") == "session" and isinstance(row.get("id"), str):
        identities.token("session", str(row["id"]))
    for message in _messages_in(row):
        identities.token("message", message)
    for kind, value in _identities_in(row):
        identities.token(kind, value)


def _identities_in(value: Json) -> list[tuple[str, str]]:
    """Kind and value of every id that stands in a field of its own, wherever it stands."""
    if isinstance(value, list):
        return [found for item in value for found in _identities_in(item)]
    if not isinstance(value, dict):
        return []
    here = [(kind, each) for key, kind in IDENTITY_KEYS.items() if isinstance(each := value.get(key), str)]
    return here + [found for item in value.values() for found in _identities_in(item)]


def _messages_in(value: Json) -> list[str]:
    """Ids of everything that looks like a message: it has an id, a role and a content."""
    if isinstance(value, list):
        return [found for item in value for found in _messages_in(item)]
    if not isinstance(value, dict):
        return []
    own = value.get("id")
    here = [own] if isinstance(own, str) and "role" in value and "content" in value else []
    return here + [found for item in value.values() for found in _messages_in(item)]


def _without_times(value: Json) -> Json:
    if isinstance(value, list):
        return [_without_times(item) for item in value]
    if not isinstance(value, dict):
        return value
    result: dict[str, Json] = {}
    for key, item in value.items():
        if key in TIME_KEYS and isinstance(item, int) and not isinstance(item, bool):
            result[key] = 0
        elif key in GAP_KEYS and isinstance(item, list):
            result[key] = [0 for _ in item]
        else:
            result[key] = _without_times(item)
    return result
