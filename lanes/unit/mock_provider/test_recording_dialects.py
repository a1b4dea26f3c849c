"""A recorded answer of any dialect becomes a script that says it again, whole and streamed."""

from __future__ import annotations

import json

import pytest
import yaml

import mock_provider
from mock_provider.dialects.table import DIALECTS
from mock_provider.errors import RecordingError
from mock_provider.json_values import Json, JsonObject
from mock_provider.recording.cassette import Facts
from mock_provider.recording.forwarding import Forwarder
from mock_provider.recording.frames import Frame, encode_frames, parse_frames
from mock_provider.recording.storing import Recording, compose_recording
from mock_provider.replies import error_event, reasoning, script, step, text, tool_call

FACTS = Facts("127.0.0.1", None)
USER: JsonObject = {"role": "user", "content": "x"}
BEARER = {"authorization": "Bearer sk-test-0001"}
GEMINI = "/v1beta/models/m"
CONTENTS: JsonObject = {"contents": [{"role": "user", "parts": [{"text": "x"}]}]}
CONVERSED: JsonObject = {"messages": [{"role": "user", "content": [{"text": "x"}]}]}
INVOKED: JsonObject = {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 99, "messages": [USER]}
ASKING: dict[str, tuple[str, JsonObject, dict[str, str]]] = {
    "openai_chat": ("/v1/chat/completions", {"model": "m", "messages": [USER]}, BEARER),
    "openai_chat-stream": (
        "/v1/chat/completions",
        {"model": "m", "messages": [USER], "stream": True, "stream_options": {"include_usage": True}},
        BEARER,
    ),
    "openai_responses": ("/v1/responses", {"model": "m", "input": "x"}, BEARER),
    "openai_responses-stream": ("/v1/responses", {"model": "m", "input": "x", "stream": True}, BEARER),
    "anthropic_messages": (
        "/v1/messages",
        {"model": "m", "max_tokens": 99, "messages": [USER]},
        {"x-api-key": "sk-test-0001", "anthropic-version": "2023-06-01"},
    ),
    "anthropic_messages-stream": (
        "/v1/messages?beta=true",
        {"model": "m", "max_tokens": 99, "messages": [USER], "stream": True},
        {"x-api-key": "sk-test-0001", "anthropic-version": "2023-06-01"},
    ),
    "gemini": (f"{GEMINI}:generateContent", CONTENTS, {"x-goog-api-key": "sk-test-0001"}),
    "gemini-stream": (f"{GEMINI}:streamGenerateContent?alt=sse", CONTENTS, {"x-goog-api-key": "sk-test-0001"}),
    "gemini-array": (f"{GEMINI}:streamGenerateContent?key=sk-test-0001", CONTENTS, {}),
    "ollama": ("/api/chat", {"model": "m", "messages": [USER], "stream": False}, {}),
    "ollama-stream": ("/api/chat", {"model": "m", "messages": [USER]}, {}),
    "ollama-generate": ("/api/generate", {"model": "m", "prompt": "x"}, {}),
    "bedrock": ("/model/m/converse", CONVERSED, BEARER),
    "bedrock-stream": ("/model/m/converse-stream", CONVERSED, BEARER),
    "bedrock-invoke": ("/model/m/invoke", INVOKED, BEARER),
    "bedrock-invoke-stream": ("/model/m/invoke-with-response-stream", INVOKED, BEARER),
}
EVERY_FORM = pytest.mark.parametrize("form", [name for name in ASKING if name.partition("-")[0] in DIALECTS])
CALL: JsonObject = tool_call("read_file", {"path": "ü {{{{x}}}}"}, id="call_0001")


async def record(played: JsonObject, form: str) -> Recording:
    """Record one request of a dialect."""
    forwarder = Forwarder("http://127.0.0.1:1", now_ms=lambda: 0, transport=mock_provider.transport(played))
    path, body, headers = ASKING[form]
    sent = {**headers, "content-type": "application/json"}
    begun = await forwarder.send("POST", path, sent, json.dumps(body).encode())
    assert [piece async for piece in begun.pieces] != []
    return compose_recording(forwarder.seen, Facts("127.0.0.1", None), forwarder.upstream)


def reply_of(recording: Recording) -> list[Json]:
    found: list[Json] = yaml.safe_load(recording.files["script.yaml"])["steps"][0]["reply"]
    return found


@EVERY_FORM
async def test_thinking_text_and_a_call_are_said_again(form: str) -> None:
    parts: list[Json] = [reasoning("hm"), text("I look."), CALL]
    if form == "ollama-generate":
        parts = parts[:2]  # which has no tools
    told = step(reply=parts, usage={"input": 30, "output": 12}, stream={"split": "words"})
    recording = await record(script(told), form)
    assert (recording.problems, "sk-test-0001" in str(recording.files)) == ((), False)
    assert reply_of(recording) == parts


@EVERY_FORM
@pytest.mark.parametrize("finish", ["length", "content_filter"])
async def test_a_finish_is_said_again(form: str, finish: str) -> None:
    recording = await record(script(step("cut", finish=finish)), form)
    assert recording.problems == ()


@EVERY_FORM
async def test_a_refusal_of_the_provider_is_kept_as_it_was(form: str) -> None:
    recording = await record(script(step(http_error="context_overflow")), form)
    error = yaml.safe_load(recording.files["script.yaml"])["steps"][0]["http_error"]
    assert (recording.problems, error["status"]) == ((), 400)


async def seen_from(played: JsonObject, form: str) -> Forwarder:
    """One request of a dialect, sent and answered."""
    forwarder = Forwarder("http://127.0.0.1:1", now_ms=lambda: 0, transport=mock_provider.transport(played))
    path, body, headers = ASKING[form]
    begun = await forwarder.send("POST", path, headers, json.dumps(body).encode())
    assert [piece async for piece in begun.pieces] != []
    return forwarder


async def test_frames_stand_in_a_cassette_as_lines_that_can_be_read() -> None:
    told = step("hi", usage={"input": 3, "output": 2})
    recording = compose_recording((await seen_from(script(told), "bedrock-stream")).seen, FACTS, "http://127.0.0.1:1")
    response = yaml.safe_load(recording.files["cassette.yaml"])["interactions"][0]["response"]
    lines = [json.loads(line) for line in response["body"]["frames"].splitlines()]
    assert [(one["headers"][":event-type"], list(one["payload"])) for one in lines] == [
        ("messageStart", ["role"]),
        ("contentBlockDelta", ["delta", "contentBlockIndex"]),
        ("contentBlockStop", ["contentBlockIndex"]),
        ("messageStop", ["stopReason"]),
        ("metadata", ["usage", "metrics"]),
    ]


@pytest.mark.parametrize("form", ["bedrock-stream", "bedrock-invoke-stream"])
async def test_the_pieces_of_frames_add_up_to_what_was_sent(form: str) -> None:
    seen = (await seen_from(script(step("hi, ho", stream={"split": {"chars": 1}})), form)).seen
    recording = compose_recording(seen, FACTS, "http://127.0.0.1:1")
    response = yaml.safe_load(recording.files["cassette.yaml"])["interactions"][0]["response"]
    frames = encode_frames(parse_frames(response["body"]["frames"]))
    assert b"".join(frames) == seen[0].answer
    assert sum(size for _, size in response["pieces"]) == len(seen[0].answer)


@pytest.mark.parametrize("form", ["bedrock-stream", "bedrock-invoke-stream"])
async def test_a_secret_in_frames_is_hidden_and_they_stay_sound(form: str) -> None:
    seen = (await seen_from(script(step("the key is sk-test-0001, use it")), form)).seen
    recording = compose_recording(seen, FACTS, "http://127.0.0.1:1")
    response = yaml.safe_load(recording.files["cassette.yaml"])["interactions"][0]["response"]
    frames = encode_frames(parse_frames(response["body"]["frames"]))
    assert [size for _, size in response["pieces"]] == [len(one) for one in frames]
    assert recording.problems == ()
    assert reply_of(recording) == [text("the key is redacted, use it")]
    assert "sk-test-0001" not in str(recording.files)


@pytest.mark.parametrize("form", ["bedrock-stream", "bedrock-invoke-stream"])
async def test_an_exception_in_frames_is_said_again(form: str) -> None:
    told = step(text("one"), error_event("slow down", type="throttlingException"))
    recording = await record(script(told), form)
    assert (recording.problems, reply_of(recording)) == (
        (),
        [text("one"), error_event("slow down", type="throttlingException")],
    )


async def test_damaged_frames_are_not_kept() -> None:
    forwarder = await seen_from(script(step("hi")), "bedrock-stream")
    offset, piece = forwarder.seen[0].pieces[-1]
    forwarder.seen[0].pieces[-1] = (offset, piece[:-1] + bytes((piece[-1] ^ 1,)))
    with pytest.raises(RecordingError) as caught:
        compose_recording(forwarder.seen, FACTS, forwarder.upstream)
    assert caught.value.what == "nothing was recorded: 1 answer left out: is no text"


async def test_frames_that_no_part_can_say_leave_the_script_out() -> None:
    forwarder = await seen_from(script(step("hi")), "bedrock-stream")
    citation = {"delta": {"citation": {"title": "t"}}, "contentBlockIndex": 0}
    odd = Frame(((":event-type", "contentBlockDelta"), (":message-type", "event")), json.dumps(citation))
    forwarder.seen[0].pieces = [(0, one) for one in encode_frames([odd])]
    recording = compose_recording(forwarder.seen, FACTS, forwarder.upstream)
    assert (sorted(recording.files), recording.problems) == (
        ["cassette.yaml"],
        ("answer 1: its frames cannot be said in parts",),
    )


async def test_the_seal_of_thinking_is_the_scripts_own_when_the_next_request_brings_it_back() -> None:
    played = script(step(reasoning("hm"), CALL), step("done"))
    forwarder = Forwarder("http://127.0.0.1:1", now_ms=lambda: 0, transport=mock_provider.transport(played))
    headers = {"x-api-key": "sk-test-0001", "anthropic-version": "2023-06-01"}

    async def send(*messages: Json) -> JsonObject:
        body: JsonObject = {"model": "m", "max_tokens": 99, "messages": list(messages)}
        begun = await forwarder.send("POST", "/v1/messages", headers, json.dumps(body).encode())
        found: JsonObject = json.loads(b"".join([piece async for piece in begun.pieces]))
        return found

    first = await send(USER)
    result: Json = [{"type": "tool_result", "tool_use_id": "call_0001", "content": "r"}]
    await send(USER, {"role": "assistant", "content": first["content"]}, {"role": "user", "content": result})
    recording = compose_recording(forwarder.seen, Facts("127.0.0.1", None), forwarder.upstream)
    assert (recording.problems, sorted(recording.files)) == ((), ["cassette.yaml", "script.yaml"])


def test_every_dialect_is_tried() -> None:
    assert {form.partition("-")[0] for form in ASKING} == set(DIALECTS)
