"""The pytest hooks of a lane, and how they are put in place.

Room: pytest loads it. Without a running lane it does nothing at all, so installing it changes no other project's tests.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lanes import guard
from lanes.attempts import AttemptHooks
from lanes.controller import Controller
from lanes.environment import LANE_VARIABLE, OUT_VARIABLE, find_strays
from lanes.errors import GuardError, LanesError
from lanes.items import ItemHooks
from lanes.lane_run import LaneRun, load_lane_run
from lanes.observation import not_run
from lanes.providers import load_providers
from lanes.reach import load_watch
from lanes.reach_hooks import ReachHooks
from lanes.tether import PARENT_VARIABLE, tie_to_parent

if os.environ.get(LANE_VARIABLE) == "real":
    import lanes.seal  # noqa: F401 - before any file of the suite: it takes down what a live answer comes through

__all__ = ["CLAIM_MARKER", "not_run", "pytest_configure", "pytest_report_header"]

CLAIM_MARKER = "claim(*ids): the claims of lanes/claims.toml that this test speaks for"
ITEMS_PLUGIN = "lanes-items"
RETRY_PLUGINS = ("rerunfailures", "pytest_rerunfailures", "flaky", "flaky.flaky_pytest_plugin", "pytest_retry", "retry")

_RUN = pytest.StashKey[LaneRun]()


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Put the lane's hooks in place when a lane runs, once, and in workers too."""
    if not os.environ.get(LANE_VARIABLE) or config.pluginmanager.has_plugin(ITEMS_PLUGIN):
        return
    config.addinivalue_line("markers", CLAIM_MARKER)
    try:
        run = load_lane_run(config.rootpath)
        _check_place(config, run)
        if not run.worker:
            tie_to_parent(os.environ.get(PARENT_VARIABLE, ""))
    except LanesError as error:
        pytest.exit(str(error), returncode=error.exit_code)
    config.stash[_RUN] = run
    config.pluginmanager.register(ItemHooks(run), ITEMS_PLUGIN)
    if run.policy.retries:
        config.pluginmanager.register(AttemptHooks(run), "lanes-attempts")
    watch = load_watch()
    if watch is not None and watch.root == str(config.rootpath):
        config.pluginmanager.register(ReachHooks(watch), "lanes-reach")
    if not run.worker:
        config.pluginmanager.register(Controller(run, Path(os.environ[OUT_VARIABLE])), "lanes-controller")


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say which lane runs and how deep it is guarded."""
    run = config.stash.get(_RUN, None)
    if run is None:
        return None
    return f"lane: {run.policy.name}, guard {run.depth}, keys removed: {run.keys_removed}, marker: {run.marker}"


def _check_place(config: pytest.Config, run: LaneRun) -> None:
    """Check from inside what the runner prepared outside."""
    here = guard.installed()
    if here is None or here.lane != run.policy.name or here.start != guard.REFUSED:
        raise GuardError("the guard is not in front of this process", fix="start lanes with `lanes run LANE`")
    strays = find_strays(os.environ, run.policy, load_providers())
    if strays:
        message = f"variables that may not be set in lane {run.policy.name!r}: {', '.join(strays)}"
        raise GuardError(message, fix="start lanes with `lanes run LANE`, which leaves them out")
    for name in RETRY_PLUGINS:
        if config.pluginmanager.has_plugin(name):
            message = f"plugin {name!r} repeats tests on its own; a lane counts every attempt"
            raise GuardError(message, fix="leave the plugin out")
