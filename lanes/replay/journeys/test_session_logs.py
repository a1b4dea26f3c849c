"""Committed session logs driven through the loop: every request as the log implies it, the same log at the end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from lanes.channels import Channels
from lanes.expected import diff_events
from lanes.normalize import Identities, Json, normalize_log
from lanes.playing import Target, drive_story, workspace_places
from lanes.policy import DUMMY_KEY
from lanes.program import Program
from lanes.scenario import find_scenario
from lanes.story_log import check_log, read_rows, unpack_rows
from lanes.world import check_world

LOGS = Path(__file__).parents[3] / "cassettes" / "session-logs"
NAMES = sorted(folder.name for folder in LOGS.iterdir() if not folder.name.startswith("."))
STORIES = [
    pytest.param(name, id=name, marks=pytest.mark.claim(find_scenario(name).claim))
    for name in NAMES
    if all(run.interrupt_after is None for run in find_scenario(name).runs)  # an interrupt is a signal to a process
]
TARGET = Target("http://none.invalid/v1", "openai", "m-small", None)


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """A fresh workspace and a session root."""
    workspace, sessions = tmp_path / "workspace", tmp_path / "sessions"
    workspace.mkdir()
    sessions.mkdir()
    return workspace, sessions


def _comparable(paths: Sequence[Path], workspace: Path) -> list[Json]:
    rows = [row for path in paths for row in unpack_rows(read_rows(path))]
    return normalize_log(rows, workspace_places(workspace), Identities())


@pytest.mark.parametrize("name", STORIES)
async def test_the_loop_reproduces_a_recorded_session_in_a_fresh_folder(
    name: str, channels: Channels, folders: tuple[Path, Path]
) -> None:
    workspace, sessions = folders
    scenario = find_scenario(name)
    player = channels.session_log(LOGS / name, places=workspace_places(workspace))

    log = await drive_story(scenario, TARGET, {"OPENAI_API_KEY": DUMMY_KEY}, workspace, sessions, player)

    children = sorted((LOGS / name).glob("session.*.jsonl"))
    recorded = _comparable([LOGS / name / "session.jsonl", *children], workspace)
    assert player.verify() == ()
    assert diff_events(recorded, _comparable(Program(workspace, sessions, None).log_files(), workspace)) == []
    assert [*check_world(scenario.world, workspace), *check_log(scenario.log, read_rows(log))] == []
