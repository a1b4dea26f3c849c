"""Take a private, frozen copy of what someone wants to put into a log.

Room: pure; session_log freezes before it validates, json_form freezes what it reads. Nobody else needs it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from operator import attrgetter
from types import MappingProxyType
from typing import Any, TypeVar, cast

from harness.errors import InvalidEventError
from harness.model.messages import Json, JsonObject

MAX_SAFE_INTEGER = 2**53 - 1  # beyond it readers in other languages round, and a rounded log is another log
MAX_DEPTH = 200  # json of the standard library recurses; a fifth of its limit leaves room for every caller's own stack

Value = TypeVar("Value")
_FIELDS: dict[type[object], tuple[str, ...]] = {}
_GETTERS: dict[type[object], Callable[[Any], tuple[Any, ...]]] = {}  # all field values of a known dataclass at once


def join_surrogates(text: str) -> str:
    """The same text with each high and low surrogate that stand side by side joined into their character.

    A lone half stays as it is: it is kept escaped on disk and on the wire. A pair made of two halves would come
    back from JSON as one character, so it becomes one before it is stored.
    """
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return text


def freeze_json(value: object, where: str = "data") -> Json:
    """A copy of a JSON value that nobody can change: tuples for lists, read-only mappings for objects.

    Raises: InvalidEventError naming the place for NaN, infinities, -0.0, integers beyond 2**53 - 1, keys that are
    not strings, cycles, and every type JSON does not have.
    """
    try:
        return _freeze_json(value, 0)
    except InvalidEventError as error:
        error.where = where + error.where  # the place is spelled on the way up, and costs nothing when all is well
        raise


def _freeze_json(value: Any, depth: int) -> Json:  # Any: finding out what it is, is the point
    kind = type(value)
    if kind is str:
        return value if value.isascii() else join_surrogates(value)
    if value is None or kind is bool:
        return cast("bool | None", value)
    if kind is int:
        if abs(value) > MAX_SAFE_INTEGER:
            raise InvalidEventError(f"integer {value} is beyond 2**53 - 1")
        return cast("int", value)
    if kind is float:
        if not math.isfinite(value) or (value == 0.0 and math.copysign(1.0, value) < 0):
            raise InvalidEventError(f"number {value!r} does not survive JSON")
        return cast("float", value)
    if depth > MAX_DEPTH:
        raise InvalidEventError(f"nested deeper than {MAX_DEPTH}, or a cycle")
    at: object = None
    try:
        if kind is dict or isinstance(value, Mapping):
            copy: dict[str, Json] = {}
            for at, item in value.items():
                if type(at) is not str:
                    raise InvalidEventError(f"key {at!r} is not a string")
                copy[join_surrogates(at)] = _freeze_json(item, depth + 1)
            return MappingProxyType(copy)
        if isinstance(value, list | tuple):
            items: list[Json] = []
            for index, item in enumerate(value):
                at = index
                items.append(_freeze_json(item, depth + 1))
            return tuple(items)
    except InvalidEventError as error:
        error.where = (f".{at}" if type(at) is str else f"[{at}]") + error.where
        raise
    raise InvalidEventError(f"a {kind.__name__} is not a JSON value")


def freeze_object(value: object, where: str = "data") -> JsonObject:
    """freeze_json for a value that has to be an object."""
    if not isinstance(value, Mapping):
        raise InvalidEventError(f"{type(value).__name__} where an object belongs", where=where)
    frozen = freeze_json(value, where)
    assert isinstance(frozen, Mapping)  # noqa: S101 - freeze_json keeps mappings mappings; tells the type checker
    return frozen


def thaw_json(value: Json) -> Any:  # Any: the result feeds json.dumps, which takes anything
    """The value as plain dicts and lists, fresh ones."""
    if isinstance(value, Mapping):
        return {key: thaw_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [thaw_json(item) for item in value]
    return value


def freeze_payload(payload: Value, where: str) -> Value:
    """The payload with its JSON values copied and frozen and its texts free of split pairs; itself when it already is.

    Only what is mutable is copied; frozen parts are shared. What a field may hold is validate's business.
    """
    if _is_settled(payload):
        return payload
    try:
        frozen: Value = _freeze_field(payload)
    except InvalidEventError as error:
        error.where = where + error.where
        raise
    return frozen


def _is_settled(value: Any) -> bool:
    """Whether freezing would give the value itself; True for nearly everything a loop appends."""
    kind = type(value)
    fields_of = _GETTERS.get(kind)
    for item in fields_of(value) if fields_of is not None else value if kind is tuple else (value,):
        inner = type(item)
        if inner is str:
            if not item.isascii() and join_surrogates(item) is not item:
                return False
        elif item is None or inner is int or inner is bool:
            continue
        elif (inner is not tuple and inner not in _GETTERS) or not _is_settled(item):
            return False
    return True


def _getter(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) == 1:
        get = attrgetter(names[0])
        return lambda value: (get(value),)
    return attrgetter(*names) if names else lambda _value: ()


def _freeze_field(value: Any) -> Any:  # Any: walks the fields of every payload type alike
    kind = type(value)
    if kind is str:
        return value if value.isascii() else join_surrogates(value)
    if kind is int or value is None or kind is bool:
        return value
    names = _FIELDS.get(kind)
    if names is None and dataclasses.is_dataclass(kind):
        names = _FIELDS[kind] = tuple(field.name for field in dataclasses.fields(kind))
        _GETTERS[kind] = _getter(names)
    at: object = None
    try:
        if names is not None:
            changes: dict[str, Any] | None = None
            for at in names:
                old = getattr(value, at)
                new = _freeze_field(old)
                if new is not old:
                    changes = changes if changes is not None else {}
                    changes[at] = new
            return value if changes is None else dataclasses.replace(value, **changes)
        if kind is tuple:
            same = True
            items = []
            for index, old in enumerate(value):
                at = index
                new = _freeze_field(old)
                same = same and new is old
                items.append(new)
            return value if same else tuple(items)
    except InvalidEventError as error:
        error.where = (f".{at}" if type(at) is str else f"[{at}]") + error.where
        raise
    return _freeze_json(value, 0)
