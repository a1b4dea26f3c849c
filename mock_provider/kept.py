"""Answers that later requests may name by their id, as JSON documents.

Room: pure; the engine holds one, the dialects read and write it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import cast

from mock_provider.json_values import JsonObject

MAX_KEPT_BYTES = 16 << 20  # a few hundred agent requests of 25 KB with their answers; older ones go first


class Kept:
    """Documents by id, the oldest dropped first.

    Shape: told, if it is there, hears of each change, None for a drop, before it is made; take_in makes one that was
    made elsewhere. Limits: MAX_KEPT_BYTES of documents, spelled out; not safe for threads, the engine locks.
    """

    def __init__(
        self, limit_bytes: int = MAX_KEPT_BYTES, told: Callable[[str, str | None], None] | None = None
    ) -> None:
        self._limit_bytes = limit_bytes
        self._told = told
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
        self._change(name, json.dumps(document))

    def drop(self, name: str) -> bool:
        """Forget a document. Shape: whether it was there."""
        if name not in self._documents:
            return False
        self._change(name, None)
        return True

    def take_in(self, name: str, text: str | None) -> None:
        """Make a change that is told already."""
        self._size_bytes += len(text or "") - len(self._documents.pop(name, ""))
        if text is not None:
            self._documents[name] = text
        while self._size_bytes > self._limit_bytes:
            self._size_bytes -= len(self._documents.pop(next(iter(self._documents))))

    def _change(self, name: str, text: str | None) -> None:
        if self._told is not None:
            self._told(name, text)
        self.take_in(name, text)

    def clear(self) -> None:
        """Forget everything."""
        self._documents.clear()
        self._size_bytes = 0
