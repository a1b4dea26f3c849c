"""Removing secrets before anything is kept or said: headers, query, body, free text.

Room: pure; the journal and the engine come in.
"""

from __future__ import annotations

import base64
import binascii
import functools
import itertools
import json
import re
from collections.abc import Iterable, Mapping
from urllib.parse import parse_qsl, quote, unquote, urlencode

from mock_provider.json_reader import Reading
from mock_provider.json_values import Json
from mock_provider.secret_names import has_secret_name, is_secret_name, is_secret_query
from mock_provider.secret_search import Finder, may_have_form

MARK = "[redacted]"
MAX_CLEARED = 256  # redactors that a remembered text was found clean for; then all are forgotten
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
# A word is no token: "a basic understanding" and "the bearer instruments" are what people and models write. Of what RFC
# 6750 lets a bearer token be made of, one has a digit, or capitals where a name spelled InCapitals has none, or stands
# after the name of its field; a Basic credential has a digit, or such capitals and the colon of user:password.
_SIGN = r"[A-Za-z0-9._~+/=-]"
_CAPITALS = rf"(?={_SIGN}*[a-z][A-Z](?![a-z]{{2}}))"
_COLON = r"(?=(?:[A-Za-z+/]{4})*(?:O[g-v]|[A-Za-z+/][DTjz][o-r]))"  # as the third of three bytes it has a digit
_IN_FIELD = r"(?i:(?<=uthorization:)|(?<=uthorization: )|(?<=uthorization['\"]:['\"])|(?<=uthorization['\"]: ['\"]))"
# Each form with the marks, in lower case, without which it cannot be there: looking for these is far faster.
# The first letters stand free, so that the search skips to them; the boundary before them is checked on what was found.
_SHAPES: tuple[tuple[tuple[str, ...], re.Pattern[str]], ...] = (
    (("bearer",), re.compile(rf"[Bb][Ee][Aa][Rr][Ee][Rr]\s+(?=[A-Za-z._~+/=-]*[0-9]){_SIGN}{{6,}}")),
    (("bearer",), re.compile(rf"[Bb][Ee][Aa][Rr][Ee][Rr]\s+{_CAPITALS}{_SIGN}{{16,}}")),
    (("uthorization",), re.compile(rf"{_IN_FIELD}[Bb][Ee][Aa][Rr][Ee][Rr]\s+{_SIGN}{{6,}}")),
    (("basic",), re.compile(r"[Bb][Aa][Ss][Ii][Cc]\s+(?=[A-Za-z/]*[0-9+=])[A-Za-z0-9+/=]{8,}")),
    (("basic",), re.compile(rf"[Bb][Aa][Ss][Ii][Cc]\s+{_CAPITALS}{_COLON}[A-Za-z0-9+/=]{{8,}}")),
    (("sk-",), re.compile(r"sk-[A-Za-z0-9_-]{6,}")),
    (("gho_", "ghp_", "ghs_", "ghu_"), re.compile(r"gh[opsu]_[A-Za-z0-9]{16,}")),
    (("akia",), re.compile(r"AKIA[A-Z0-9]{12,}")),
    (("aiza",), re.compile(r"AIza[A-Za-z0-9_-]{20,}")),
    (("xoxa-", "xoxb-", "xoxp-"), re.compile(r"xox[abp]-[A-Za-z0-9-]{10,}")),
    (("eyj",), re.compile(r"eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{5,}")),
)
_MIN_SHAPE = 9  # the shortest text with a form in it: "sk-" and six characters
_numbers = itertools.count(1)


def _hide_shape(pattern: re.Pattern[str], text: str) -> str:
    """Hide one form wherever no letter or digit stands before it."""

    def hide(found: re.Match[str]) -> str:
        before = text[found.start() - 1] if found.start() else " "
        if before.isalnum() or before == "_":
            return found.group()[0] + _hide_shape(pattern, found.group()[1:])
        return MARK

    return pattern.sub(hide, text)


def find_shapes(text: str) -> list[tuple[int, int]]:
    """Where something stands that is spelled like a key."""
    lowered = text.lower()
    found: list[tuple[int, int]] = []
    for marks, pattern in _SHAPES:
        at = 0
        while any(mark in lowered for mark in marks) and (match := pattern.search(text, at)):
            before = text[match.start() - 1] if match.start() else " "
            is_inside = before.isalnum() or before == "_"
            at = match.start() + 1 if is_inside else match.end()
            found += [] if is_inside else [match.span()]
    return found


class Redactor:
    """Hides the secrets of one request wherever they stand.

    Shape: values are longest first, in all their forms; number tells redactors apart.
    """

    __slots__ = ("_finder", "_is_findable", "number", "values")

    def __init__(self, values: tuple[str, ...] = ()) -> None:
        self.values = values
        self.number = next(_numbers)
        self._is_findable = all(value.isascii() and json.dumps(value) == f'"{value}"' for value in values)
        self._finder = Finder(tuple(value.encode("utf-8", "surrogatepass") for value in values))

    def text(self, text: str) -> str:
        """Hide in free text."""
        for value in self.values:
            if value in text:
                text = text.replace(value, MARK)
        if len(text) < _MIN_SHAPE:
            return text
        lowered = text.lower()
        for marks, pattern in _SHAPES:
            if any(mark in lowered for mark in marks):
                text = _hide_shape(pattern, text)
        return text

    def is_clean(self, reading: Reading) -> bool:
        """Whether hiding in this document would change nothing."""
        if not self._is_findable:
            return self.json(reading.value) == reading.value
        fresh = reading.fresh_bytes
        is_plain = self._finder.is_plain(fresh)
        objects = reading.fresh_objects()
        if objects is None or has_secret_name(objects) or (not is_plain and self._finder.finds(fresh)):
            return False
        for run in reading.runs:  # forms and names were looked for when it was remembered
            if self.number not in run.cleared:
                if self._finder.finds(run.text):
                    return False
                if len(run.cleared) >= MAX_CLEARED:
                    run.cleared.clear()
                run.cleared.add(self.number)
        return is_plain or not may_have_form(fresh) or self.json(reading.fresh) == reading.fresh

    def may_hide(self, data: bytes) -> bool:
        """Whether hiding may change a text, as it is spelled in a document."""
        return not self._is_findable or self._finder.may_find(data)

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


def find_secrets(headers: Mapping[str, str], query: str, body: Json = None) -> Redactor:
    """Collect what this request carries as secrets, in plain, base64 and percent-encoded form."""
    return redactor_for([*secrets_of_caller(headers, query), *secrets_of_body(body)])


def secrets_of_caller(headers: Mapping[str, str], query: str) -> list[str]:
    """The secrets in headers and query."""
    values: list[str] = []
    for name, value in headers.items():
        if is_secret_name(name):
            values.extend(_header_values(name, value))
    for name, value in parse_qsl(query, keep_blank_values=True):
        if is_secret_query(name):
            values.append(value)
    return values


def redactor_for(values: Iterable[str]) -> Redactor:
    """Hide these values in every form they are likely to take; for equal ones the same redactor, while it is known."""
    return _redactor(tuple(dict.fromkeys(values)))


@functools.lru_cache(maxsize=256)
def _redactor(values: tuple[str, ...]) -> Redactor:
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


def secrets_of_body(value: Json, *, is_secret: bool = False) -> list[str]:
    """The texts under secret names."""
    if isinstance(value, str):
        return [value] if is_secret else []
    if isinstance(value, list):
        return [text for item in value for text in secrets_of_body(item, is_secret=is_secret)]
    if isinstance(value, dict):
        return [
            text
            for key, item in value.items()
            for text in secrets_of_body(item, is_secret=is_secret_name(key) and not isinstance(item, dict))
        ]
    return []
