"""Answers kept by their id are bounded and go oldest first."""

from __future__ import annotations

from mock_provider.json_values import JsonObject
from mock_provider.kept import Kept


def test_the_oldest_document_goes_first() -> None:
    kept = Kept(limit_bytes=2 * len('{"id": "a"}'))
    for name in ("a", "b", "a", "c"):
        kept.put(name, {"id": name})
    assert [kept.get(name) for name in ("a", "b", "c")] == [{"id": "a"}, None, {"id": "c"}]


def test_a_document_over_the_limit_is_not_kept() -> None:
    kept = Kept(limit_bytes=4)
    kept.put("a", {"id": "a"})
    assert (kept.get("a"), len(kept)) == (None, 0)


def test_a_dropped_document_is_gone_and_only_once() -> None:
    kept = Kept()
    kept.put("a", {})
    assert (kept.drop("a"), kept.drop("a"), len(kept)) == (True, False, 0)


def test_what_is_done_to_a_document_later_does_not_reach_the_kept_one() -> None:
    kept = Kept()
    document: JsonObject = {"id": "a"}
    kept.put("a", document)
    document["id"] = "b"
    found = kept.get("a")
    assert found == {"id": "a"}
    found["id"] = "c"
    assert kept.get("a") == {"id": "a"}
