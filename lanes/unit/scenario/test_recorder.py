"""Recording a story: refused where nobody reviews, stored only when it holds, and played back at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from lanes.cassette import load_cassette
from lanes.errors import CassetteError, ScenarioError, UsageError
from lanes.log_recorder import record_session_log
from lanes.playing import Target
from lanes.recorded_log import load_recorded_session
from lanes.recorder import choose_target, play_back, record, record_cassette
from lanes.recording import Circumstances
from lanes.scenario import Scenario, find_scenario
from lanes.world import FileCheck
from mock_provider.server import ServerThread

FACTS = Circumstances("2031-03-04T05:06:07Z", commit="c0ffee")
CANARY = "canary-key-of-this-test-0417"


def _changed(scenario: Scenario, **fields: object) -> Scenario:
    names = ("name", "claim", "story", "workspace", "script", "runs", "world", "log")
    return Scenario(**{name: fields.get(name, getattr(scenario, name)) for name in names})


def _names(folder: Path) -> list[str]:
    return sorted(found.name for found in folder.iterdir())


async def test_a_story_is_recorded_over_loopback_without_its_key_and_plays_back(tmp_path: Path) -> None:
    scenario = find_scenario("fix-test")
    path = tmp_path / "openai_chat" / "fix-test.yaml"
    with ServerThread(scenario.script) as mock:
        target = Target(mock.base_url("openai_chat"), "openai", "m-small", "OPENAI_API_KEY")
        await record_cassette(scenario, target, {"OPENAI_API_KEY": CANARY}, path, FACTS)

    await play_back(scenario, Target("http://127.0.0.1:1/v1", "openai", "m-small", None), path)

    text = path.read_text(encoding="utf-8")
    cassette = load_cassette(path)
    assert (CANARY in text, str(tmp_path) in text, "authorization" in text.lower()) == (False, False, False)
    assert [interaction.answer_class for interaction in cassette.interactions] == ["scripted"] * 5
    assert {str(interaction.origin["host"]) for interaction in cassette.interactions} == {"loopback"}
    assert {str(interaction.origin["reported_model"]) for interaction in cassette.interactions} == {"m-small"}


async def test_cassettes_62_a_story_that_fails_leaves_the_old_cassette_as_it_was(tmp_path: Path) -> None:
    scenario = _changed(find_scenario("fix-test"), world=(FileCheck("calc.py", absent=True),))
    path = tmp_path / "fix-test.yaml"
    path.write_text("old", encoding="utf-8")
    with ServerThread(scenario.script) as mock:
        target = Target(mock.base_url("openai_chat"), "openai", "m-small", "OPENAI_API_KEY")
        with pytest.raises(CassetteError, match=r"calc\.py exists"):
            await record_cassette(scenario, target, {"OPENAI_API_KEY": CANARY}, path, FACTS)

    assert path.read_text(encoding="utf-8") == "old"
    assert _names(tmp_path) == ["fix-test.yaml"]


async def test_a_recording_that_the_story_outgrew_does_not_play_back(tmp_path: Path) -> None:
    scenario = find_scenario("max-tokens")
    path = tmp_path / "openai_chat" / "max-tokens.yaml"
    with ServerThread(scenario.script) as mock:
        target = Target(mock.base_url("openai_chat"), "openai", "m-small", "OPENAI_API_KEY")
        await record_cassette(scenario, target, {"OPENAI_API_KEY": CANARY}, path, FACTS)
    other = find_scenario("resume-session")

    with pytest.raises(CassetteError, match="does not play back") as caught:
        await play_back(other, Target("http://127.0.0.1:1/v1", "openai", "m-small", None), path)

    assert "messages[1].content" in caught.value.fix


def test_a_scripted_session_log_says_that_nobody_live_spoke(tmp_path: Path) -> None:
    record_session_log(find_scenario("fix-test"), tmp_path / "fix-test")

    recording = load_recorded_session(tmp_path / "fix-test")
    (session,) = recording.sessions
    assert (recording.origin["class"], len(session.calls), session.header.cwd) == ("scripted", 5, "/workspace")


def test_a_session_log_of_a_story_that_does_not_hold_is_not_stored(tmp_path: Path) -> None:
    scenario = _changed(find_scenario("max-tokens"), world=(FileCheck("kept.txt", absent=True),))

    with pytest.raises(CassetteError, match=r"kept\.txt exists"):
        record_session_log(scenario, tmp_path / "max-tokens")

    assert list(tmp_path.iterdir()) == []


def test_recording_is_refused_in_ci(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="refused in CI"):
        record(["fix-test", "--scripted"], {"CI": "true"}, tmp_path)


@pytest.mark.parametrize(
    ("asked", "environ", "message"),
    [
        pytest.param(None, {}, "no target is given", id="no-target"),
        pytest.param("deepseek", {}, "no key for deepseek", id="no-key"),
        pytest.param("deepseek", {"DEEPSEEK_API_KEY": "  "}, "no key for deepseek", id="blank-key"),
        pytest.param("depseek", {}, "did you mean 'deepseek'", id="near-miss"),
        pytest.param("https://models.invalid/v1", {}, "an address elsewhere needs a row", id="foreign-address"),
        pytest.param("http://127.0.0.1.models.invalid/v1", {}, "an address elsewhere", id="starts-like-loopback"),
    ],
)
def test_a_target_that_may_not_be_recorded_is_refused(asked: str | None, environ: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        choose_target(asked, environ)

    assert message in str(caught.value)


def test_a_loopback_target_needs_no_key() -> None:
    assert choose_target("http://127.0.0.1:8000/v1", {}).key is None


def test_an_unknown_story_is_named(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="did you mean 'fix-test'"):
        record(["fix-tests", "--scripted"], {}, tmp_path)


def test_all_records_every_story_that_has_a_log_and_no_other(tmp_path: Path) -> None:
    (tmp_path / "cassettes" / "session-logs" / "max-tokens").mkdir(parents=True)

    said = record(["all", "--scripted"], {}, tmp_path)

    assert said == "cassettes/session-logs/max-tokens: recorded; the answers are scripted"
    assert _names(tmp_path / "cassettes" / "session-logs" / "max-tokens") == ["origin.json", "session.jsonl"]
