"""Fixtures shared by the suites of every lane.

Room: pytest loads it; what is shared by several test files stands here and not in one of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lanes.observation import NotRun
from lanes.spec_ids import spec_ids

if TYPE_CHECKING:  # loaded by the fixture: a unit test that asks for no channel does not pay for one
    from lanes.channels import Channels
    from lanes.lane_run import LaneRun
    from lanes.staleness import Today

WAS_NOT_RUN = pytest.StashKey[bool]()
CLAIM_MARKER = "claim(*ids): the claims of lanes/claims.toml that this test speaks for"


def pytest_configure(config: pytest.Config) -> None:
    """Make the claim marker known also to a plain pytest, which has no lane."""
    config.addinivalue_line("markers", CLAIM_MARKER)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Let a test be selected by the spec ids in its name, also in a plain pytest."""
    item.extra_keyword_matches.update(spec_ids(item.name))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Remember of an item that it says it was not run, for the fixtures that end after it."""
    try:
        return (yield)
    except NotRun:
        item.stash[WAS_NOT_RUN] = True
        raise


@pytest.fixture
def anyio_backend() -> str:
    """The one event loop that this project runs on."""
    return "asyncio"


def _today(run: LaneRun) -> Today:
    """What recordings are held against in this run; loaded by the first item that needs it."""
    from lanes.today import load_today

    return load_today(run)


@pytest.fixture
def channels(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Channels]:
    """The ways to a model that this item's lane has; at the end their witnesses hand over what they saw."""
    if not request.config.pluginmanager.has_plugin("lanes-items"):
        pytest.fail("a test that asks for channels runs in a lane: lanes run LANE", pytrace=False)
    from lanes.channels import Channels
    from lanes.items import observation_of

    run = request.getfixturevalue("lane_run")
    found = Channels(run.policy, observation_of(request.node), tmp_path, today=lambda: _today(run))
    yield found
    found.close(is_judged=not request.node.stash.get(WAS_NOT_RUN, False))
