"""Probabilities of tokens in the providers' form, from the text alone.

Room: pure; the OpenAI dialects come in. The numbers mean nothing; only their form and their determinism matter.
"""

from __future__ import annotations

import hashlib

from mock_provider.json_values import Json, JsonObject
from mock_provider.pieces import BYTES_PER_TOKEN

_STEPS = 1000


def logprobs_of(text: str, top: int) -> list[Json]:
    """One entry a token, each with its most probable alternatives. Shape: the sum of the tokens is the text."""
    return [_entry(text[at : at + BYTES_PER_TOKEN], top) for at in range(0, len(text), BYTES_PER_TOKEN)]


def _entry(token: str, top: int) -> JsonObject:
    data = token.encode("utf-8", "surrogatepass")
    value = -(int.from_bytes(hashlib.sha256(data).digest()[:4]) % _STEPS) / _STEPS
    alternatives: list[Json] = [
        _spelled(token if rank == 0 else f"{token}~{rank}", value - rank) for rank in range(top)
    ]
    return {**_spelled(token, value), "top_logprobs": alternatives}


def _spelled(token: str, value: float) -> JsonObject:
    return {"token": token, "logprob": value, "bytes": list(token.encode("utf-8", "surrogatepass"))}
