"""Reasoning sealed for the client to give back, as the provider's encrypted content.

Room: pure; the Responses dialect comes in. Nothing is hidden by the seal: it only has to survive the round trip and
to be recognised, so it depends on the text alone.
"""

from __future__ import annotations

import base64
import hashlib

_PREFIX = "mock_sealed_"
_DIGEST_CHARS = 16


def seal(text: str) -> str:
    """Seal a text."""
    data = text.encode("utf-8", "surrogatepass")
    return f"{_PREFIX}{_digest(data)}{base64.urlsafe_b64encode(data).decode('ascii')}"


def is_sealed(sealed: str) -> bool:
    """Whether this is a seal of ours, untouched."""
    rest = sealed.removeprefix(_PREFIX)
    if rest == sealed:
        return False
    try:
        data = base64.b64decode(rest[_DIGEST_CHARS:].encode("ascii"), altchars=b"-_", validate=True)
    except ValueError:
        return False
    return rest[:_DIGEST_CHARS] == _digest(data)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:_DIGEST_CHARS]
