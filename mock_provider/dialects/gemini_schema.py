"""What the Gemini endpoints refuse in a schema, once its fields have the right types.

Room: pure; the rules of the Gemini dialect come in.
Source: the provider's published API reference (Schema, a subset of OpenAPI 3.0); its error bodies as clients have
reported them, which count properties by name here and by number where a type is wrong.
"""

from __future__ import annotations

from mock_provider.dialects.gemini_fields import pick, pick_list, pick_object, pick_objects, pick_text
from mock_provider.json_values import JsonObject

_TEXT_FORMATS = ("enum", "date-time")


def schema_violations(schema: JsonObject, path: str) -> list[str]:
    """Say everything that is wrong with a schema and those inside it. Shape: one text a violation, its place first."""
    kind = pick_text(schema, "type").upper()
    found: list[str] = []
    properties = pick_object(schema, "properties")
    branches = pick_objects(schema, "anyOf")
    if kind in ("", "TYPE_UNSPECIFIED") and not branches:
        found.append(f"{path}.type: must be specified when not using one_of, any_of or all_of fields")
    if kind != "OBJECT" and kind and properties:
        found.append(f"{path}.properties: only allowed for OBJECT type")
    if kind == "OBJECT":
        found += [
            f"{path}.required[{at}]: property is not defined"
            for at, name in enumerate(pick_list(schema, "required"))
            if name not in properties
        ]
    if kind == "ARRAY" and pick(schema, "items") is None:
        found.append(f"{path}.items: missing field.")
    if kind not in ("", "STRING") and pick_list(schema, "enum"):
        found.append(f"{path}.enum: only allowed for STRING type")
    form = pick_text(schema, "format")
    if kind == "STRING" and form and form not in _TEXT_FORMATS:
        found.append(f"{path}.format: only 'enum' and 'date-time' are supported for STRING type")
    for name, inner in properties.items():
        if isinstance(inner, dict):
            found += schema_violations(inner, f"{path}.properties[{name}]")
    items = pick(schema, "items")
    if isinstance(items, dict):
        found += schema_violations(items, f"{path}.items")
    for at, branch in enumerate(branches):
        found += schema_violations(branch, f"{path}.any_of[{at}]")
    return found
