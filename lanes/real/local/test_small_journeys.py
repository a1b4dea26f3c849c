"""Small journeys with the model that this lane has started on this machine.

Each attempt has a code of its own. What is left in the folder is judged, and that the model's words carry the code,
which the witness on the wire looks for; nothing else that it says.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from lanes.asking import AskedStepByStep
from lanes.channels import Channels
from lanes.local_recording import local_target
from lanes.playing import drive_story
from lanes.scenario import Scenario, load_scenarios
from lanes.story_log import check_log, read_rows, turn_failures
from lanes.world import FileCheck, WorldCheck, check_world

CODE = "48213"  # as the stories have it
STORIES = [
    pytest.param(story, id=name, marks=pytest.mark.claim(story.claim))
    for name, story in load_scenarios().items()
    if story.is_for_small_models
]


def _with_code(story: Scenario, code: str) -> Scenario:
    """The story with a code that nobody has seen before."""

    def told(check: WorldCheck) -> WorldCheck:
        if not isinstance(check, FileCheck):
            return check
        equals, contains = (text and text.replace(CODE, code) for text in (check.equals, check.contains))
        return replace(check, file=check.file.replace(CODE, code), equals=equals, contains=contains)

    return replace(
        story,
        workspace={name: text.replace(CODE, code) for name, text in story.workspace.items()},
        runs=tuple(replace(run, task=run.task.replace(CODE, code)) for run in story.runs),
        world=tuple(told(check) for check in story.world),
    )


@pytest.mark.timeout(900)  # on a busy machine: what is tried here is the model, and not how fast it is
@pytest.mark.parametrize("story", STORIES)
async def test_a_small_model_leaves_the_world_that_the_story_tells(
    story: Scenario, channels: Channels, tmp_path: Path
) -> None:
    workspace, sessions = tmp_path / "workspace", tmp_path / "sessions"
    workspace.mkdir()
    sessions.mkdir()
    transport = channels.local()
    told = _with_code(story, transport.new_challenge())
    asked = AskedStepByStep(transport, transport.running.sampling, story.forced)

    async with transport:
        log = await drive_story(told, local_target(transport.running), os.environ, workspace, sessions, asked)

    rows = read_rows(log)
    assert [*turn_failures(rows), *check_log(story.log, rows), *check_world(told.world, workspace)] == []
    assert transport.says_challenge
