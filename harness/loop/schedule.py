"""Which tool calls may start now: an ordered pool in which an exclusive call stands alone.

Room: pure; the dispatcher asks before each start. It runs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from harness.errors import UsageError

Mode = Literal["parallel", "exclusive"]

DEFAULT_CAP = 10


def check_cap(cap: object) -> int:
    """The cap as it was, when it is a whole number of at least 1.

    Raises: UsageError otherwise; 1 runs one call after the other.
    """
    if type(cap) is not int or cap < 1:
        raise UsageError(
            f"{cap!r} is not a number of parallel calls", where="parallel_cap", expected="a whole number from 1 up"
        )
    return cap


def mode_of(is_read_only: Callable[[], object] | None) -> Mode:
    """How a call runs: parallel only if the classifier answers exactly True, exclusive for everything else."""
    if is_read_only is None:
        return "exclusive"
    try:
        answer = is_read_only()
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - a classifier is a tool author's code; whatever it raises, alone is safe
        return "exclusive"
    return "parallel" if answer is True else "exclusive"


class Schedule:
    """The calls of one step: which is next, which run.

    Shape: start and finish by position; positions start in order, finish in any.
    """

    def __init__(self, total: int, cap: int = DEFAULT_CAP) -> None:
        self._total = total
        self._cap = check_cap(cap)
        self._next = 0
        self._running: set[int] = set()
        self._exclusive = False

    @property
    def next(self) -> int | None:
        """The position that starts next, or None when all were started."""
        return self._next if self._next < self._total else None

    @property
    def running(self) -> frozenset[int]:
        """The positions that were started and have not finished."""
        return frozenset(self._running)

    def may_start(self, mode: Mode) -> bool:
        """Whether the next call may start now, if it runs in that mode."""
        if self.next is None or self._exclusive:
            return False
        if mode == "exclusive":
            return not self._running
        return len(self._running) < self._cap

    def start(self, mode: Mode) -> int:
        """Start the next call and return its position."""
        position = self._next
        self._next += 1
        self._running.add(position)
        self._exclusive = mode == "exclusive"
        return position

    def finish(self, position: int) -> None:
        """The call at that position is done."""
        self._running.discard(position)
        self._exclusive = self._exclusive and bool(self._running)
