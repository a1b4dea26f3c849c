"""Parts of requests that arrived before: an agent sends its tools and its history again with every request.

Room: pure; the reader of bodies makes these values, the dialects ask what was found out about them already.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar, cast

from mock_provider.json_values import Json, JsonObject

State = TypeVar("State")
Item = TypeVar("Item")


class KnownObject(dict[str, Json]):
    """A JSON object that arrived before at this place of a list, byte for byte, with all that stood before it.

    Shape: a dict like any other that nobody may change; findings holds what `fold` found out, by the function it used.
    """

    __slots__ = ("findings",)

    def __init__(self, content: JsonObject) -> None:
        super().__init__(content)
        self.findings: dict[Hashable, object] = {}


class KnownList(list[Json]):
    """A list as a request has it. Shape: known_count of its elements, from the left, arrived before in this order.

    One with the same elements that somebody puts together is not the same.
    """

    __slots__ = ("known_count",)

    def __init__(self) -> None:
        super().__init__()
        self.known_count = 0


class Growing(Generic[Item]):
    """A sequence that is never changed, only continued; continuing the newest one costs nothing.

    Shape: plus() gives one that is longer by one, and shares what it has in common with this one.
    """

    __slots__ = ("_count", "_shared")

    def __init__(self, shared: list[Item] | None = None, count: int = 0) -> None:
        self._shared: list[Item] = [] if shared is None else shared
        self._count = count

    def plus(self, item: Item) -> Growing[Item]:
        """These and one more."""
        shared = self._shared if len(self._shared) == self._count else self._shared[: self._count]
        shared.append(item)
        return Growing(shared, self._count + 1)

    def all(self) -> tuple[Item, ...]:
        """All of them."""
        return tuple(self._shared[: self._count])


def fold(step: Callable[[State, Json], State], start: State, items: Sequence[Json]) -> State:
    """Go through a list from the left, beginning where the last request with this beginning was.

    Shape: step makes a new state of the one before and the next item, and must depend on nothing else.
    """
    if not isinstance(items, KnownList):
        return functools.reduce(step, items, start)
    state, at = start, 0
    for place in range(len(items) - 1, -1, -1):
        item = items[place]
        if isinstance(item, KnownObject) and step in item.findings:
            state, at = cast("State", item.findings[step]), place + 1
            break
    for end in (items.known_count, len(items)):  # where others may go another way, and where the next one may go on
        if at < end:
            state = functools.reduce(step, items[at:end], state)
            last = items[end - 1]
            if isinstance(last, KnownObject):
                last.findings[step] = state
            at = end
    return state
