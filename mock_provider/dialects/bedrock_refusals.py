"""Errors in the form of Bedrock: a message in the body, the exception's name in a header.

Room: pure; the Bedrock dialect and its rules come in.
Source: the service model that AWS publishes with its clients (bedrock-runtime: exceptions and their statuses); the
usual words as clients have reported them. A time to wait goes into `x-amz-retry-after`, in milliseconds, which its
clients read.
"""

from __future__ import annotations

from mock_provider.asked import Refusal
from mock_provider.dialects.codec import Headers
from mock_provider.json_values import JsonObject
from mock_provider.steps import ErrorEvent, Script

_INTERNAL = "The system encountered an unexpected error during processing. Try your request again."
_BUSY = "Bedrock is unable to process your request."
_USUAL: dict[int, tuple[str, str]] = {
    400: ("ValidationException", "Malformed input request, please reformat your input and try again."),
    401: ("UnrecognizedClientException", "The security token included in the request is invalid."),
    403: ("AccessDeniedException", "You don't have access to the model with the specified model ID."),
    404: ("ResourceNotFoundException", "Could not resolve the foundation model from the provided model identifier."),
    408: ("ModelTimeoutException", "Model has timed out in processing the request. Try your request again."),
    413: ("ValidationException", "The request body is too large."),
    424: ("ModelErrorException", "The model returned an error. Try your request again."),
    429: ("ThrottlingException", "Too many requests, please wait before trying again."),
    500: ("InternalServerException", _INTERNAL),
    502: ("ServiceUnavailableException", _BUSY),
    503: ("ServiceUnavailableException", _BUSY),
    504: ("ServiceUnavailableException", _BUSY),
    529: ("ServiceUnavailableException", _BUSY),
}
_BY_CODE: dict[str, tuple[str, str]] = {
    "insufficient_quota": ("ThrottlingException", "Too many tokens per day, please wait before trying again."),
    "context_length_exceeded": ("ValidationException", "Input is too long for requested model."),
}
_UNREADABLE = ("not_json", "empty_body", "too_deep")
UNMATCHED = "mock_unmatched"  # this dialect has no codes beside the exceptions, so this one stands before the text
_NEUTRAL = "invalid_request_error"  # the kind of a refusal for which nobody chose another
# The exceptions that a stream may carry, by the words that a script may use for them.
_EVENTS = {
    "server_error": "internalServerException",
    "overloaded_error": "serviceUnavailableException",
    "rate_limit_error": "throttlingException",
    "rate_limit_exceeded": "throttlingException",
    "invalid_request_error": "validationException",
}


def refuse(rule: str, message: str, *, status: int = 400, kind: str = "ValidationException") -> Refusal:
    """A refusal, by default of the usual kind."""
    return Refusal(status, rule, message, kind)


def usual_error(status: int, code: str | None) -> tuple[str, str | None, str]:
    """The usual exception and message of an error status; a known code brings its own."""
    fallback = _USUAL[500] if status >= 500 else _USUAL[400]
    kind, message = _BY_CODE.get(code or "", _USUAL.get(status, fallback))
    return kind, code, message


def error(refusal: Refusal, script: Script) -> JsonObject:
    """Write an error body."""
    del script
    message = refusal.message
    if refusal.rule in _UNREADABLE:
        message = "The request body could not be parsed as JSON."
    return {"message": f"{UNMATCHED}: {message}" if refusal.code == UNMATCHED else message}


def error_headers(refusal: Refusal) -> Headers:
    """The name of the exception, and how long to wait."""
    wait = next((value for name, value in refusal.headers if name == "retry-after"), "")
    more = (("x-amz-retry-after", str(int(float(wait) * 1000))),) if wait.replace(".", "", 1).isdigit() else ()
    return (("x-amzn-errortype", _kind_of(refusal)), *more)


def _kind_of(refusal: Refusal) -> str:
    if refusal.rule in _UNREADABLE:
        return "SerializationException"
    if refusal.code == "unknown_url":
        return "UnknownOperationException"
    return usual_error(refusal.status, None)[0] if refusal.kind == _NEUTRAL else refusal.kind


def exception_of(part: ErrorEvent) -> str:
    """The exception that an error in a stream is. Shape: the script's type is its name, or a word for it."""
    return _EVENTS.get(part.kind) or part.kind[:1].lower() + part.kind[1:]
