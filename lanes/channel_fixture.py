"""The fixture `channels`: the ways to a model that a test has in its lane.

Room: pytest loads it by name, in every lane and in every project; what it opens is loaded when a test asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lanes.errors import ScenarioError
from lanes.observation import NotRun

if TYPE_CHECKING:  # loaded by the fixture: a unit test that asks for no channel does not pay for one
    from lanes.channels import Channels
    from lanes.lane_run import LaneRun
    from lanes.staleness import Today

WAS_NOT_RUN = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Remember of an item that it says it was not run, for the fixtures that end after it."""
    try:
        return (yield)
    except NotRun:
        item.stash[WAS_NOT_RUN] = True
        raise


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
    observation = observation_of(request.node)
    found = Channels(run.policy, observation, tmp_path, today=lambda: _today(run), root=run.root)
    yield found
    try:
        found.close(is_judged=not request.node.stash.get(WAS_NOT_RUN, False))
    except ScenarioError as error:
        pytest.fail(str(error), pytrace=False)  # its words say it all; the lines of this file would only be in the way
