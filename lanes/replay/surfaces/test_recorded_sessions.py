"""Committed sessions through every surface of the program: the same recording, the same logs."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from lanes.channels import Channels
from lanes.expected import diff_events
from lanes.normalize import Json
from lanes.offline.surfaces.place import Place, comparable, lay_out
from lanes.playing import workspace_places
from lanes.program import Finished, ShownText, check_story, run_command, stop_when
from lanes.recorded_child import RecordedChild
from lanes.recorded_log import LOG_NAME
from lanes.replay.surfaces.driving import SURFACES
from lanes.scenario import Run, Scenario, find_scenario
from lanes.world import check_world

LOGS = Path(__file__).parents[3] / "cassettes" / "session-logs"
NAMES = sorted(folder.name for folder in LOGS.iterdir() if not folder.name.startswith("."))
ONE_TURN = [name for name in NAMES if len(find_scenario(name).runs) == 1]
MANY_TURNS = [name for name in NAMES if name not in ONE_TURN]


def claimed(name: str) -> object:
    """A recording as a parameter, with the claims that its replay speaks for."""
    return pytest.param(name, id=name, marks=pytest.mark.claim(find_scenario(name).claim, "recordings.surfaces"))


def place_of(scenario: Scenario, folder: Path, channels: Channels) -> tuple[Place, RecordedChild]:
    """A workspace with the story's files, and the recording as the model of whatever is started in it."""
    workspace = lay_out(scenario, folder)
    child = channels.recorded_child(LOGS / scenario.name, places=workspace_places(workspace))
    return Place(folder, child.base_url, child.command), child


def recorded_rows(name: str, workspace: Path) -> list[Json]:
    """The rows of a recording: those of the root session, then its children's in their order."""
    children = sorted(LOGS.glob(f"{name}/session.*.jsonl"), key=lambda path: int(path.name.split(".")[1]))
    return comparable([LOGS / name / LOG_NAME, *children], workspace)


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("name", [claimed(name) for name in ONE_TURN])
async def test_a_recorded_session_replays_with_the_same_logs_through_every_surface(
    name: str, surface: str, channels: Channels, tmp_path: Path
) -> None:
    scenario = find_scenario(name)
    place, child = place_of(scenario, tmp_path / surface, channels)

    await SURFACES[surface](place, scenario.runs[0])

    assert child.problems == ()
    assert diff_events(recorded_rows(name, place.workspace), place.rows()) == []
    assert check_world(scenario.world, place.workspace) == []


def start(run: Run, place: Place) -> Finished:
    """One process of the program, interrupted when the story says so."""
    command = place.command(place.program().arguments(run))
    if run.interrupt_after is None:
        return run_command(command, place.environment(), place.workspace)
    shown = ShownText(run.interrupt_after)
    return stop_when(command, place.environment(), place.workspace, shown.has_come, signal.SIGINT)


@pytest.mark.parametrize("name", [claimed(name) for name in MANY_TURNS])
def test_a_recorded_session_goes_on_over_processes_where_the_last_one_ended(
    name: str, channels: Channels, tmp_path: Path
) -> None:
    scenario = find_scenario(name)
    place, child = place_of(scenario, tmp_path, channels)

    finished = [start(run, place) for run in scenario.runs]

    assert check_story(scenario, finished) == []
    assert child.problems == ()
    assert diff_events(recorded_rows(name, place.workspace), place.rows()) == []
    assert check_world(scenario.world, place.workspace) == []
