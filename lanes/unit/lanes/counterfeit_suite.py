"""The counterfeits of a live pass, as tests of the lane `real`: each of them passes, and none of them may count.

It is copied into the copy of the project that a stand-in is listed in, and started there by the lane's own command.
"""

from __future__ import annotations

import ssl
import sys
import types
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from lanes.channels import Channels
from lanes.errors import GuardError
from lanes.live_run import PREFLIGHT_FILE
from lanes.providers import load_providers
from lanes.sealed import SealedTransport
from lanes.spool import read_document, write_document

STAND_IN = load_providers()[0]
NO_RETRIES = pytest.mark.claim("journey.parallel-tools")  # asks for one answer and for no nonce
NONCE = pytest.mark.claim("journey.resume-session")


async def ask(transport: SealedTransport, model: str = "m-standard", *, times: int = 1) -> None:
    """Have some short conversations through a channel."""
    url = f"{transport.provider.base_url}/chat/completions"
    async with httpx.AsyncClient(transport=transport) as client:
        for _ in range(times):
            reply = await client.post(url, json={"model": model, "messages": [{"role": "user", "content": "hello"}]})
            assert reply.status_code == 200


def smuggle_authority(transport: SealedTransport) -> None:
    """Make a channel believe the stand-in's authority too."""
    transport._context.load_verify_locations(Path.cwd() / "lanes" / "authority.pem")


def live_acme(channels: Channels) -> SealedTransport:
    """The channel to a public provider that no preflight could have reached here."""
    path = channels._observation.spool / PREFLIGHT_FILE
    write_document(path, {**(read_document(path) or {}), "acme": {"code": ""}})
    return channels.live("acme")


@pytest.fixture
def mapped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every name lead to the stand-in, as a hosts file on this machine would."""
    connect = anyio.connect_tcp

    async def here(remote_host: str, remote_port: int, **options: Any) -> Any:
        return await connect("127.0.0.1", STAND_IN.port, **options)

    monkeypatch.setattr(anyio, "connect_tcp", here)


@NO_RETRIES
async def test_honest(channels: Channels) -> None:
    await ask(channels.live("stand-in"))


@NO_RETRIES
async def test_base_url_aimed_elsewhere(channels: Channels, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", STAND_IN.base_url)
    await ask(channels.live("stand-in"))
    channels.close()  # while the variable is set: that is what a run with it looks like


@NO_RETRIES
async def test_name_mapped_to_loopback(channels: Channels, mapped: None) -> None:
    transport = live_acme(channels)
    smuggle_authority(transport)
    await ask(transport)


@NO_RETRIES
async def test_verification_switched_off(channels: Channels, mapped: None) -> None:
    transport = live_acme(channels)
    transport._context.check_hostname, transport._context.verify_mode = False, ssl.CERT_NONE
    await ask(transport)


@NO_RETRIES
async def test_local_proxy_in_the_place_of_the_connection(channels: Channels) -> None:
    transport = channels.live("stand-in")
    await ask(transport)
    transport._inner = httpx.AsyncHTTPTransport(proxy=f"http://127.0.0.1:{STAND_IN.port}")
    with pytest.raises(GuardError):
        await ask(transport)


@NO_RETRIES
async def test_recorder_loaded(channels: Channels, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vcr", types.ModuleType("vcr"))
    await ask(channels.live("stand-in"))
    channels.close()


class Canned(httpx.AsyncByteStream):
    """A body from nowhere."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield b'{"id": "standin-canned-1", "usage": {"prompt_tokens": 4, "completion_tokens": 1}, '
        yield b'"choices": [{"finish_reason": "stop"}]}'


@NO_RETRIES
async def test_canned_objects(channels: Channels) -> None:
    async def canned(*_arguments: object) -> httpx.Response:
        return httpx.Response(200, stream=Canned())

    transport = channels.live("stand-in")
    stand_in = types.SimpleNamespace(handle_async_request=canned, aclose=transport._inner.aclose)
    object.__setattr__(transport, "_inner", stand_in)
    object.__setattr__(transport, "_find_breaks", lambda used: ())
    await ask(transport)


@NO_RETRIES
@pytest.mark.parametrize("model", ["m-old-date", "m-no-date", "m-no-id", "m-odd-id"])
async def test_answer_that_lacks_something(channels: Channels, model: str) -> None:
    await ask(channels.live("stand-in"), model)


@NO_RETRIES
async def test_copied_id(channels: Channels) -> None:
    await ask(channels.live("stand-in"), "m-same-id")


@NONCE
async def test_answer_of_last_night(channels: Channels) -> None:
    transport = channels.live("stand-in")
    transport.new_challenge()
    await ask(transport, "m-same-id", times=2)


@NO_RETRIES
async def test_retries_inside_the_body(channels: Channels) -> None:
    await ask(channels.live("stand-in"), times=3)


@NO_RETRIES
def test_returns_early(channels: Channels) -> None:
    assert channels.live("stand-in").notes == ()


@NO_RETRIES
def test_never_asks() -> None:
    pass


@NO_RETRIES
async def test_no_usage(channels: Channels) -> None:
    await ask(channels.live("stand-in"), "m-no-usage")  # the last one: nobody knows after it what is left of the budget
