"""What the journeys of this folder need beyond the lane's own packages, and what they say where it is not there.

Room: pytest loads it.
"""

from __future__ import annotations

import importlib.util

import pytest

from lanes.plugin import not_run

PACKAGES = ("mcp", "mcp_server_git", "mcp_server_time")


@pytest.fixture(autouse=True)
def packages() -> None:
    """Run only where the packages are: in the environment `offline-clients`."""
    missing = [name.replace("_", "-") for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        not_run("missing-dependency", f"{', '.join(missing)}; tox -e offline-clients has them")
