"""The installed program speaks Responses with the mock provider: the same stories, told in another wire format."""

from __future__ import annotations

from pathlib import Path

import pytest

from lanes.channels import Channels
from lanes.policy import DUMMY_KEY
from lanes.program import Program, check_story
from lanes.scenario import Run, find_scenario, write_workspace
from lanes.story_log import check_log, read_rows
from lanes.world import check_world
from mock_provider.dialects.openai_sealed import is_sealed
from mock_provider.replies import reasoning, script, step, tool_call


@pytest.mark.parametrize("story", ["fix-test", "max-tokens", "parallel-tools", "resume-session", "retry-then-success"])
def test_a_story_told_in_responses_leaves_the_same_world(story: str, channels: Channels, tmp_path: Path) -> None:
    workspace, sessions = tmp_path / "workspace", tmp_path / "sessions"
    workspace.mkdir()
    sessions.mkdir()
    scenario = find_scenario(story)
    write_workspace(scenario, workspace)
    mock = channels.loopback(scenario.script)
    environ = {"OPENAI_API_KEY": DUMMY_KEY, "HARNESS_DIALECT": "openai_responses"}
    program = Program(workspace, sessions, mock.base_url("openai_responses"), environ=environ)

    finished = [program.run(run) for run in scenario.runs]

    problems = check_story(scenario, finished) + check_world(scenario.world, workspace)
    problems += check_log(scenario.log, read_rows(program.log_file()))
    assert problems == []
    assert {(entry.dialect, entry.rule) for entry in mock.journal.entries} == {("openai_responses", None)}


def test_sealed_reasoning_is_given_back_as_it_came(channels: Channels, tmp_path: Path) -> None:
    (tmp_path / "north.txt").write_text("41", encoding="utf-8")
    played = script(
        step(reasoning("look first"), tool_call("read_file", {"path": "north.txt"}, id="call_1")),
        step("It says 41.", expect={"tool_result": {"name": "read_file", "contains": "41"}}),
    )
    mock = channels.loopback(played)
    environ = {"OPENAI_API_KEY": DUMMY_KEY, "HARNESS_DIALECT": "openai_responses"}
    program = Program(tmp_path, tmp_path / "sessions", mock.base_url("openai_responses"), environ=environ)

    finished = program.run(Run(task="What does north.txt say?"))

    body = mock.journal[1].body
    assert isinstance(body, dict)
    items = [item for item in body["input"] if isinstance(item, dict)] if isinstance(body["input"], list) else []
    thoughts = [item for item in items if item["type"] == "reasoning"]
    assert [(item["summary"], is_sealed(str(item["encrypted_content"]))) for item in thoughts] == [
        ([{"type": "summary_text", "text": "look first"}], True)
    ]
    assert (finished.exit, finished.stdout) == (0, "It says 41.\n")
