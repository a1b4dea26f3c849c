"""JSON as it stands on a wire: strict when read, ASCII when written.

Room: pure; every codec may come in.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import NoReturn

from harness.errors import PeerError
from harness.model.messages import Json

MAX_DEPTH = 100  # of arguments: lists and objects within each other; far below what any later encoder can follow


def is_too_deep(value: Json) -> bool:
    """Whether lists and objects stand within each other more than MAX_DEPTH deep."""
    level = [value] if isinstance(value, Mapping | list | tuple) else []
    for _ in range(MAX_DEPTH):
        level = [each for holder in level for each in _held_by(holder) if isinstance(each, Mapping | list | tuple)]
    return bool(level)


def _held_by(holder: Mapping[str, Json] | Sequence[Json]) -> Iterable[Json]:
    return holder.values() if isinstance(holder, Mapping) else holder


def parse_json(text: str | bytes) -> Json:
    """Read one JSON value.

    Shape: lone surrogates written as escapes come back as they were.
    Raises: PeerError [MALFORMED_JSON] for text that is no JSON, bytes that are no UTF-8, numbers that are not finite
    and nesting deeper than the interpreter can follow.
    """
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8")
        value: Json = _decode(text)
    except RecursionError:
        raise PeerError("nested too deeply", code="MALFORMED_JSON") from None
    except ValueError as error:  # JSONDecodeError, UnicodeDecodeError, integers of thousands of digits
        raise PeerError(str(error), code="MALFORMED_JSON") from None
    return value


def encode_json(value: Json) -> bytes:
    """Write one JSON value: compact, keys sorted, everything outside ASCII escaped.

    Shape: equal values give equal bytes, and a lone surrogate stays an escape, so the bytes are valid UTF-8.
    Raises: ValueError for numbers that are not finite, TypeError for what JSON cannot hold.
    """
    text = json.dumps(
        value, ensure_ascii=True, allow_nan=False, sort_keys=True, separators=(",", ":"), default=_plain_mapping
    )
    return text.encode("ascii")


def _plain_mapping(value: object) -> dict[object, object]:
    """A read-only mapping, as the log hands out, in the form json knows."""
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"JSON cannot hold a {type(value).__name__}")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _parse_finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"the number {text[:40]} is too large")
    return number


_decode = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_parse_finite).decode  # one for all
