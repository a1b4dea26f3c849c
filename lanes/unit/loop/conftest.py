"""The rig as a fixture: whatever a test of the loop did, the log it leaves is checked.

Room: pytest loads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from lanes.unit.loop.rig import Rig


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
