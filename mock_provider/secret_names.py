"""Names of headers, of query parameters and of fields that say that a secret stands under them.

Room: pure; removing secrets comes in, from requests and from recordings.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable

from mock_provider.json_values import Json, JsonObject

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
MAX_HARMLESS = 4096  # names; clients send the same few dozen with every request
_harmless: set[str] = set()  # names that were found to say nothing


@functools.lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Whether a header or a key of a body names a secret; counts of tokens are none."""
    return _NO_LETTER.sub("", name.lower()).endswith(_SECRET_ENDS)


def is_secret_query(name: str) -> bool:
    """Whether a name in a query string names a secret."""
    return name.lower() in _SECRET_QUERY_NAMES or is_secret_name(name)


def has_secret_name(objects: Iterable[JsonObject]) -> bool:
    """Whether anything in these objects that may be a secret stands under such a name; objects are none."""
    for here in objects:  # noqa: SIM110 - in every request's way, where a generator would cost as much
        if not _harmless.issuperset(here) and _names_secret(here):
            return True
    return False


def _names_secret(value: dict[str, Json]) -> bool:
    """Look at the names of one object, and remember those that say nothing."""
    for key, item in value.items():
        if key in _harmless:
            continue
        if is_secret_name(key):
            if not isinstance(item, dict):
                return True
        else:
            if len(_harmless) >= MAX_HARMLESS:
                _harmless.clear()
            _harmless.add(key)
    return False
