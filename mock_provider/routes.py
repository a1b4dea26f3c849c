"""Which dialect and conversation an address means: versioned and root paths alike, one port for all.

Room: pure; the engine comes in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Literal, TypeAlias
from urllib.parse import parse_qsl, unquote

from mock_provider.dialects.codec import PLAIN, Address
from mock_provider.dialects.places import PLACES, Place
from mock_provider.dialects.table import DIALECTS
from mock_provider.match import Naming
from mock_provider.values import value

Operation: TypeAlias = Literal["found", "alive", "wrong_method", "unknown"]
CONTROL_PREFIX = "/__mock__/"
CONVERSATION_HEADER = "x-mock-conversation"
KEY_PREFIX = "sk-mock-"
_BRACES = re.compile(r"\{(\w+)(\*?)\}")


@value
class Route:
    """What a request line asks for.

    Shape: address is there when operation is "found"; arguments holds what stood in its braces. path is without
    conversation prefix.
    """

    operation: Operation
    dialect: str
    path: str
    address: Address | None = None
    arguments: Mapping[str, str] = field(default_factory=dict)


@value
class _Line:
    """One address with every prefix it may have. Shape: pattern is empty when the address has no braces."""

    place: Place
    method: str
    path: str
    pattern: str = ""


def _pattern(place: Place, path: str) -> str:
    prefixes = "|".join(re.escape(prefix) for prefix in sorted(place.prefixes, key=len, reverse=True))
    spelled: list[str] = []
    at = 0
    for found in _BRACES.finditer(path):
        what = ".+" if found.group(2) else "[^/]+"
        spelled += [re.escape(path[at : found.start()]), f"(?P<{found.group(1)}>{what})"]
        at = found.end()
    return f"(?:{prefixes}){''.join(spelled)}{re.escape(path[at:])}"


_Hit: TypeAlias = "tuple[_Line, dict[str, str]]"


def _lines() -> tuple[dict[str, list[_Hit]], list[_Line]]:
    exact: dict[str, list[_Hit]] = {}
    patterns: list[_Line] = []
    for place in PLACES:
        for method, path in place.lines:
            if "{" in path:
                patterns.append(_Line(place, method, path, _pattern(place, path)))
                continue
            for prefix in place.prefixes:
                exact.setdefault(prefix + path, []).append((_Line(place, method, path), {}))
    return exact, patterns


_EXACT, _PATTERNS = _lines()
SUPPORTED = "".join(
    f"\n    {place.name}: {', '.join(f'{method} {place.prefixes[0]}{path}' for method, path in place.lines)}"
    for place in PLACES
)


def find_route(method: str, path: str, headers: Mapping[str, str]) -> Route:
    """Read method and path; an unknown path keeps the dialect the client seems to speak, for its error form."""
    bare = path.rstrip("/") or "/"
    lines = _EXACT.get(bare) or _matched(bare)
    if not lines:
        operation: Operation = "alive" if bare == "/" and method == "HEAD" else "unknown"
        return Route(operation, guess_dialect(headers, path), path)
    wanted = "GET" if method == "HEAD" else method
    fitting = [found for found in lines if found[0].method == wanted]
    guessed = guess_dialect(headers, path)
    line, arguments = next(
        (found for found in fitting or lines if found[0].place.name == guessed), (fitting or lines)[0]
    )
    name = line.place.name
    if not fitting:
        return Route("wrong_method", name, path)
    return Route("found", name, path, DIALECTS[name].addresses.get(f"{line.method} {line.path}", PLAIN), arguments)


def _matched(path: str) -> list[_Hit]:
    found: list[_Hit] = []
    for line in _PATTERNS:
        match = re.fullmatch(line.pattern, path)  # compiled by the first address that has braces, and kept by re
        if match:
            found.append((line, {name: unquote(value) for name, value in match.groupdict().items()}))
    return found


def guess_dialect(headers: Mapping[str, str], path: str = "") -> str:
    """The dialect whose error form a client understands, judged by its headers and the beginning of its path."""
    for place in PLACES:
        if any(mark in headers for mark in place.marks):
            return place.name
    return next((place.name for place in PLACES if path.startswith(place.owns)), PLACES[0].name)


def split_target(target: str) -> tuple[str, str]:
    """Cut what stands in a request line into path and query; a proxy's way of writing it names the host before.

    Shape: the path begins with a slash; any text can be cut.
    """
    path, _, query = target.partition("#")[0].partition("?")
    if not path.startswith("/"):
        path = "/" + path.partition("://")[2].partition("/")[2]
    return path, query


def split_prefix(path: str) -> tuple[str, str]:
    """Take a conversation prefix `/c/NAME/…` off a path. Shape: (name or "", path)."""
    if not path.startswith("/c/"):
        return "", path
    name, _, rest = path.removeprefix("/c/").partition("/")
    return unquote(name), f"/{rest}"


def find_naming(prefix: str, headers: Mapping[str, str], query: str) -> Naming | None:
    """The conversation a client named by header, path prefix or key, in this order.

    Shape: the name is spelled `NAME` or `NAME@CLIENT`, which tells parallel players apart.
    """
    named = headers.get(CONVERSATION_HEADER, "")
    if named:
        return _naming(named, f"header {CONVERSATION_HEADER}")
    if prefix:
        return _naming(prefix, "path prefix /c/")
    for key in _keys(headers, query):
        if key.startswith(KEY_PREFIX) and len(key) > len(KEY_PREFIX):
            return _naming(key.removeprefix(KEY_PREFIX), "the key")
    return None


def _naming(spelled: str, how: str) -> Naming:
    conversation, _, client = spelled.partition("@")
    return Naming(conversation, client, how)


def _keys(headers: Mapping[str, str], query: str) -> list[str]:
    token = headers.get("authorization", "").partition(" ")[2].strip()
    keys = [token, token.removeprefix("Credential=").partition("/")[0]]  # the second is a request's that is signed
    keys += [headers.get(name, "") for name in ("x-api-key", "api-key", "x-goog-api-key")]
    keys += [value for name, value in parse_qsl(query) if name == "key"]
    return keys
