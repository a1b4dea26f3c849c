"""Recording a story: refused where nobody reviews, stored only when it holds, and played back at once."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from lanes.cassette import load_cassette
from lanes.errors import CassetteError, ScenarioError, UsageError
from lanes.local_channel import LocalTransport
from lanes.local_model import RunningModel
from lanes.log_recorder import record_session_log
from lanes.playing import Target
from lanes.recorded_log import load_recorded_session
from lanes.recorded_origin import weights_of
from lanes.recorder import choose_target, play_back, record, record_cassette
from lanes.recording import Circumstances
from lanes.redaction import forms_of
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
        pytest.param("http://[models/v1", {}, "an address elsewhere", id="no-address-at-all"),
        pytest.param(
            "https://me:canary-0417@models.invalid/v1", {}, "'https://models.invalid/v1'", id="told-without-key"
        ),
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


class _Leaky(httpx.AsyncBaseTransport):
    """Plants a secret in the address and the headers of each request, as a careless client would."""

    def __init__(self, inner: httpx.AsyncBaseTransport, secret: str) -> None:
        self._inner = inner
        self._secret = secret

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        content = await request.aread()
        told = {"authorization": f"Bearer {self._secret}", "cookie": f"sid={self._secret}", "x-api-key": self._secret}
        headers = {**request.headers, **told}
        url = request.url.copy_merge_params({"key": self._secret})
        return await self._inner.handle_async_request(
            httpx.Request(request.method, url, headers=headers, content=content, extensions=dict(request.extensions))
        )


def _stand_in(port: int) -> LocalTransport:
    """The witness on the way to a stand-in for the model of this machine."""
    return LocalTransport(RunningModel(port, 0, "m-small", "sha256:" + "a" * 64, "stand-in 1.0", {"seed": 1}))


def _small_story(code: str) -> Scenario:
    story = find_scenario("small-read-file")
    text = json.dumps(story.script).replace("48213", code)
    return replace(story, script=json.loads(text), workspace={"code.txt": f"The code is {code}.\n"}, world=())


async def _record_small(path: Path, story: Scenario, secret: str) -> None:
    with ServerThread(story.script) as mock:
        port = int(mock.base_url("openai_chat").rpartition(":")[2].partition("/")[0])
        witness = _stand_in(port)
        target = Target(mock.base_url("openai_chat"), "custom", "m-small", None)
        await record_cassette(
            story,
            target,
            {"ACME_API_KEY": secret},
            path,
            FACTS,
            witness=witness,
            around=lambda way: _Leaky(way, secret),
        )


async def test_a_secret_planted_in_address_headers_request_and_answer_reaches_no_recording(tmp_path: Path) -> None:
    path = tmp_path / "openai_chat" / "small-read-file.yaml"

    story = _small_story(CANARY)  # the file holds it, so request and answer would
    steps = [{"reply": step["reply"]} for step in story.script["steps"]]

    await _record_small(path, replace(story, script={**story.script, "steps": steps}), CANARY)

    text = path.read_text(encoding="utf-8")
    assert [form for form in forms_of(CANARY).values() if form in text] == []
    assert [each.answer_class for each in load_cassette(path).interactions] == ["recorded", "recorded"]


async def test_a_recorded_answer_carries_who_gave_it_and_when(tmp_path: Path) -> None:
    path = tmp_path / "openai_chat" / "small-read-file.yaml"

    await _record_small(path, _small_story("48213"), CANARY)

    (origin, _second) = [each.origin for each in load_cassette(path).interactions]
    assert (origin["recorded_at"], origin["commit"], origin["host"]) == (FACTS.recorded_at, FACTS.commit, "loopback")
    assert (weights_of(origin), origin["reported_model"]) == ("sha256:" + "a" * 64, "m-small")


async def test_an_answer_without_counts_is_none_of_a_model_and_is_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "openai_chat" / "small-read-file.yaml"
    story = _small_story("48213")
    steps = [{**step, "usage": "none"} for step in story.script["steps"]]

    with pytest.raises(CassetteError, match="shows no model: it reports no tokens"):
        await _record_small(path, replace(story, script={**story.script, "steps": steps}), CANARY)

    assert not path.exists()


def test_a_story_that_is_too_much_for_a_small_model_is_not_tried(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="fix-test is not for so small a model"):
        record(["fix-test", "--target", "local"], {}, tmp_path)
