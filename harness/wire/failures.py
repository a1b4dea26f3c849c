"""What a model's service says when it fails, and which of our codes that is.

Room: pure; the dialects and the provider's shell may come in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from harness.errors import PeerError
from harness.model.chunks import Failure
from harness.model.messages import Json, JsonObject
from harness.wire.json_text import encode_json, parse_json

REQUEST_ID_HEADERS = ("x-request-id", "request-id", "x-ds-trace-id")  # OpenAI and most others, Anthropic, DeepSeek

# Rate limit texts name billing pages and payment methods too, so neither word alone means that money ran out.
_QUOTA = re.compile(
    r"insufficient[_ ](?:account[_ ])?(?:quota|balance|credits?|funds)|exceeded[_ ]your[_ ]current[_ ]quota"
    r"|billing[_ ](?:error|hard[_ ]limit|not[_ ]active)|credit[_ ]balance|out[_ ]of[_ ]credits?|余额不足",
    re.IGNORECASE,
)
_CONTEXT = re.compile(
    r"context[_ ](?:length|window|size|limit)|maximum[_ ]context|prompt is too long|input is too long"
    r"|too many (?:input )?tokens|exceeds? the max(?:imum)? (?:number of )?(?:input )?tokens",
    re.IGNORECASE,
)
MAX_RETRY_AFTER_MS = 2**53 - 1  # the largest number a log holds; every policy gives up long before
MAX_PLAIN_CHARS = 8192  # a gateway's error page says what it has to say at its beginning
_NUMBER = re.compile(r"[0-9]+(\.[0-9]*)?")
_FAR_DATE = re.compile(r"(?:[A-Za-z]+, )?[0-9]{1,2}[ -][A-Za-z]{3}[ -][1-9][0-9]{4,}(?: .*)?")
_MARKUP = re.compile(r"<(script|style)\b.*?</\1\s*>|<[^<>]*>", re.IGNORECASE | re.DOTALL)

# Error words of a stream that already said 200, and the status the same service uses for them otherwise.
_STATUS_OF_WORD = {
    "authentication_error": 401,
    "invalid_api_key": 401,
    "permission_error": 403,
    "permission_denied": 403,
    "billing_error": 402,
    "insufficient_quota": 402,
    "not_found_error": 404,
    "model_not_found": 404,
    "request_too_large": 413,
    "rate_limit": 429,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "too_many_requests": 429,
    "invalid_request_error": 400,
    "invalid_request": 400,
    "bad_request": 400,
    "badrequesterror": 400,
    "context_length_exceeded": 400,
}


@dataclass(frozen=True, slots=True)
class ErrorObject:
    """An error as the service wrote it: kind and code are its words, status the HTTP status it names, if any."""

    kind: str
    code: str
    message: str
    status: int | None = None

    def text(self) -> str:
        """Kind and message in one line, as a person should see them."""
        code = "" if self.code.isdigit() else self.code  # a number is a status, not a word for a person
        label = self.kind or code
        if code and code.lower() != label.lower():
            label = f"{label} ({code})"
        return f"{label}: {self.message}" if label and self.message else self.message or label or "no message"


def find_error(payload: JsonObject) -> ErrorObject | None:
    """The error object in a stream payload, or None when the payload is no error."""
    error = payload.get("error")
    if error:
        return _error_object(error)
    if payload.get("object") == "error" or payload.get("type") == "error":
        return _error_object(payload)
    return None


def stream_failure(error: ErrorObject) -> Failure:
    """What an error inside a stream with status 200 means.

    An error word we do not know counts as a failure of the service: it had accepted the request.
    """
    words = (error.code.lower(), error.kind.lower())
    status = error.status or next((_STATUS_OF_WORD[word] for word in words if word in _STATUS_OF_WORD), None)
    code = _code_of(status or 500, f"{error.kind} {error.code} {error.message}")
    return Failure(error.text(), code, status=error.status)


def classify_error(status: int, headers: Mapping[str, str], body: bytes, *, now: datetime | None = None) -> Failure:
    """What an answer that is no event stream means.

    Shape: the body may be an error object of any known form, other JSON, plain text, HTML or nothing. Status 200
    is taken too: then the error object decides, and without one the answer is malformed.
    Limits: of a body that is no JSON the first MAX_PLAIN_CHARS are read; a JSON message is kept whole.
    """
    fields = {name.lower(): value for name, value in headers.items()}
    text = body.decode("utf-8", "replace")
    error: ErrorObject | None = None
    request_id: str | None = None
    try:
        payload = parse_json(text)
    except PeerError:
        payload = None
    if isinstance(payload, Mapping):
        error = find_error(payload) or (_error_object(payload) if _message_of(payload) is not None else None)
        request_id = _valid_id(payload.get("request_id"))
    facts = Failure(
        message=error.text() if error else f"status {status}: {_plain(text) or 'empty body'}",
        code="MALFORMED_RESPONSE",
        status=status if 100 <= status <= 599 else None,
        provider_retry_after_ms=retry_after_ms(fields, now),
        request_id=request_id_of(fields) or request_id,
    )
    words = f"{error.kind} {error.code} {error.message}" if error else text
    if status != 200:
        code = _code_of(status, words)
    elif error is not None:
        code = stream_failure(error).code
    else:
        return facts
    return Failure(facts.message, code, facts.status, facts.provider_retry_after_ms, facts.request_id)


def retry_after_ms(headers: Mapping[str, str], now: datetime | None) -> int | None:
    """How long the service asks us to wait, from lower-cased headers; None when it does not say so validly.

    Shape: `retry-after-ms`, then `retry-after` in seconds or as a date; a date needs now and must lie after it. What
    is longer than MAX_RETRY_AFTER_MS, a year of more than four digits too, counts as that long.
    """
    value = headers.get("retry-after-ms", "").strip()
    if _NUMBER.fullmatch(value):
        return _positive(float(value))
    value = headers.get("retry-after", "").strip()
    if _NUMBER.fullmatch(value):
        return _positive(float(value) * 1000)
    if not value or now is None:
        return None
    if _FAR_DATE.fullmatch(value):
        return MAX_RETRY_AFTER_MS
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, OverflowError, TypeError, IndexError):  # what the parser raises for texts that are no dates
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return _positive((moment - now).total_seconds() * 1000)


def request_id_of(headers: Mapping[str, str]) -> str | None:
    """The service's own id of this request, from lower-cased headers."""
    return next((found for name in REQUEST_ID_HEADERS if (found := _valid_id(headers.get(name)))), None)


def _code_of(status: int, words: str) -> str:
    if status in (401, 403):
        return "AUTH"
    if status == 402 or _QUOTA.search(words):
        return "QUOTA"
    if status == 429:
        return "RATE_LIMIT"
    if status in (400, 413, 422) and _CONTEXT.search(words):
        return "CONTEXT_WINDOW_EXCEEDED"
    if status == 400:
        return "INVALID_REQUEST"
    if status >= 500:
        return "SERVER"
    return f"HTTP_{status}"


def _error_object(value: Json) -> ErrorObject:
    if not isinstance(value, Mapping):
        return ErrorObject("", "", value if isinstance(value, str) else encode_json(value).decode("ascii"))
    code = value.get("code")
    kind = _word(value.get("type"))
    message = _message_of(value)
    if message is None and not kind:
        message = value
    if not isinstance(message, str):
        message = "" if message is None else encode_json(message).decode("ascii")
    return ErrorObject(
        "" if kind == "error" else kind, _word(code), message, _status(code) or _status(value.get("status"))
    )


def _message_of(value: JsonObject) -> Json:
    names = ("message", "detail", "error_msg", "msg")
    return next((found for name in names if (found := value.get(name))), None)


def _status(value: Json) -> int | None:
    if isinstance(value, str) and value.isdecimal() and len(value) == 3:
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 400 <= value <= 599 else None


def _word(value: Json) -> str:
    return str(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else ""


def _valid_id(value: Json) -> str | None:
    return value if isinstance(value, str) and re.fullmatch(r"[!-~]{1,200}", value) else None


def _plain(text: str) -> str:
    return " ".join(_MARKUP.sub(" ", text[:MAX_PLAIN_CHARS]).split())


def _positive(milliseconds: float) -> int | None:
    return int(min(milliseconds, MAX_RETRY_AFTER_MS)) if milliseconds >= 1 else None
