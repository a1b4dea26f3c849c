"""Fixtures shared by the suites of every lane.

Room: pytest loads it; what is shared by several test files stands here and not in one of them.
"""

from __future__ import annotations

import pytest

from lanes.spec_ids import spec_ids

CLAIM_MARKER = "claim(*ids): the claims of lanes/claims.toml that this test speaks for"


def pytest_configure(config: pytest.Config) -> None:
    """Make the claim marker known also to a plain pytest, which has no lane."""
    config.addinivalue_line("markers", CLAIM_MARKER)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Let a test be selected by the spec ids in its name, also in a plain pytest."""
    item.extra_keyword_matches.update(spec_ids(item.name))


@pytest.fixture
def anyio_backend() -> str:
    """The one event loop that this project runs on."""
    return "asyncio"
