"""Answers that later requests may name by their id, as plain JSON.

Room: pure; the engine holds one, the dialects read and write it.
"""

from __future__ import annotations

from mock_provider.json_values import JsonObject

MAX_KEPT = 1000  # as many answers as a long play gives; the oldest go first, so memory stays bounded


class Kept:
    """Documents by id, the oldest dropped first.

    Limits: MAX_KEPT documents; not safe for threads, the engine locks.
    """

    def __init__(self, limit: int = MAX_KEPT) -> None:
        self._limit = limit
        self._documents: dict[str, JsonObject] = {}

    def __len__(self) -> int:
        return len(self._documents)

    def get(self, name: str) -> JsonObject | None:
        """The document of this id; None when it was never kept, or is gone."""
        return self._documents.get(name)

    def put(self, name: str, document: JsonObject) -> None:
        """Keep a document, in place of an older one of this id."""
        self._documents.pop(name, None)
        self._documents[name] = document
        while len(self._documents) > self._limit:
            del self._documents[next(iter(self._documents))]

    def drop(self, name: str) -> bool:
        """Forget a document. Shape: whether it was there."""
        return self._documents.pop(name, None) is not None

    def clear(self) -> None:
        """Forget everything."""
        self._documents.clear()
