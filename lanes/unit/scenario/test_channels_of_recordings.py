"""The channels of recordings: what they tell of age, drift and use, also over child processes."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from lanes.channels import Channels
from lanes.environment import HOSTS_VARIABLE, NO_HOST
from lanes.errors import CassetteError, ScenarioError
from lanes.observation import Observation
from lanes.playing import workspace_places
from lanes.policy import DUMMY_KEY, LANES
from lanes.program import Program
from lanes.scenario import Run, find_scenario, write_workspace
from lanes.staleness import ProviderAges, Today
from lanes.unit.scenario.made_cassettes import made_document, write_cassette

LOGS = Path(__file__).parents[3] / "cassettes" / "session-logs"
NOW = datetime(2031, 3, 31, 12, tzinfo=UTC)
REPLAY_VARIABLES = {"OPENAI_API_KEY": DUMMY_KEY, HOSTS_VARIABLE: NO_HOST}  # as its lane has them, not ours
HELLO = {"version": 1, "steps": [{"reply": [{"text": "hello"}]}]}


def opened(lane: str, folder: Path, today: Today) -> tuple[Channels, Observation]:
    spool = folder / "spool"
    spool.mkdir()
    observation = Observation("lanes/test.py::test_it", spool=spool, secret="s")
    return Channels(LANES[lane], observation, folder, today=lambda: today), observation


def dated(folder: Path, days: int) -> Path:
    document = made_document(1)
    origin = document["interactions"][0]["response"]["origin"]
    origin |= {"recorded_at": (NOW - timedelta(days=days)).isoformat(), "host": "models.invalid"}
    return write_cassette(folder, document)


def ask_for_all(channels: Channels, path: Path) -> None:
    player = channels.cassette(path)
    request: Any = json.loads(path.read_text(encoding="utf-8"))["interactions"][0]["request"]
    with httpx.Client(transport=player) as client:
        assert client.post(request["uri"], content=request["body"]).status_code == 200


def test_a_cassette_tells_its_age_and_why_it_is_stale(tmp_path: Path) -> None:
    row = ProviderAges("acme", "models.invalid", ("m-large",), (), stale_days=10)
    channels, observation = opened("replay", tmp_path, Today(NOW, providers=(row,)))
    ask_for_all(channels, dated(tmp_path, 12))
    channels.close()

    facts: Any = observation.to_json()["cassette"]
    assert {name: facts[name] for name in ("age_days", "level", "fresh_days", "stale_days", "stale_reasons")} == {
        "age_days": 12,
        "level": "stale",
        "fresh_days": 30,
        "stale_days": 10,
        "stale_reasons": ["model m-small is not configured any more"],
    }
    assert (facts["entries"], facts["consumed"]) == (1, 1)


def test_a_cassette_from_the_future_is_not_opened(tmp_path: Path) -> None:
    channels, _ = opened("replay", tmp_path, Today(NOW))

    with pytest.raises(CassetteError) as caught:
        channels.cassette(dated(tmp_path, -1))

    assert caught.value.error_code == "CASSETTE_FUTURE"


def test_drift_65_offline_answers_in_a_dialect_that_drifted_are_stale(tmp_path: Path) -> None:
    drifted = {"openai_chat": ("whole:removed:.id",), "ollama": ("whole:removed:.done",)}
    channels, observation = opened("offline", tmp_path, Today(NOW, drifted_dialects=drifted))
    mock = channels.loopback(HELLO)
    body = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
    httpx.post(f"{mock.base_url('openai_chat')}/chat/completions", json=body, headers={"authorization": "Bearer x"})
    channels.close()

    facts: Any = observation.to_json()["script"]
    assert facts["stale_reasons"] == ["its provider drifted: whole:removed:.id"]


def test_without_drift_offline_answers_say_nothing_of_it(tmp_path: Path) -> None:
    channels, observation = opened("offline", tmp_path, Today(NOW))
    channels.loopback(HELLO, is_judged=True)
    with pytest.raises(ScenarioError):
        channels.close()

    facts: Any = observation.to_json()["script"]
    assert "stale_reasons" not in facts


def test_a_recorded_session_that_no_process_asked_fails_with_every_entry(tmp_path: Path) -> None:
    channels, observation = opened("replay", tmp_path, Today(NOW))
    channels.recorded_child(LOGS / "delegate-work")

    with pytest.raises(ScenarioError) as caught:
        channels.close()

    facts: Any = observation.to_json()["cassette"]
    assert (str(caught.value).count("CASSETTE_LEFT"), facts["consumed"], facts["entries"]) == (6, 0, 6)


def test_a_child_process_plays_a_session_and_leaves_notes_and_facts(tmp_path: Path) -> None:
    scenario = find_scenario("compact-history")
    workspace, sessions = tmp_path / "workspace", tmp_path / "sessions"
    workspace.mkdir()
    sessions.mkdir()
    write_workspace(scenario, workspace)
    channels, observation = opened("replay", tmp_path, Today(NOW))
    child = channels.recorded_child(LOGS / "compact-history", places=workspace_places(workspace))
    program = Program(workspace, sessions, child.base_url, environ=REPLAY_VARIABLES)
    command = child.command(program.arguments(scenario.runs[0]))
    subprocess.run(command, env=program.environment(), cwd=workspace, check=True, capture_output=True)
    channels.close()

    seen = observation.to_json()
    facts: Any = seen["cassette"]
    answers: Any = seen["answers"]
    assert command[:3] == [sys.executable, "-m", "lanes.replay_child"]
    assert [(note["channel"], note["class"]) for note in answers] == [("session-log", "scripted")] * 4
    assert (facts["consumed"], facts["entries"], facts["unmatched"], facts["level"]) == (4, 4, 0, "undated")


def test_cassettes_57_a_divergence_inside_a_child_process_fails_the_test_with_its_difference(tmp_path: Path) -> None:
    workspace, sessions = tmp_path / "workspace", tmp_path / "sessions"
    workspace.mkdir()
    sessions.mkdir()
    channels, observation = opened("replay", tmp_path, Today(NOW))
    child = channels.recorded_child(LOGS / "compact-history", places=workspace_places(workspace))
    program = Program(workspace, sessions, child.base_url, environ=REPLAY_VARIABLES)
    command = child.command(program.arguments(Run("Another task.")))
    ended = subprocess.run(command, env=program.environment(), cwd=workspace, check=False, capture_output=True)

    with pytest.raises(ScenarioError) as caught:
        channels.close()

    facts: Any = observation.to_json()["cassette"]
    assert (ended.returncode, facts["unmatched"], facts["consumed"]) == (1, 1, 0)
    assert "session.jsonl, entry 1 (turn 1 step 1): sent body differs from the recorded one" in str(caught.value)
    assert 'is "Another task."' in str(caught.value)
    assert str(caught.value).count("CASSETTE_LEFT") == 4


def test_a_recording_of_another_project_is_called_by_its_path_and_recorded_anew_by_the_proxy(tmp_path: Path) -> None:
    channels, observation = opened("replay", tmp_path, Today(NOW))
    channels.root = tmp_path
    (tmp_path / "tests" / "replay").mkdir(parents=True)
    path = write_cassette(tmp_path / "tests" / "replay", made_document(1))

    player = channels.cassette(path)
    with httpx.Client(transport=player) as client:
        client.post("http://none.invalid/v1/other", json={})
    with pytest.raises(ScenarioError) as caught:
        channels.close()

    facts: Any = observation.to_json()["cassette"]
    name = "tests/replay/openai_chat/made.yaml"
    assert (facts["id"], str(caught.value).count(f"{name}, interaction 1: ")) == (name, 2)
    assert "or record again: mock-provider record --upstream URL --out recorded -- COMMAND" in str(caught.value)
