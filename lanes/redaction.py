"""Secrets out of recordings: what is removed, and the search that shows it is gone.

Room: recorder and cassette may come in. A finding names a kind and a place, never a value.

Headers are kept by an allow-list, so a header nobody thought of is gone too. Fields whose names carry secrets are
emptied in URLs and bodies, at any depth and in any letter case. Every value removed is remembered, and the finished
file is searched for all of them in every form they may have taken. What has the shape of a key is removed as well.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from lanes.fragments import clean_fragments
from lanes.normalize import Json

REDACTED = "redacted"
MIN_SECRET_CHARS = 6  # a shorter value occurs by chance in any text
REQUEST_HEADERS = frozenset({"accept", "content-type"})
RESPONSE_HEADERS = frozenset({"content-type", "retry-after", "retry-after-ms", "x-mock-provider"})
SECRET_NAMES = frozenset(
    {
        "accesskey", "accesstoken", "apikey", "auth", "authorization", "bearer", "clientsecret", "cookie", "credential",
        "credentials", "idtoken", "passwd", "password", "privatekey", "proxyauthorization", "refreshtoken", "secret",
        "sessiontoken", "setcookie", "signature", "token", "xapikey",
    }
)  # fmt: skip
QUERY_NAMES = SECRET_NAMES | {"key", "sig"}  # in a body `key` is an ordinary word, in an address it is a credential
_SIGN = r"[A-Za-z0-9._~+/=-]"  # what RFC 6750 lets a bearer token be made of
_IN_FIELD = (
    r"(?i:(?<=authorization:)|(?<=authorization: )|(?<=authorization['\"]:['\"])|(?<=authorization['\"]: ['\"]))"
)
# "the bearer instruments" is prose: a token has a digit, or capitals where a name spelled InCapitals has none.
_BEARER = (
    rf"\b(?i:bearer) (?:(?=[A-Za-z._~+/=-]*[0-9]){_SIGN}{{8,}}|(?={_SIGN}*[a-z][A-Z](?![a-z]{{2}})){_SIGN}{{16,}})"
    rf"|{_IN_FIELD}(?i:bearer) (?!redacted){_SIGN}{{8,}}"
)
KEY_PATTERNS = {
    "an API key": re.compile(r"\bsk-(?:proj-|ant-|or-)?[A-Za-z0-9_-]{20,}"),
    "a forge token": re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|glpat-[A-Za-z0-9_-]{18,})"),
    "a cloud key": re.compile(r"\b(?:AKIA[0-9A-Z]{16}|AIza[0-9A-Za-z_-]{35})\b"),
    "a private key": re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?:[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----)?"),
    "a bearer token": re.compile(_BEARER),
}
KEY_SHAPES = tuple(pattern.pattern for pattern in KEY_PATTERNS.values())
# A text without any of these holds nothing of such a shape; looking for them is much cheaper than looking for shapes.
_MARKS = ("sk-", "gh", "glpat-", "AKIA", "AIza", "PRIVATE KEY-----", "earer ", "EARER ")


@lru_cache(maxsize=4096)
def plain_name(name: str) -> str:
    """A field's name without case, dashes and underscores: X-Api-Key, x_api_key and xApiKey are one name."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


@dataclass(slots=True)
class Redactor:
    """Removes secrets and remembers each value it removed.

    Shape: names are further field and header names to treat as secret; values are secrets known beforehand.
    """

    names: frozenset[str] = frozenset()
    values: set[str] = field(default_factory=set)

    def learn(self, value: str) -> None:
        """Remember a secret, with the parts it is made of: `Bearer X`, `sid=X; …`, the inside of a Basic credential."""
        for part in _parts_of(value):
            if len(part) >= MIN_SECRET_CHARS and part.lower() not in ("bearer", "basic", REDACTED):
                self.values.add(part)

    def is_secret(self, name: str, *, names: frozenset[str] = SECRET_NAMES) -> bool:
        """Whether a field of that name carries a secret."""
        plain = plain_name(name)
        return plain in names or (bool(self.names) and plain in {plain_name(own) for own in self.names})

    def headers(self, headers: Iterable[tuple[str, str]], allowed: frozenset[str]) -> dict[str, list[str]]:
        """The allowed headers, in lower case; the values of the others are remembered when they may be secret."""
        kept: dict[str, list[str]] = {}
        for name, value in headers:
            lower = name.lower()
            if lower in allowed and not self.is_secret(name):
                kept.setdefault(lower, []).append(self.text(value))
            elif self.is_secret(name):
                self.learn(value)
        return {name: kept[name] for name in sorted(kept)}

    def url(self, url: str) -> str:
        """The address without credentials and with secret query values replaced; a loopback port is dropped."""
        parts = urlsplit(url)
        for secret in (parts.username, parts.password):
            if secret:
                self.learn(secret)
        pairs: list[tuple[str, str]] = []
        for name, value in parse_qsl(parts.query, keep_blank_values=True):
            if self.is_secret(name, names=QUERY_NAMES):
                self.learn(value)
                value = REDACTED
            pairs.append((name, value))
        host = parts.hostname or ""
        shown = f"[{host}]" if ":" in host else host
        if parts.port is not None and not is_loopback(host):
            shown = f"{shown}:{parts.port}"
        return self.text(urlunsplit((parts.scheme, shown, parts.path, urlencode(pairs), "")))

    def json(self, value: Json) -> Json:
        """The value with secret fields replaced at any depth, and with every known secret replaced in every text."""
        self._learn_fields(value)
        return self._replace(value)

    def _learn_fields(self, value: Json) -> None:
        if isinstance(value, list):
            for item in value:
                self._learn_fields(item)
        elif isinstance(value, dict):
            for key, item in value.items():
                if self.is_secret(key) and isinstance(item, str):
                    self.learn(item)
                else:
                    self._learn_fields(item)

    def _replace(self, value: Json) -> Json:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self._replace(item) for item in value]
        if isinstance(value, dict):
            return {
                self.text(key): REDACTED if self.is_secret(key) and isinstance(item, str) else self._replace(item)
                for key, item in value.items()
            }
        return value

    def body(self, data: bytes) -> str:
        """A body as text: JSON as canonical JSON without secrets, event streams event by event, other text as it is.

        Raises: UnicodeDecodeError for bytes that are no text; such a body is never stored.
        """
        text = data.decode("utf-8")
        try:
            parsed: Json = json.loads(text)
        except ValueError:
            text = clean_fragments(text, self.spans, REDACTED)
            return "\n".join(self._line(line) for line in text.split("\n"))
        if not isinstance(parsed, dict | list):
            return self.text(text)
        cleaned = self.json(parsed)
        return text if cleaned == parsed else json.dumps(cleaned, separators=(",", ":"))

    def _line(self, line: str) -> str:
        if line.startswith("data:"):
            try:
                parsed: Json = json.loads(line[5:])
            except ValueError:
                return self.text(line)
            cleaned = self.json(parsed)
            if cleaned != parsed:
                return f"data: {json.dumps(cleaned, separators=(',', ':'))}"
            return line
        return self.text(line)

    def text(self, text: str) -> str:
        """The text with every known secret replaced, in all its forms, and what has the shape of one."""
        if not self.values and not any(mark in text for mark in _MARKS):
            return text
        return _search(frozenset(self.values)).sub(REDACTED, text)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where in a text such things stand."""
        if not self.values and not any(mark in text for mark in _MARKS):
            return []
        return [found.span() for found in _search(frozenset(self.values)).finditer(text)]

    def findings(self, text: str) -> list[str]:
        """Kinds of secrets still in a finished file, never their values; empty when it is clean."""
        found = {
            f"a removed value, {kind}"
            for value in self.values
            for kind, form in forms_of(value).items()
            if form in text
        }
        found.update(kind for kind, pattern in KEY_PATTERNS.items() if pattern.search(text))
        return sorted(found)


@lru_cache(maxsize=64)
def _search(values: frozenset[str]) -> re.Pattern[str]:
    """One pattern for the values in every form, the longest first, and for every shape."""
    forms = sorted({form for value in values for form in forms_of(value).values()}, key=lambda form: (-len(form), form))
    return re.compile("|".join([*map(re.escape, forms), *KEY_SHAPES]))


def forms_of(value: str) -> dict[str, str]:
    """The spellings a secret may have taken, by kind; base64 at each of the three positions it can start at."""
    raw = value.encode("utf-8", errors="surrogatepass")
    forms = {
        "as it is": value,
        "percent-encoded": quote(value, safe=""),
        "JSON-escaped": json.dumps(value)[1:-1],
    }
    for shift in range(3):
        padded = base64.b64encode(b"\0" * shift + raw).decode("ascii").rstrip("=")
        # the first and last characters of a shifted form depend on the neighbours, so they are left out of the search
        start = (0, 2, 3)[shift]
        end = len(padded) if (shift + len(raw)) % 3 == 0 else len(padded) - 1
        inner = padded[start:end]
        if len(inner) >= MIN_SECRET_CHARS:
            forms[f"base64 at position {shift}"] = inner
            forms[f"URL-safe base64 at position {shift}"] = inner.replace("+", "-").replace("/", "_")
    return forms


def secrets_of(environ: Mapping[str, str]) -> set[str]:
    """The values of the variables of an environment that look like keys."""
    return {
        value
        for name, value in environ.items()
        if len(value) >= MIN_SECRET_CHARS and re.search(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", name, re.IGNORECASE)
    }


def is_loopback(host: str) -> bool:
    """Whether an address names this machine only; a name that merely starts so does not."""
    return host in ("localhost", "::1") or re.fullmatch(r"127\.\d{1,3}\.\d{1,3}\.\d{1,3}", host) is not None


def _parts_of(value: str) -> Sequence[str]:
    parts = [value, *value.split()]
    for piece in re.split(r"[;,\s]+", value):
        name, mark, rest = piece.partition("=")
        if mark and rest and name:
            parts.append(rest)
    for piece in value.split():
        try:
            inside = base64.b64decode(piece, validate=True).decode("utf-8")
        except (binascii.Error, ValueError):
            continue
        if inside.isprintable() and ":" in inside:
            parts.extend([inside, *inside.split(":", 1)])
    return parts
