"""What `mock-provider record` writes, the replay lane plays: strictly, once, in order, and without a key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

import mock_provider
from lanes.cassette import CassettePlayer, load_cassette
from lanes.channels import Channels
from lanes.interaction import seal_of
from lanes.redaction import Redactor
from mock_provider.json_values import Json, JsonObject
from mock_provider.recording.cassette import Facts
from mock_provider.recording.forwarding import Forwarder
from mock_provider.recording.storing import Recording, compose_recording, store
from mock_provider.replies import reasoning, script, step, text, tool_call

pytestmark = pytest.mark.claim("recordings.strict")
UPSTREAM = "https://provider.example"
FRAMED = "/model/m/converse-stream"
PLAYED = script(
    step(reasoning("hm"), text("I look."), tool_call("read", {"path": "a ü \u2028 {{{{b}}}}"}, id="call_0001")),
    step("It is done, as you see.", stream={"split": "words"}),
)
CASE: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "cases" / "mock" / "B36-secrets-exchange.json").read_text(encoding="utf-8")
)


def bodies() -> list[JsonObject]:
    """Two requests of one conversation; the second one streams."""
    asked: JsonObject = {"role": "user", "content": "look at README"}
    arguments = json.dumps({"path": "a ü \u2028 {{b}}"}, ensure_ascii=False, separators=(",", ":"))
    call: JsonObject = {"id": "call_0001", "type": "function", "function": {"name": "read", "arguments": arguments}}
    said: JsonObject = {"role": "assistant", "content": "I look.", "tool_calls": [call]}
    result: JsonObject = {"role": "tool", "tool_call_id": "call_0001", "content": "x"}
    history: list[Json] = [asked, said, result]
    return [{"model": "m", "messages": [asked]}, {"model": "m", "messages": history, "stream": True}]


def todays(channels: Channels) -> Facts:
    """What is true of a recording that a test makes itself: it is of the day of the run, so it never grows stale."""
    assert channels.today is not None
    return Facts("provider.example", channels.today().now.strftime("%Y-%m-%dT00:00:00+00:00"))


async def recorded(key: str, facts: Facts) -> tuple[Recording, list[bytes]]:
    """Record the conversation in the process, with the answers a client saw."""
    forwarder = Forwarder(UPSTREAM, now_ms=iter(range(1000)).__next__, transport=mock_provider.transport(PLAYED))
    answers: list[bytes] = []
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    for body in bodies():
        begun = await forwarder.send("POST", "/v1/chat/completions", headers, json.dumps(body).encode())
        answers.append(b"".join([piece async for piece in begun.pieces]))
    return compose_recording(forwarder.seen, facts, forwarder.upstream), answers


async def play(player: CassettePlayer, key: str) -> list[list[bytes]]:
    """The pieces of the answers that a client with this key gets."""
    got: list[list[bytes]] = []
    async with httpx.AsyncClient(transport=player, headers={"authorization": f"Bearer {key}"}) as client:
        for body in bodies():
            async with client.stream("POST", f"{UPSTREAM}/v1/chat/completions", json=body) as answer:
                got.append([piece async for piece in answer.aiter_raw()])
    return got


async def test_a_recorded_conversation_plays_to_its_end_with_the_pieces_it_came_in(
    channels: Channels, tmp_path: Path
) -> None:
    recording, answers = await recorded("sk-real-canary-0001", todays(channels))
    store(recording, tmp_path / "out")
    player = channels.cassette(tmp_path / "out" / "cassette.yaml")
    got = await play(player, "another-key")
    assert ([b"".join(pieces) for pieces in got], player.verify()) == (answers, ())
    assert [len(pieces) for pieces in got] == [1, 9]


async def test_a_stream_in_binary_frames_plays_byte_for_byte(channels: Channels, tmp_path: Path) -> None:
    transport = mock_provider.transport(script(step("It is done, as you see.", stream={"split": "words"})))
    forwarder = Forwarder(UPSTREAM, now_ms=lambda: 0, transport=transport)
    body: JsonObject = {"messages": [{"role": "user", "content": [{"text": "look"}]}]}
    begun = await forwarder.send("POST", FRAMED, {"authorization": "Bearer k"}, json.dumps(body).encode())
    pieces = [piece async for piece in begun.pieces]
    store(compose_recording(forwarder.seen, todays(channels), forwarder.upstream), tmp_path / "out")
    player = channels.cassette(tmp_path / "out" / "cassette.yaml")
    async with (
        httpx.AsyncClient(transport=player) as client,
        client.stream("POST", f"{UPSTREAM}{FRAMED}", json=body) as answer,
    ):
        got = [piece async for piece in answer.aiter_raw()]
    assert (got, answer.headers["content-type"]) == (pieces, "application/vnd.amazon.eventstream")


async def test_an_origin_stands_in_each_answer_and_counts_as_scripted_without_a_proof(
    channels: Channels, tmp_path: Path
) -> None:
    recording, _ = await recorded("sk-real-canary-0001", todays(channels))
    store(recording, tmp_path / "out")
    interactions = load_cassette(tmp_path / "out" / "cassette.yaml").interactions
    assert [one.answer_class for one in interactions] == ["scripted", "scripted"]
    assert [(one.origin["host"], one.origin["recorder"], one.origin["requested_model"]) for one in interactions] == [
        ("provider.example", "mock_provider.record/1", "m")
    ] * 2


async def test_the_seal_is_the_one_that_the_lanes_would_set(channels: Channels, tmp_path: Path) -> None:
    recording, answers = await recorded("sk-real-canary-0001", todays(channels))
    store(recording, tmp_path / "out")
    interactions = load_cassette(tmp_path / "out" / "cassette.yaml").interactions
    seals = [
        seal_of(one.digest, answer.decode("utf-8"), one.origin)
        for one, answer in zip(interactions, answers, strict=True)
    ]
    assert [one.origin["seal"] for one in interactions] == seals


async def test_a_request_that_was_not_recorded_is_a_miss(channels: Channels, tmp_path: Path) -> None:
    recording, _ = await recorded("sk-real-canary-0001", todays(channels))
    store(recording, tmp_path / "out")
    player = CassettePlayer(tmp_path / "out" / "cassette.yaml")
    async with httpx.AsyncClient(transport=player) as client:
        changed = {**bodies()[0], "model": "n"}
        answer = await client.post(f"{UPSTREAM}/v1/chat/completions", json=changed)
    assert (answer.status_code, "CASSETTE_OTHER_MODEL" in player.misses[0], len(player.verify())) == (400, True, 3)


def answer_of_case(request: httpx.Request) -> httpx.Response:
    del request
    told = CASE["response"]
    body = httpx.ByteStream(json.dumps(told["body"]).encode())
    return httpx.Response(told["status"], headers=told["headers"], stream=body)


async def test_case_B36_a_redacted_recording_matches_the_same_request_with_another_key(
    channels: Channels, tmp_path: Path
) -> None:
    request = CASE["request"]
    forwarder = Forwarder(UPSTREAM, now_ms=lambda: 0, transport=httpx.MockTransport(answer_of_case))
    headers = {name.lower(): value for name, value in request["headers"]}
    target = request["url"].partition("PORT")[2]
    begun = await forwarder.send("POST", target, headers, json.dumps(request["body"]).encode())
    assert [piece async for piece in begun.pieces] != []
    store(compose_recording(forwarder.seen, todays(channels), forwarder.upstream), tmp_path / "out")
    written = (tmp_path / "out" / "cassette.yaml").read_text(encoding="utf-8")
    player = CassettePlayer(tmp_path / "out" / "cassette.yaml", redactor=Redactor())
    async with httpx.AsyncClient(transport=player) as client:
        other = {**headers, "authorization": "Bearer another-key", "x-api-key": "another-key"}
        body = {**request["body"], "api_key": "another-key"}
        answer = await client.post(UPSTREAM + target.replace("canary-query-0d11", "another"), json=body, headers=other)
    assert (answer.status_code, player.verify()) == (200, ())
    assert [canary for canary in CASE["canaries"] if canary in written] == []
