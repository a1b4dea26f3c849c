"""The catalogue: every form of answer that the mock provider says it can give, dialect by dialect, as it gives it.

Room: `lanes drift` comes in and holds real answers against it. Nothing is listed by hand but what is played: the
answers themselves are made by the same code that answers any client.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import httpx

from mock_provider.dialects.table import DIALECTS
from mock_provider.errors import UsageError
from mock_provider.httpx_face import MockTransport
from mock_provider.json_values import Json, JsonObject
from mock_provider.mock import Mock
from mock_provider.replies import http_error, reasoning, script, step, text, tool_call
from mock_provider.script import build_script

ROOT = "http://none.invalid"  # where nobody is: the answers never leave the process (RFC 6761)
MODEL = "m"
CAUSES = ("rate_limit", "quota", "server_error", "overloaded", "context_overflow", "bad_key", "no_model", "moderation")

_USER: JsonObject = {"role": "user", "content": "x"}
_BEARER = {"authorization": "Bearer sk-none"}
_ANTHROPIC = {"x-api-key": "sk-none", "anthropic-version": "2023-06-01"}
_GOOGLE = {"x-goog-api-key": "sk-none"}
_CONTENTS: JsonObject = {"contents": [{"role": "user", "parts": [{"text": "x"}]}]}
_CHAT: JsonObject = {"model": MODEL, "messages": [_USER]}
_CONVERSE: JsonObject = {"messages": [{"role": "user", "content": [{"text": "x"}]}]}


@dataclass(frozen=True, slots=True)
class Asking:
    """One way to ask: path, body and headers."""

    path: str
    body: Mapping[str, Json]
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Declared:
    """One answer of the catalogue, as a client gets it. headers are names."""

    status: int
    headers: tuple[str, ...]
    body: str


# In one piece and as a stream where the dialect streams text; binary streams (Bedrock's) are no text and are left out.
ASKINGS: Mapping[str, tuple[Asking, ...]] = {
    "openai_chat": (
        Asking("/v1/chat/completions", _CHAT, _BEARER),
        Asking("/v1/chat/completions", {**_CHAT, "stream": True, "stream_options": {"include_usage": True}}, _BEARER),
    ),
    "openai_responses": (
        Asking("/v1/responses", {"model": MODEL, "input": "x"}, _BEARER),
        Asking("/v1/responses", {"model": MODEL, "input": "x", "stream": True}, _BEARER),
    ),
    "anthropic_messages": (
        Asking("/v1/messages", {**_CHAT, "max_tokens": 99}, _ANTHROPIC),
        Asking("/v1/messages", {**_CHAT, "max_tokens": 99, "stream": True}, _ANTHROPIC),
    ),
    "gemini": (
        Asking(f"/v1beta/models/{MODEL}:generateContent", _CONTENTS, _GOOGLE),
        Asking(f"/v1beta/models/{MODEL}:streamGenerateContent?alt=sse", _CONTENTS, _GOOGLE),
    ),
    "ollama": (Asking("/api/chat", {**_CHAT, "stream": False}, {}),),
    "bedrock": (Asking(f"/model/{MODEL}/converse", _CONVERSE, _BEARER),),
}


def declared_answers(dialect: str, *, flavour: str = "") -> tuple[Declared, ...]:
    """Every answer of a dialect's catalogue, in a fixed order.

    Shape: flavour is one of a script's flavours, empty for the dialect's plain form.
    Raises: UsageError for an unknown dialect.
    """
    if dialect not in DIALECTS:
        raise UsageError(f"dialect {dialect!r} is unknown", expected=", ".join(sorted(DIALECTS)))
    return tuple(_answer(asking, each, flavour) for asking in ASKINGS[dialect] for each in _steps())


def _steps() -> Sequence[JsonObject]:
    first = tool_call("read_file", {"path": "a"}, id="call_0001")
    second = tool_call("read_file", {"path": "b"}, id="call_0002")
    words: JsonObject = {"split": "words"}
    return (
        step("It is done."),
        step("It is done, as you see.", stream=words),
        step(reasoning("First look."), text("Then say."), stream=words),
        step(first),
        step(text("I look."), first, second, stream=words),
        step(reasoning("Look."), first),
        step("Cut off", finish="length"),
        step("Kept back", finish="content_filter"),
        step("Counted", usage={"input": 30, "cached": 20, "output": 12, "reasoning": 4}),
        *(http_error(cause=cause) for cause in CAUSES),
    )


def _answer(asking: Asking, played: JsonObject, flavour: str) -> Declared:
    document = script(played)
    if flavour:
        document = {**document, "flavour": flavour}
    mock = Mock(build_script(document, "catalogue"), root=ROOT)
    try:
        with httpx.Client(transport=MockTransport(mock, virtual_time=True)) as client:
            headers = {**asking.headers, "content-type": "application/json"}
            answer = client.post(f"{ROOT}{asking.path}", content=json.dumps(dict(asking.body)), headers=headers)
    finally:
        mock.close()
    return Declared(answer.status_code, tuple(answer.headers), answer.text)
