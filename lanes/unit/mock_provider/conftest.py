"""A chat request, and a client that sends it in the process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import httpx
import httpx2
import openai
import pytest

import mock_provider
from mock_provider.json_values import Json, JsonObject
from mock_provider.mock import Mock
from mock_provider.script import ScriptLike
from mock_provider.server import ServerThread

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
def play() -> Callable[..., Play]:
    """Start playing a script in the process."""

    def start(script: ScriptLike, *, virtual_time: bool = False) -> Play:
        face = mock_provider.transport(script, virtual_time=virtual_time)
        return Play(face.mock, httpx.Client(transport=face, base_url=face.mock.base_url()))

    return start


def events_of(data: bytes) -> Sequence[str]:
    """The data of the events of a stream."""
    return [event.removeprefix("data: ") for event in data.decode("utf-8").split("\n\n") if event]


@dataclass(frozen=True, slots=True)
class Spoken:
    """A script under play and the published OpenAI client for it, which takes no answer with a field amiss."""

    mock: Mock
    client: openai.OpenAI


@pytest.fixture(params=["httpx", "httpx2", "loopback"])
def speak(request: pytest.FixtureRequest) -> Iterator[Callable[[ScriptLike], Spoken]]:
    """Start playing a script to the published OpenAI client, on each face in turn."""
    with ExitStack() as running:

        def start(script: ScriptLike) -> Spoken:
            transport: httpx.Client | httpx2.Client
            if request.param == "loopback":
                mock = running.enter_context(ServerThread(script))
                transport = running.enter_context(httpx2.Client())
            elif request.param == "httpx":
                face = mock_provider.transport(script)
                mock, transport = face.mock, running.enter_context(httpx.Client(transport=face))
            else:
                face2 = mock_provider.transport(script, library="httpx2")
                mock, transport = face2.mock, running.enter_context(httpx2.Client(transport=face2))
            client = openai.OpenAI(
                api_key="sk-test-0001",
                base_url=mock.base_url("openai_responses"),
                http_client=transport,  # type: ignore[arg-type] # the client takes both libraries, its types name one
                max_retries=0,
                _strict_response_validation=True,
            )
            return Spoken(mock, running.enter_context(client))

        yield start
