"""Answers kept by their id are bounded and go oldest first."""

from __future__ import annotations

from mock_provider.kept import Kept


def test_the_oldest_document_goes_first() -> None:
    kept = Kept(limit=2)
    for name in ("a", "b", "a", "c"):
        kept.put(name, {"id": name})
    assert [kept.get(name) for name in ("a", "b", "c")] == [{"id": "a"}, None, {"id": "c"}]


def test_a_dropped_document_is_gone_and_only_once() -> None:
    kept = Kept()
    kept.put("a", {})
    assert (kept.drop("a"), kept.drop("a"), len(kept)) == (True, False, 0)
