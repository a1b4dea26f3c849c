"""The proxy of a recording: what the provider sends goes through as it comes, and what breaks off breaks off."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import openai
import pytest

from mock_provider.errors import UsageError
from mock_provider.json_values import JsonObject
from mock_provider.limits import Limits
from mock_provider.mock import Mock
from mock_provider.recording.cassette import Facts
from mock_provider.recording.forwarding import Forwarder, check_upstream
from mock_provider.recording.proxy import Proxy, ProxyThread
from mock_provider.recording.storing import compose_recording
from mock_provider.replies import fault, gate, http_error, script, step, text
from mock_provider.script import ScriptLike
from mock_provider.server import ServerThread, serve

HEADERS = {"authorization": "Bearer sk-test-0001"}
BODY: JsonObject = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
STREAM: JsonObject = {**BODY, "stream": True}


@asynccontextmanager
async def recording(
    played: ScriptLike, limits: Limits | None = None
) -> AsyncIterator[tuple[Mock, Forwarder, httpx.AsyncClient]]:
    """A provider on loopback, a proxy before it, and a client of the proxy."""
    async with serve(played) as mock:
        forwarder = Forwarder(mock.root, now_ms=lambda: 0)
        async with (
            Proxy(forwarder, limits).serving("127.0.0.1", 0) as root,
            httpx.AsyncClient(base_url=root, headers=HEADERS) as client,
        ):
            yield mock, forwarder, client


async def test_an_answer_goes_through_with_status_headers_and_body() -> None:
    async with recording(script(http_error(429, retry_after=2), step("hi"))) as (mock, _, client):
        refused = await client.post("/v1/chat/completions", json=BODY)
        answer = await client.post("/v1/chat/completions", json=BODY)
        direct = [entry.status for entry in mock.journal.entries]
    assert (refused.status_code, refused.headers["retry-after"], direct) == (429, "2", [429, 200])
    assert answer.json()["choices"][0]["message"]["content"] == "hi"
    assert answer.headers["x-mock-provider"] == "scripted"


async def test_pieces_go_out_while_the_provider_still_waits() -> None:
    async with (
        recording(script(step(text("one"), gate("middle"), text("two")))) as (mock, forwarder, client),
        client.stream("POST", "/v1/chat/completions", json=STREAM) as answer,
    ):
        pieces = answer.aiter_raw()
        got = await anext(pieces)
        while b'"one"' not in got:
            got += await anext(pieces)
        waiting = (mock.gate("middle").is_open, b'"two"' in got)
        mock.gate("middle").open()
        async for piece in pieces:
            got += piece
        assert (waiting, b'"two"' in got, got.endswith(b"data: [DONE]\n\n")) == ((False, False), True, True)
    assert forwarder.seen[0].answer == got


async def test_an_answer_that_breaks_off_breaks_off_for_the_client_too() -> None:
    async with recording(script(step(text("one"), fault("cut")))) as (_, forwarder, client):
        with pytest.raises(httpx.HTTPError):
            await client.post("/v1/chat/completions", json=STREAM)
    assert (forwarder.seen[0].is_whole, forwarder.seen[0].failure) == (False, "RemoteProtocolError")


async def test_a_client_that_leaves_takes_the_request_to_the_provider_with_it() -> None:
    async with recording(script(step(text("one"), gate("middle"), text("two"), text("three")))) as parts:
        mock, forwarder, client = parts
        async with client.stream("POST", "/v1/chat/completions", json=STREAM) as answer:
            await anext(answer.aiter_raw())
            await mock.gate("middle").reached()
        mock.gate("middle").open()
        while mock.journal[0].end == "open":  # noqa: ASYNC110 - a server has no word for it; the limit is pytest's
            await asyncio.sleep(0)
    assert forwarder.seen[0].is_complete is False


async def test_a_provider_that_cannot_be_reached_is_told_and_not_kept() -> None:
    forwarder = Forwarder("http://127.0.0.1:1", now_ms=lambda: 0)
    async with Proxy(forwarder).serving("127.0.0.1", 0) as root, httpx.AsyncClient() as client:
        answer = await client.post(f"{root}/v1/chat/completions", json=BODY, headers=HEADERS)
    assert (answer.status_code, answer.json()["error"]["type"]) == (502, "recorder_error")
    assert (forwarder.seen[0].status, forwarder.seen[0].failure) == (0, "ConnectError")


async def test_one_connection_serves_many_requests() -> None:
    async with recording(script(step("hi", repeat="forever"))) as (mock, forwarder, client):
        for _ in range(5):
            await client.post("/v1/chat/completions", json=BODY)
        assert (len(mock.journal), [one.number for one in forwarder.seen]) == (5, [1, 2, 3, 4, 5])


async def test_a_packed_body_and_one_in_chunks_go_through() -> None:
    async def chunks() -> AsyncIterator[bytes]:
        data = json.dumps(BODY).encode()
        yield data[:7]
        yield data[7:]

    async with recording(script(step("one"), step("two"))) as (mock, forwarder, client):
        packed = gzip.compress(json.dumps(BODY).encode())
        first = await client.post("/v1/chat/completions", content=packed, headers={"content-encoding": "gzip"})
        second = await client.post("/v1/chat/completions", content=chunks())
        assert (first.status_code, second.status_code, len(mock.journal)) == (200, 200, 2)
    assert [one.plain_body() for one in forwarder.seen] == [json.dumps(BODY).encode()] * 2


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        pytest.param(b"NONSENSE\r\n\r\n", b"400", id="no-request"),
        pytest.param(b"BREW / HTTP/1.1\r\nhost: x\r\n\r\n", b"501", id="method"),
        pytest.param(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n", b"413", id="too-large"),
        pytest.param(
            b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n32\r\n" + b"x" * 50 + b"\r\n0\r\n\r\n",
            b"413",
            id="too-large-in-chunks",
        ),
    ],
)
async def test_a_request_that_is_none_gets_an_answer_and_goes_nowhere(request_bytes: bytes, status: bytes) -> None:
    async with recording(script(step("hi")), Limits(body_bytes=20)) as (_, forwarder, client):
        reader, writer = await asyncio.open_connection("127.0.0.1", client.base_url.port)
        writer.write(request_bytes)
        answer = await reader.read()
        writer.close()
    assert (answer.split(b" ")[1], forwarder.seen) == (status, [])


async def test_a_published_client_is_recorded_without_a_change() -> None:
    async with serve(script(step("one two", stream={"split": "words"}))) as mock:
        forwarder = Forwarder(f"{mock.root}/v1", now_ms=lambda: 0)
        async with (
            Proxy(forwarder).serving("127.0.0.1", 0) as root,
            openai.AsyncOpenAI(api_key="sk-real-canary-0001", base_url=f"{root}/v1", max_retries=0) as client,
        ):
            stream = await client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "x"}], stream=True
            )
            said = "".join([chunk.choices[0].delta.content or "" async for chunk in stream])
    recorded = compose_recording(forwarder.seen, Facts("127.0.0.1", None), forwarder.upstream)
    assert (said, recorded.problems, "canary" in str(recorded.files)) == ("one two", (), False)


@pytest.mark.parametrize(
    ("upstream", "target", "url"),
    [
        pytest.param("https://a.example", "/v1/x", "https://a.example/v1/x", id="root"),
        pytest.param("https://a.example/", "/v1/x", "https://a.example/v1/x", id="slash"),
        pytest.param("https://a.example/v1", "/v1/x", "https://a.example/v1/x", id="version-twice"),
        pytest.param("https://a.example/api", "/v1/x?y=z", "https://a.example/api/v1/x?y=z", id="folder"),
    ],
)
async def test_the_address_is_joined_with_the_path(upstream: str, target: str, url: str) -> None:
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(str(request.url))
        return httpx.Response(200, stream=httpx.ByteStream(b"{}"))

    forwarder = Forwarder(upstream, now_ms=lambda: 0, transport=httpx.MockTransport(answer))
    await forwarder.send("POST", target, {}, b"{}")
    assert asked == [url]


@pytest.mark.parametrize(
    "url",
    [
        "api.example",
        "ftp://a.example",
        "https://",
        "https://a.example/?key=1",
        "https://u:p@a.example",
        "http://[::1",
        "http://a.example:99999",
        "http://a.example:0",
        "http://a.example:port",
        "http://a b.example",
        "http://a.example/\n",
    ],
)
def test_an_address_that_is_none_is_told(url: str) -> None:
    with pytest.raises(UsageError, match=r"\[USAGE\]"):
        check_upstream(url)


def test_a_port_in_use_is_told() -> None:
    with ServerThread(script(step("hi", optional=True))) as mock:
        port = int(mock.root.rpartition(":")[2])
        with (
            pytest.raises(UsageError, match="cannot listen"),
            ProxyThread(Forwarder(mock.root, now_ms=lambda: 0), "127.0.0.1", port),
        ):
            pass


def test_the_thread_ends_with_answers_under_way_and_says_nothing_of_it(caplog: pytest.LogCaptureFixture) -> None:
    with ServerThread(script(step(text("one"), gate("never"), text("two")))) as mock:
        forwarder = Forwarder(mock.root, now_ms=lambda: 0)
        with ProxyThread(forwarder, "127.0.0.1", 0) as root:
            host, port = root.removeprefix("http://").split(":")
            client = socket.create_connection((host, int(port)), timeout=10)
            body = json.dumps(STREAM).encode()
            lines = ["POST /v1/chat/completions HTTP/1.1", "host: x", "authorization: Bearer x"]
            head = "\r\n".join([*lines, f"content-length: {len(body)}", "", ""])
            client.sendall(head.encode() + body)
            assert mock.gate("never").wait_reached()
        client.close()
    assert (forwarder.seen[0].is_whole, caplog.messages) == (False, [])
