"""Errors in the form of the Gemini endpoints, and their usual words.

Room: pure; the Gemini dialect and its rules come in.
Source: google.rpc.Status and google.rpc error details in the provider's published API reference; the usual words as
clients have reported them.
"""

from __future__ import annotations

from mock_provider.asked import Refusal
from mock_provider.json_values import Json, JsonObject
from mock_provider.steps import ErrorEvent, Script

_TYPE = "type.googleapis.com/google.rpc."
_SERVICE = "generativelanguage.googleapis.com"
_USUAL: dict[int, tuple[str, str]] = {
    400: ("INVALID_ARGUMENT", "Request contains an invalid argument."),
    401: (
        "UNAUTHENTICATED",
        "Request had invalid authentication credentials. Expected OAuth 2 access token or other valid credential.",
    ),
    403: ("PERMISSION_DENIED", "The caller does not have permission"),
    404: ("NOT_FOUND", "Requested entity was not found."),
    405: ("UNIMPLEMENTED", "The method is not implemented for this address."),
    408: ("DEADLINE_EXCEEDED", "Deadline expired before operation could complete."),
    409: ("ABORTED", "The operation was aborted."),
    413: ("INVALID_ARGUMENT", "Request payload size exceeds the limit: 20971520 bytes."),
    429: ("RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."),
    499: ("CANCELLED", "The operation was cancelled."),
    500: ("INTERNAL", "An internal error has occurred. Please retry or report it."),
    501: ("UNIMPLEMENTED", "Operation is not implemented, or supported, or enabled."),
    503: ("UNAVAILABLE", "The model is overloaded. Please try again later."),
    504: ("DEADLINE_EXCEEDED", "Deadline expired before operation could complete."),
    529: ("UNAVAILABLE", "The model is overloaded. Please try again later."),
}
_BY_CODE: dict[str, str] = {
    "insufficient_quota": (
        "You exceeded your current quota, please check your plan and billing details. "
        "* Quota exceeded for metric: generativelanguage.googleapis.com/generate_content_free_tier_requests, limit: 0"
    ),
    "context_length_exceeded": ("The input token count exceeds the maximum number of tokens allowed (1048576)."),
}
# What the neutral engine says of a body that is no JSON is another provider's wording.
_UNREADABLE = {
    "not_json": "Invalid JSON payload received. Unexpected token.",
    "empty_body": "Invalid JSON payload received. Unexpected end of string. Expected a value.",
}
_NEUTRAL = "invalid_request_error"  # the kind of a refusal for which nobody chose another
_OF_EVENTS = {"server_error": 500, "overloaded_error": 503, "rate_limit_error": 429, "rate_limit_exceeded": 429}


def refuse(rule: str, message: str, *, status: int = 400, kind: str = "INVALID_ARGUMENT") -> Refusal:
    """A refusal, by default of the usual kind."""
    return Refusal(status, rule, message, kind)


def usual_error(status: int, code: str | None) -> tuple[str, str | None, str]:
    """The usual status name and message of an error; a known code brings its own words."""
    name, message = _USUAL.get(status, _USUAL[500] if status >= 500 else _USUAL[400])
    return name, code, _BY_CODE.get(code or "", message)


def error(refusal: Refusal, script: Script) -> JsonObject:
    """Write an error body; a code is the reason in the details, and so is the time to wait."""
    del script
    kind = usual_error(refusal.status, None)[0] if refusal.kind == _NEUTRAL else refusal.kind
    message = _UNREADABLE.get(refusal.rule, refusal.message)
    return status_body(refusal.status, kind, message, _details(refusal, message))


def status_body(code: int, status: str, message: str, details: list[Json] | None = None) -> JsonObject:
    """An error as google.rpc.Status is spelled in JSON."""
    content: JsonObject = {"code": code, "message": message, "status": status}
    if details:
        content["details"] = details
    return {"error": content}


def _details(refusal: Refusal, message: str) -> list[Json]:
    found: list[Json] = []
    if refusal.code is not None:
        info: JsonObject = {"@type": f"{_TYPE}ErrorInfo", "reason": refusal.code, "domain": "googleapis.com"}
        found.append({**info, "metadata": {"service": _SERVICE}})
    if refusal.param is not None:
        violation: JsonObject = {"field": refusal.param, "description": message}
        found.append({"@type": f"{_TYPE}BadRequest", "fieldViolations": [violation]})
    wait = dict(refusal.headers).get("retry-after")
    if wait is not None:
        found.append({"@type": f"{_TYPE}RetryInfo", "retryDelay": f"{wait}s"})
    return found


def event_error(part: ErrorEvent) -> JsonObject:
    """An error inside a 200. Shape: the script's type is a status name, or a word of another provider for one."""
    code = _OF_EVENTS.get(part.kind)
    if code is None:
        code = next((number for number, (name, _) in _USUAL.items() if name == part.kind), 500)
        return status_body(code, part.kind, part.message)
    return status_body(code, _USUAL[code][0], part.message)
