"""Bodies that share most of their bytes are counted for what they add."""

from __future__ import annotations

from mock_provider.spelling import Shelf, Spelling


def test_a_document_in_pieces_is_the_document() -> None:
    assert Spelling((b"[", b"1", b"]"), (), 3).data() == b"[1]"


def test_what_is_shared_is_counted_once_and_as_long_as_somebody_has_it() -> None:
    shared = b"shared"
    first, second = Spelling((shared, b"one"), (shared,), 3), Spelling((shared, b"three"), (shared,), 5)
    shelf = Shelf()
    sizes = []
    for change, what in ((shelf.add, first), (shelf.add, second), (shelf.take, first), (shelf.take, second)):
        change(what)
        sizes.append(shelf.size_bytes)
    assert sizes == [9, 14, 11, 0]


def test_a_piece_that_stands_twice_in_a_document_is_counted_once() -> None:
    shared = b"twice"
    twice = Spelling((shared, b",", shared), (shared, shared), 1)
    shelf = Shelf()
    shelf.add(twice)
    size = shelf.size_bytes
    shelf.take(twice)
    assert (size, shelf.size_bytes) == (6, 0)


def test_a_document_in_one_piece_counts_whole() -> None:
    shelf = Shelf()
    shelf.add(b"12345")
    shelf.add(b"12345")
    shelf.take(b"12345")
    size = shelf.size_bytes
    shelf.clear()
    assert (size, shelf.size_bytes) == (5, 0)
