"""Parts of requests that arrived before: an agent sends its tools and its history again with every request.

Room: pure; the reader of bodies makes these values, the dialects ask what was found out about them already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar, cast

from mock_provider.json_values import Json
from mock_provider.runs import Run

State = TypeVar("State")
Item = TypeVar("Item")
_UNKNOWN = object()


class KnownList(list[Json]):
    """A list as a request has it, which nobody may change.

    Shape: runs are its elements in groups, those from the left that arrived before in this order and what is new; each
    holds what was found out about the list up to its end. A list with the same elements that somebody puts together is
    not the same.
    """

    __slots__ = ("runs",)

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[Run] = []


class Growing(Generic[Item]):
    """A sequence that is never changed, only continued; continuing the newest one costs nothing.

    Shape: plus() gives one that is longer, and shares what it has in common with this one.
    """

    __slots__ = ("_count", "_shared")

    def __init__(self, shared: list[Item] | None = None, count: int = 0) -> None:
        self._shared: list[Item] = [] if shared is None else shared
        self._count = count

    def plus(self, items: Iterable[Item]) -> Growing[Item]:
        """These and more."""
        shared = self._shared if len(self._shared) == self._count else self._shared[: self._count]
        shared.extend(items)
        return Growing(shared, len(shared))

    def all(self) -> tuple[Item, ...]:
        """All of them."""
        return tuple(self._shared) if len(self._shared) == self._count else tuple(self._shared[: self._count])


def fold(step: Callable[[State, Sequence[Json]], State], start: State, items: Sequence[Json]) -> State:
    """Go through a list from the left, beginning where the last request with this beginning was.

    Shape: step makes a new state of the one before and the next items, some or all of them at once, and must depend on
    nothing else.
    """
    if not isinstance(items, KnownList):
        return step(start, items)
    state, runs = start, items.runs
    at = len(runs)
    while at:
        found = runs[at - 1].findings.get(step, _UNKNOWN)
        if found is not _UNKNOWN:
            state = cast("State", found)
            break
        at -= 1
    for run in runs[at:] if at else runs:
        state = step(state, run.values)
        run.findings[step] = state
    return state
