"""Drift: what answers of a provider look like, and how that differs from what is expected of them.

Room: pure. `lanes drift` and the witness of live answers come in. A shape holds paths, types, counts, the order of
events and the words of closed vocabularies; it never holds a value, so nothing a model or a person said is in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from lanes.normalize import Json

FEWEST_SAMPLES = 5  # below that nobody can say what a provider always does
ERROR_STATUS = 400
BEGIN, END = "(begin)", "(end)"
END_MARK = "[DONE]"
# Fields whose values are words of a closed list, and among them those a client has to understand to go on.
WORD_KEYS = frozenset({"finish_reason", "stop_reason", "finishReason", "done_reason", "object", "role", "type", "code"})
GUIDING_KEYS = frozenset({"finish_reason", "stop_reason", "finishReason", "done_reason"})
# What a model or a person fills as it likes: its fields are content, and the shape of content says nothing.
FREE_KEYS = frozenset({"arguments", "input", "args", "metadata", "parameters", "properties"})
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,39}")

Kind = Literal["stream", "whole", "error"]
Change = Literal["added", "removed", "loosened", "narrowed", "retyped", "reordered", "new word"]
Weight = Literal["additive", "breaking"]


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer as it went over the wire. headers are names only."""

    status: int
    headers: tuple[str, ...]
    body: str


@dataclass(slots=True)
class Shape:
    """What some answers of one kind have in common.

    Shape: objects counts the objects at a path; fields gives for each field the number of objects that have it and the
    types it had; moves are the steps from one event of a stream to the next; words are those of closed vocabularies.
    """

    samples: int = 0
    objects: dict[str, int] = field(default_factory=dict)
    fields: dict[str, int] = field(default_factory=dict)
    types: dict[str, set[str]] = field(default_factory=dict)
    moves: set[tuple[str, str]] = field(default_factory=set)
    words: dict[str, set[str]] = field(default_factory=dict)
    headers: dict[str, int] = field(default_factory=dict)

    def share(self, path: str) -> float:
        """In which part of the objects that could have it a field is there."""
        parent = path.rpartition(".")[0]
        return self.fields.get(path, 0) / self.objects[parent] if self.objects.get(parent) else 0.0

    def add(self, other: Shape) -> None:
        """Take in what other answers look like."""
        self.samples += other.samples
        for own, counts in ((self.objects, other.objects), (self.fields, other.fields), (self.headers, other.headers)):
            for name, count in counts.items():
                own[name] = own.get(name, 0) + count
        for known, found in ((self.types, other.types), (self.words, other.words)):
            for name, values in found.items():
                known.setdefault(name, set()).update(values)
        self.moves |= other.moves

    def to_json(self) -> dict[str, Json]:
        """The shape as it is stored."""
        return {
            "samples": self.samples,
            "objects": dict(sorted(self.objects.items())),
            "fields": dict(sorted(self.fields.items())),
            "types": {name: _listed(found) for name, found in sorted(self.types.items())},
            "moves": [list(move) for move in sorted(self.moves)],
            "words": {name: _listed(found) for name, found in sorted(self.words.items())},
            "headers": dict(sorted(self.headers.items())),
        }


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One difference. id is the same for the same difference in every run."""

    kind: Kind
    change: Change
    weight: Weight
    place: str
    text: str

    @property
    def id(self) -> str:
        """Its name, by which a stale cell refers to it."""
        return f"{self.kind}:{self.change.replace(' ', '-')}:{self.place}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """How the answers of one kind compare; not_judged says why they do not, and is never "no drift"."""

    kind: Kind
    samples: int
    findings: tuple[Finding, ...] = ()
    not_judged: str = ""


def shape_of(answer: Answer) -> tuple[Kind, Shape]:
    """The kind and the shape of one answer; a body that is neither JSON nor a stream has no fields."""
    shape = Shape(samples=1)
    for name in {name.lower() for name in answer.headers}:
        shape.headers[name] = 1
    events = _events(answer.body)
    if answer.status < ERROR_STATUS and events:
        before = BEGIN
        for name, value in events:
            label = _label(name, value)
            shape.moves.add((before, label))
            _look(value, label, shape)
            before = label
        shape.moves.add((before, END))
        return "stream", shape
    _look(_json(answer.body), "", shape)
    return ("error" if answer.status >= ERROR_STATUS else "whole"), shape


def shape_note(answer: Answer) -> dict[str, Json]:
    """One live answer's shape, as its note in the evidence holds it."""
    kind, shape = shape_of(answer)
    return {"kind": kind, **shape.to_json()}


def shapes_of(answers: Iterable[Answer]) -> dict[Kind, Shape]:
    """The shapes of many answers, by their kind."""
    found: dict[Kind, Shape] = {}
    for answer in answers:
        kind, shape = shape_of(answer)
        found.setdefault(kind, Shape()).add(shape)
    return found


def read_shape(document: Mapping[str, Json]) -> Shape:
    """A stored shape.

    Raises: ValueError for what is none.
    """
    shape = Shape()
    try:
        shape.samples = _count(document["samples"])
        for name, own in (("objects", shape.objects), ("fields", shape.fields), ("headers", shape.headers)):
            own.update({path: _count(count) for path, count in _mapping(document[name]).items()})
        for name, many in (("types", shape.types), ("words", shape.words)):
            many.update(
                {path: {str(each) for each in _list(found)} for path, found in _mapping(document[name]).items()}
            )
        shape.moves = {(str(_list(move)[0]), str(_list(move)[1])) for move in _list(document["moves"])}
    except (KeyError, TypeError, IndexError) as error:
        raise ValueError(f"no shape: {error}") from error
    return shape


def compare(
    expected: Mapping[Kind, Shape], found: Mapping[Kind, Shape], *, fewest: int = FEWEST_SAMPLES
) -> tuple[Verdict, ...]:
    """How found answers differ from expected ones, kind by kind.

    Shape: a kind that is expected and was not found, or of which there are too few, is not judged.
    """
    verdicts: list[Verdict] = []
    for kind in sorted({*expected, *found}):
        had, has = expected.get(kind), found.get(kind)
        samples = 0 if has is None else has.samples
        if has is None or samples < fewest:
            verdicts.append(Verdict(kind, samples, not_judged=f"{samples} answers, at least {fewest} are wanted"))
        elif had is None:
            verdicts.append(Verdict(kind, samples, not_judged="nothing is known to compare it with"))
        else:
            verdicts.append(Verdict(kind, samples, tuple(sorted(_findings(kind, had, has)))))
    return tuple(verdicts)


def _findings(kind: Kind, had: Shape, has: Shape) -> Iterable[Finding]:
    yield from _field_findings(kind, had, has)
    labels = {label for move in had.moves for label in move}
    for before, after in sorted(has.moves - had.moves):
        if {before, after} <= labels:
            yield Finding(kind, "reordered", "breaking", f"{before}>{after}", f"{after} came right after {before}")
    for label in sorted({label for move in has.moves for label in move} - labels):
        yield Finding(kind, "added", "additive", label, "an event that was not known")
    for path in sorted(has.words):
        for word in sorted(has.words[path] - had.words.get(path, set())):
            weight: Weight = "breaking" if path.rpartition(".")[2] in GUIDING_KEYS else "additive"
            yield Finding(kind, "new word", weight, f"{path}={word}", "a word that was not known")
    for name in sorted(had.headers):
        if had.headers[name] == had.samples and name not in has.headers:
            yield Finding(kind, "removed", "additive", f"header {name}", "a header that always came")


def _field_findings(kind: Kind, had: Shape, has: Shape) -> Iterable[Finding]:
    for path in sorted({*had.fields, *has.fields}):
        if not _could_be_seen(path, had, has):
            continue
        before, after = had.share(path), has.share(path)
        if path not in had.fields:
            yield Finding(kind, "added", "additive", path, f"a field that was not known, in {after:.0%}")
        elif before == 1 and after == 0:
            yield Finding(kind, "removed", "breaking", path, "it always came, and never does")
        elif before == 1 and after < 1:
            yield Finding(kind, "loosened", "breaking", path, f"it always came, and does in {after:.0%}")
        elif before < 1 and after == 1:
            yield Finding(kind, "narrowed", "additive", path, f"it came in {before:.0%}, and always does")
        yield from _type_findings(kind, path, had, has)


def _could_be_seen(path: str, had: Shape, has: Shape) -> bool:
    """Whether the object around a field came on both sides; what hangs below a field that is gone is said once."""
    parent = path.rpartition(".")[0]
    return bool(had.objects.get(parent)) and bool(has.objects.get(parent))


def _type_findings(kind: Kind, path: str, had: Shape, has: Shape) -> Iterable[Finding]:
    before, after = had.types.get(path, set()), has.types.get(path, set())
    if not before or not after - before:
        return
    told = f"{_told(before)} before, {_told(after)} now"
    change: Change = "loosened" if before <= after else "retyped"
    yield Finding(kind, change, "breaking", path, told)


def _listed(words: Iterable[str]) -> Json:
    return [*sorted(words)]


def _told(types: Iterable[str]) -> str:
    return " or ".join(sorted(types))


def _look(value: Json, path: str, shape: Shape) -> None:
    if isinstance(value, list):
        for item in value:
            shape.types.setdefault(f"{path}[]", set()).add(_type(item))
            _look(item, f"{path}[]", shape)
    if not isinstance(value, dict):
        return
    shape.objects[path] = shape.objects.get(path, 0) + 1
    for key, item in value.items():
        place = f"{path}.{key}"
        shape.fields[place] = shape.fields.get(place, 0) + 1
        shape.types.setdefault(place, set()).add(_type(item))
        if key in WORD_KEYS and isinstance(item, str) and _WORD.fullmatch(item):
            shape.words.setdefault(place, set()).add(item)
        if key not in FREE_KEYS:
            _look(item, place, shape)


def _type(value: Json) -> str:
    if isinstance(value, bool):
        return "boolean"
    names = {type(None): "null", str: "text", list: "list", dict: "object"}
    return names.get(type(value), "number")


def _events(body: str) -> list[tuple[str, Json]]:
    """The events of a stream, each with its name; none when the body is no stream."""
    events: list[tuple[str, Json]] = []
    for block in re.split(r"\r?\n\r?\n", body):
        name, data = "", []
        for line in block.splitlines():
            if line.startswith("event:"):
                name = line[6:].strip()
            elif line.startswith("data:"):
                data.append(line[5:].strip())
        if data:
            text = "\n".join(data)
            events.append((name, END_MARK if text == END_MARK else _json(text)))
    return events


def _label(name: str, value: Json) -> str:
    """What kind of event this is: its name, its type, or what a chunk of the chat dialect brings."""
    if value == END_MARK or not isinstance(value, dict):
        return END_MARK if value == END_MARK else name or "text"
    kind = value.get("type")
    if name or (isinstance(kind, str) and _WORD.fullmatch(kind)):
        return name or str(kind)
    choices = value.get("choices")
    if not isinstance(choices, list):
        return "event"
    brought = {key for choice in choices if isinstance(choice, dict) for key in _brought(choice)}
    return "+".join(sorted(brought)) or ("usage" if value.get("usage") else "empty")


def _brought(choice: Mapping[str, Json]) -> Iterable[str]:
    delta = choice.get("delta")
    for key, item in delta.items() if isinstance(delta, dict) else ():
        if item not in (None, "") and key != "role":
            yield key
    if choice.get("finish_reason") is not None:
        yield "finish"


def _json(text: str) -> Json:
    try:
        value: Json = json.loads(text)
    except ValueError:
        return None
    return value


def _count(value: Json) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError(f"{value!r} is no count")
    return value


def _mapping(value: Json) -> Mapping[str, Json]:
    if not isinstance(value, dict):
        raise TypeError("an object is wanted")
    return value


def _list(value: Json) -> Sequence[Json]:
    if not isinstance(value, list):
        raise TypeError("a list is wanted")
    return value
