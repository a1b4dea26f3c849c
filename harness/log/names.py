"""The names a session's folder and file get.

Room: pure; only the store turns these names into paths.
"""

from __future__ import annotations

import hashlib

from harness.errors import UsageError
from harness.model.messages import SessionId

LOG_NAME = "session.jsonl"
NO_PROJECT = "no-project"
MAX_SLUG = 80  # readable in a listing; two projects that share a slug share a folder and nothing else
MAX_SEGMENT = 180  # file systems stop at 255 bytes; what is left is room for the suffixes of lock and staging files
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_")
_READABLE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")


def segment_of(session_id: SessionId) -> str:
    """The folder name of a session id: no two ids share one, not even where upper and lower case are one.

    Shape: lower-case letters, digits, - and _ stay, every other byte becomes %xx; a very long id becomes its digest
    behind a mark no other name contains.
    Raises: UsageError for an empty id.
    """
    if not session_id:
        raise UsageError("a session id may not be empty", where="session id")
    raw = session_id.encode("utf-8", "surrogatepass")
    segment = "".join(chr(byte) if chr(byte) in _PLAIN else f"%{byte:02x}" for byte in raw)
    if len(segment) > MAX_SEGMENT:
        return f"{segment[:40].rstrip('%')}~{hashlib.sha256(raw).hexdigest()}"
    return segment


def slug_of(cwd: str | None) -> str:
    """The project folder of a working directory: readable, bounded, not reversible."""
    if cwd is None:
        return NO_PROJECT
    slug = "".join(letter if letter in _READABLE else "-" for letter in cwd).strip("-.")
    return slug[-MAX_SLUG:].lstrip("-.") or "root"
