"""A request as a face received it, and its body read as JSON, compressed or not.

Room: pure; the faces make the requests, the engine reads them.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping

from mock_provider.asked import Refusal
from mock_provider.json_reader import Reader, Reading
from mock_provider.json_values import MAX_DEPTH
from mock_provider.values import value

PLAIN = "identity"


@value
class Incoming:
    """A request as a face received it. Shape: header names in lower case; target is path and query."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


def unpack_body(data: bytes, encoding: str, limit_bytes: int) -> bytes | Refusal:
    """Undo the compression of a body. Shape: the refusal is what the provider says when it cannot."""
    if encoding in {"gzip", "deflate"}:
        try:
            inflater = zlib.decompressobj(wbits=47)
            unpacked = inflater.decompress(data, limit_bytes)
        except zlib.error:
            return Refusal(400, "bad_encoding", f"The request body is not {encoding}.")
        if inflater.unconsumed_tail:
            return Refusal(413, "body_too_large", f"The request body is over {limit_bytes} bytes.")
        return unpacked
    if encoding != PLAIN:
        return Refusal(415, "bad_encoding", f"Content-Encoding {encoding} is not supported.")
    return data


def read_body(data: bytes, reader: Reader) -> Reading | Refusal:
    """Read an unpacked body as JSON. Shape: the refusal is what the provider says when it cannot."""
    if not data:
        return Refusal(400, "empty_body", _NOT_JSON)
    try:
        reading = reader.read(data)
    except (ValueError, RecursionError):
        return Refusal(400, "not_json", _NOT_JSON)
    if reading.fresh_objects() is None:  # what was known was not too deep
        return Refusal(400, "too_deep", f"The request body is nested more than {MAX_DEPTH} levels deep.")
    return reading


_NOT_JSON = (
    "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library "
    "correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON.)"
)
