from __future__ import annotations

import json
import os
import socket
import subprocess
from pathlib import Path

import httpx
import pytest

from lanes.channels import SCRIPTED_ROOT, Channels
from lanes.errors import GuardError, ScenarioError
from lanes.live_run import LiveWish
from lanes.local_model import RunningModel
from lanes.local_run import write_local_run
from lanes.observation import Observation
from lanes.policy import DUMMY_KEY, LANES

SCRIPT = {"version": 1, "steps": [{"reply": [{"text": "hello"}]}, {"reply": [{"text": "again"}]}]}
ONE_STEP = {"version": 1, "steps": [{"reply": [{"text": "hello"}]}]}


def open_channels(lane: str, folder: Path) -> Channels:
    spool = folder / "spool"
    spool.mkdir()
    return Channels(LANES[lane], Observation("lanes/test.py::test_it", spool=spool, secret="s"), folder)


def ask(client: httpx.Client, base_url: str, text: str) -> httpx.Response:
    body = {"model": "m-small", "messages": [{"role": "user", "content": text}]}
    return client.post(f"{base_url}/chat/completions", json=body, headers={"authorization": "Bearer dummy"})


@pytest.mark.parametrize("lane", list(LANES))
def test_a_lane_has_the_channels_of_its_policy_and_refuses_the_others(lane: str, tmp_path: Path) -> None:
    channels = open_channels(lane, tmp_path)
    ways = {
        "scripted": lambda: channels.scripted(SCRIPT),
        "loopback": lambda: channels.loopback(SCRIPT),
        "session-log": lambda: channels.session_log(tmp_path),
        "cassette": lambda: channels.cassette(tmp_path),
        "live": lambda: channels.live("openai"),
    }

    refused = set()
    for name in ways.keys() - LANES[lane].channels:
        with pytest.raises(GuardError) as caught:
            ways[name]()
        refused.add((name, caught.value.error_code))

    assert refused == {(name, "CHANNEL_REFUSED") for name in ways.keys() - LANES[lane].channels}


def test_a_refused_channel_says_where_the_test_belongs(tmp_path: Path) -> None:
    with pytest.raises(GuardError) as caught:
        open_channels("unit", tmp_path).loopback(SCRIPT)

    assert str(caught.value) == (
        "lanes/test.py::test_it: lane 'unit' has no loopback channel [CHANNEL_REFUSED]\n"
        "  expected: scripted\n"
        "  fix: move the test to lanes/offline"
    )


def test_the_scripted_channel_notes_every_answer(tmp_path: Path) -> None:
    channels = open_channels("unit", tmp_path)
    with httpx.Client(transport=channels.scripted(SCRIPT)) as client:
        ask(client, f"{SCRIPTED_ROOT}/v1", "one")
        ask(client, f"{SCRIPTED_ROOT}/v1", "two")
    channels.close()

    seen = channels._observation.to_json()
    assert [(each["ordinal"], each["channel"], each["class"], each["step"]) for each in seen["answers"]] == [
        (1, "scripted", "scripted", 1),
        (2, "scripted", "scripted", 2),
    ]
    assert seen["script"] == {"script_id": "script", "entries": 2, "consumed": 2, "unmatched": 0}
    assert all(str(each["answer_digest"]).startswith("sha256:") for each in seen["answers"])


def test_the_loopback_channel_notes_every_answer(tmp_path: Path) -> None:
    channels = open_channels("offline", tmp_path)
    mock = channels.loopback(ONE_STEP)
    with httpx.Client(trust_env=False) as client:
        reply = ask(client, mock.base_url("openai_chat"), "one")
    channels.close()

    assert reply.json()["choices"][0]["message"]["content"] == "hello"
    assert [(each["channel"], each["status"]) for each in channels._observation.answers] == [("loopback", 200)]


def test_a_step_that_nobody_asked_for_fails_the_item(tmp_path: Path) -> None:
    channels = open_channels("unit", tmp_path)
    with httpx.Client(transport=channels.scripted(SCRIPT)) as client:
        ask(client, f"{SCRIPTED_ROOT}/v1", "one")

    with pytest.raises(ScenarioError, match="left over 1"):
        channels.close()
    assert channels._observation.to_json()["script"]["consumed"] == 1


def test_what_a_test_opened_that_says_it_was_not_run_is_not_judged(tmp_path: Path) -> None:
    channels = open_channels("offline", tmp_path)
    channels.loopback(SCRIPT)
    channels.close(is_judged=False)


def test_a_request_that_no_step_answers_fails_the_item_and_is_no_answer(tmp_path: Path) -> None:
    channels = open_channels("unit", tmp_path)
    with httpx.Client(transport=channels.scripted(ONE_STEP)) as client:
        ask(client, f"{SCRIPTED_ROOT}/v1", "one")
        ask(client, f"{SCRIPTED_ROOT}/v1", "two")

    with pytest.raises(ScenarioError, match="unmatched 1"):
        channels.close()
    assert len(channels._observation.answers) == 1


def test_a_test_about_the_mismatch_itself_may_say_so(tmp_path: Path) -> None:
    channels = open_channels("unit", tmp_path)
    with httpx.Client(transport=channels.scripted(SCRIPT, is_judged=False)) as client:
        ask(client, f"{SCRIPTED_ROOT}/v1", "one")
    channels.close()

    assert channels._observation.to_json()["script"] is None


def test_the_same_request_from_another_folder_has_the_same_digest(tmp_path: Path) -> None:
    digests = []
    for name in ("first", "second"):
        folder = tmp_path / name
        folder.mkdir()
        channels = open_channels("unit", folder)
        with httpx.Client(transport=channels.scripted(ONE_STEP)) as client:
            ask(client, f"{SCRIPTED_ROOT}/v1", f"look into {folder}/workspace")
        channels.close()
        digests.append(channels._observation.answers[0]["request_digest"])

    assert digests[0] == digests[1]


def test_lane_24_a_child_leaves_its_notes_with_the_token_of_the_item(tmp_path: Path) -> None:
    channels = open_channels("snapshot", tmp_path)
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    child = channels.scripted_child(ONE_STEP)
    command = child.command(
        [
            "run",
            "--provider",
            "openai",
            "--model",
            "m-small",
            "--base-url",
            child.base_url,
            "--session-root",
            str(tmp_path / "sessions"),
            "--cwd",
            str(workspace),
            "say hello",
        ]
    )
    environ = os.environ | {"OPENAI_API_KEY": DUMMY_KEY, "HARNESS_ALLOWED_HOSTS": "none.invalid"}

    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=60)
    channels.close()

    assert (done.returncode, done.stdout) == (0, "hello\n")
    assert [each["class"] for each in channels._observation.answers] == ["scripted"]
    assert [each["body"]["model"] for each in child.requests] == ["m-small"]
    assert child.verdict["ok"] is True


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(json.dumps({"class": "live", "token": "another"}), id="another-token"),
        pytest.param(json.dumps({"class": "live"}), id="no-token"),
        pytest.param('{"class": "li', id="torn"),
    ],
)
def test_a_note_without_the_token_of_the_item_is_void(line: str, tmp_path: Path) -> None:
    channels = open_channels("snapshot", tmp_path)
    channels.scripted_child(ONE_STEP)
    notes = next((tmp_path / "spool").glob("notes-*.jsonl"))
    notes.write_text(line + "\n", "utf-8")

    with pytest.raises(GuardError, match="token"):
        channels.close()


def test_a_child_that_never_came_to_its_end_fails_the_item(tmp_path: Path) -> None:
    channels = open_channels("snapshot", tmp_path)
    channels.scripted_child(ONE_STEP)

    with pytest.raises(ScenarioError, match="has not come to its end"):
        channels.close()


def test_an_unknown_provider_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(GuardError) as caught:
        open_channels("real", tmp_path).live("openay")

    assert caught.value.expected == "deepseek, openai, anthropic"


async def test_an_item_knows_the_trouble_that_its_local_model_met(tmp_path: Path) -> None:
    channels = open_channels("real", tmp_path)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: whoever connects is refused
        running = RunningModel(int(taken.getsockname()[1]), 0, "m-tiny", "sha256:" + "a" * 64, "stand-in 1.0", {})
        write_local_run(tmp_path / "spool", running, LiveWish())
        async with httpx.AsyncClient(transport=channels.local()) as client:
            with pytest.raises(httpx.ConnectError):
                await client.post(f"{running.base_url}/chat/completions", json={"model": "m-tiny", "messages": []})

    assert channels._observation.trouble is not None
    assert (channels._observation.trouble[0], channels._observation.trouble[1].code) == ("local", "outage")
