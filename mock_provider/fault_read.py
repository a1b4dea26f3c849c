"""Reading faults from a script: one that is certain, or a lot among many.

Room: pure; only the script rooms come in.
"""

from __future__ import annotations

import hashlib
from typing import cast

from mock_provider.random_faults import NAMES, is_name
from mock_provider.script_fields import Fields, near_miss
from mock_provider.script_source import Entries, Scalar
from mock_provider.steps import FAULT_KINDS, FaultAt, FaultKind, RandomFaults
from mock_provider.stream_read import MAX_PIECES, MAX_SEED, MAX_WAIT_MS

FAULT_KEYS = ("kind", "after", "for_ms", "every_ms", "random")
RANDOM_KEYS = ("weights", "seed", "in_a_row")
REFUSE_MS = 200  # the port stays closed this long unless the script says otherwise: more than one quick retry
MAX_WEIGHT = 1_000_000
MAX_IN_A_ROW = 1000


def read_fault(fields: Fields) -> tuple[FaultAt | None, RandomFaults | None]:
    """Read the key `fault` of a step. Shape: one of the two at most."""
    node = fields.node("fault")
    if node is None:
        return None, None
    if not isinstance(node, Entries):
        word = fields.choice("fault", FAULT_KINDS)
        return (_fault(cast("FaultKind", word), None, None) if word else None), None
    inner = Fields(node, fields.path("fault"), fields.findings, FAULT_KEYS)
    if inner.has("random"):
        if len(inner.given()) > 1:
            inner.add("random", "other keys beside random", "SCRIPT_VALUE", expected="random alone")
        return None, read_random(inner)
    inner.require("kind", f"one of {', '.join(FAULT_KINDS)}")
    word = inner.choice("kind", FAULT_KINDS)
    after = inner.integer("after", 0, MAX_PIECES)
    times = {key: inner.integer(key, 1, MAX_WAIT_MS) for key in ("for_ms", "every_ms")}
    for key, kind in (("for_ms", "refuse"), ("every_ms", "keep_alive")):
        if inner.has(key) and word != kind:
            inner.add(key, f"a {word} has no {key}", "SCRIPT_VALUE", expected=f"kind: {kind}, or no {key}")
    if word == "refuse" and after is not None:
        inner.add("after", "a connection that is refused has no pieces", "SCRIPT_VALUE", expected="no 'after'")
    return (_fault(cast("FaultKind", word), after, times["for_ms"] or times["every_ms"]) if word else None), None


def _fault(kind: FaultKind, after: int | None, ms: int | None) -> FaultAt:
    if ms is None:
        ms = REFUSE_MS if kind == "refuse" else 0
    return FaultAt(kind, after, ms)


def read_random(fields: Fields) -> RandomFaults | None:
    """Read the key `random`: weights by name, a seed, and how many requests in a row may be hit."""
    node = fields.node("random")
    if node is None:
        return None
    inner = Fields(node, fields.path("random"), fields.findings, RANDOM_KEYS)
    if isinstance(node, Entries):
        inner.require("weights", "a mapping from fault, cause or status to a number")
    weights: list[tuple[str, float]] = []
    entries = inner.entries("weights") or ()
    for entry in entries:
        field = f"{inner.path('weights')}.{entry.key}"
        value = entry.value.value if isinstance(entry.value, Scalar) else None
        if not is_name(entry.key):
            what = f"'{entry.key}' is no fault{near_miss(entry.key, NAMES)}"
            expected = f"one of {', '.join(NAMES)}, or a status from 400 to 599"
            fields.findings.add(entry.mark, field, what, "SCRIPT_KEY", expected=expected)
        elif isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_WEIGHT:
            fields.findings.wrong_type(entry.value, field, f"a number from 0 to {MAX_WEIGHT}")
        else:
            weights.append((entry.key, float(value)))
    if inner.has("weights") and len(weights) == len(entries) and not sum(weight for _, weight in weights):
        inner.add("weights", "no weight above 0", "SCRIPT_VALUE", expected="at least one")
    seed = inner.integer("seed", 0, MAX_SEED)
    if seed is None:
        seed = _own_seed(weights)
    return RandomFaults(tuple(weights), seed, inner.integer("in_a_row", 0, MAX_IN_A_ROW) or 0)


def _own_seed(weights: list[tuple[str, float]]) -> int:
    """A seed for who gives none: the same for the same weights, because nothing here is left to chance."""
    return int.from_bytes(hashlib.sha256(repr(weights).encode("utf-8", "surrogatepass")).digest()[:4], "big")
