"""A view shows a growing list as it was, and costs no copy."""

from __future__ import annotations

import pytest

from harness.model.messages import Message, MessageId, TextBlock, UserSource
from harness.model.view import MessageView


def said(text: str) -> Message:
    return Message(MessageId(text), "user", (TextBlock(text),), UserSource())


A, B, C = said("a"), said("b"), said("c")


def test_a_view_stays_as_it_was_while_its_list_grows() -> None:
    entries = [A, B]
    view = MessageView(entries)
    entries.append(C)
    assert (len(view), tuple(view), view[-1], view[:], view[::-1]) == (2, (A, B), B, (A, B), (B, A))


@pytest.mark.parametrize("at", [2, -3], ids=["behind", "before"])
def test_what_came_later_is_not_in_the_view(at: int) -> None:
    entries = [A, B]
    view = MessageView(entries)
    entries.append(C)
    with pytest.raises(IndexError):
        view[at]


@pytest.mark.parametrize("start", [None, 0, 1, 2, 3, -1, -5])
@pytest.mark.parametrize("stop", [None, 0, 1, 2, 3, -1, -5])
@pytest.mark.parametrize("stride", [None, 1, 2, -1, -2])
def test_a_slice_is_the_slice_of_the_tuple(start: int | None, stop: int | None, stride: int | None) -> None:
    entries = [A, B]
    view = MessageView(entries)
    entries.append(C)
    assert view[start:stop:stride] == (A, B)[start:stop:stride]


def test_a_view_equals_and_hashes_as_the_tuple_of_its_messages() -> None:
    entries = [A]
    view, same = MessageView(entries), MessageView(entries)
    entries.append(B)
    longer, other = MessageView(entries), MessageView([A])
    assert view == (A,)
    assert view != (A, B)
    assert (view == same, view == other, view == longer, view == (A, B), view == [A]) == (
        True,
        True,
        False,
        False,
        False,
    )
    assert (hash(view), repr(view)) == (hash((A,)), repr((A,)))


def test_a_view_extends_only_an_earlier_one_of_its_own_list() -> None:
    entries = [A]
    earlier = MessageView(entries)
    entries.append(B)
    later = MessageView(entries)
    assert (later.extends(earlier), later.extends(later), earlier.extends(later), later.extends(MessageView([A]))) == (
        True,
        True,
        False,
        False,
    )
