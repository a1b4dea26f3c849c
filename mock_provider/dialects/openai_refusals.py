"""The words in which the chat completions endpoint refuses wrong values.

Room: pure; only the chat rules come in.
"""

from __future__ import annotations

from mock_provider.asked import Refusal
from mock_provider.json_values import Json


def kind_of(value: Json) -> str:
    """Name a JSON type the way the provider's messages do."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int):
        return "an integer"
    if isinstance(value, float):
        return "a decimal"
    if isinstance(value, str):
        return "a string"
    return "an array" if isinstance(value, list) else "an object"


def missing(param: str) -> Refusal:
    """A field is absent."""
    message = f"Missing required parameter: '{param}'."
    return Refusal(400, "missing_field", message, code="missing_required_parameter", param=param)


def wrong_type(param: str, expected: str, value: Json) -> Refusal:
    """A value has another type."""
    message = f"Invalid type for '{param}': expected {expected}, but got {kind_of(value)} instead."
    return Refusal(400, "wrong_type", message, code="invalid_type", param=param)


def empty(param: str) -> Refusal:
    """A list that must not be empty is."""
    message = (
        f"Invalid '{param}': empty array. Expected an array with minimum length 1, but got an empty array instead."
    )
    return Refusal(400, "empty_array", message, code="empty_array", param=param)
