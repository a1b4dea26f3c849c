"""Embeddings: unit vectors from the text alone, in which texts that share words are near each other.

Room: pure; the chat dialect offers the address.
Source: the provider's published API reference for POST /v1/embeddings; its SDK asks for base64 unless told otherwise.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
import struct
from collections.abc import Mapping

from mock_provider.asked import Refusal
from mock_provider.dialects.codec import Received
from mock_provider.dialects.openai_refusals import (
    kind_of,
    missing,
    out_of_range,
    too_many,
    unknown_value,
    wrong_type,
)
from mock_provider.json_values import Json, JsonObject
from mock_provider.pieces import count_tokens
from mock_provider.values import value

FIELDS = frozenset({"model", "input", "encoding_format", "dimensions", "user"})
DIMENSIONS: Mapping[str, int] = {"text-embedding-3-large": 3072}
USUAL_DIMENSIONS = 1536  # of the provider's other models
MAX_INPUTS = 2048
MAX_TOKENS = 8192
_WORD = re.compile(r"\w+")
_PLACES = 8  # of a word in the vector: few, so that two words seldom meet
_OWN_WEIGHT = 0.02  # of what tells texts with the same words apart: small beside one word


@value
class _Text:
    """One input. Shape: tokens given as numbers are spelled as words."""

    text: str
    tokens: int


def embed(received: Received) -> JsonObject | Refusal:
    """Answer a request for embeddings, or refuse it like the provider."""
    body, script = received.body, received.script
    if not isinstance(body, dict):
        return Refusal(400, "wrong_type", f"Invalid type for request body: expected an object, got {kind_of(body)}.")
    deployment = received.arguments.get("deployment")
    model = deployment if deployment is not None else body.get("model")
    if model in (None, ""):
        return Refusal(400, "missing_model", "you must provide a model parameter")
    if not isinstance(model, str):
        return wrong_type("model", "a string", model)
    if script.models and model not in script.models:
        message = f"The model `{model}` does not exist or you do not have access to it."
        return Refusal(404, "unknown_model", message, code="model_not_found")
    extra = next((name for name in body if name not in FIELDS), None)
    if extra is not None and script.refuses_extra_fields:
        return Refusal(400, "extra_field", f"Unrecognized request argument supplied: {extra}", param=extra)
    texts = _texts(body)
    if isinstance(texts, Refusal):
        return texts
    size = _size(body, model)
    if isinstance(size, Refusal):
        return size
    spell = body.get("encoding_format") or "float"
    if spell not in ("float", "base64"):
        return unknown_value("unknown_word", "encoding_format", spell, ("float", "base64"))
    data: list[Json] = [
        {"object": "embedding", "index": at, "embedding": _spelled(vector_of(one.text, size), str(spell))}
        for at, one in enumerate(texts)
    ]
    tokens = sum(one.tokens for one in texts)
    usage: JsonObject = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": data, "model": model, "usage": usage}


def _texts(body: JsonObject) -> list[_Text] | Refusal:
    given = body.get("input")
    if given is None:
        return missing("input")
    listed = given if isinstance(given, list) and not _is_tokens(given) else [given]
    if len(listed) > MAX_INPUTS:
        return too_many("too_many_inputs", "input", len(listed), MAX_INPUTS)
    found: list[_Text] = []
    for one in listed:
        if isinstance(one, str) and one:
            found.append(_Text(one, max(count_tokens(one), 1)))
        elif isinstance(one, list) and _is_tokens(one):
            found.append(_Text(" ".join(map(str, one)), len(one)))
        else:
            found = []
            break
        if found[-1].tokens > MAX_TOKENS:
            text = (
                f"This model's maximum context length is {MAX_TOKENS} tokens, however you requested "
                f"{found[-1].tokens} tokens ({found[-1].tokens} in your prompt; 0 for the completion). "
                "Please reduce your prompt; or completion length."
            )
            return Refusal(400, "too_many_tokens", text)
    if not found:
        text = "'$.input' is invalid. Please check the API reference: https://platform.openai.com/docs/api-reference."
        return Refusal(400, "bad_input", text)
    return found


def _is_tokens(value: list[Json]) -> bool:
    return bool(value) and all(isinstance(one, int) and not isinstance(one, bool) and one >= 0 for one in value)


def _size(body: JsonObject, model: str) -> int | Refusal:
    wanted = body.get("dimensions")
    most = DIMENSIONS.get(model, USUAL_DIMENSIONS)
    if wanted is None:
        return most
    if model == "text-embedding-ada-002":
        return Refusal(400, "fixed_dimensions", "This model does not support specifying dimensions.")
    problem = out_of_range(wanted, "dimensions", 1, most, "integer")
    if problem or not isinstance(wanted, int):
        return problem or most
    return wanted


def vector_of(text: str, size: int) -> tuple[float, ...]:
    """A vector of length 1. Shape: size numbers, each one that four bytes can hold."""
    data = text.encode("utf-8", "surrogatepass")
    own = struct.unpack(f"<{size}i", hashlib.shake_256(data).digest(4 * size))
    values = [_OWN_WEIGHT * value / (1 << 31) for value in own]
    for word in _WORD.findall(text.lower()):
        digest = hashlib.sha256(word.encode("utf-8", "surrogatepass")).digest()
        for place, sign in struct.iter_unpack("<HB", digest[: 3 * _PLACES]):
            values[place % size] += 1 if sign & 1 else -1
    length = math.sqrt(math.fsum(value * value for value in values)) or 1.0
    packed = struct.pack(f"<{size}f", *(value / length for value in values))
    return struct.unpack(f"<{size}f", packed)


def _spelled(vector: tuple[float, ...], spell: str) -> Json:
    if spell == "base64":
        return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode("ascii")
    return list(vector)
