"""What an answer said about itself, in either dialect: id, model, usage, and the words of the assistant.

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
    """Read an answer, streamed or in one piece; whatever is no JSON says nothing.

    Source: OpenAI API reference, "Chat completions", streaming; Anthropic API reference, "Streaming messages": the
    message begins with its id and what was sent, what was written is counted at its end.
    """
    found: dict[str, Json] = {}
    usage: dict[str, Json] = {}
    text: list[str] = []
    is_whole = False
    for document, is_end in _documents(body):
        begun = document.get("message")
        is_whole = is_whole or is_end or document.get("type") == "message_stop" or bool(document.get("stop_reason"))
        for part in _objects([document, begun]):
            found.update({name: part[name] for name in ("id", "model") if part.get(name)})
            told = part.get("usage")
            usage.update(told if isinstance(told, Mapping) else {})
        for choice in _objects(document.get("choices")):
            is_whole = is_whole or bool(choice.get("finish_reason"))
            for part in _objects([choice.get("delta"), choice.get("message")]):
                text.append(_text(part.get("content")))
        for part in _objects([*_list(document.get("content")), document.get("delta")]):
            is_whole = is_whole or bool(part.get("stop_reason"))
            text.append(_text(part.get("text")))
    told_id, model = found.get("id"), found.get("model")
    return Spoken(
        id=told_id if isinstance(told_id, str) else None,
        model=model if isinstance(model, str) else None,
        usage=usage or None,
        text="".join(text),
        is_whole=is_whole,
    )


def parse_object(data: bytes) -> Mapping[str, Json]:
    """Return the JSON object in some bytes, an empty one when there is none."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
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


def _list(value: Json) -> list[Json]:
    return list(value) if isinstance(value, list) else []


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""
