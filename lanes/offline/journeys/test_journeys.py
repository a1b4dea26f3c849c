"""The journeys: the installed program as a child process, its model played by the mock provider on loopback."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from lanes.channels import Channels
from lanes.normalize import Json
from lanes.policy import DUMMY_KEY
from lanes.program import Program, check_finished, check_story, console_command, event_of, run_command, stop_when
from lanes.scenario import Scenario, find_scenario, load_scenarios, script_text, write_workspace
from lanes.story_log import check_log, log_facts, read_rows
from lanes.world import check_world

BY_HAND = (  # each has its own test below
    "delegate-work",  # leaves two session logs, and a story speaks of one
    "killed-in-tool",  # a kill is no run a story can describe
)
STORIES = [
    pytest.param(scenario, id=name, marks=pytest.mark.claim(scenario.claim))
    for name, scenario in load_scenarios().items()
    if name not in BY_HAND
]


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """A workspace and a session root."""
    workspace, sessions = tmp_path / "workspace", tmp_path / "sessions"
    workspace.mkdir()
    sessions.mkdir()
    return workspace, sessions


@pytest.mark.parametrize("scenario", STORIES)
def test_a_journey_through_the_installed_program_leaves_the_world_its_story_tells(
    scenario: Scenario, channels: Channels, folders: tuple[Path, Path]
) -> None:
    workspace, sessions = folders
    write_workspace(scenario, workspace)
    mock = channels.loopback(scenario.script)
    program = Program(workspace, sessions, mock.base_url("openai_chat"), environ={"OPENAI_API_KEY": DUMMY_KEY})

    finished = []
    for run in scenario.runs:
        finished.append(program.run(run))
        if run.interrupt_after is not None:
            mock.gate("hold").open()

    problems = check_story(scenario, finished)
    problems += check_world(scenario.world, workspace)
    problems += check_log(scenario.log, read_rows(program.log_file()))
    assert problems == []


@pytest.mark.claim("journey.delegate-work")
def test_a_child_does_its_part_in_the_same_folder_and_in_a_session_of_its_own(
    channels: Channels, folders: tuple[Path, Path]
) -> None:
    workspace, sessions = folders
    scenario = find_scenario("delegate-work")
    write_workspace(scenario, workspace)
    mock = channels.loopback(scenario.script)
    program = Program(workspace, sessions, mock.base_url("openai_chat"), environ={"OPENAI_API_KEY": DUMMY_KEY})

    finished = program.run(scenario.runs[0])

    assert check_story(scenario, [finished]) + check_world(scenario.world, workspace) == []
    logs = {str(header["id"]): (header, rows) for header, rows in map(_headed, sessions.rglob("session.jsonl"))}
    (root,) = [name for name, (header, _) in logs.items() if "parentSession" not in header]
    (child,) = [name for name, (header, _) in logs.items() if header.get("parentSession") == root]
    assert check_log(scenario.log, logs[root][1]) == []
    assert (logs[child][0]["delegationDepth"], log_facts(logs[child][1]).turn_ends) == (1, ("completed",))


def _headed(path: Path) -> tuple[dict[str, Json], list[Json]]:
    """A session log's header, and all of its rows."""
    rows = read_rows(path)
    header = rows[0]
    assert isinstance(header, dict)
    return header, rows


@pytest.mark.claim("journey.killed-in-tool")
def test_a_program_killed_while_a_tool_works_goes_on_without_running_it_twice(
    channels: Channels, folders: tuple[Path, Path]
) -> None:
    workspace, sessions = folders
    scenario = find_scenario("killed-in-tool")
    write_workspace(scenario, workspace)
    os.mkfifo(workspace / "hold")
    mock = channels.loopback(scenario.script)
    program = Program(workspace, sessions, mock.base_url("openai_chat"), environ={"OPENAI_API_KEY": DUMMY_KEY})
    first, second = scenario.runs
    held: list[int] = []

    def hold_the_tool() -> None:  # returns once the tool's command has opened the other end: the tool is at work
        held.append(os.open(workspace / "hold", os.O_WRONLY))

    killed = stop_when(
        [*console_command("harness"), *program.arguments(first)],
        program.environment(),
        workspace,
        lambda line: event_of(line).get("type") == "tool/call",
        signal.SIGKILL,
        before_signal=hold_the_tool,
    )
    resumed = program.run(second)
    os.close(held[0])

    problems = [*check_finished(first, killed), *check_finished(second, resumed)]
    problems += check_world(scenario.world, workspace)
    problems += check_log(scenario.log, read_rows(program.log_file()))
    assert problems == []


@pytest.mark.claim("mock.wrapped-command")
def test_the_wrapped_command_performs_the_journey_and_prints_the_verdict(folders: tuple[Path, Path]) -> None:
    workspace, sessions = folders
    scenario = find_scenario("fix-test")
    write_workspace(scenario, workspace)
    script = sessions.parent / "script.json"
    script.write_text(script_text(scenario), encoding="utf-8")
    program = Program(workspace, sessions, None)
    command = [*console_command("mock-provider"), "run", str(script), "--", *console_command("harness")]

    done = run_command([*command, *program.arguments(scenario.runs[0])], program.environment(), workspace)

    assert (done.exit, done.stdout) == (0, scenario.runs[0].stdout)
    assert check_world(scenario.world, workspace) == []
    assert "as scripted: steps used 5, left over 0, unmatched 0, invalid 0" in done.stderr


@pytest.mark.claim("mock.wrapped-command")
def test_the_wrapped_command_with_one_step_too_few_exits_3_and_names_request_and_nearest_step(
    folders: tuple[Path, Path],
) -> None:
    workspace, sessions = folders
    scenario = find_scenario("fix-test")
    write_workspace(scenario, workspace)
    short = Scenario(
        scenario.name, scenario.claim, scenario.story, {}, {**scenario.script}, scenario.runs, scenario.world
    )
    short.script["steps"] = list(scenario.script["steps"])[:-1]
    script = sessions.parent / "script.json"
    script.write_text(script_text(short), encoding="utf-8")
    program = Program(workspace, sessions, None)
    command = [*console_command("mock-provider"), "run", str(script), "--", *console_command("harness")]

    done = run_command([*command, *program.arguments(scenario.runs[0])], program.environment(), workspace)

    assert done.exit == 3
    assert "request 5" in done.stderr
    assert "nearest step: 4" in done.stderr
    assert "Traceback" not in done.stderr
