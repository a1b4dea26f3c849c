"""`--limit NAME=SIZE`: limits as a person writes them.

Room: pure; the command comes in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from mock_provider.errors import UsageError
from mock_provider.limits import Limits
from mock_provider.script_fields import near_miss

_FIELDS: Mapping[str, str] = {
    "body": "body_bytes",
    "header": "header_bytes",
    "script": "script_bytes",
    "event": "event_bytes",
    "receive": "receive_s",
    "idle": "idle_s",
    "connections": "connections",
}
_UNITS: Mapping[str, int] = {"": 1, "b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "s": 1}
_SIZE = re.compile(r"(\d{1,15})\s*([A-Za-z]*)")
EXPECTED = f"NAME=SIZE with a name of {', '.join(_FIELDS)}, such as body=64MiB or receive=10s"


def read_limits(words: Sequence[str]) -> Limits:
    """Read all limits given; the others stay as they are. Raises: UsageError."""
    limits = Limits()
    for word in words:
        name, mark, size = word.partition("=")
        if name not in _FIELDS or not mark:
            what = f"limit '{word}' is unknown{near_miss(name, tuple(_FIELDS))}"
            raise UsageError(what, where="--limit", expected=EXPECTED)
        field = _FIELDS[name]
        found = _SIZE.fullmatch(size)
        unit = _UNITS.get(found.group(2).lower()) if found else None
        is_time = field.endswith("_s")
        if found is None or unit is None or (found.group(2).lower() == "s") > is_time or (is_time and unit != 1):
            raise UsageError(f"limit '{word}' has no size", where="--limit", expected=EXPECTED)
        number = int(found.group(1)) * unit
        if number == 0 and field != "connections":
            raise UsageError(f"limit '{word}' lets nothing through", where="--limit", expected="more than 0")
        limits = replace(limits, **{field: number})
    return limits
