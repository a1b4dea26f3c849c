"""What was found out about the beginning of a list is not found out again, and never taken for another list's."""

from __future__ import annotations

import json
from collections.abc import Sequence

from mock_provider.json_reader import Reader
from mock_provider.json_values import Json, JsonObject
from mock_provider.known import Growing, KnownList, fold

PAD = "x" * 1_100


def listed(reader: Reader, *names: str) -> list[Json]:
    """The list as a request brings it."""
    document: JsonObject = {"items": [{"name": name} for name in names], "pad": PAD}
    reading = reader.read(json.dumps(document).encode())
    reader.remember(reading)
    assert isinstance(reading.value, dict)
    items = reading.value["items"]
    assert isinstance(items, list)
    return items


class Stepper:
    """A step that notes what it was asked about."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def __call__(self, state: tuple[str, ...], items: Sequence[Json]) -> tuple[str, ...]:
        names = [str(item["name"]) for item in items if isinstance(item, dict)]
        self.seen += names
        return (*state, *names)


def test_a_list_that_grows_is_gone_through_once() -> None:
    reader, step = Reader(), Stepper()
    found = [fold(step, (), listed(reader, *"abcd"[:length])) for length in (2, 3, 4, 4)]
    assert found == [("a", "b"), ("a", "b", "c"), ("a", "b", "c", "d"), ("a", "b", "c", "d")]
    assert step.seen == ["a", "b", "c", "d"]


def test_a_list_that_goes_another_way_is_gone_through_from_there() -> None:
    reader, step = Reader(), Stepper()
    for names in ("abx", "aby", "abz", "acz"):
        assert fold(step, (), listed(reader, *names)) == tuple(names)
    assert "".join(step.seen) == "abx" + "aby" + "z" + "acz"


def test_known_elements_in_a_list_that_somebody_put_together_say_nothing_about_it() -> None:
    reader, step = Reader(), Stepper()
    first = listed(reader, "a", "b")
    fold(step, (), first)
    assert isinstance(first, KnownList)
    assert fold(step, (), [{"name": "new"}, *first]) == ("new", "a", "b")
    assert fold(step, (), first[1:]) == ("b",)


def test_a_growing_sequence_does_not_see_what_others_add() -> None:
    start: Growing[int] = Growing()
    one = start.plus([1])
    two, other = one.plus([2]), one.plus([3])
    assert [sequence.all() for sequence in (start, one, two, other, two.plus([4, 5]), two.plus([]))] == [
        (),
        (1,),
        (1, 2),
        (1, 3),
        (1, 2, 4, 5),
        (1, 2),
    ]
