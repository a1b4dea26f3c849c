"""What a dialect writes is read back, whole and streamed: the mock's own answers, decoded, say what the script says."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from mock_provider.actions import Send
from mock_provider.dialects.table import DIALECTS
from mock_provider.incoming import Incoming
from mock_provider.json_values import Json, JsonObject
from mock_provider.mock import Mock
from mock_provider.recording.decoding import DECODERS
from mock_provider.recording.frames import read_frames, spell_frames
from mock_provider.recording.said import Said, SaidCounts, SaidPart, events_of, merged
from mock_provider.replies import error_event, reasoning, refusal, script, step, text, tool_call

if TYPE_CHECKING:
    from collections.abc import Mapping

USER: JsonObject = {"role": "user", "content": "x"}
BEARER = {"authorization": "Bearer sk-test-0001"}
GEMINI = "/v1beta/models/m"
Asking = tuple[str, str, JsonObject, "Mapping[str, str]"]
ASKING: dict[str, Asking] = {
    "openai_chat": (
        "/v1/chat/completions",
        "/v1/chat/completions",
        {"model": "m", "messages": [USER], "stream_options": {"include_usage": True}},
        BEARER,
    ),
    "openai_responses": ("/v1/responses", "/v1/responses", {"model": "m", "input": "x"}, BEARER),
    "anthropic_messages": (
        "/v1/messages",
        "/v1/messages",
        {"model": "m", "max_tokens": 99, "messages": [USER]},
        {"x-api-key": "sk-test-0001", "anthropic-version": "2023-06-01"},
    ),
    "gemini": (
        f"{GEMINI}:generateContent",
        f"{GEMINI}:streamGenerateContent?alt=sse",
        {"contents": [{"role": "user", "parts": [{"text": "x"}]}]},
        {"x-goog-api-key": "sk-test-0001"},
    ),
    "ollama": ("/api/chat", "/api/chat", {"model": "m", "messages": [USER]}, {}),
    "bedrock": (
        "/model/m/converse",
        "/model/m/converse-stream",
        {"messages": [{"role": "user", "content": [{"text": "x"}]}]},
        BEARER,
    ),
}
EVERY = [name for name in ASKING if name in DIALECTS]
BOTH = [
    *(pytest.param(name, True, id=f"{name}-stream") for name in EVERY),
    *(pytest.param(name, False, id=f"{name}-whole") for name in EVERY),
]


def said(played: JsonObject, dialect: str, *, is_stream: bool) -> Said | None:
    whole_path, stream_path, asked, headers = ASKING[dialect]
    body = {**asked}
    if dialect not in ("gemini", "bedrock"):
        body["stream"] = is_stream
    if not is_stream:
        body.pop("stream_options", None)
    path = stream_path if is_stream else whole_path
    incoming = Incoming("POST", path, {**headers, "content-type": "application/json"}, json.dumps(body).encode())
    plan = Mock(played).handle(incoming).plan
    sent = b"".join(action.data for action, _ in plan if isinstance(action, Send))
    frames = read_frames(sent) if dialect == "bedrock" and is_stream else None
    answer = sent.decode("utf-8") if frames is None else spell_frames(frames)
    return DECODERS[dialect](answer, is_stream=is_stream)


@pytest.mark.parametrize(("dialect", "is_stream"), BOTH)
def test_thinking_text_and_calls_are_read_back(dialect: str, is_stream: bool) -> None:
    parts: list[Json] = [
        reasoning("hm, ü"),
        text("I look. "),
        tool_call("f", {"a": "ü", "b": [1]}, id="call_0001"),
        tool_call("g", {}, id="call_0002"),
    ]
    played = script(step(reply=parts, usage={"input": 20, "output": 9}, stream={"split": {"chars": 2}}))
    found = said(played, dialect, is_stream=is_stream)
    assert found is not None
    ids = {"call_0001", "call_0002"}
    shown = [
        (part.kind, part.name, json.loads(part.text) if part.kind == "call" else part.text) for part in found.parts
    ]
    assert shown == [
        ("reasoning", "", "hm, ü"),
        ("text", "", "I look. "),
        ("call", "f", {"a": "ü", "b": [1]}),
        ("call", "g", {}),
    ]
    assert ({part.id for part in found.parts if part.kind == "call"} == ids, found.finish) == (True, "tool_calls")
    assert found.counts is not None
    assert (found.counts.input, found.counts.output) == (20, 9)


@pytest.mark.parametrize(("dialect", "is_stream"), BOTH)
@pytest.mark.parametrize("finish", ["stop", "length"])
def test_a_finish_is_read_back_as_the_word_of_the_script(dialect: str, is_stream: bool, finish: str) -> None:
    found = said(script(step("hi", finish=finish)), dialect, is_stream=is_stream)
    assert found is not None
    assert (found.parts, found.finish) == ((SaidPart("text", "hi"),), finish)


@pytest.mark.parametrize(("dialect", "is_stream"), BOTH)
def test_cached_tokens_are_read_back(dialect: str, is_stream: bool) -> None:
    counted = script(step("hi", usage={"input": 200, "cached": 128, "output": 5}))
    found = said(counted, dialect, is_stream=is_stream)
    assert found is not None
    cached = 0 if dialect == "ollama" else 128  # which has no cache to speak of
    assert found.counts == SaidCounts(200, 5, cached)


@pytest.mark.parametrize("dialect", EVERY)
def test_an_error_inside_a_stream_is_read_back(dialect: str) -> None:
    found = said(script(step(text("one"), error_event("all is lost"))), dialect, is_stream=True)
    assert found is not None
    assert found.failure is not None
    assert found.failure[0] == "all is lost"


@pytest.mark.parametrize("is_stream", [pytest.param(True, id="stream"), pytest.param(False, id="whole")])
@pytest.mark.parametrize("dialect", ["openai_chat", "openai_responses"])
def test_a_refusal_is_read_back(dialect: str, is_stream: bool) -> None:
    found = said(script(step(refusal("I cannot."))), dialect, is_stream=is_stream)
    assert found is not None
    assert found.parts == (SaidPart("refusal", "I cannot."),)


@pytest.mark.parametrize("flavour", ["deepseek", "openrouter", "vllm", "azure"])
@pytest.mark.parametrize("is_stream", [pytest.param(True, id="stream"), pytest.param(False, id="whole")])
def test_every_flavour_is_read_back(flavour: str, is_stream: bool) -> None:
    played = script(step(reasoning("hm"), text("hi")), flavour=flavour)
    found = said(played, "openai_chat", is_stream=is_stream)
    assert found is not None
    assert (found.parts, found.finish) == ((SaidPart("reasoning", "hm"), SaidPart("text", "hi")), "stop")


def test_the_array_of_a_gemini_stream_is_read_back() -> None:
    path = f"{GEMINI}:streamGenerateContent"
    body = json.dumps(ASKING["gemini"][2]).encode()
    plan = (
        Mock(script(step("one two", stream={"split": "words"})))
        .handle(Incoming("POST", path, {"x-goog-api-key": "sk-test-0001"}, body))
        .plan
    )
    answer = b"".join(action.data for action, _ in plan if isinstance(action, Send)).decode()
    found = DECODERS["gemini"](answer, is_stream=True)
    assert found is not None
    assert found.parts == (SaidPart("text", "one two"),)


@pytest.mark.parametrize(
    ("dialect", "body"),
    [
        pytest.param("openai_chat", "<html>", id="page"),
        pytest.param("openai_chat", '{"choices": [{"index": 0}, {"index": 1}]}', id="two-choices"),
        pytest.param("openai_responses", '{"status": "queued", "output": []}', id="unfinished"),
        pytest.param(
            "openai_responses",
            '{"status": "completed", "output": [{"type": "web_search_call", "id": "w"}]}',
            id="own-tool-of-the-provider",
        ),
        pytest.param(
            "anthropic_messages",
            '{"type": "message", "content": [{"type": "server_tool_use", "id": "s"}]}',
            id="server-tool",
        ),
        pytest.param("gemini", '{"promptFeedback": {"blockReason": "SAFETY"}}', id="blocked"),
        pytest.param("gemini", '{"candidates": [{"content": {"parts": [{"inlineData": {}}]}}]}', id="picture"),
        pytest.param("ollama", "", id="empty"),
        pytest.param("bedrock", "{}", id="no-message"),
    ],
)
def test_what_a_script_cannot_say_in_parts_is_left_as_it_is(dialect: str, body: str) -> None:
    assert DECODERS[dialect](body, is_stream=False) is None


def test_two_calls_under_one_index_stay_two() -> None:
    opening = '{"index": 0, "id": "%s", "function": {"name": "f", "arguments": ""}}'
    more = '{"index": 0, "function": {"arguments": "{}"}}'
    chunks = [opening % "a", more, opening % "b", more]
    body = "".join(
        f'data: {{"choices": [{{"index": 0, "delta": {{"tool_calls": [{chunk}]}}}}]}}\n\n' for chunk in chunks
    )
    found = DECODERS["openai_chat"](body, is_stream=True)
    assert found is not None
    assert found.parts == (SaidPart("call", "{}", "f", "a"), SaidPart("call", "{}", "f", "b"))


def test_events_end_at_an_empty_line_and_nowhere_else() -> None:
    assert events_of('data: {"a":\ndata: 1}\r\n\r\n: note\n\ndata: {"b": "x\u2028y"}\n\ndata: [DONE]\n\n') == [
        {"a": 1},
        {"b": "x\u2028y"},
    ]


def test_neighbours_of_one_kind_are_one_part() -> None:
    parts = [SaidPart("text", "a"), SaidPart("text", ""), SaidPart("text", "b"), SaidPart("reasoning", "c")]
    assert merged(parts) == (SaidPart("text", "ab"), SaidPart("reasoning", "c"))
