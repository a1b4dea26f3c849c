"""What an answer said, in no provider's spelling: the parts, the finish, the counts.

Room: pure; the decoders of the dialects make it, the writer of scripts reads it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from mock_provider.json_values import Json, JsonObject, is_too_deep

Kind: TypeAlias = Literal["text", "reasoning", "refusal", "call"]


@dataclass(frozen=True, slots=True)
class SaidPart:
    """One part. Shape: of a call, text is its arguments as sent; id None means that it had none."""

    kind: Kind
    text: str
    name: str = ""
    id: str | None = None


@dataclass(frozen=True, slots=True)
class SaidCounts:
    """Token counts. Shape: cached tokens are among the input, reasoning tokens among the output."""

    input: int
    output: int
    cached: int = 0
    reasoning: int = 0


@dataclass(frozen=True, slots=True)
class Said:
    """One answer.

    Shape: finish is a word of the script (`stop`, `tool_calls`, `length`, `content_filter`) or the provider's own, None
    when it said none; failure is an error inside an answer that began with status 200: message, type, code.
    """

    parts: tuple[SaidPart, ...]
    finish: str | None
    counts: SaidCounts | None
    model: str | None
    failure: tuple[str, str | None, str | None] | None = None

    def comparable(self) -> Said:
        """The answer without what a script may render in another way: arguments in one spelling."""
        parts = tuple(
            part if part.kind != "call" else SaidPart("call", _one_spelling(part.text), part.name, part.id)
            for part in self.parts
        )
        return Said(parts, self.finish, self.counts, self.model, self.failure)


def _one_spelling(arguments: str) -> str:
    try:
        return json.dumps(json.loads(arguments or "{}"), sort_keys=True)
    except ValueError:
        return arguments


def merged(parts: Iterable[SaidPart]) -> tuple[SaidPart, ...]:
    """Neighbouring texts of one kind as one; empty ones left out."""
    found: list[SaidPart] = []
    for part in parts:
        if part.kind == "call":
            found.append(part)
        elif part.text:
            if found and found[-1].kind == part.kind:
                found[-1] = SaidPart(part.kind, found[-1].text + part.text)
            else:
                found.append(part)
    return tuple(found)


def events_of(body: str) -> list[JsonObject]:
    """The JSON objects of an event stream, in order; the end mark and comments are none."""
    found: list[JsonObject] = []
    for event in body.replace("\r\n", "\n").replace("\r", "\n").split("\n\n"):
        data = "\n".join(line[5:].removeprefix(" ") for line in event.split("\n") if line.startswith("data:"))
        value = read_json(data)
        if isinstance(value, dict):
            found.append(value)
    return found


def read_json(text: str) -> Json:
    """A JSON value; None for a text that is none, or is nested deeper than anybody means."""
    try:
        value: Json = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return None if is_too_deep(value) else value


def an_object(value: Json) -> JsonObject:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def objects(value: Json) -> list[JsonObject]:
    """The objects of a list; none for anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def a_text(value: Json) -> str:
    """The value if it is a text, else an empty one."""
    return value if isinstance(value, str) else ""


def a_text_or_none(value: Json) -> str | None:
    """The value if it is a text."""
    return value if isinstance(value, str) else None


def a_count(value: Json) -> int:
    """The value if it is a count, else 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0


def failure_of(error: Json) -> tuple[str, str | None, str | None]:
    """The message, type and code of an error body."""
    if isinstance(error, str):
        return error, None, None
    told = an_object(error)
    code = told.get("code")
    return a_text(told.get("message")), a_text_or_none(told.get("type")), code if isinstance(code, str) else None
