"""What the tests of this folder need beyond the lane's own packages, and what they say where it is not there.

Room: pytest loads it. A test file names the modules it needs in PACKAGES; it imports them inside its tests only, so
that it can be collected without them.
"""

from __future__ import annotations

import importlib.util

import pytest

from lanes.plugin import not_run


@pytest.fixture(autouse=True)
def packages(request: pytest.FixtureRequest) -> None:
    """Run only where the packages are: in the environment `offline-clients`."""
    wanted: tuple[str, ...] = getattr(request.module, "PACKAGES", ())
    missing = [name.replace("_", "-") for name in wanted if not _is_there(name)]
    if missing:
        not_run("missing-dependency", f"{', '.join(missing)}; tox -e offline-clients has them")


def _is_there(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # the package around it is not there either
        return False
