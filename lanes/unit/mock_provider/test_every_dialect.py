"""One script, every dialect: the same texts, thoughts, calls and counts, whole and streamed, in the words of each."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

import mock_provider
from mock_provider.dialects.table import DIALECTS
from mock_provider.json_values import Json, JsonObject
from mock_provider.replies import reasoning, script, step, text, tool_call
from mock_provider.server import ServerThread

USER: JsonObject = {"role": "user", "content": "hi"}
WORDS = "It rains in Ghent: ü, 雨, 🌧\u2028."


@dataclass(slots=True)
class Facts:
    """What an answer says, in the words of no dialect."""

    text: str = ""
    thought: str = ""
    calls: list[list[str]] = field(default_factory=list)  # name and arguments as text, both growing piece by piece
    input: int = 0
    output: int = 0
    cached: int | None = None

    def said(self) -> tuple[str, str, list[tuple[str, Json]], int, int, int | None]:
        """All of it, arguments as values."""
        calls = [(name, json.loads(arguments or "{}")) for name, arguments in self.calls]
        return self.text, self.thought, calls, self.input, self.output, self.cached


Piece = Any  # one event, line or chunk: JSON of a form that each reader knows


def read_chat(facts: Facts, piece: Piece) -> None:
    for choice in piece["choices"]:
        message = choice.get("message") or choice.get("delta") or {}
        facts.text += message.get("content") or ""
        facts.thought += message.get("reasoning_content") or ""
        for call in message.get("tool_calls") or []:
            function = call["function"]
            if function.get("name"):
                facts.calls.append([function["name"], ""])
            facts.calls[-1][1] += function.get("arguments") or ""
    if piece.get("usage"):
        usage = piece["usage"]
        facts.input, facts.output = usage["prompt_tokens"], usage["completion_tokens"]
        facts.cached = usage["prompt_cache_hit_tokens"]


def read_responses(facts: Facts, piece: Piece) -> None:
    if "type" in piece and not piece["type"].endswith("completed"):
        return
    response = piece.get("response", piece)
    for item in response["output"]:
        if item["type"] == "message":
            facts.text += "".join(part["text"] for part in item["content"])
        elif item["type"] == "reasoning":
            facts.thought += "".join(part["text"] for part in item["summary"])
        else:
            facts.calls.append([item["name"], item["arguments"]])
    usage = response["usage"]
    facts.input, facts.output = usage["input_tokens"], usage["output_tokens"]
    facts.cached = usage["input_tokens_details"]["cached_tokens"]


def read_messages(facts: Facts, piece: Piece) -> None:
    usage = piece.get("usage") or piece.get("message", {}).get("usage")
    if usage:
        facts.cached = usage["cache_read_input_tokens"]
        facts.input, facts.output = usage["input_tokens"] + usage["cache_read_input_tokens"], usage["output_tokens"]
    blocks = piece.get("content") or [piece[name] for name in ("content_block", "delta") if name in piece]
    for block in blocks:
        facts.text += block.get("text", "")
        facts.thought += block.get("thinking", "")
        if block.get("type") == "tool_use":
            facts.calls.append([block["name"], json.dumps(block["input"]) if block["input"] else ""])
        if "partial_json" in block:
            facts.calls[-1][1] += block["partial_json"]


def read_gemini(facts: Facts, piece: Piece) -> None:
    for part in piece["candidates"][0]["content"].get("parts", []):
        if "functionCall" in part:
            facts.calls.append([part["functionCall"]["name"], json.dumps(part["functionCall"]["args"])])
        elif part.get("thought"):
            facts.thought += part["text"]
        else:
            facts.text += part["text"]
    usage = piece["usageMetadata"]
    facts.input, facts.cached = usage["promptTokenCount"], usage["cachedContentTokenCount"]
    facts.output = usage.get("candidatesTokenCount", 0) + usage.get("thoughtsTokenCount", 0)


def read_ollama(facts: Facts, piece: Piece) -> None:
    message = piece["message"]
    facts.text += message["content"]
    facts.thought += message.get("thinking", "")
    facts.calls += [
        [call["function"]["name"], json.dumps(call["function"]["arguments"])] for call in message.get("tool_calls", [])
    ]
    if piece["done"]:
        facts.input, facts.output = piece["prompt_eval_count"], piece["eval_count"]


def read_bedrock(facts: Facts, piece: Piece) -> None:
    blocks = piece.get("output", {}).get("message", {}).get("content") or [
        piece[name] for name in ("start", "delta") if name in piece
    ]
    for block in blocks:
        facts.text += block.get("text", "")
        thought = block.get("reasoningContent", {})
        facts.thought += thought.get("reasoningText", thought).get("text", "")
        use = block.get("toolUse", {})
        if "name" in use:
            facts.calls.append([use["name"], json.dumps(use["input"]) if "input" in use else ""])
        elif use:
            facts.calls[-1][1] += use["input"]
    if "usage" in piece:
        usage = piece["usage"]
        facts.cached = usage["cacheReadInputTokens"]
        facts.input, facts.output = usage["inputTokens"] + facts.cached, usage["outputTokens"]


def events(data: bytes) -> list[Piece]:
    found = [line[6:] for line in data.replace(b"\r\n", b"\n").split(b"\n") if line.startswith(b"data: ")]
    return [json.loads(event) for event in found if event != b"[DONE]"]


def array(data: bytes) -> list[Piece]:
    found: list[Piece] = json.loads(data)
    return found


def lines(data: bytes) -> list[Piece]:
    return [json.loads(line) for line in data.split(b"\n") if line]


def frames(data: bytes) -> list[Piece]:
    found = []
    while data:
        total, headers = struct.unpack(">II", data[:8])
        found.append(json.loads(data[12 + headers : total - 4]))
        data = data[total:]
    return found


@dataclass(frozen=True, slots=True)
class Way:
    """How a client of one dialect asks and reads. Shape: stream is what asks for one, in the path or in the body."""

    path: str
    body: JsonObject
    read: Callable[[Facts, Piece], None]
    cut: Callable[[bytes], list[Piece]]
    stream_path: str = ""
    stream_body: Mapping[str, Json] = field(default_factory=lambda: {"stream": True})
    has_cached: bool = True


HEADERS = {"authorization": "Bearer sk-test-0001", "anthropic-version": "2023-06-01"}
CONTENTS: JsonObject = {"contents": [{"parts": [{"text": "hi"}]}]}
CONVERSED: JsonObject = {"messages": [{"role": "user", "content": [{"text": "hi"}]}]}
CHAT: JsonObject = {"model": "m", "messages": [USER]}
USAGE: JsonObject = {"stream": True, "stream_options": {"include_usage": True}}
GEMINI = "/v1/models/m"
WAYS = {
    "openai_chat": Way("/v1/chat/completions", CHAT, read_chat, events, stream_body=USAGE),
    "openai_responses": Way("/v1/responses", {"model": "m", "input": "hi"}, read_responses, events),
    "anthropic_messages": Way("/v1/messages", {**CHAT, "max_tokens": 9}, read_messages, events),
    "gemini": Way(
        f"{GEMINI}:generateContent", CONTENTS, read_gemini, events, f"{GEMINI}:streamGenerateContent?alt=sse", {}
    ),
    "gemini-array": Way(
        f"{GEMINI}:generateContent", CONTENTS, read_gemini, array, f"{GEMINI}:streamGenerateContent", {}
    ),
    "ollama": Way("/api/chat", {**CHAT, "stream": False}, read_ollama, lines, has_cached=False),
    "bedrock": Way("/model/m/converse", CONVERSED, read_bedrock, frames, "/model/m/converse-stream", {}),
}
EVERY_WAY = pytest.mark.parametrize("name", WAYS)
SPLITS = [
    pytest.param({"split": {"chars": 3}}, id="chars"),
    pytest.param({"split": {"bytes": 5}}, id="bytes"),
    pytest.param({"split": "words", "events_per_write": 0}, id="one-write"),
]


def test_every_dialect_of_the_table_is_here() -> None:
    assert {name.partition("-")[0] for name in WAYS} == set(DIALECTS)


def answer_of(client: httpx.Client, name: str, *, is_stream: bool) -> bytes:
    """What is answered to one request."""
    way = WAYS[name]
    path = way.stream_path if is_stream and way.stream_path else way.path
    answer = client.post(path, json={**way.body, **way.stream_body} if is_stream else way.body, headers=HEADERS)
    assert (answer.status_code, answer.headers["x-mock-provider"]) == (200, "scripted"), answer.text
    return answer.content


def inside(played: JsonObject) -> httpx.Client:
    """A client in the process."""
    return httpx.Client(transport=mock_provider.transport(played), base_url="http://mock.invalid")


def facts_of(played: JsonObject, name: str, *, is_stream: bool) -> Facts:
    """What is said in answer to one request."""
    way, facts = WAYS[name], Facts()
    with inside(played) as client:
        data = answer_of(client, name, is_stream=is_stream)
    for piece in way.cut(data) if is_stream else [json.loads(data)]:
        way.read(facts, piece)
    return facts


@EVERY_WAY
@pytest.mark.parametrize("stream", SPLITS)
@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "stream"])
def test_the_same_script_says_the_same_in_every_dialect(name: str, stream: JsonObject, is_stream: bool) -> None:
    played = script(
        step(
            reasoning("Look first."),
            text(WORDS),
            tool_call("look", {"city": "Ghent"}),
            tool_call("look", {}),
            usage={"input": 210, "output": 31, "cached": 128, "reasoning": 12},
            stream=stream,
        ),
        flavour="deepseek",
    )
    calls = [("look", {"city": "Ghent"}), ("look", {})]
    cached = 128 if WAYS[name].has_cached else None
    assert facts_of(played, name, is_stream=is_stream).said() == (WORDS, "Look first.", calls, 210, 31, cached)


@EVERY_WAY
@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "stream"])
def test_a_text_that_utf8_cannot_spell_is_escaped(name: str, is_stream: bool) -> None:
    played = script(
        step("a\ud800b", stream={"split": {"chars": 2}}, usage={"input": 1, "cached": 1}), flavour="deepseek"
    )
    assert facts_of(played, name, is_stream=is_stream).text == "a\ud800b"


@EVERY_WAY
@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "stream"])
def test_the_bytes_are_the_same_in_the_process_and_over_loopback(name: str, is_stream: bool) -> None:
    played = script(step(reasoning("Hm."), text(WORDS), tool_call("look", {"city": "Ghent"})), flavour="deepseek")
    with inside(played) as client:
        here = answer_of(client, name, is_stream=is_stream)
    with ServerThread(played) as mock, httpx.Client(base_url=mock.root) as client:
        there = answer_of(client, name, is_stream=is_stream)
    assert there == here
