"""A value is a frozen dataclass to the type checker, and compares, hashes and shows like one."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace

import pytest

from mock_provider.values import value


@value
class Nothing:
    """No field."""


@value
class Pair:
    """Two fields of which one counts, and one that is made."""

    name: str
    place: int = field(default=0, compare=False)
    words: tuple[str, ...] = field(default_factory=tuple, repr=False)


@value
class Other:
    """The same fields as a pair."""

    name: str
    place: int = 0
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Frozen:
    """What a pair is to the type checker."""

    name: str
    place: int = field(default=0, compare=False)
    words: tuple[str, ...] = field(default_factory=tuple, repr=False)


PAIRS = (Pair("a"), Pair("a", 1), Pair("b"), Pair("a", 0, ("w",)))
FROZEN = (Frozen("a"), Frozen("a", 1), Frozen("b"), Frozen("a", 0, ("w",)))


def test_values_are_equal_where_frozen_dataclasses_of_their_fields_are() -> None:
    assert [[one == other for other in PAIRS] for one in PAIRS] == [
        [one == other for other in FROZEN] for one in FROZEN
    ]
    assert [hash(one) for one in PAIRS] == [hash(one) for one in FROZEN]


def test_a_value_of_another_class_is_another_value() -> None:
    assert [Pair("a") == Other("a"), Pair("a") == Frozen("a"), Nothing() == Nothing()] == [False, False, True]


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        pytest.param(Pair("a", 1, ("w",)), "Pair(name='a', place=1)", id="without-what-is-not-shown"),
        pytest.param(Nothing(), "Nothing()", id="nothing"),
    ],
)
def test_a_value_shows_its_class_and_its_fields(shown: object, expected: str) -> None:
    assert repr(shown) == expected


def test_a_value_is_read_and_changed_like_any_dataclass() -> None:
    assert asdict(replace(Pair("a"), place=2)) == {"name": "a", "place": 2, "words": ()}


def test_how_values_compare_is_written_out_once_and_for_their_class_alone() -> None:
    @value
    class Fresh:
        name: str

    first = Fresh.__eq__
    assert (Fresh("a") == Fresh("a"), Fresh.__eq__ is first) == (True, False)
    written = Fresh.__eq__
    assert (Fresh("a") == Fresh("b"), Fresh.__eq__ is written) == (False, True)
