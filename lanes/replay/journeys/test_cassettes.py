"""Committed cassettes driven through the loop: every exchange asked for once, in order, and none beyond."""

from __future__ import annotations

from pathlib import Path

import pytest

from lanes.asking import AskedStepByStep
from lanes.channels import Channels
from lanes.local_table import load_local_row
from lanes.playing import Target, drive_story, workspace_places
from lanes.policy import DUMMY_KEY
from lanes.scenario import find_scenario
from lanes.story_log import check_log, read_rows
from lanes.world import check_world

CASSETTES = Path(__file__).parents[3] / "cassettes" / "openai_chat"
STORIES = [
    pytest.param(path, id=path.stem, marks=pytest.mark.claim(find_scenario(path.stem).claim, "recordings.strict"))
    for path in sorted(CASSETTES.glob("*.yaml"))
]
TARGET = Target("http://none.invalid/v1", "openai", "m-small", None)
LOCAL = load_local_row()
LOCAL_TARGET = Target(
    "http://127.0.0.1:1/v1", "custom", LOCAL.model, None
)  # as it was recorded: a server of this machine


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """A fresh workspace and a session root."""
    workspace, sessions = tmp_path / "workspace", tmp_path / "sessions"
    workspace.mkdir()
    sessions.mkdir()
    return workspace, sessions


@pytest.mark.parametrize("path", STORIES)
async def test_a_recorded_story_plays_to_its_end_and_leaves_the_world_it_tells(
    path: Path, channels: Channels, folders: tuple[Path, Path]
) -> None:
    workspace, sessions = folders
    scenario = find_scenario(path.stem)
    player = channels.cassette(path, places=workspace_places(workspace))

    is_local = scenario.is_for_small_models
    around = AskedStepByStep(player, LOCAL.sampling, scenario.forced) if is_local else player
    target, environ = (LOCAL_TARGET, {}) if is_local else (TARGET, {"OPENAI_API_KEY": DUMMY_KEY})

    log = await drive_story(scenario, target, environ, workspace, sessions, around)

    assert player.verify() == ()
    assert [*check_world(scenario.world, workspace), *check_log(scenario.log, read_rows(log))] == []
