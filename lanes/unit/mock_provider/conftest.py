"""A chat request, and a client that sends it in the process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import httpx
import pytest

import mock_provider
from mock_provider.json_values import Json, JsonObject
from mock_provider.mock import Mock
from mock_provider.script import ScriptLike

AUTHORIZED = {"authorization": "Bearer sk-test-0001"}
READ_FILE: JsonObject = {
    "type": "function",
    "function": {
        "name": "read_file",
        "description": "Read a file.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    },
}


def chat_body(*messages: str | Mapping[str, Json], **more: Json) -> JsonObject:
    """A chat request: texts are user messages."""
    listed: list[Json] = [
        {"role": "user", "content": message} if isinstance(message, str) else dict(message) for message in messages
    ]
    return {"model": "m", "messages": listed, **more}


@dataclass(frozen=True, slots=True)
class Play:
    """A script under play and a client for it."""

    mock: Mock
    client: httpx.Client

    def ask(
        self, *messages: str | Mapping[str, Json], headers: Mapping[str, str] | None = None, **more: Json
    ) -> httpx.Response:
        """Send a chat request."""
        return self.client.post(
            "/chat/completions", json=chat_body(*messages, **more), headers={**AUTHORIZED, **(headers or {})}
        )

    def say(self, *messages: str | Mapping[str, Json], headers: Mapping[str, str] | None = None, **more: Json) -> str:
        """Send a chat request and give the text of the answer, or the code of the error."""
        answer = self.ask(*messages, headers=headers, **more)
        content = answer.json()
        if answer.status_code != 200:
            return str(content["error"]["code"])
        return str(content["choices"][0]["message"]["content"])


@pytest.fixture
def play() -> Callable[[ScriptLike], Play]:
    """Start playing a script in the process."""

    def start(script: ScriptLike) -> Play:
        face = mock_provider.transport(script)
        return Play(face.mock, httpx.Client(transport=face, base_url=face.mock.base_url()))

    return start


def events_of(data: bytes) -> Sequence[str]:
    """The data of the events of a stream."""
    return [event.removeprefix("data: ") for event in data.decode("utf-8").split("\n\n") if event]
