"""A request as a face received it, and its body read as JSON, compressed or not.

Room: pure; the faces make the requests, the engine reads them.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from mock_provider.asked import Refusal
from mock_provider.json_values import MAX_DEPTH, Json, is_too_deep

MAX_BODY_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class Incoming:
    """A request as a face received it. Shape: header names in lower case; target is path and query."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


def parse_body(incoming: Incoming) -> tuple[Json, Refusal | None]:
    """Read the body as JSON. Shape: the refusal is what the provider says when it cannot."""
    data = incoming.body
    if not data:
        return None, Refusal(400, "empty_body", _NOT_JSON)
    encoding = incoming.headers.get("content-encoding", "identity").lower()
    if encoding in {"gzip", "deflate"}:
        try:
            inflater = zlib.decompressobj(wbits=47)
            data = inflater.decompress(data, MAX_BODY_BYTES)
        except zlib.error:
            return None, Refusal(400, "bad_encoding", f"The request body is not {encoding}.")
        if inflater.unconsumed_tail:
            return None, Refusal(413, "body_too_large", f"The request body is over {MAX_BODY_BYTES} bytes.")
    elif encoding != "identity":
        return None, Refusal(415, "bad_encoding", f"Content-Encoding {encoding} is not supported.")
    try:
        value: Json = json.loads(data, parse_constant=_not_a_number, parse_float=_finite)
    except (ValueError, RecursionError):
        return None, Refusal(400, "not_json", _NOT_JSON)
    if data.count(b"[") + data.count(b"{") > MAX_DEPTH and is_too_deep(value):
        return None, Refusal(400, "too_deep", f"The request body is nested more than {MAX_DEPTH} levels deep.")
    return value, None


def _not_a_number(word: str) -> Json:
    raise ValueError(f"{word} is no JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]} is out of range")
    return value


_NOT_JSON = (
    "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library "
    "correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON.)"
)
