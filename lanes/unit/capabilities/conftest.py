"""The family as a fixture: whatever a test did with it, every log it leaves is checked.

Room: pytest loads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from lanes.unit.capabilities.family import Family


@pytest.fixture
def make_family() -> Iterator[Callable[..., Family]]:
    """Make families; at the end of the test each one is checked."""
    families: list[Family] = []

    def make(*replies: object, **options: object) -> Family:
        family = Family(*replies, **options)  # type: ignore[arg-type] # passes on what the test wrote
        families.append(family)
        return family

    yield make
    for family in families:
        family.check()
