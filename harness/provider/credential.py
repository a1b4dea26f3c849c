"""The key of a model's service: whether it can be used, and how it is kept out of every text.

Room: pure; provider only.
"""

from __future__ import annotations

import base64
import json
import re
from urllib.parse import quote, quote_plus

from harness.model.chunks import Failure
from harness.provider.endpoint import Endpoint

REDACTED = "[redacted]"
MAX_MESSAGE_CHARS = 2000  # a message is read by a person and stored with each failed attempt

_USABLE = re.compile(r"[!-~]+")  # what an HTTP header field can carry without quoting


class Credential:
    """An API key, or none. Its text leaves this object only through key()."""

    def __init__(self, api_key: str | None) -> None:
        self._key = (api_key or "").strip()
        self._forms = tuple(sorted(_forms(self._key), key=len, reverse=True))

    def __repr__(self) -> str:
        return f"Credential({REDACTED if self._key else 'none'})"

    def key(self) -> str | None:
        """The key itself; None when there is none."""
        return self._key or None

    def problem(self, endpoint: Endpoint) -> Failure | None:
        """Why no request can be sent with this key to that endpoint; None when it can.

        A service on this machine may do without a key.
        """
        if not self._key:
            if endpoint.is_loopback:
                return None
            return Failure(f"no API key is set for {endpoint.host_and_port}", "MISSING_CREDENTIAL")
        if not _USABLE.fullmatch(self._key):
            return Failure(
                "the API key holds white space or characters outside ASCII, no HTTP header can carry it",
                "INVALID_CREDENTIAL",
            )
        return None

    def redact(self, text: str) -> str:
        """The text with the key taken out, in each form in which services and libraries print it."""
        for form in self._forms:
            text = text.replace(form, REDACTED)
        return text

    def clean(self, failure: Failure) -> Failure:
        """The failure as it may be shown and stored: without the key, then without what is too long."""
        message = self.redact(failure.message)
        if len(message) > MAX_MESSAGE_CHARS:
            message = message[: MAX_MESSAGE_CHARS - 1] + "…"
        request_id = failure.request_id
        if request_id is not None and self.redact(request_id) != request_id:
            request_id = None
        return Failure(message, failure.code, failure.status, failure.provider_retry_after_ms, request_id)


def _forms(key: str) -> set[str]:
    if not key:
        return set()
    raw = key.encode("utf-8", "surrogatepass")
    encoded = {base64.b64encode(raw).decode(), base64.urlsafe_b64encode(raw).decode()}
    return {
        key,
        quote(raw, safe=""),
        quote_plus(raw),
        json.dumps(key)[1:-1],
        *encoded,
        *(e.rstrip("=") for e in encoded),
    }
