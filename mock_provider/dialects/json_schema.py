"""Whether a tool's parameters are a valid JSON Schema, as the providers check it.

Room: pure; the dialects come in. Only the keywords that providers look at are checked, not the whole standard.
"""

from __future__ import annotations

import hashlib
import marshal

from mock_provider.json_values import Json

TYPES = ("string", "number", "integer", "boolean", "object", "array", "null")
_SCHEMA_MAPS = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")
_SCHEMA_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SCHEMAS = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
_NUMBERS = ("minimum", "maximum", "multipleOf")


MAX_SOUND = 2048  # schemas; a request rarely offers more than a few dozen
_sound: dict[bytes, None] = {}


def schema_problem(schema: Json) -> str | None:
    """Say what is wrong with a schema, or None.

    Limits: the last MAX_SOUND sound ones are known again without a look inside, agents offer theirs with every request.
    """
    if type(schema) is not dict:
        return _problem(schema, "")
    digest = hashlib.sha256(marshal.dumps(schema, 2)).digest()  # tells 1 from true and keeps order, unlike ==
    if digest in _sound:
        return None
    problem = _problem(schema, "")
    if problem is None:
        if len(_sound) >= MAX_SOUND:
            _sound.pop(next(iter(_sound)), None)
        _sound[digest] = None
    return problem


def _problem(schema: Json, path: str) -> str | None:
    where = f" at {path}" if path else ""
    if isinstance(schema, bool):
        return None
    if not isinstance(schema, dict):
        return f"{_spelled(schema)} is not of type 'object', 'boolean'{where}"
    return _keywords(schema, where) or _below(schema, path)


def _spelled(value: Json) -> str:
    return repr(value) if not isinstance(value, list | dict) else ("a list" if isinstance(value, list) else "a mapping")


def _keywords(schema: dict[str, Json], where: str) -> str | None:
    kinds = schema.get("type")
    listed = kinds if isinstance(kinds, list) else [kinds]
    if "type" in schema and (not listed or any(kind not in TYPES for kind in listed)):
        wrong = next((kind for kind in listed if kind not in TYPES), kinds)
        return f"{_spelled(wrong)} is not valid under any of the given schemas{where}"
    required = schema.get("required", [])
    if not isinstance(required, list) or any(not isinstance(name, str) for name in required):
        return f"{_spelled(required)} is not of type 'array' of strings{where}"
    if len(set(map(str, required))) != len(required):
        return f"'required' has non-unique elements{where}"
    if "enum" in schema and not isinstance(schema["enum"], list):
        return f"{_spelled(schema['enum'])} is not of type 'array'{where}"
    for name in _COUNTS:
        value = schema.get(name, 0)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            return f"'{name}' is not a count{where}"
    for name in _NUMBERS:
        value = schema.get(name, 1)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return f"'{name}' is not a number{where}"
    return None


def _below(schema: dict[str, Json], path: str) -> str | None:
    for name in _SCHEMA_MAPS:
        inner = schema.get(name, {})
        if not isinstance(inner, dict):
            return f"{_spelled(inner)} is not of type 'object' at {_join(path, name)}"
        for key, item in inner.items():
            problem = _problem(item, _join(path, f"{name}.{key}"))
            if problem:
                return problem
    for name in _SCHEMA_LISTS:
        listed = schema.get(name)
        if listed is None:
            continue
        if not isinstance(listed, list) or not listed:
            return f"{_join(path, name)} is not a list of schemas"
        for at, item in enumerate(listed):
            problem = _problem(item, f"{_join(path, name)}[{at}]")
            if problem:
                return problem
    for name in _SCHEMAS:
        if name in schema and not (name == "items" and isinstance(schema[name], list)):
            problem = _problem(schema[name], _join(path, name))
            if problem:
                return problem
    return None


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
