"""The verdict on one proof, worked out from what was observed and from nothing else.

Room: pure. The runner judges with it, and reports judge again: a proof's own word for itself is never taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, TypeAlias, get_args

Verdict: TypeAlias = Literal[
    "proven",
    "survived",
    "wider",
    "narrower",
    "wrong reason",
    "not applied",
    "did not build",
    "not reached",
    "hung",
    "unstable",
    "baseline red",
]
Halt: TypeAlias = Literal["", "not applied", "did not build", "hung", "baseline red"]

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
HALTS: tuple[Halt, ...] = get_args(Halt)
# A guard that was seen not to hold, against a proof that says nothing about its guard.
FAILED: frozenset[Verdict] = frozenset({"survived", "wider", "narrower", "wrong reason", "hung"})
MEANINGS: Mapping[Verdict, str] = MappingProxyType(
    {
        "proven": "exactly these tests turned red, for the stated reason",
        "survived": "nothing turned red: the guard is untested",
        "wider": "more turned red than was declared",
        "narrower": "less turned red than was declared",
        "wrong reason": "the right tests turned red with another message",
        "not applied": "the edit did not fit its file, which says nothing about the guard",
        "did not build": "the edited code could not be loaded, and a broken build is no caught fault",
        "not reached": "no expected test executed the edited lines",
        "hung": "the time limit was met",
        "unstable": "runs of the same code disagree",
        "baseline red": "the unedited code fails already",
    }
)


@dataclass(frozen=True, slots=True)
class Observation:
    """What the runs of one proof showed.

    Shape: halt says why there was nothing to compare, and detail more about it; red holds one set of items per repeat;
    unmatched lists expected items whose failure did not match; is_reached says that every edited file had an edited
    line executed by an expected item; is_green_after that the unedited copy came out as before.
    """

    expected: frozenset[str]
    halt: Halt = ""
    detail: str = ""
    may_hang: bool = False
    red: tuple[frozenset[str], ...] = ()
    unmatched: tuple[str, ...] = ()
    is_reached: bool = False
    is_green_after: bool = True


@dataclass(frozen=True, slots=True)
class Ruling:
    """A verdict, whether it counts as proof, and the names or words that explain it."""

    verdict: Verdict
    counts: bool
    text: str = ""
    extra: tuple[str, ...] = field(default=())
    missing: tuple[str, ...] = field(default=())


def judge(seen: Observation) -> Ruling:
    """The verdict on what was seen."""
    if seen.halt:
        return Ruling(seen.halt, seen.halt == "hung" and seen.may_hang, seen.detail)
    if not seen.red:
        return Ruling("not applied", counts=False, text="nothing was run")
    if len(set(seen.red)) > 1:
        return Ruling("unstable", counts=False, text=f"{len(set(seen.red))} different sets in {len(seen.red)} runs")
    if not seen.is_green_after:
        return Ruling("unstable", counts=False, text=seen.detail or "the unedited copy did not come out as before")
    red = seen.red[0]
    if not red:
        return Ruling("survived" if seen.is_reached else "not reached", counts=False)
    extra, missing = tuple(sorted(red - seen.expected)), tuple(sorted(seen.expected - red))
    if extra or missing:
        text = "; ".join(filter(None, (_named("also red", extra), _named("not red", missing))))
        return Ruling("wider" if extra else "narrower", counts=False, text=text, extra=extra, missing=missing)
    if seen.unmatched:
        return Ruling("wrong reason", counts=False, text=_named("another message", seen.unmatched))
    if not seen.is_reached:
        return Ruling("not reached", counts=False, text=seen.detail)
    return Ruling("proven", counts=True)


def _named(what: str, items: Sequence[str]) -> str:
    return f"{what}: {', '.join(items)}" if items else ""
