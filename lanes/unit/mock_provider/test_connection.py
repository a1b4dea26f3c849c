"""Slow, half-open, broken and too many connections: each is ended plainly, the others are served, nothing is left."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import httpx
import pytest

from mock_provider.doorkeeper import Doorkeeper
from mock_provider.http_head import cut_with_h11
from mock_provider.limits import Limits
from mock_provider.mock import Mock
from mock_provider.replies import gate, script, step, text
from mock_provider.server import serve

HEAD = "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer x\r\ncontent-length: {}\r\n\r\n"
BODY = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x"}]}).encode()
REQUEST = HEAD.format(len(BODY)).encode() + BODY
STREAMED = json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": "x"}]}).encode()
STREAM = HEAD.format(len(STREAMED)).encode() + STREAMED


def address(mock: Mock) -> tuple[str, int]:
    host, _, port = mock.root.removeprefix("http://").rpartition(":")
    return host, int(port)


Connect = Callable[[Mock], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


class Wire(asyncio.Transport):
    """A transport that takes everything."""

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Take note of nothing."""

    def is_closing(self) -> bool:
        return False

    def write(self, data: object) -> None:
        """Take it."""

    def abort(self) -> None:
        """Be closed already."""


async def end(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    """Connections that are closed at the end of the test."""
    writers: list[asyncio.StreamWriter] = []

    async def make(mock: Mock) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(*address(mock))
        writers.append(writer)
        return reader, writer

    yield make
    for writer in writers:
        await end(writer)


async def answer_of(mock: Mock, data: bytes = REQUEST) -> bytes:
    """Everything the server says before it closes; nothing more is sent after the data."""
    reader, writer = await asyncio.open_connection(*address(mock))
    writer.write(data)
    said = await reader.read()
    await end(writer)
    return said


async def status_of(mock: Mock) -> int:
    async with httpx.AsyncClient(headers={"authorization": "Bearer x"}) as client:
        return (await client.post(f"{mock.base_url()}/chat/completions", content=BODY)).status_code


@contextlib.asynccontextmanager
async def played(limits: Limits | None = None) -> AsyncIterator[Mock]:
    whole = step("hi", repeat="forever", expect={"stream": False})
    streamed = step(text("one"), gate("shut"), repeat="forever")
    scripted = script(
        conversations={"whole": {"when": {"stream": False}, "steps": [whole]}, "s": {"steps": [streamed]}}
    )
    async with serve(Mock(scripted, limits=limits)) as mock:
        yield mock


QUICK = Limits(receive_s=0.05, idle_s=0.05)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"POST /v1/chat", id="line"),
        pytest.param(REQUEST[:60], id="head"),
        pytest.param(b"\r\n", id="nothing"),
    ],
)
async def test_a_head_that_does_not_come_to_its_end_is_given_up(data: bytes) -> None:
    async with played(QUICK) as mock:
        said = await answer_of(mock, data)
        assert said[:12] in (b"HTTP/1.1 408", b"")
        assert (said == b"") is (data == b"\r\n")


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(REQUEST[:-5], id="length"),
        pytest.param(REQUEST.split(b"content-length")[0] + b"transfer-encoding: chunked\r\n\r\n5\r\nabc", id="chunks"),
    ],
)
async def test_a_body_that_does_not_come_to_its_end_is_refused_in_the_providers_form(data: bytes) -> None:
    async with played(QUICK) as mock:
        head, _, body = (await answer_of(mock, data)).partition(b"\r\n\r\n")
        assert (head[:12], json.loads(body)["error"]["type"]) == (b"HTTP/1.1 408", "invalid_request_error")
        assert [(entry.rule, entry.status) for entry in mock.journal.entries] == [("body_too_slow", 408)]


async def test_a_connection_that_says_nothing_is_closed() -> None:
    async with played(QUICK) as mock:
        assert await answer_of(mock, b"") == b""


async def test_a_client_that_sends_byte_by_byte_has_the_time_of_one_request(connect: Connect) -> None:
    async with played(Limits(receive_s=0.1)) as mock:
        reader, writer = await connect(mock)
        said = asyncio.ensure_future(reader.read())
        sent = 0
        while not said.done() and sent < len(REQUEST) - 1:
            writer.write(REQUEST[sent : sent + 1])
            sent += 1
            await asyncio.wait({said}, timeout=0.01)
        assert (await said)[:12] == b"HTTP/1.1 408"


async def test_an_idle_connection_makes_room_for_a_new_one(connect: Connect) -> None:
    async with played(Limits(connections=20)) as mock:
        idle = [await connect(mock) for _ in range(60)]
        assert await status_of(mock) == 200
        assert [await reader.read() for reader, _ in idle[:40]] == [b""] * 40


async def test_half_a_request_makes_room_for_a_new_one(connect: Connect) -> None:
    async with played(Limits(connections=5)) as mock:
        for _ in range(5):
            _, writer = await connect(mock)
            writer.write(REQUEST[:-1])
        assert await status_of(mock) == 200


async def test_when_all_places_are_busy_one_more_is_turned_away_and_the_busy_ones_go_on(connect: Connect) -> None:
    async with played(Limits(connections=2)) as mock:
        busy = [await connect(mock) for _ in range(2)]
        for reader, writer in busy:
            writer.write(STREAM)
            await reader.readuntil(b'"content":"one"')
        assert (await answer_of(mock, b""))[:12] == b"HTTP/1.1 503"
        mock.gate("shut").open()
        assert [(await reader.readuntil(b"[DONE]"))[-6:] for reader, _ in busy] == [b"[DONE]"] * 2


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def reset(sock: socket.socket) -> None:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


def misbehave(mock: Mock, data: bytes, leave: Callable[[socket.socket], None]) -> None:
    sock = socket.create_connection(address(mock))
    sock.sendall(data)
    leave(sock)


STORM = [
    b"",
    b"\x16\x03\x01",
    b"GET / HTTP/1.1\r\n",
    REQUEST[:-1],
    REQUEST,
    REQUEST + REQUEST[:50],
    STREAM,
    STREAM * 3,
    b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    HEAD.format(1 << 40).encode(),
]


@pytest.mark.parametrize("leave", [socket.socket.close, reset], ids=["close", "reset"])
async def test_nothing_is_left_of_clients_that_misbehave(leave: Callable[[socket.socket], None]) -> None:
    before = open_files(), len(asyncio.all_tasks())
    async with played() as mock:
        serving = open_files(), len(asyncio.all_tasks())
        for data in STORM * 5:
            misbehave(mock, data, leave)
            await asyncio.sleep(0)
        assert await status_of(mock) == 200
        while (open_files(), len(asyncio.all_tasks())) != serving:  # noqa: ASYNC110 - the time limit is pytest's
            await asyncio.sleep(0)
        assert {entry.end for entry in mock.journal.entries} <= {
            "complete",
            "client gone at piece 1",
            "client gone at piece 0",
        }
    assert (open_files(), len(asyncio.all_tasks())) == before


async def test_a_server_that_closes_leaves_nothing_of_what_was_under_way() -> None:
    before = open_files(), len(asyncio.all_tasks())
    async with played() as mock:
        waiting = [await asyncio.open_connection(*address(mock)) for _ in range(20)]
        for at, (reader, writer) in enumerate(waiting):
            writer.write(STREAM if at % 2 else REQUEST[: 10 * at])
            if at % 2:
                await reader.readuntil(b'"content":"one"')
    for _, writer in waiting:
        await end(writer)
    assert (open_files(), len(asyncio.all_tasks())) == before


async def test_many_open_streams_are_served_at_once(connect: Connect) -> None:
    count = 200  # each is two files of this process; how many more there may be is a matter of the limit alone
    async with played() as mock:
        streams = [await connect(mock) for _ in range(count)]
        for _, writer in streams:
            writer.write(STREAM)
        for reader, _ in streams:
            await reader.readuntil(b'"content":"one"')
        assert await status_of(mock) == 200
        mock.gate("shut").open()
        ends = [(await reader.readuntil(b"[DONE]"))[-6:] for reader, _ in streams]
        assert ends == [b"[DONE]"] * count


async def test_answers_sent_again_are_those_of_a_fresh_server_over_a_socket() -> None:
    said = script(step(text("one two three"), stream={"split": {"words": 1}}, repeat="forever"))
    questions = [("x", False), ("x", True), ("x", True), ("a longer question, " * 40, False), ("x", True), ("y", False)]
    ids = []
    async with serve(Mock(said)) as mock:
        together = [await answer_of(mock, spelled(*question)) for question in questions]
        ids = [(entry.reply_digest, entry.pieces_sent, entry.end) for entry in mock.journal]
    alone = []
    expected = []
    for number, question in enumerate(questions):
        async with serve(Mock(said)) as mock:
            mock._play.playback.enter("", "").requests = number  # as many came before, and were not remembered
            alone.append(await answer_of(mock, spelled(*question)))
            entry = mock.journal[-1]
            expected.append((entry.reply_digest, entry.pieces_sent, entry.end))
    assert together == alone
    assert ids == expected


def spelled(words: str, is_stream: bool) -> bytes:
    asked = {"model": "m", "stream": is_stream, "messages": [{"role": "user", "content": words}]}
    body = json.dumps(asked).encode()
    return HEAD.replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n").format(len(body)).encode() + body


async def test_a_client_that_leaves_a_stream_sent_again_is_noted_with_what_it_got(connect: Connect) -> None:
    words = "word " * 3_000
    said = script(step(text(words), stream={"split": {"words": 1}}, repeat="forever"))
    async with serve(Mock(said)) as mock:
        whole = await answer_of(mock, spelled("x", True))
        reader, writer = await connect(mock)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        writer.write(spelled("x", True))
        await reader.readuntil(b"word")
        writer.transport.abort()
        while mock.journal[-1].end == "open":  # noqa: ASYNC110 - as above, a server has no word for it
            await asyncio.sleep(0)
        gone = mock.journal[-1]
    assert whole.count(b'"content":"word') == 3_000
    assert gone.end == f"client gone at piece {gone.pieces_sent}"
    assert 0 < gone.pieces_sent < 3_000
    assert len(gone.reply_digest) == 64


async def test_a_request_that_comes_again_to_the_byte_is_answered_anew_each_time() -> None:
    async with serve(script(step("hi", repeat="forever"))) as mock:
        reader, writer = await asyncio.open_connection(*address(mock))
        answers: list[str] = []
        for _ in range(5):
            writer.write(REQUEST)
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
            answers.append(str(json.loads(await reader.readexactly(length))["id"]))
        await end(writer)
        assert len(set(answers)) == 5
        assert [entry.number for entry in mock.journal.entries] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("words", "is_kept"), [("nothing to hide", True), ("my key is sk-0123456789abcdef", False)], ids=["plain", "secret"]
)
def test_a_request_is_remembered_to_the_byte_only_where_no_secret_is_in_its_body(words: str, is_kept: bool) -> None:
    doorkeeper = Doorkeeper(Mock(script(step("hi", repeat="forever"))), cut_with_h11)
    connection = doorkeeper.connection()
    connection.connection_made(Wire())
    data = json.dumps({"model": "m", "messages": [{"role": "user", "content": words}]}).encode()
    for _ in range(4):
        connection.data_received(HEAD.format(len(data)).encode() + data)
    assert (connection._frame != b"") is is_kept
    doorkeeper.close()
