"""The bridge for httpx2: what is sent, what comes back and what breaks are those of the channel."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import httpx
import httpx2
import pytest

from lanes.errors import UsageError
from lanes.httpx2_bridge import Httpx2Bridge
from lanes.record import Json
from mock_provider import transport

SCRIPT: dict[str, Json] = {
    "version": 1,
    "steps": [{"reply": [{"text": "It is "}, {"text": "42."}], "stream": {"split": {"chars": 3}}}],
}
KEY = {"authorization": "Bearer none"}
BODY = {"model": "m", "messages": [{"role": "user", "content": "6 times 7"}], "stream": True}


async def test_a_client_of_httpx2_gets_the_pieces_that_a_client_of_httpx_gets() -> None:
    address = "http://none.invalid/v1/chat/completions"
    async with (
        httpx.AsyncClient(transport=transport(SCRIPT)) as client,
        client.stream("POST", address, json=BODY, headers=KEY) as answer,
    ):
        plain = [piece async for piece in answer.aiter_raw()]
    async with (
        httpx2.AsyncClient(transport=Httpx2Bridge(transport(SCRIPT))) as other,
        other.stream("POST", address, json=BODY, headers=KEY) as told,
    ):
        bridged = [piece async for piece in told.aiter_raw()]

    assert len(plain) > 2
    assert bridged == plain


async def test_the_channel_sees_method_address_headers_and_body() -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(201, headers={"x-a": "1"}, content=b"done")

    async with httpx2.AsyncClient(transport=Httpx2Bridge(httpx.MockTransport(answer))) as client:
        found = await client.post("https://host.invalid/v1/x?a=1", headers={"x-b": "2"}, content=b"hello")

    [request] = seen
    assert (request.method, str(request.url), request.headers["x-b"], request.content) == (
        "POST",
        "https://host.invalid/v1/x?a=1",
        "2",
        b"hello",
    )
    assert (found.status_code, found.headers["x-a"], found.content) == (201, "1", b"done")


class _Torn(httpx.AsyncByteStream):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield b"half"
        raise httpx.RemoteProtocolError("cut")


@pytest.mark.parametrize("error", [httpx.ReadTimeout, httpx.ConnectError, httpx.RemoteProtocolError])
async def test_an_error_of_the_channel_is_the_same_error_of_httpx2(error: type[httpx.TransportError]) -> None:
    def fail(request: httpx.Request) -> httpx.Response:
        raise error("why", request=request)

    async with httpx2.AsyncClient(transport=Httpx2Bridge(httpx.MockTransport(fail))) as client:
        with pytest.raises(getattr(httpx2, error.__name__), match="why"):
            await client.get("http://none.invalid/")


async def test_an_answer_that_is_cut_is_cut_for_httpx2_too() -> None:
    cut = httpx.MockTransport(lambda request: httpx.Response(200, stream=_Torn()))
    async with httpx2.AsyncClient(transport=Httpx2Bridge(cut)) as client:
        with pytest.raises(httpx2.RemoteProtocolError, match="cut"):
            await client.get("http://none.invalid/")


def test_a_client_without_an_event_loop_gets_the_same_pieces() -> None:
    address = "http://none.invalid/v1/chat/completions"
    with (
        httpx.Client(transport=transport(SCRIPT)) as client,
        client.stream("POST", address, json=BODY, headers=KEY) as answer,
    ):
        plain = list(answer.iter_raw())
    with (
        httpx2.Client(transport=Httpx2Bridge(transport(SCRIPT))) as other,
        other.stream("POST", address, json=BODY, headers=KEY) as told,
    ):
        bridged = list(told.iter_raw())

    assert len(plain) > 2
    assert bridged == plain


class _TornAtOnce(httpx.SyncByteStream):
    def __iter__(self) -> Iterator[bytes]:
        yield b"half"
        raise httpx.RemoteProtocolError("cut")


def test_an_answer_that_is_cut_is_cut_for_a_client_without_an_event_loop_too() -> None:
    cut = httpx.MockTransport(lambda request: httpx.Response(200, stream=_TornAtOnce()))
    with httpx2.Client(transport=Httpx2Bridge(cut)) as client, pytest.raises(httpx2.RemoteProtocolError, match="cut"):
        client.get("http://none.invalid/")


class _WithALoopOnly(httpx.AsyncBaseTransport):
    pass


def test_a_channel_that_needs_an_event_loop_says_so_and_what_to_give_it() -> None:
    with (
        httpx2.Client(transport=Httpx2Bridge(_WithALoopOnly())) as client,
        pytest.raises(UsageError, match=r"_WithALoopOnly answers clients with an event loop only") as caught,
    ):
        client.get("http://none.invalid/")

    assert "AsyncOpenAI" in caught.value.fix
