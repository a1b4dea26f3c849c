"""Families and rigs as fixtures: whatever a test did with them, every log they leave is checked.

Room: pytest loads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from lanes.unit.capabilities.family import Family
from lanes.unit.loop.rig import Rig


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


@pytest.fixture
def make_rig() -> Iterator[Callable[..., Rig]]:
    """Build rigs; at the end of the test each one is checked."""
    rigs: list[Rig] = []

    def make(*replies: object, **options: object) -> Rig:
        rig = Rig(*replies, **options)  # type: ignore[arg-type] # passes on what the test wrote
        rigs.append(rig)
        return rig

    yield make
    for rig in rigs:
        rig.check()
