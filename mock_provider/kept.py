"""Answers that later requests may name by their id, as JSON documents.

Room: pure; the engine holds one, the dialects read and write it.
"""

from __future__ import annotations

import json
from typing import cast

from mock_provider.json_values import JsonObject

MAX_KEPT_BYTES = 16 << 20  # a few hundred agent requests of 25 KB with their answers; older ones go first


class Kept:
    """Documents by id, the oldest dropped first.

    Limits: MAX_KEPT_BYTES of documents, spelled out; not safe for threads, the engine locks.
    """

    def __init__(self, limit_bytes: int = MAX_KEPT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._size_bytes = 0
        self._documents: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._documents)

    def get(self, name: str) -> JsonObject | None:
        """A copy of the document of this id; None when it was never kept, or is gone."""
        text = self._documents.get(name)
        return None if text is None else cast("JsonObject", json.loads(text))

    def put(self, name: str, document: JsonObject) -> None:
        """Keep a copy of a document, in place of an older one of this id."""
        self.drop(name)
        text = json.dumps(document)
        self._documents[name] = text
        self._size_bytes += len(text)
        while self._size_bytes > self._limit_bytes:
            self.drop(next(iter(self._documents)))

    def drop(self, name: str) -> bool:
        """Forget a document. Shape: whether it was there."""
        text = self._documents.pop(name, None)
        self._size_bytes -= len(text or "")
        return text is not None

    def clear(self) -> None:
        """Forget everything."""
        self._documents.clear()
        self._size_bytes = 0
