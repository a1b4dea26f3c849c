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
