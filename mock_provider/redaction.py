"""Removing secrets before anything is kept or said: headers, query, body, free text.

Room: pure; the journal and the engine come in.
"""

from __future__ import annotations

import base64
import binascii
import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, unquote, urlencode

from mock_provider.json_values import Json

MARK = "[redacted]"
MIN_SECRET = 6  # shorter values ("x", "test") are placeholders; replacing them everywhere would wreck the text

# Headers whose values say nothing about who asks. Everything else is hidden: a list of secret names is never complete.
OPEN_HEADERS = frozenset(
    {
        "accept",
        "accept-encoding",
        "anthropic-beta",
        "anthropic-version",
        "api-version",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "expect",
        "host",
        "openai-beta",
        "transfer-encoding",
        "user-agent",
        "x-mock-conversation",
    }
)
OPEN_HEADER_PREFIXES = ("x-stainless-",)
_SECRET_ENDS = (
    "apikey",
    "secret",
    "password",
    "passwd",
    "credential",
    "credentials",
    "privatekey",
    "accesskey",
    "authorization",
    "cookie",
    "token",
    "bearer",
    "jwt",
)
_SECRET_QUERY_NAMES = frozenset({"key", "sig", "signature", "auth"})  # in a body these are ordinary words
_NO_LETTER = re.compile(r"[^a-z0-9]")
_SECRET_SHAPES = re.compile(
    r"\bsk-[A-Za-z0-9_-]{6,}"
    r"|\bgh[opsu]_[A-Za-z0-9]{16,}"
    r"|\bAKIA[A-Z0-9]{12,}"
    r"|\bAIza[A-Za-z0-9_-]{20,}"
    r"|\bxox[abp]-[A-Za-z0-9-]{10,}"
    r"|\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{5,}"
    r"|(?i:\bbearer\s+)[A-Za-z0-9._~+/=-]{6,}"
    r"|(?i:\bbasic\s+)[A-Za-z0-9+/=]{8,}"
)


@functools.lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Whether a header or a key of a body names a secret; counts of tokens are none."""
    return _NO_LETTER.sub("", name.lower()).endswith(_SECRET_ENDS)


def is_secret_query(name: str) -> bool:
    """Whether a name in a query string names a secret."""
    return name.lower() in _SECRET_QUERY_NAMES or is_secret_name(name)


@dataclass(frozen=True, slots=True)
class Redactor:
    """Hides the secrets of one request wherever they stand. Shape: values are longest first, in all their forms."""

    values: tuple[str, ...] = ()

    def text(self, text: str) -> str:
        """Hide in free text."""
        for value in self.values:
            if value in text:
                text = text.replace(value, MARK)
        return _SECRET_SHAPES.sub(MARK, text)

    def headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Hide every header that is not known to be harmless."""
        return {
            name: self.text(value) if name in OPEN_HEADERS or name.startswith(OPEN_HEADER_PREFIXES) else MARK
            for name, value in headers.items()
        }

    def target(self, path: str, query: str) -> str:
        """Hide in a path with its query."""
        if not query:
            return self.text(path)
        pairs = parse_qsl(query, keep_blank_values=True)
        shown = urlencode([(name, MARK if is_secret_query(name) else self.text(value)) for name, value in pairs])
        return f"{self.text(path)}?{shown.replace(quote(MARK), MARK)}"

    def json(self, value: Json) -> Json:
        """Hide in a document: texts under secret names, and known values anywhere."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.json(item) for item in value]
        if isinstance(value, dict):
            return {
                self.text(key): MARK if is_secret_name(key) and isinstance(item, str | int) else self.json(item)
                for key, item in value.items()
            }
        return value


def find_secrets(headers: Mapping[str, str], query: str, body: Json) -> Redactor:
    """Collect what this request carries as secrets, in plain, base64 and percent-encoded form."""
    values: list[str] = []
    for name, value in headers.items():
        if is_secret_name(name):
            values.extend(_header_values(name, value))
    for name, value in parse_qsl(query, keep_blank_values=True):
        if is_secret_query(name):
            values.append(value)
    values.extend(_body_values(body))
    return redactor_for(values)


def redactor_for(values: Iterable[str]) -> Redactor:
    """Hide these values in every form they are likely to take."""
    forms: set[str] = set()
    for value in values:
        if len(value) >= MIN_SECRET:
            raw = value.encode("utf-8", "surrogatepass")
            spelled = base64.b64encode(raw).decode("ascii")
            forms |= {value, spelled, spelled.rstrip("="), base64.urlsafe_b64encode(raw).decode("ascii")}
            if value.isascii():
                forms |= {quote(value, safe=""), unquote(value)}
    return Redactor(tuple(sorted((form for form in forms if len(form) >= MIN_SECRET), key=len, reverse=True)))


def _header_values(name: str, value: str) -> list[str]:
    found = [value]
    scheme, _, rest = value.partition(" ")
    if rest:
        found.append(rest.strip())
        if scheme.lower() == "basic":
            try:
                plain = base64.b64decode(rest.strip(), validate=True).decode("utf-8", "replace")
            except (binascii.Error, ValueError):
                plain = ""
            found += [plain, *plain.split(":", 1)]
    if name == "cookie":
        found += [part.partition("=")[2].strip() for part in value.split(";")]
    return found


def _body_values(value: Json, *, is_secret: bool = False) -> list[str]:
    if isinstance(value, str):
        return [value] if is_secret else []
    if isinstance(value, list):
        return [text for item in value for text in _body_values(item, is_secret=is_secret)]
    if isinstance(value, dict):
        return [
            text
            for key, item in value.items()
            for text in _body_values(item, is_secret=is_secret_name(key) and not isinstance(item, dict))
        ]
    return []
