"""The transport without a socket: piece by piece, with the client library's own errors."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping

import httpx
import httpx2
import pytest

import mock_provider
from mock_provider.json_values import Json, JsonObject
from mock_provider.replies import fault, gate, script, step, text
from mock_provider.script import ScriptLike

AUTHORIZED = {"authorization": "Bearer x"}
BODY: JsonObject = {"model": "m", "messages": [{"role": "user", "content": "x"}], "stream": True}
URL = "http://mock.invalid/v1/chat/completions"
THREE = "one two three"


def three(**more: Json) -> JsonObject:
    return step(text(THREE), stream={"split": "words"}, **more)


FAULTS = [
    pytest.param({"kind": "reset", "after": 2}, httpx.ReadError, ["one ", "two "], id="reset-after-two"),
    pytest.param({"kind": "cut", "after": 1}, httpx.RemoteProtocolError, ["one "], id="cut-after-one"),
    pytest.param({"kind": "garbage", "after": 1}, httpx.RemoteProtocolError, ["one "], id="garbage-after-one"),
    pytest.param({"kind": "stall", "after": 3}, httpx.ReadTimeout, ["one ", "two ", "three"], id="stall-after-three"),
    pytest.param({"kind": "end", "after": 2}, None, ["one ", "two "], id="clean-end-after-two"),
    pytest.param({"kind": "reset", "after": 0}, httpx.ReadError, [], id="reset-after-none"),
    pytest.param({"kind": "reset", "after": 9}, httpx.ReadError, ["one ", "two ", "three"], id="reset-beyond-the-end"),
]
EARLY = [
    pytest.param("reset", httpx.ReadError, id="reset"),
    pytest.param("cut", httpx.RemoteProtocolError, id="cut"),
    pytest.param("garbage", httpx.RemoteProtocolError, id="garbage"),
    pytest.param("stall", httpx.ReadTimeout, id="stall"),
]


def words(data: bytes) -> list[str]:
    """The content pieces of a stream that may have broken off."""
    pieces = data.decode("utf-8").split('"content":"')[2:]
    return [piece.split('"', 1)[0] for piece in pieces]


@pytest.mark.parametrize(("where", "error", "pieces"), FAULTS)
async def test_a_fault_reaches_an_async_client_after_the_planned_pieces(
    where: dict[str, Json], error: type[Exception] | None, pieces: list[str]
) -> None:
    face = mock_provider.transport(script(three(fault=where)), virtual_time=True)
    got: list[bytes] = []
    raised: type[BaseException] | None = None
    async with httpx.AsyncClient(transport=face) as client:
        try:
            async with client.stream("POST", URL, json=BODY, headers=AUTHORIZED) as answer:
                async for piece in answer.aiter_raw():
                    got.append(piece)
        except httpx.TransportError as caught:
            raised = type(caught)
    assert (raised, words(b"".join(got))) == (error, pieces)
    assert face.mock.journal[0].end == f"fault {where['kind']}"


@pytest.mark.parametrize(("where", "error", "pieces"), FAULTS)
def test_a_fault_reaches_a_sync_client_after_the_planned_pieces(
    where: dict[str, Json], error: type[Exception] | None, pieces: list[str]
) -> None:
    face = mock_provider.transport(script(three(fault=where)), virtual_time=True)
    got: list[bytes] = []
    raised: type[BaseException] | None = None
    with httpx.Client(transport=face) as client:
        try:
            with client.stream("POST", URL, json=BODY, headers=AUTHORIZED) as answer:
                for piece in answer.iter_raw():
                    got.append(piece)
        except httpx.TransportError as caught:
            raised = type(caught)
    assert (raised, words(b"".join(got))) == (error, pieces)


@pytest.mark.parametrize(("kind", "error"), EARLY)
def test_a_fault_before_any_byte_reaches_a_sync_client(kind: str, error: type[Exception]) -> None:
    face = mock_provider.transport(script(step(fault=kind)), virtual_time=True)
    with httpx.Client(transport=face) as client, pytest.raises(error):
        client.post(URL, json=BODY, headers=AUTHORIZED)


@pytest.mark.parametrize(("kind", "error"), EARLY)
async def test_a_fault_before_any_byte_reaches_a_client_of_the_newer_library(kind: str, error: type[Exception]) -> None:
    face = mock_provider.transport(script(step(fault=kind)), library="httpx2", virtual_time=True)
    async with httpx2.AsyncClient(transport=face) as client:
        with pytest.raises(getattr(httpx2, error.__name__)):
            await client.post(URL, json=BODY, headers=AUTHORIZED)


def test_a_fault_inside_a_whole_answer_cuts_it_in_the_middle() -> None:
    face = mock_provider.transport(script(step(THREE, fault={"kind": "cut", "after": 1})))
    with httpx.Client(transport=face) as client, pytest.raises(httpx.RemoteProtocolError):
        client.post(URL, json={**BODY, "stream": False}, headers=AUTHORIZED)


def test_a_fault_part_breaks_the_stream_where_it_stands() -> None:
    face = mock_provider.transport(script(step(text("one"), fault("reset"), text("two"))))
    got = b""
    with httpx.Client(transport=face) as client, client.stream("POST", URL, json=BODY, headers=AUTHORIZED) as answer:
        pieces = answer.iter_raw()
        got += next(pieces) + next(pieces)
        with pytest.raises(httpx.ReadError):
            next(pieces)
    assert words(got) == ["one"]


def test_both_libraries_and_both_ways_get_the_same_bytes() -> None:
    played: ScriptLike = script(three(), step("whole"))

    def sync(library: str) -> list[bytes]:
        if library == "httpx":
            with httpx.Client(transport=mock_provider.transport(played)) as client:
                return [
                    client.post(URL, json={**BODY, "stream": on}, headers=AUTHORIZED).content for on in (True, False)
                ]
        with httpx2.Client(transport=mock_provider.transport(played, library="httpx2")) as newer:
            return [newer.post(URL, json={**BODY, "stream": on}, headers=AUTHORIZED).content for on in (True, False)]

    async def awaited() -> list[bytes]:
        async with httpx.AsyncClient(transport=mock_provider.transport(played)) as client:
            return [
                (await client.post(URL, json={**BODY, "stream": on}, headers=AUTHORIZED)).content
                for on in (True, False)
            ]

    assert sync("httpx") == sync("httpx2") == asyncio.run(awaited())


async def test_pieces_come_one_by_one_and_a_gate_holds_the_rest() -> None:
    face = mock_provider.transport(script(step(text("one"), gate("middle"), text("two"))))
    got: list[str] = []
    async with (
        httpx.AsyncClient(transport=face) as client,
        client.stream("POST", URL, json=BODY, headers=AUTHORIZED) as answer,
    ):
        stream = answer.aiter_raw()
        for _ in range(2):
            got += words(b'"content":"' + await anext(stream))
        waiting = asyncio.ensure_future(anext(stream))
        assert await face.mock.gate("middle").reached()
        assert not waiting.done()
        face.mock.gate("middle").open()
        got += words(b'"content":"' + await waiting)
    assert got == ["", "one", "two"]
    assert face.mock.journal[0].gates_passed == ("middle",)


@pytest.mark.parametrize(("where", "error", "pieces"), FAULTS)
async def test_a_fault_reaches_a_client_of_the_newer_library_after_the_planned_pieces(
    where: dict[str, Json], error: type[Exception] | None, pieces: list[str]
) -> None:
    face = mock_provider.transport(script(three(fault=where)), library="httpx2", virtual_time=True)
    got = b""
    raised = None
    async with httpx2.AsyncClient(transport=face) as client:
        try:
            async with client.stream("POST", URL, json=BODY, headers=AUTHORIZED) as answer:
                async for piece in answer.aiter_raw():
                    got += piece
        except httpx2.TransportError as caught:
            raised = type(caught).__name__
    assert (raised, words(got)) == (error.__name__ if error else None, pieces)


def test_a_gate_is_opened_from_another_thread() -> None:
    face = mock_provider.transport(script(step(text("one"), gate="start")))
    answers: list[int] = []

    def ask() -> None:
        with httpx.Client(transport=face) as client:
            answers.append(client.post(URL, json=BODY, headers=AUTHORIZED).status_code)

    thread = threading.Thread(target=ask)
    thread.start()
    assert face.mock.gate("start").wait_reached()
    assert (answers, face.mock.verify().gates) == (
        [],
        ("script: gate 'start' was never opened, 1 answers wait there",),
    )
    face.mock.gate("start").open()
    thread.join()
    assert answers == [200]
    assert face.mock.verify().ok


def test_a_gate_that_is_never_opened_fails_at_its_time_limit_and_names_the_step() -> None:
    mock = mock_provider.Mock(script(step(text("one"), gate="start")), gate_timeout_s=0.01)
    with httpx.Client(transport=mock_provider.transport(mock)) as client, pytest.raises(httpx.RemoteProtocolError):
        client.post(URL, json=BODY, headers=AUTHORIZED)
    assert mock.verify().problems == (
        (
            "script: request 1 waited 0.01 s at gate 'start' of step 1 [GATE_NEVER_OPENED]\n"
            "  fix: open the gate in the test"
        ),
    )


async def test_a_cancelled_client_is_noted_with_its_piece_and_the_conversation_goes_on() -> None:
    face = mock_provider.transport(script(step(text("one"), gate("middle"), text("two")), step("next")))
    async with httpx.AsyncClient(transport=face) as client:

        async def read() -> None:
            async with client.stream("POST", URL, json=BODY, headers=AUTHORIZED) as answer:
                async for _ in answer.aiter_raw():
                    pass

        task = asyncio.ensure_future(read())
        await face.mock.gate("middle").reached()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        answer = await client.post(URL, json=BODY, headers=AUTHORIZED)
    assert (answer.status_code, face.mock.journal[0].end, face.mock.gate("middle").waiting) == (
        200,
        "client gone at piece 1",
        0,
    )
    assert face.mock.verify().ok


@pytest.mark.parametrize(
    ("stream", "end"),
    [
        pytest.param({"first_ms": 1000}, None, id="within"),
        pytest.param({"first_ms": 60_000}, httpx.ReadTimeout, id="first-too-late"),
        pytest.param({"split": "words", "every_ms": 60_000}, httpx.ReadTimeout, id="next-too-late"),
    ],
)
def test_virtual_time_is_held_against_the_clients_timeout(
    stream: Mapping[str, Json], end: type[Exception] | None
) -> None:
    face = mock_provider.transport(script(step(THREE, stream=dict(stream))), virtual_time=True)
    with httpx.Client(transport=face, timeout=5) as client:
        if end is None:
            assert client.post(URL, json=BODY, headers=AUTHORIZED).status_code == 200
        else:
            with pytest.raises(end):
                client.post(URL, json=BODY, headers=AUTHORIZED)


def test_real_time_is_held_against_the_clients_timeout() -> None:
    face = mock_provider.transport(script(step(THREE, stream={"first_ms": 60_000})))
    with httpx.Client(transport=face, timeout=0.01) as client, pytest.raises(httpx.ReadTimeout):
        client.post(URL, json=BODY, headers=AUTHORIZED)


def test_closing_the_mock_lets_a_stalled_client_without_timeout_go() -> None:
    face = mock_provider.transport(script(step(fault="stall")))
    failed: list[str] = []

    def ask() -> None:
        with httpx.Client(transport=face, timeout=None) as client:  # noqa: S113 - having none is the case
            try:
                client.post(URL, json=BODY, headers=AUTHORIZED)
            except httpx.TransportError as error:
                failed.append(type(error).__name__)

    thread = threading.Thread(target=ask)
    thread.start()
    face.mock.close()
    thread.join()
    assert failed == ["ReadError"]


def test_the_transport_outlives_its_client() -> None:
    face = mock_provider.transport(script(step("one"), step("two")))
    statuses = []
    for _ in range(2):
        with httpx.Client(transport=face) as client:
            statuses.append(client.post(URL, json=BODY, headers=AUTHORIZED).status_code)
    assert statuses == [200, 200]
