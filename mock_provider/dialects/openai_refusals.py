"""The words in which the provider refuses wrong values.

Room: pure; only the rules of its endpoints come in.
Source: the error bodies of the provider's endpoints as clients have reported them.
"""

from __future__ import annotations

from collections.abc import Sequence

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


def listed(words: Sequence[str]) -> str:
    """Spell a list of words the way the messages do."""
    quoted = [f"'{word}'" for word in words]
    if len(quoted) < 3:
        return " and ".join(quoted)
    return f"{', '.join(quoted[:-1])}, and {quoted[-1]}"


def unknown_value(rule: str, param: str, value: Json, known: Sequence[str]) -> Refusal:
    """A word is not among those that may stand there."""
    message = f"Invalid value: '{value}'. Supported values are: {listed(known)}."
    return Refusal(400, rule, message, code="invalid_value", param=param)


def too_long(rule: str, param: str, size: int, most: int) -> Refusal:
    """A text has too many characters."""
    message = (
        f"Invalid '{param}': string too long. Expected a string with maximum length {most}, "
        f"but got a string with length {size} instead."
    )
    return Refusal(400, rule, message, code="string_above_max_length", param=param)


def too_many(rule: str, param: str, size: int, most: int) -> Refusal:
    """A list has too many items."""
    message = (
        f"Invalid '{param}': array too long. Expected an array with maximum length {most}, "
        f"but got an array with length {size} instead."
    )
    return Refusal(400, rule, message, code="array_above_max_length", param=param)


def empty_text(rule: str, param: str) -> Refusal:
    """A text that must not be empty is."""
    message = (
        f"Invalid '{param}': empty string. Expected a string with minimum length 1, but got an empty string instead."
    )
    return Refusal(400, rule, message, code="empty_string", param=param)


def out_of_range(value: Json, name: str, least: float, most: float, kind: str) -> Refusal | None:
    """Check a number; kind is the provider's word for it. None is in every range."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int if kind == "integer" else (int, float)):
        return wrong_type(name, f"{'an' if kind == 'integer' else 'a'} {kind}", value)
    if value < least:
        text = f"Invalid '{name}': {kind} below minimum value. Expected a value >= {least}, but got {value} instead."
        return Refusal(400, "out_of_range", text, code=f"{kind}_below_min_value", param=name)
    if value > most:
        text = f"Invalid '{name}': {kind} above maximum value. Expected a value <= {most}, but got {value} instead."
        return Refusal(400, "out_of_range", text, code=f"{kind}_above_max_value", param=name)
    return None


_DEFAULTS: dict[int, tuple[str, str | None, str]] = {
    400: ("invalid_request_error", None, "The request was refused."),
    401: ("invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    402: ("invalid_request_error", "invalid_request_error", "Insufficient Balance"),
    403: ("invalid_request_error", "unsupported_country_region_territory", "The request is not allowed."),
    404: ("invalid_request_error", "model_not_found", "The model does not exist or you do not have access to it."),
    413: ("invalid_request_error", None, "The request body is too large."),
    429: ("requests", "rate_limit_exceeded", "Rate limit reached for requests. Please try again later."),
    500: ("server_error", None, "The server had an error while processing your request. Sorry about that!"),
    502: ("server_error", None, "Bad gateway."),
    503: ("server_error", None, "The engine is currently overloaded, please try again later."),
    504: ("server_error", None, "The request timed out."),
    529: ("overloaded_error", None, "Overloaded"),
}
_BY_CODE: dict[str, tuple[str, str]] = {
    "insufficient_quota": (
        "insufficient_quota",
        "You exceeded your current quota, please check your plan and billing details.",
    ),
    "context_length_exceeded": (
        "invalid_request_error",
        "This model's maximum context length is exceeded by your messages. Please reduce their length.",
    ),
    "rate_limit_exceeded": ("requests", "Rate limit reached for requests. Please try again later."),
}


def usual_error(status: int, code: str | None) -> tuple[str, str | None, str]:
    """The usual type, code and message of an error status; a known code brings its own."""
    fallback = ("server_error", None, "The server had an error.") if status >= 500 else _DEFAULTS[400]
    kind, usual_code, message = _DEFAULTS.get(status, fallback)
    if code is not None:
        kind, message = _BY_CODE.get(code, (kind, message))
    return kind, code or usual_code, message
