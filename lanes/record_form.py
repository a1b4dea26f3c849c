"""Reading one evidence record: JSON object to Record, with every type checked.

Room: pure. Who reads a bundle comes in; what is no record raises, and what is unknown is kept.
"""

from __future__ import annotations

import marshal
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import TypeAlias, TypeGuard, TypeVar, cast

from lanes.errors import EvidenceError
from lanes.record import (
    PLAIN_FIELDS,
    SCHEMA,
    VERDICTS,
    Attempt,
    Json,
    JsonObject,
    Record,
    Shard,
    Subject,
    digest_bytes,
    digest_json,
)

Upgrade: TypeAlias = Callable[[JsonObject], JsonObject]
UPGRADES: Mapping[int, Upgrade] = {}  # schema number to the pure function that lifts it by one; 1 is the first schema
SCHEMA_NEWER = "RECORD_SCHEMA_NEWER"
SCHEMA_UNKNOWN = "RECORD_SCHEMA_UNKNOWN"
RECORD_SHAPE = "RECORD_SHAPE"

_GROUPS = ("subject", "shard", "attempts", "claim_ids", "answers", "class", "answers_by_class", "record_id")
_KNOWN = frozenset(PLAIN_FIELDS) | frozenset(_GROUPS)
_TYPES: Mapping[str, tuple[type, ...]] = {
    "run_id": (str,),
    "lane": (str,),
    "node_id": (str,),
    "params_digest": (str,),
    "test_digest": (str,),
    "min_answers": (int,),
    "needs_nonce": (bool,),
    "conversations": (int,),
    "verdict": (str,),
    "reason_code": (str, type(None)),
    "reason_text": (str,),
    "duration_ms": (int,),
    "failure": (str, type(None)),
    "captured_stdout": (str,),
    "captured_stderr": (str,),
    "model": (dict, type(None)),
    "live_proof": (dict, type(None)),
    "cassette": (dict, type(None)),
    "guard": (dict, type(None)),
    "script": (dict, type(None)),
    "cost": (dict, type(None)),
}
_REQUIRED = ("run_id", "lane", "node_id", "verdict")
_NONE = type(None)
_CLAIMED: Mapping[str, tuple[type, ...]] = {  # what a file says that follows from the facts
    "class": (str, _NONE),
    "record_id": (str, _NONE),
    "answers_by_class": (dict, _NONE),
}
_MAX_SHARED_BYTES = 512  # of a group that is kept for others; one with the text of a failure has its own


@dataclass(frozen=True, slots=True)
class _Form:
    """Which fields a record has: plain ones, and unknown ones. is_whole: none is missing."""

    plain: tuple[str, ...]
    extra: tuple[str, ...]
    is_whole: bool


def has_own_digest(document: JsonObject, line: bytes = b"") -> bool:
    """Whether the stored record_id is the digest of every other field, as the line was written.

    Shape: a line in canonical form is digested as it stands, which is the same and much faster.
    """
    stored = document.get("record_id")
    if line and isinstance(stored, str):
        spelled = f'"record_id":"{stored}",'.encode("utf-8", "replace")
        if line.count(spelled) == 1 and digest_bytes(line.replace(spelled, b"")) == stored:
            return True
    return document.get("record_id") == digest_json(
        {name: value for name, value in document.items() if name != "record_id"}
    )


def record_from_json(document: JsonObject, *, upgrades: Mapping[int, Upgrade] = UPGRADES) -> Record:
    """Read one record; unknown fields are kept, older schemas are upgraded.

    Raises: EvidenceError for a newer schema, an unknown one, or a field of the wrong type.
    """
    current = _upgrade(document, upgrades)
    form = _usual_form(tuple(current), tuple(map(type, current.values()))) or _checked_form(current)
    if current["verdict"] not in VERDICTS:
        raise EvidenceError(f"verdict {current['verdict']!r:.80} is unknown", code=RECORD_SHAPE)
    counts = current.get("answers_by_class")
    plain = {name: current[name] for name in form.plain}
    for name in _ALIKE:
        if (group := plain.get(name)) is not None:
            plain[name] = _shared(group)
    subject, has_subject = _group_from_json(Subject, current.get("subject", {}), "subject")
    shard, has_shard = _group_from_json(Shard, current.get("shard", {}), "shard")
    attempts = [_group_from_json(Attempt, item, "attempts") for item in _items(current, "attempts")]
    record = Record(
        **cast("dict[str, str]", plain),  # type: ignore[arg-type]  # every field's type was checked above
        subject=subject,
        shard=shard,
        attempts=tuple(attempt for attempt, _is_whole in attempts),
        claim_ids=_texts(current, "claim_ids"),
        answers=_objects(current, "answers"),
        extra={name: current[name] for name in form.extra},
        stored_class=cast("str | None", current.get("class")),
        stored_counts=None if counts is None else cast("JsonObject", _shared(counts)),
        stored_id=cast("str | None", current.get("record_id")),
    )
    if not (form.is_whole and has_subject and has_shard and all(is_whole for _attempt, is_whole in attempts)):
        record.keep_source(current)  # it leaves fields out that writing would add; kept as it is, not as it would be
    return record


@lru_cache(maxsize=1024)
def _usual_form(names: tuple[str, ...], kinds: tuple[type, ...]) -> _Form | None:
    """The form of every record with these fields of exactly these types; None for one that has to be looked at."""
    given = dict(zip(names, kinds, strict=True))
    is_right = all(given[name] in wanted for name, wanted in {**_TYPES, **_CLAIMED}.items() if name in given)
    return _form_of(names) if is_right and given.keys() >= set(_REQUIRED) else None


def _checked_form(current: JsonObject) -> _Form:
    for name in _REQUIRED:
        if name not in current:
            raise EvidenceError(f"field {name!r} is missing", code=RECORD_SHAPE)
    for name, kinds in _TYPES.items():
        if name in current and type(current[name]) not in kinds and not _is_one_of(current[name], kinds):
            wanted = " or ".join("null" if kind is _NONE else kind.__name__ for kind in kinds)
            raise EvidenceError(f"field {name!r} is {current[name]!r:.80}, expected {wanted}", code=RECORD_SHAPE)
    for name in ("class", "record_id"):
        value = current.get(name)
        if value is not None and not isinstance(value, str):
            raise EvidenceError(f"field {name!r} is {value!r:.80}, expected str", code=RECORD_SHAPE)
    counts = current.get("answers_by_class")
    if counts is not None and not isinstance(counts, Mapping):
        raise EvidenceError("field 'answers_by_class' is no object", code=RECORD_SHAPE)
    return _form_of(tuple(current))


def _form_of(names: tuple[str, ...]) -> _Form:
    plain = tuple(name for name in PLAIN_FIELDS if name in names)
    return _Form(plain, tuple(name for name in names if name not in _KNOWN), set(names) >= _KNOWN)


def subject_from_json(value: Json) -> Subject:
    """Read a subject; raises EvidenceError for a field of the wrong type."""
    return _group_from_json(Subject, value, "subject")[0]


_ALIKE = ("guard", "script", "cassette", "model")  # groups that most records of a lane have in common

_Group = TypeVar("_Group", Subject, Shard, Attempt)
_Kind: TypeAlias = type[Subject] | type[Shard] | type[Attempt]


def _group_from_json(kind: type[_Group], value: Json, where: str) -> tuple[_Group, bool]:
    """One group, and whether none of its fields is missing."""
    if not _is_object(value):
        raise EvidenceError(f"field {where!r} is no object", code=RECORD_SHAPE)
    spelled = _spelled(value)
    if spelled is None or len(spelled) > _MAX_SHARED_BYTES:
        return cast("tuple[_Group, bool]", _new_group(kind, value, where))
    return cast("tuple[_Group, bool]", _shared_group(kind.__name__, spelled, where))


@lru_cache(maxsize=4096)
def _shared_group(name: str, spelled: bytes, where: str) -> tuple[Subject | Shard | Attempt, bool]:
    """Thousands of records share one subject, a few shards and alike attempts: each is checked once and kept once."""
    return _new_group(_KINDS[name], marshal.loads(spelled), where)  # noqa: S302 - our own bytes, of a moment ago


def _shared(group: Json) -> Json:
    """An equal object that other records hold already, where there is one."""
    spelled = _spelled(group)
    return group if spelled is None else _shared_object(spelled)


@lru_cache(maxsize=1024)
def _shared_object(spelled: bytes) -> Json:
    return cast("Json", marshal.loads(spelled))  # noqa: S302 - as above


def _spelled(value: Json) -> bytes | None:
    """Bytes that are the same for the same value, quickly; None for what is no plain JSON or too deep."""
    try:
        # from version 3 on, the bytes tell how often a text is held, too
        return marshal.dumps(cast("dict[str, str]", value), 2)
    except ValueError:
        return None


def _new_group(kind: _Kind, value: JsonObject, where: str) -> tuple[Subject | Shard | Attempt, bool]:
    table = _GROUP_FIELDS[kind]
    known: dict[str, Json] = {}
    for name, kinds in table.items():
        if name not in value:
            continue
        found = value[name]
        if type(found) not in kinds and not _is_one_of(found, kinds):
            wanted = " or ".join("null" if each is type(None) else each.__name__ for each in kinds)
            raise EvidenceError(f"field '{where}.{name}' is {found!r:.80}, expected {wanted}", code=RECORD_SHAPE)
        known[name] = found
    if kind is Attempt and not {"n", "verdict"} <= known.keys():
        raise EvidenceError("an attempt needs 'n' and 'verdict'", code=RECORD_SHAPE)
    if kind is Attempt and known["verdict"] not in VERDICTS:
        raise EvidenceError(f"attempt verdict {known['verdict']!r:.80} is unknown", code=RECORD_SHAPE)
    extra = {name: item for name, item in value.items() if name not in table} if len(known) < len(value) else {}
    group = kind(**cast("dict[str, str]", known), extra=extra)  # type: ignore[arg-type]  # types were checked above
    return group, len(known) == len(table)


_GROUP_TYPES: Mapping[str, tuple[type, ...]] = {
    "int": (int,),
    "str": (str,),
    "bool": (bool,),
    "Verdict": (str,),
    "str | None": (str, type(None)),
}
_KINDS: Mapping[str, _Kind] = {kind.__name__: kind for kind in (Subject, Shard, Attempt)}
_GROUP_FIELDS: Mapping[type, Mapping[str, tuple[type, ...]]] = {
    kind: {each.name: _GROUP_TYPES[str(each.type)] for each in fields(kind) if each.name != "extra"}
    for kind in _KINDS.values()
}


def _is_one_of(value: Json, kinds: tuple[type, ...]) -> bool:
    if isinstance(value, bool) and bool not in kinds:
        return False
    return isinstance(value, kinds) or (dict in kinds and isinstance(value, Mapping))


def _is_object(value: Json) -> TypeGuard[JsonObject]:
    return type(value) is dict or isinstance(value, Mapping)  # the second asks in Python


def _items(document: JsonObject, name: str) -> Sequence[Json]:
    value = document.get(name, ())
    if type(value) is list:
        return value
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise EvidenceError(f"field {name!r} is no list", code=RECORD_SHAPE)
    return value


def _texts(document: JsonObject, name: str) -> tuple[str, ...]:
    found = _items(document, name)
    if not all(isinstance(item, str) for item in found):
        raise EvidenceError(f"field {name!r} holds something that is no text", code=RECORD_SHAPE)
    return tuple(cast("Sequence[str]", found))


def _objects(document: JsonObject, name: str) -> tuple[JsonObject, ...]:
    found = _items(document, name)
    if not all(map(_is_object, found)):
        raise EvidenceError(f"field {name!r} holds something that is no object", code=RECORD_SHAPE)
    return tuple(cast("Sequence[JsonObject]", found))


def _upgrade(document: JsonObject, upgrades: Mapping[int, Upgrade]) -> JsonObject:
    schema = document.get("schema")
    if schema == SCHEMA:
        return document
    if isinstance(schema, str) and (match := re.fullmatch(r"evidence/(\d{1,6})", schema)):
        number = int(match.group(1))
        if number in upgrades:
            return _upgrade(upgrades[number](document), upgrades)
        if number > int(SCHEMA.partition("/")[2]):
            raise EvidenceError(f"schema {schema!r} is newer than {SCHEMA!r}", code=SCHEMA_NEWER)
    raise EvidenceError(f"schema {schema!r:.80} is unknown", code=SCHEMA_UNKNOWN)
