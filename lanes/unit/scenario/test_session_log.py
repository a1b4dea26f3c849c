"""Replaying a committed log: each request must be the one the log implies, and each answer must be asked for."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import httpx
import pytest

from lanes.errors import CassetteError
from lanes.recorded_log import load_recorded_session
from lanes.session_log import SessionLogPlayer

LOGS = Path(__file__).parents[3] / "cassettes" / "session-logs"
URL = "http://none.invalid/v1/chat/completions"
KEY = {"authorization": "Bearer none"}


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """A copy of a committed recording, to be damaged."""
    return Path(shutil.copytree(LOGS / "fix-test", tmp_path / "fix-test"))


async def _send(player: SessionLogPlayer, body: object) -> httpx.Response:
    async with httpx.AsyncClient(transport=player) as client:
        return await client.post(URL, json=body, headers=KEY)


async def test_the_implied_requests_get_the_recorded_answers_in_order() -> None:
    player = SessionLogPlayer(LOGS / "fix-test")
    bodies = [call.body for call in player.recording.sessions[0].calls]

    answers = [await _send(player, body) for body in bodies]

    assert player.verify() == ()
    assert [answer.status_code for answer in answers] == [200] * 5
    assert {answer.headers["x-mock-provider"] for answer in answers} == {"scripted"}
    assert "First I run the test." in answers[0].text
    assert (player.facts()["consumed"], player.facts()["entries"]) == (5, 5)


async def test_a_changed_request_is_a_divergence_that_names_the_field() -> None:
    player = SessionLogPlayer(LOGS / "fix-test")
    body = json.loads(json.dumps(player.recording.sessions[0].calls[0].body))
    body["messages"][1]["content"] = "another task"

    answer = await _send(player, body)

    assert answer.status_code == 400
    where, difference, _ = player.misses[0].split("\n")
    assert where == (
        "cassettes/session-logs/fix-test/session.jsonl, entry 1 (turn 1 step 1): "
        "sent body differs from the recorded one [CASSETTE_MISS]"
    )
    assert difference.startswith('  messages[1].content  expected "The test check.py fails.')
    assert difference.endswith('is "another task"')


async def test_a_later_request_is_compared_as_strictly_as_the_first() -> None:
    player = SessionLogPlayer(LOGS / "fix-test")
    first, second = (json.loads(json.dumps(call.body)) for call in player.recording.sessions[0].calls[:2])
    second["messages"][-1]["content"] = "another result"

    answers = [await _send(player, body) for body in (first, second)]

    assert ([answer.status_code for answer in answers], len(player.misses)) == ([200, 400], 1)


async def test_a_type_that_changed_is_a_divergence() -> None:
    player = SessionLogPlayer(LOGS / "fix-test")
    body = {**json.loads(json.dumps(player.recording.sessions[0].calls[0].body)), "stream": 1}

    answer = await _send(player, body)

    assert (answer.status_code, "stream  expected true  is 1" in player.misses[0]) == (400, True)


async def test_the_second_request_sent_first_is_a_divergence_and_not_the_next_answer() -> None:
    player = SessionLogPlayer(LOGS / "fix-test")

    answer = await _send(player, player.recording.sessions[0].calls[1].body)

    assert (answer.status_code, len(player.misses)) == (400, 1)


async def test_answers_nobody_asked_for_and_requests_beyond_the_end_are_named() -> None:
    player = SessionLogPlayer(LOGS / "fix-test")
    for call in player.recording.sessions[0].calls[:4]:
        await _send(player, call.body)
    left = player.verify()
    last = player.recording.sessions[0].calls[4].body
    await _send(player, last)
    await _send(player, last)

    entry = "cassettes/session-logs/fix-test/session.jsonl, entry 5 (turn 1 step 5)"
    assert left == (f"{entry}: recorded and not asked for [CASSETTE_LEFT]",)
    assert "request 6 arrived, 5 answers are recorded [CASSETTE_EXHAUSTED]" in player.verify()[0]


def _cut_last_line(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def _drop_finish(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").split("\n")
    at = next(index for index, line in enumerate(lines) if '"finish"' in line)
    kept = [
        line.replace('"type":"finish"', '"type":"fin"') if index == at else line for index, line in enumerate(lines)
    ]
    path.write_text("\n".join(kept), encoding="utf-8")


@pytest.mark.parametrize("damage", [_cut_last_line, _drop_finish], ids=["torn-tail", "damaged-middle"])
def test_a_damaged_log_is_never_played_in_part(recording: Path, damage: object) -> None:
    damage(recording / "session.jsonl")

    with pytest.raises(CassetteError) as caught:
        load_recorded_session(recording)

    assert caught.value.error_code == "CASSETTE_DAMAGED"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param({"class": "live"}, "class is 'live'", id="claims-to-be-live"),
        pytest.param({"proof": 1}, "fields are not the known ones", id="unknown-field"),
    ],
)
def test_an_origin_may_not_say_more_than_it_can_show(recording: Path, change: dict[str, object], message: str) -> None:
    path = recording / "origin.json"
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **change}), encoding="utf-8")

    with pytest.raises(CassetteError, match=message):
        load_recorded_session(recording)


def test_a_missing_recording_is_named(tmp_path: Path) -> None:
    with pytest.raises(CassetteError) as caught:
        load_recorded_session(tmp_path / "nothing")

    assert caught.value.error_code == "CASSETTE_MISSING"
