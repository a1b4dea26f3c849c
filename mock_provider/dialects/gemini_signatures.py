"""Thought signatures: what a model seals its thinking with, and a client has to give back unchanged.

Room: pure; the Gemini dialect comes in.
Source: the provider's guide to thought signatures, which also names the two texts that stand for a history
made elsewhere.
"""

from __future__ import annotations

import base64
import hashlib

_PREFIX = b"mock-thought-signature-"
_DUMMIES = ("context_engineering_is_the_way_to_go", "skip_thought_signature_validator")


def signature_of(text: str) -> str:
    """A signature in base64; it depends on the text alone."""
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]
    return base64.b64encode(_PREFIX + digest.encode("ascii")).decode("ascii")


def is_ours(spelled: str, decoded: bytes) -> bool:
    """Whether a signature that came back is one of this provider's, or one of the texts that stand for none."""
    return decoded.startswith(_PREFIX) or spelled in _DUMMIES or decoded.decode("ascii", "replace") in _DUMMIES
