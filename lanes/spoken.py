"""What an answer of the chat dialect said about itself: id, model, usage, and the words of the assistant.

Room: pure. The live witness comes in; it does not trust what it reads here, it only notes it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lanes.record import Json, JsonObject


@dataclass(frozen=True, slots=True)
class Spoken:
    """Shape: is_whole is true when the answer carried a finish reason or the end mark; fields it lacked are None."""

    id: str | None = None
    model: str | None = None
    usage: JsonObject | None = None
    text: str = ""
    is_whole: bool = False


def read_spoken(body: bytes) -> Spoken:
    """Read an answer, streamed or in one piece; whatever is no JSON says nothing."""
    found: dict[str, Json] = {}
    text: list[str] = []
    is_whole = False
    for document, is_end in _documents(body):
        is_whole = is_whole or is_end
        for name in ("id", "model", "usage"):
            if document.get(name):
                found[name] = document[name]
        for choice in _objects(document.get("choices")):
            is_whole = is_whole or bool(choice.get("finish_reason"))
            for part in _objects([choice.get("delta"), choice.get("message")]):
                content = part.get("content")
                text.append(content if isinstance(content, str) else "")
    told_id, model, usage = found.get("id"), found.get("model"), found.get("usage")
    return Spoken(
        id=told_id if isinstance(told_id, str) else None,
        model=model if isinstance(model, str) else None,
        usage=usage if isinstance(usage, Mapping) else None,
        text="".join(text),
        is_whole=is_whole,
    )


def parse_object(data: bytes) -> Mapping[str, Json]:
    """Return the JSON object in some bytes, an empty one when there is none."""
    try:
        document = json.loads(data)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _documents(body: bytes) -> Iterator[tuple[Mapping[str, Json], bool]]:
    if not body.lstrip().startswith((b"data:", b":", b"event:")):
        yield parse_object(body), False
        return
    for line in body.splitlines():
        if line.startswith(b"data:"):
            data = line.removeprefix(b"data:").strip()
            yield parse_object(data), data == b"[DONE]"


def _objects(value: Json) -> Iterator[Mapping[str, Json]]:
    if isinstance(value, list):
        yield from (each for each in value if isinstance(each, Mapping))
