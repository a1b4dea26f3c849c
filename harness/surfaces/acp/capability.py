"""Whether a connection may be told that it can send pictures: only when every fact says so.

Room: pure; the bridge comes in. What is not known counts as no, so that no client sends a picture that is doomed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harness.surfaces.acp.content import PICTURE_TYPES

Lookup = Callable[[str, str], frozenset[str] | None]


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known where pictures are concerned.

    Shape: stored_types is None when no store is mounted; provider and model are None where none is configured; lookup
    gives what a provider's model takes, None where that is not declared.
    """

    stored_types: frozenset[str] | None
    provider: str | None
    model: str | None
    lookup: Lookup


def takes_pictures(facts: Facts) -> bool:
    """Whether all of it is proven; a lookup that fails proves nothing and is never raised."""
    if facts.stored_types is None or not facts.stored_types & frozenset(PICTURE_TYPES):
        return False
    if not facts.provider or not facts.model:
        return False
    try:
        inputs = facts.lookup(facts.provider, facts.model)
    except Exception:  # noqa: BLE001 - whatever keeps the answer from us, we do not have it
        return False
    return inputs is not None and "image" in inputs
