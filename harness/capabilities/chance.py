"""Where time, ids and chance come from: from the world, or from a seed that makes every run the same.

Room: assemble comes in, and the ACP server for the ids of new sessions; nobody else draws any of it.
"""

from __future__ import annotations

import hashlib
import itertools
import random
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime

SEEDED_EPOCH_MS = 1_700_000_000_000  # a round number far from any real run, easy to recognise in a log

Clock = Callable[[], int]
Ids = Callable[[str], str]


def wall_clock() -> int:
    """Milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def now() -> datetime:
    """The present moment, in UTC."""
    return datetime.now(UTC)


def ticking_clock() -> Clock:
    """A clock that is one millisecond further at every look, from the seeded epoch on."""
    return itertools.count(SEEDED_EPOCH_MS).__next__


def jitter_of_chance() -> float:
    """A number from 0 up to 1."""
    return random.random()  # noqa: S311 - spreads retries over time, protects nothing


def no_jitter() -> float:
    """The middle of what chance would give."""
    return 0.5


def fresh_ids(seed: str | None, place: str) -> Ids:
    """Fresh ids: random, or drawn from the seed and the place so that no other lifetime of a session has them."""
    if seed is None:
        return lambda prefix: f"{prefix}-{uuid.uuid4()}"
    numbers = itertools.count(1)

    def draw(prefix: str) -> str:
        text = f"{seed}/{place}/{prefix}/{next(numbers)}"
        return f"{prefix}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"

    return draw
