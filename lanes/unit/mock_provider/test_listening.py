"""A port that closes for a while: connections are refused, and taken again at the same place."""

from __future__ import annotations

import asyncio

import httpx
import pytest

import mock_provider
from mock_provider.json_values import JsonObject
from mock_provider.listening import Listening, listen
from mock_provider.replies import script, step
from mock_provider.server import serve

HEADERS = {"authorization": "Bearer x"}
BODY: JsonObject = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
LONG_MS = 600_000  # longer than any test: whoever connects meanwhile is refused


@pytest.mark.parametrize("library", ["httpx"])
def test_in_the_process_a_refused_connection_is_the_clients_own_error(library: str) -> None:
    face = mock_provider.transport(script(step(fault="refuse"), step("hi")))
    with httpx.Client(transport=face, base_url=face.mock.base_url(), headers=HEADERS) as client:
        with pytest.raises(httpx.ConnectError):
            client.post("/chat/completions", json=BODY)
        assert client.post("/chat/completions", json=BODY).status_code == 200
    assert (face.mock.journal[0].end, face.mock.verify().ok) == ("fault refuse", True)


async def test_over_loopback_the_next_connections_are_refused() -> None:
    played = script(step(fault={"kind": "refuse", "for_ms": LONG_MS}))
    async with serve(played) as mock, httpx.AsyncClient(base_url=mock.base_url(), headers=HEADERS) as client:
        with pytest.raises(httpx.ReadError):
            await client.post("/chat/completions", json=BODY)
        with pytest.raises(httpx.ConnectError):
            await client.post("/chat/completions", json=BODY)
        assert (len(mock.journal), mock.journal[0].end) == (1, "fault refuse")


async def test_the_port_opens_again_at_the_same_place() -> None:
    opened = asyncio.Event()

    def connected() -> asyncio.Protocol:
        opened.set()
        return asyncio.Protocol()

    listener = listen("127.0.0.1", 0)
    host, port = listener.getsockname()
    listening = Listening(connected, listener)
    await listening.open()
    listening.pause(LONG_MS / 1000)
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(host, port)
    listening.pause(0)
    while not opened.is_set():
        try:
            _, writer = await asyncio.open_connection(host, port)
        except ConnectionRefusedError:
            await asyncio.sleep(0)
        else:
            await opened.wait()
            writer.close()
    listening.stop()
    await listening.stopped()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(host, port)


async def test_a_port_that_another_took_meanwhile_is_tried_again() -> None:
    listener = listen("127.0.0.1", 0)
    host, port = listener.getsockname()
    listening = Listening(asyncio.Protocol, listener)
    await listening.open()
    listening.pause(0)
    thief = listen(host, port)
    for _ in range(5):  # turns in which it finds the port taken
        await asyncio.sleep(0)
    thief.close()
    while True:
        try:
            _, writer = await asyncio.open_connection(host, port)
        except ConnectionRefusedError:
            await asyncio.sleep(0)
        else:
            writer.close()
            break
    listening.stop()
    await listening.stopped()
