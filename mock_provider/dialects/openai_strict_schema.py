"""What the provider asks of a schema under `strict: true`, beyond its being a JSON Schema.

Room: pure; the rules of the OpenAI dialects come in.
Source: the provider's guide "Structured outputs", supported schemas: every object closed, every property required,
no composition by allOf and its like, a limit of nesting and of properties; the words as its error bodies have them.
"""

from __future__ import annotations

from collections.abc import Sequence

from mock_provider.json_values import Json, JsonObject

MAX_PROPERTIES = 5000
MAX_LEVELS = 10
_FORBIDDEN = ("allOf", "oneOf", "not", "dependentRequired", "dependentSchemas", "if", "then", "else")


def strict_problem(schema: JsonObject) -> str | None:
    """Say why a schema is refused under strict mode, or None."""
    kind = schema.get("type")
    if "anyOf" in schema and kind is None:
        return f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{kind}\"'"
    return _Strict().problem(schema, (), 0)


class _Strict:
    """One schema under the rules. Shape: context is the path of keys, as the messages spell it."""

    def __init__(self) -> None:
        self._properties = 0

    def problem(self, schema: Json, context: Sequence[str], level: int) -> str | None:
        if not isinstance(schema, dict):
            return None
        where = f"In context={_spelled(context)}"
        forbidden = next((word for word in _FORBIDDEN if word in schema), None)
        if forbidden is not None:
            return f"{where}, '{forbidden}' is not permitted"
        if level > MAX_LEVELS:
            return f"Exceeded max depth of {MAX_LEVELS}"
        found = self._object(schema, where)
        return found or self._below(schema, context, level)

    def _object(self, schema: JsonObject, where: str) -> str | None:
        kinds = schema.get("type")
        is_object = kinds == "object" or (isinstance(kinds, list) and "object" in kinds)
        if not is_object and "properties" not in schema:
            return None
        if schema.get("additionalProperties") is not False:
            return f"{where}, 'additionalProperties' is required to be supplied and to be false"
        properties = schema.get("properties", {})
        names = list(properties) if isinstance(properties, dict) else []
        self._properties += len(names)
        if self._properties > MAX_PROPERTIES:
            return f"Exceeded max number of properties ({MAX_PROPERTIES})"
        required = schema.get("required")
        listed = required if isinstance(required, list) else []
        missing = next((name for name in names if name not in listed), None)
        if missing is not None or (names and required is None):
            return (
                f"{where}, 'required' is required to be supplied and to be an array including every key in properties. "
                f"Missing '{missing}'"
            )
        extra = next((name for name in listed if name not in names), None)
        if extra is not None:
            return f"{where}, 'required' holds '{extra}', which is no key in properties"
        return None

    def _below(self, schema: JsonObject, context: Sequence[str], level: int) -> str | None:
        for name in ("properties", "$defs", "definitions"):
            inner = schema.get(name)
            for key, item in inner.items() if isinstance(inner, dict) else ():
                found = self.problem(item, (*context, name, key), level + 1)
                if found:
                    return found
        variants = schema.get("anyOf")
        for at, item in enumerate(variants if isinstance(variants, list) else ()):
            found = self.problem(item, (*context, "anyOf", str(at)), level)
            if found:
                return found
        return self.problem(schema.get("items"), (*context, "items"), level + 1)


def _spelled(context: Sequence[str]) -> str:
    """Spell the path the way the messages do: as a tuple."""
    quoted = ", ".join(f"'{name}'" for name in context)
    return f"({quoted},)" if len(context) == 1 else f"({quoted})"
