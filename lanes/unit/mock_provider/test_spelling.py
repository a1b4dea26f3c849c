"""Bodies that share most of their bytes are counted for what they add."""

from __future__ import annotations

from mock_provider.spelling import Shelf, Spelling


def test_a_document_in_pieces_is_the_document() -> None:
    assert Spelling((b"[", b"1", b"]")).data() == b"[1]"


def test_what_is_shared_is_counted_once_and_as_long_as_somebody_has_it() -> None:
    shared, one, two = bytearray(b"shared"), b"one", b"three"
    first, second = Spelling((bytes(shared), one)), None
    second = Spelling((first.pieces[0], two))
    shelf = Shelf()
    sizes = []
    for change, what in ((shelf.add, first), (shelf.add, second), (shelf.take, first), (shelf.take, second)):
        change(what)
        sizes.append(shelf.size_bytes)
    assert sizes == [9, 14, 11, 0]


def test_a_piece_that_stands_twice_in_a_document_is_counted_once() -> None:
    comma = b", "
    twice = Spelling((b"a", comma, b"b", comma, b"c"))
    shelf = Shelf()
    shelf.add(twice)
    size = shelf.size_bytes
    shelf.take(twice)
    assert (size, shelf.size_bytes) == (5, 0)


def test_a_document_in_one_piece_counts_whole() -> None:
    shelf = Shelf()
    shelf.add(b"12345")
    shelf.add(b"12345")
    shelf.take(b"12345")
    size = shelf.size_bytes
    shelf.clear()
    assert (size, shelf.size_bytes) == (5, 0)
