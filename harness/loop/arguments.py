"""The arguments of a tool call: from the raw string the model wrote to values that fit the tool's schema.

Room: pure; tools asks. Checks the part of JSON Schema that argument lists use; other keywords are passed over.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import NoReturn, cast

from harness.model.messages import Json, JsonObject
from harness.wire.json_text import MAX_DEPTH, is_too_deep

MAX_PROBLEMS = 5  # enough for a model to mend a call in one go, short enough to read

_TOO_DEEP = f"lists and objects nested more than {MAX_DEPTH} levels deep"  # perhaps JSON; Python gave up far deeper

_TYPES: dict[str, Callable[[object], bool]] = {
    "object": lambda value: isinstance(value, Mapping),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": lambda value: (
        not isinstance(value, bool) and (isinstance(value, int) or (isinstance(value, float) and value.is_integer()))
    ),
}


class InvalidArgumentsError(Exception):
    """The arguments do not fit; str() lists the fields and what was expected of them."""


def read_arguments(raw: str, schema: JsonObject) -> Mapping[str, Json]:
    """The arguments as the tool gets them; an empty string is an empty object.

    Raises: InvalidArgumentsError for text that is no JSON object, and for values the schema does not take.
    """
    value = parse_arguments(raw)
    if not isinstance(value, dict):
        got = value.why if isinstance(value, _Unparsed) else _name_of(value)
        raise InvalidArgumentsError(f"arguments: expected a JSON object, got {got}")
    problems: list[str] = []
    checked = _check(value, schema, "", problems)
    if problems:
        more = [f"and {len(problems) - MAX_PROBLEMS} more"] if len(problems) > MAX_PROBLEMS else []
        raise InvalidArgumentsError("; ".join([*problems[:MAX_PROBLEMS], *more]))
    return cast("Mapping[str, Json]", checked)


class _Unparsed(str):
    """Arguments that give no value, passed on as the model wrote them; why says what they are instead."""

    __slots__ = ("why",)
    why: str


def parse_arguments(raw: str) -> Json:
    """The JSON value of the raw string, {} for an empty one, or the string itself when it is no JSON or too deep.

    Limits: MAX_DEPTH lists and objects within each other; a history that holds more could not be sent any more.
    """
    if not raw.strip():
        return {}
    try:
        value: Json = json.loads(raw, parse_constant=_no_constant, object_pairs_hook=_unique)
    except RecursionError:
        return _unparsed(raw, _TOO_DEEP)
    except ValueError as error:
        return _unparsed(raw, f"text that is not JSON: {error}")
    return _unparsed(raw, _TOO_DEEP) if is_too_deep(value) else value


def _unparsed(raw: str, why: str) -> _Unparsed:
    text = _Unparsed(raw)
    text.why = why
    return text


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return found


def _check(value: Json, schema: object, path: str, problems: list[str]) -> Json:
    """The value, with whole numbers as integers where the schema says so; what does not fit goes to problems."""
    if schema is False:
        problems.append(f"{path or 'arguments'}: not allowed")
    if not isinstance(schema, Mapping):
        return value
    where = path or "arguments"
    kinds = _kinds(schema.get("type"))
    if kinds and not any(_TYPES[kind](value) for kind in kinds):
        problems.append(f"{where}: expected {' or '.join(kinds)}, got {_name_of(value)}")
        return value
    if isinstance(value, float) and value.is_integer() and "integer" in kinds and "number" not in kinds:
        value = int(value)
    allowed = schema.get("enum")
    if isinstance(allowed, list | tuple) and not any(_same(value, item) for item in allowed):
        problems.append(f"{where}: expected one of {_short(list(allowed))}, got {_short(value)}")
    if isinstance(value, int | float) and not isinstance(value, bool):
        _check_range(value, schema, where, problems)
    if isinstance(value, Mapping):
        return _check_object(value, schema, path, problems)
    if isinstance(value, list) and "items" in schema:
        return [_check(item, schema["items"], f"{path}[{at}]", problems) for at, item in enumerate(value)]
    return value


def _check_range(value: float, schema: Mapping[str, object], where: str, problems: list[str]) -> None:
    least, most = schema.get("minimum"), schema.get("maximum")
    if isinstance(least, int | float) and value < least:
        problems.append(f"{where}: expected at least {least}, got {value}")
    if isinstance(most, int | float) and value > most:
        problems.append(f"{where}: expected at most {most}, got {value}")


def _check_object(value: Mapping[str, Json], schema: Mapping[str, object], path: str, problems: list[str]) -> Json:
    properties = schema.get("properties")
    known = properties if isinstance(properties, Mapping) else {}
    required = schema.get("required")
    for name in required if isinstance(required, list | tuple) else ():
        if name not in value:
            problems.append(f"{_join(path, str(name))}: missing")
    others = schema.get("additionalProperties", True)
    checked: dict[str, Json] = {}
    for name, item in value.items():
        if name in known:
            checked[name] = _check(item, known[name], _join(path, name), problems)
        elif others is False:
            names = ", ".join(sorted(known)) or "no field at all"
            problems.append(f"{_join(path, name)}: unknown; expected {names}")
        else:
            checked[name] = _check(item, others, _join(path, name), problems)
    return checked


def _kinds(declared: object) -> tuple[str, ...]:
    names = declared if isinstance(declared, list | tuple) else (declared,)
    return tuple(name for name in names if isinstance(name, str) and name in _TYPES)


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _same(left: object, right: object) -> bool:
    """Equal as JSON: true is not 1."""
    return isinstance(left, bool) == isinstance(right, bool) and left == right


def _name_of(value: object) -> str:
    kind = next(
        name for name in ("null", "boolean", "integer", "number", "string", "array", "object") if _TYPES[name](value)
    )
    return kind if kind in ("null", "array", "object") else f"{kind} {_short(value)}"


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."
