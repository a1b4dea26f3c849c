"""The sealed transport over stand-ins for the wire: what it refuses, and what it notes."""

from __future__ import annotations

import json
import os

import httpx
import pytest

from lanes.drift import read_shape
from lanes.environment import override_names
from lanes.errors import GuardError
from lanes.providers import load_providers
from lanes.sealed import SealedTransport

OPENAI = next(provider for provider in load_providers() if provider.name == "openai")
STREAM = (
    'data: {"id":"chatcmpl-abc123456","model":"m-0221","choices":[{"delta":{"content":"the "}}]}\n\n'
    'data: {"id":"chatcmpl-abc123456","choices":[{"delta":{"content":"token"},"finish_reason":"stop"}]}\n\n'
    'data: {"id":"chatcmpl-abc123456","choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2}}\n\n'
    "data: [DONE]\n\n"
)


class Wire:
    """The network stream of a response, as the HTTP library shows it."""

    def __init__(self, peer: str) -> None:
        self._facts = {"server_addr": (peer, 443), "ssl_object": None}

    def get_extra_info(self, name: str) -> object:
        return self._facts[name]


def sealed(text: str, *, peer: str | None = None, status: int = 200) -> SealedTransport:
    def answer(request: httpx.Request) -> httpx.Response:
        extensions = {} if peer is None else {"network_stream": Wire(peer)}
        return httpx.Response(status, stream=httpx.ByteStream(text.encode()), extensions=extensions)

    return SealedTransport(OPENAI, inner=httpx.MockTransport(answer))


async def ask(transport: SealedTransport, url: str, *, messages: list[dict[str, str]] | None = None) -> str:
    async with httpx.AsyncClient(transport=transport) as client:
        body = {"model": "m-large", "messages": messages or [{"role": "user", "content": "hello"}]}
        reply = await client.post(url, json=body)
        return reply.text


@pytest.mark.parametrize(
    "url",
    [
        "http://api.openai.com/v1/chat/completions",
        "https://api.openai.com.example.com/v1/chat/completions",
        "https://api.deepseek.com/v1/chat/completions",
        "https://127.0.0.1/v1/chat/completions",
        "https://api.openai.com/v2/chat/completions",
    ],
    ids=["no-tls", "longer-name", "another-provider", "loopback", "another-path"],
)
async def test_a_request_to_any_other_place_is_refused_before_a_byte_is_sent(url: str) -> None:
    transport = sealed(STREAM)

    with pytest.raises(GuardError):
        await ask(transport, url)

    assert transport.notes == ()


async def test_an_answer_is_noted_with_what_it_said_of_itself() -> None:
    transport = sealed(STREAM, peer="93.184.216.34")

    text = await ask(transport, "https://api.openai.com/v1/chat/completions")

    (note,) = transport.notes
    assert text == STREAM
    assert (note["channel"], note["class"], note["status"], note["finished"]) == ("live", "live", 200, True)
    assert (note["reported_model"], note["provider_id_matches"]) == ("m-0221", True)
    assert note["usage"] == {"prompt_tokens": 5, "completion_tokens": 2}
    assert "chatcmpl-abc123456" not in json.dumps(note)


async def test_the_shape_of_an_answer_is_noted_and_nothing_that_it_said() -> None:
    transport = sealed(STREAM, peer="93.184.216.34")

    await ask(transport, "https://api.openai.com/v1/chat/completions")

    shape = transport.notes[0]["shape"]
    assert isinstance(shape, dict)
    assert (shape["kind"], shape["samples"]) == ("stream", 1)
    assert read_shape(json.loads(json.dumps(shape))).samples == 1
    assert "m-0221" not in json.dumps(shape)


async def test_the_wire_facts_are_those_of_the_connection() -> None:
    transport = sealed(STREAM, peer="93.184.216.34")

    await ask(transport, "https://api.openai.com/v1/chat/completions")

    wire = transport.notes[0]["wire"]
    assert (wire["stream"], wire["peer_ip"], wire["peer_scope"]) == (True, "93.184.216.34", "global")
    assert wire["endpoint"] == {
        "scheme": "https",
        "host": "api.openai.com",
        "port": 443,
        "path": "/v1/chat/completions",
    }


async def test_a_canned_answer_shows_no_stream() -> None:
    transport = sealed(STREAM)

    await ask(transport, "https://api.openai.com/v1/chat/completions")

    wire = transport.notes[0]["wire"]
    assert (wire["stream"], wire["peer_ip"], wire["tls"]) == (False, None, None)


@pytest.mark.parametrize(
    ("text", "finished"),
    [
        pytest.param(STREAM, True, id="whole"),
        pytest.param(STREAM.partition("\n\n")[0] + "\n\n", False, id="cut-after-the-first-piece"),
        pytest.param('{"id":"chatcmpl-abc123456","choices":[{"finish_reason":"stop"}]}', True, id="in-one-piece"),
        pytest.param("<html>gateway</html>", False, id="no-answer-at-all"),
    ],
)
async def test_live_22_a_cut_answer_is_marked_unfinished(text: str, finished: bool) -> None:
    transport = sealed(text, peer="93.184.216.34")

    await ask(transport, "https://api.openai.com/v1/chat/completions")

    assert transport.notes[0]["finished"] is finished


async def test_the_challenge_counts_only_when_the_model_said_it() -> None:
    transport = sealed(STREAM, peer="93.184.216.34")
    challenge = transport.new_challenge()
    await ask(
        transport, "https://api.openai.com/v1/chat/completions", messages=[{"role": "user", "content": challenge}]
    )
    before = transport.proof_facts()["nonce"]["verified"]

    said = sealed(STREAM.replace('"token"', json.dumps(challenge)), peer="93.184.216.34")
    said._challenge = challenge
    await ask(said, "https://api.openai.com/v1/chat/completions")

    assert (before, said.proof_facts()["nonce"]["verified"]) == (False, True)
    assert challenge not in json.dumps(said.proof_facts())


async def test_live_39_every_conversation_that_began_is_counted() -> None:
    transport = sealed(STREAM, peer="93.184.216.34")
    url = "https://api.openai.com/v1/chat/completions"
    for _ in range(2):
        await ask(transport, url)
    await ask(transport, url, messages=[{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}])

    assert transport.proof_facts()["root_conversations"] == 2


async def test_a_variable_that_aims_elsewhere_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in override_names(os.environ):
        monkeypatch.delenv(name)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1")
    transport = sealed(STREAM, peer="93.184.216.34")

    await ask(transport, "https://api.openai.com/v1/chat/completions")

    assert transport.proof_facts()["override_variables"] == ["OPENAI_BASE_URL"]
