"""Errors in the form of the Ollama endpoints: a plain text, and nothing else to tell them apart by.

Room: pure; the Ollama dialect and its rules come in.
Source: the server's own source text (server/routes.go, server/sched.go, api/types.go) and what the JSON decoder of its
language says of wrong types.
"""

from __future__ import annotations

from mock_provider.asked import Refusal
from mock_provider.json_values import Json, JsonObject
from mock_provider.steps import ErrorEvent, Script

_USUAL = {
    400: "bad request",
    401: "unauthorized",
    402: "payment required",
    403: "forbidden",
    404: "model not found",
    405: "405 method not allowed",
    413: "request body too large",
    429: "too many concurrent requests",
    499: "request canceled",
    500: "llama runner process has terminated: exit status 2",
    502: "upstream error",
    503: "server busy, please try again.  maximum pending requests exceeded",
}
_BY_CODE = {
    "insufficient_quota": "you've reached your usage limit, please upgrade to continue",
    "context_length_exceeded": "the input length exceeds the context length",
}
# What the neutral engine says of a body that is no JSON is another provider's wording.
_UNREADABLE = {
    "not_json": "invalid character in the request body, expected a JSON value",
    "empty_body": "missing request body",
}
UNMATCHED = "mock_unmatched"  # this dialect has no codes, so this one stands before the text


def refuse(rule: str, message: str, status: int = 400) -> Refusal:
    """A refusal; this dialect knows no kinds of them."""
    return Refusal(status, rule, message, "error")


def unknown_model(name: str) -> Refusal:
    """A model that is not there."""
    return refuse("unknown_model", f"model '{name}' not found", 404)


def wrong_type(field: str, value: Json, wanted: str) -> Refusal:
    """A value has another type than its field. Shape: field is `Struct.path`, wanted the type in the server's words."""
    words: tuple[tuple[type, str], ...] = (
        (bool, "bool"),
        (int, "number"),
        (float, "number"),
        (str, "string"),
        (list, "array"),
        (dict, "object"),
    )
    given = next((word for kind, word in words if isinstance(value, kind)), "null")
    place = f"Go struct field {field}" if "." in field else "Go value"
    return refuse("wrong_type", f"json: cannot unmarshal {given} into {place} of type {wanted}")


def usual_error(status: int, code: str | None) -> tuple[str, str | None, str]:
    """The usual text of an error status; a known code brings its own."""
    text = _USUAL.get(status, _USUAL[500] if status >= 500 else _USUAL[400])
    return "error", code, _BY_CODE.get(code or "", text)


def error(refusal: Refusal, script: Script) -> JsonObject:
    """Write an error body."""
    del script
    message = _UNREADABLE.get(refusal.rule, refusal.message)
    return {"error": f"{UNMATCHED}: {message}" if refusal.code == UNMATCHED else message}


def event_error(part: ErrorEvent) -> JsonObject:
    """An error inside a 200: a line of the same form."""
    return {"error": part.message}
