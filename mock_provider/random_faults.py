"""Faults by lot, for stress: the same script, seed and requests draw the same faults, whoever comes first.

Room: pure; the deciding room draws, the command and the verdict say the seed.
A request that is hit does not use its step up: the next one of the same step draws again, so that a client that tries
again gets the answer in the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mock_provider.causes import CAUSES, GATEWAY, GATEWAY_PAGE, GATEWAY_STATUS
from mock_provider.pace import lot
from mock_provider.steps import AnyOrder, DeadlyKind, ErrorEvent, FaultAt, HttpError, RandomFaults, Script, Step
from mock_provider.values import value

NO_FAULT = "none"
DRAWN_KINDS: tuple[DeadlyKind, ...] = ("reset", "cut", "end", "stall", "garbage", "truncate")
_KINDS: Mapping[str, DeadlyKind] = {kind: kind for kind in DRAWN_KINDS}
ERROR_EVENT = "error_event"
MAX_AFTER = 8  # pieces before a fault inside a stream; beyond the end of a short one it strikes at its end
BEFORE = "before"  # put before a kind: it strikes before any byte
EARLY_KINDS = tuple(f"{BEFORE}_{kind}" for kind in ("reset", "cut", "stall", "garbage"))
NAMES: tuple[str, ...] = (NO_FAULT, *DRAWN_KINDS, *EARLY_KINDS, ERROR_EVENT, *CAUSES)


@value
class Draw:
    """One lot. Shape: name is what was drawn, after how many pieces it strikes, if it strikes inside a stream."""

    name: str
    after: int
    number: int
    seed: int

    def __str__(self) -> str:
        return f"random fault '{self.name}' (seed {self.seed}, draw {self.number})"


def is_name(word: str) -> bool:
    """Whether a weight may have this name: a fault, a cause, or an error status."""
    return word in NAMES or (word.isascii() and word.isdigit() and 400 <= int(word) <= 599)


def draw(faults: RandomFaults, place: tuple[str, str, int], number: int, in_a_row: int) -> Draw | None:
    """Draw for a request; None is no fault.

    Shape: place is conversation, client and step; number counts the draws at that place, in_a_row those that hit.
    """
    if faults.in_a_row and in_a_row >= faults.in_a_row:
        return None
    conversation, client, step = place
    total = sum(weight for _, weight in faults.weights)
    at = lot(faults.seed, conversation, client, step, number, "fault") * total
    for name, weight in faults.weights:
        at -= weight
        if at < 0:
            if name == NO_FAULT:
                return None
            after = int(lot(faults.seed, conversation, client, step, number, "after") * MAX_AFTER)
            return Draw(name, after, number, faults.seed)
    return None


def hit(step: Step, drawn: Draw) -> Step:
    """The step as the fault makes it."""
    name = drawn.name
    if name.startswith(f"{BEFORE}_"):
        name = name.removeprefix(f"{BEFORE}_")
        return replace(step, parts=(), fault=FaultAt(_KINDS[name]))
    if name in _KINDS:
        return replace(step, fault=FaultAt(_KINDS[name], drawn.after))
    if name == ERROR_EVENT:
        return replace(step, parts=(*step.parts[: drawn.after], ErrorEvent("", cause="server_error")), finish=None)
    if name == GATEWAY:
        return replace(step, http_error=HttpError(GATEWAY_STATUS, body=GATEWAY_PAGE, content_type="text/html"))
    if name.isdigit():
        return replace(step, http_error=HttpError(int(name)))
    return replace(step, http_error=HttpError(0, cause=name))


def all_random(script: Script) -> tuple[RandomFaults, ...]:
    """All declarations of a script, each once."""
    found = dict.fromkeys(
        step.random for conversation in script.conversations for step in conversation.steps() if step.random is not None
    )
    return tuple(found)


def say_seeds(script: Script) -> str:
    """The seeds of a script, in words for a person; empty when nothing is left to a lot."""
    seeds = dict.fromkeys(faults.seed for faults in all_random(script))
    if not seeds:
        return ""
    word = "seed" if len(seeds) == 1 else "seeds"
    return f"random faults, {word} {', '.join(map(str, seeds))}"


def with_seed(script: Script, seed: int) -> Script:
    """The script with another seed for all its lots."""

    def reseeded(step: Step) -> Step:
        return step if step.random is None else replace(step, random=replace(step.random, seed=seed))

    conversations = tuple(
        replace(
            conversation,
            items=tuple(
                reseeded(item) if isinstance(item, Step) else AnyOrder(tuple(map(reseeded, item.steps)), item.mark)
                for item in conversation.items
            ),
        )
        for conversation in script.conversations
    )
    return replace(script, conversations=conversations)
