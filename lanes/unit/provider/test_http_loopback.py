"""The provider client over real sockets: stalls, resets, cut bodies, and what the other end sees of it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from harness.model.call import ModelRequest
from harness.model.chunks import BlockEnd, BlockStart, Chunk, Finish, TextDelta
from harness.model.messages import Message, MessageId, TextBlock, UserSource
from harness.provider.http import HttpModel

B22 = json.loads((Path(__file__).parents[2] / "cases" / "flows" / "B22-silent-stall.json").read_text(encoding="utf-8"))
IDLE_S = B22["idle_limit_s"]
LONG_S = 20.0
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
CHUNKED = HEAD + b"transfer-encoding: chunked\r\n\r\n"
HELLO = b'data: {"choices":[{"index":0,"delta":{"content":"Hello"}}]}\n\n'
FINISH = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"
STARTED = (BlockStart(0, "text"), TextDelta(0, "Hello"))
COMPLETE = (*STARTED, BlockEnd(0, TextBlock("Hello")), Finish("stop"))
END = b"0\r\n\r\n"


def piece(data: bytes) -> bytes:
    """One chunk of a chunked body."""
    return b"%x\r\n%s\r\n" % (len(data), data)


class Connection:
    """The service's side of one connection, after one request was read."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def read_request(self) -> bool:
        try:
            head = await self._reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            return False
        length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await self._reader.readexactly(length)
        return True

    async def send(self, *parts: bytes) -> None:
        self._writer.write(b"".join(parts))
        await self._writer.drain()

    async def wait_for_close(self) -> None:
        """Return once the client has closed the connection, by whatever means."""
        with contextlib.suppress(ConnectionError):
            while await self._reader.read(1024):
                pass

    def reset(self) -> None:
        sock = self._writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()


Behaviour = Callable[[Connection], Awaitable[None]]


class Service:
    """A service on loopback. connections counts, gone is set when a behaviour has run to its end."""

    def __init__(self, behaviour: Behaviour) -> None:
        self._behaviour = behaviour
        self.base_url = ""
        self.connections = 0
        self.requests = 0
        self.asked = asyncio.Event()
        self.gone = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        connection = Connection(reader, writer)
        try:
            while await connection.read_request():
                self.requests += 1
                self.asked.set()
                await self._behaviour(connection)
                self.gone.set()
        except ConnectionError:
            self.gone.set()
        finally:
            writer.close()


@contextlib.asynccontextmanager
async def service(behaviour: Behaviour) -> AsyncIterator[Service]:
    running = Service(behaviour)
    server = await asyncio.start_server(running.serve, "127.0.0.1", 0)
    running.base_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    async with server:
        yield running


class Cancel:
    """A cancel signal the test can give."""

    def __init__(self) -> None:
        self._given = asyncio.Event()

    @property
    def cancelled(self) -> bool:
        return self._given.is_set()

    async def wait(self) -> None:
        await self._given.wait()

    def give(self) -> None:
        self._given.set()


@contextlib.asynccontextmanager
async def model(running: Service, **options: Any) -> AsyncIterator[HttpModel]:
    asked = HttpModel(base_url=running.base_url, api_key=None, transport=None, **options)
    try:
        yield asked
    finally:
        await asked.aclose()


def request() -> ModelRequest:
    return ModelRequest("deepseek", "m", (Message(MessageId("u"), "user", (TextBlock("hi"),), UserSource()),))


async def ask(asked: HttpModel, cancel: Cancel | None = None) -> tuple[Chunk, ...]:
    return tuple([chunk async for chunk in asked.stream(request(), cancel or Cancel())])


def code_of(chunks: tuple[Chunk, ...]) -> str:
    last = chunks[-1]
    assert isinstance(last, Finish)
    return last.failure.code if last.failure else ""


# silence -------------------------------------------------------------------------------------------------------------


def b22_run(name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(run for run in B22["runs"] if run["name"] == name)["expected"]
    return found


async def silent_after_headers(connection: Connection) -> None:
    await connection.send(CHUNKED)
    await connection.wait_for_close()


async def silent_after_a_chunk(connection: Connection) -> None:
    await connection.send(CHUNKED, piece(HELLO))
    await connection.wait_for_close()


async def never_answers(connection: Connection) -> None:
    await connection.wait_for_close()


@pytest.mark.parametrize(
    ("name", "behaviour", "options", "expected"),
    [
        pytest.param("silent after headers", silent_after_headers, {"idle_timeout_s": IDLE_S}, (), id="after-headers"),
        pytest.param(
            "silent after one chunk", silent_after_a_chunk, {"idle_timeout_s": IDLE_S}, STARTED, id="after-one-chunk"
        ),
        pytest.param("no headers", never_answers, {"first_byte_timeout_s": IDLE_S}, (), id="no-headers"),
    ],
)
async def test_case_B22_silence_ends_as_a_retryable_timeout_and_the_socket_is_closed(
    name: str, behaviour: Behaviour, options: dict[str, float], expected: tuple[Chunk, ...]
) -> None:
    within_s = b22_run(name)["ends_within_s"]
    async with service(behaviour) as running, model(running, **options) as asked:
        async with asyncio.timeout(within_s if isinstance(within_s, float) else IDLE_S + 1):
            chunks = await ask(asked)
        async with asyncio.timeout(LONG_S):
            await running.gone.wait()
    assert (chunks[:-1], code_of(chunks)) == (expected, "TIMEOUT")


async def test_case_B22_a_slow_and_steady_stream_completes() -> None:
    pause_s = IDLE_S / 8  # ten pauses are longer than the limit, and one is far from it

    async def slow(connection: Connection) -> None:
        await connection.send(CHUNKED)
        for digit in "0123456789":
            await asyncio.sleep(pause_s)
            await connection.send(piece(HELLO.replace(b"Hello", digit.encode())))
        await connection.send(piece(FINISH), piece(DONE), END)

    async with service(slow) as running, model(running, idle_timeout_s=IDLE_S) as asked:
        chunks = await ask(asked)
    text = "".join(chunk.text for chunk in chunks if isinstance(chunk, TextDelta))
    assert (text, chunks[-1]) == (b22_run("control: slow but alive")["text"], Finish("stop"))


@pytest.mark.parametrize(
    ("behaviour", "expected"),
    [
        pytest.param(never_answers, (), id="before-the-response"),
        pytest.param(silent_after_headers, (), id="before-the-first-chunk"),
        pytest.param(silent_after_a_chunk, STARTED, id="mid-body"),
    ],
)
async def test_case_B22_S08_a_cancel_during_silence_ends_it_and_the_socket_is_closed(
    behaviour: Behaviour, expected: tuple[Chunk, ...]
) -> None:
    cancel = Cancel()
    chunks: list[Chunk] = []

    async def read(asked: HttpModel) -> None:
        async for chunk in asked.stream(request(), cancel):
            chunks.append(chunk)
            if tuple(chunks) == expected:
                give_soon(cancel)

    async with service(behaviour) as running, model(running, idle_timeout_s=LONG_S) as asked:
        reading = asyncio.create_task(read(asked))
        await running.asked.wait()
        if not expected:
            give_soon(cancel)
        async with asyncio.timeout(b22_run("cancel while silent")["ends_within_s"]):
            await reading
        async with asyncio.timeout(LONG_S):
            await running.gone.wait()
    assert (tuple(chunks[:-1]), code_of(tuple(chunks))) == (expected, "ABORTED")


def give_soon(cancel: Cancel) -> None:
    """Give the signal once the reader waits again; a little later than needed does no harm."""
    asyncio.get_running_loop().call_later(0.05, cancel.give)


# broken connections --------------------------------------------------------------------------------------------------


async def reset_before_the_head(connection: Connection) -> None:
    connection.reset()


async def close_before_the_head(connection: Connection) -> None:
    await connection.send(b"")
    raise ConnectionError


async def half_a_head(connection: Connection) -> None:
    await connection.send(b"HTTP/1.1 200 OK\r\ncontent-ty")
    raise ConnectionError


async def no_http(connection: Connection) -> None:
    await connection.send(b"\x15\x03\x01 hello\r\n\r\n")
    raise ConnectionError


async def reset_in_the_body(connection: Connection) -> None:
    await connection.send(CHUNKED, piece(HELLO))
    connection.reset()


async def cut_inside_a_piece(connection: Connection) -> None:
    await connection.send(CHUNKED, piece(HELLO), b"40\r\ndata: {")
    raise ConnectionError


async def bad_piece_size(connection: Connection) -> None:
    await connection.send(CHUNKED, piece(HELLO), b"zz\r\n")
    raise ConnectionError


async def shorter_than_announced(connection: Connection) -> None:
    await connection.send(HEAD, b"content-length: 1000\r\n\r\n", HELLO)
    raise ConnectionError


async def polite_end(connection: Connection) -> None:
    await connection.send(CHUNKED, piece(HELLO), END)


async def end_by_close(connection: Connection) -> None:
    await connection.send(HEAD, b"connection: close\r\n\r\n", HELLO)
    raise ConnectionError


@pytest.mark.parametrize(
    ("behaviour", "expected"),
    [
        pytest.param(reset_before_the_head, "TRANSPORT", id="reset-before-the-head"),
        pytest.param(close_before_the_head, "TRANSPORT", id="close-before-the-head"),
        pytest.param(half_a_head, "TRANSPORT", id="half-a-head"),
        pytest.param(no_http, "TRANSPORT", id="no-http"),
        pytest.param(reset_in_the_body, "TRANSPORT", id="reset-in-the-body"),
        pytest.param(cut_inside_a_piece, "TRANSPORT", id="cut-inside-a-piece"),
        pytest.param(bad_piece_size, "TRANSPORT", id="bad-piece-size"),
        pytest.param(shorter_than_announced, "TRANSPORT", id="shorter-than-announced"),
        pytest.param(polite_end, "STREAM_CLOSED", id="polite-end"),
        pytest.param(end_by_close, "STREAM_CLOSED", id="end-by-close"),
    ],
)
async def test_B11_a_broken_connection_is_a_failure_and_asked_once(behaviour: Behaviour, expected: str) -> None:
    async with service(behaviour) as running, model(running) as asked:
        chunks = await ask(asked)
    assert (code_of(chunks), running.requests, any(isinstance(c, BlockEnd) for c in chunks)) == (expected, 1, False)


async def test_S08_a_refused_connection_names_the_address() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        base_url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
        asked = HttpModel(base_url=base_url, api_key=None, transport=None)
        last = (await ask(asked))[-1]
        await asked.aclose()
    assert isinstance(last, Finish)
    assert last.failure is not None
    assert (last.failure.code, f"POST {base_url}/chat/completions: ConnectError" in last.failure.message) == (
        "TRANSPORT",
        True,
    )


async def test_S08_a_service_that_speaks_no_tls_is_a_transport_failure() -> None:
    async def answers_in_plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(answers_in_plain, "127.0.0.1", 0)
    async with server:
        base_url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        asked = HttpModel(base_url=base_url, api_key=None, transport=None)
        chunks = await ask(asked)
        await asked.aclose()
    assert code_of(chunks) == "TRANSPORT"


async def test_leaving_a_running_stream_closes_its_socket() -> None:
    async with service(silent_after_a_chunk) as running, model(running, idle_timeout_s=LONG_S) as asked:
        stream = asked.stream(request(), Cancel())
        first = await anext(stream)
        await stream.aclose()  # type: ignore[attr-defined]  # the protocol promises an iterator, stream is a generator
        async with asyncio.timeout(LONG_S):
            await running.gone.wait()
    assert first == STARTED[0]


# whole answers -------------------------------------------------------------------------------------------------------


async def whole(connection: Connection) -> None:
    await connection.send(CHUNKED, piece(HELLO), piece(FINISH + DONE), END)


async def end_after_the_mark(connection: Connection) -> None:
    await connection.send(CHUNKED, piece(HELLO), piece(FINISH + DONE))
    await asyncio.sleep(0)
    await connection.send(END)


@pytest.mark.parametrize("behaviour", [whole, end_after_the_mark], ids=["in-one-write", "end-in-a-later-write"])
async def test_a_connection_serves_again_after_a_complete_answer(behaviour: Behaviour) -> None:
    async with service(behaviour) as running, model(running) as asked:
        answers = [await ask(asked) for _ in range(3)]
    assert (answers, running.requests, running.connections) == ([COMPLETE] * 3, 3, 1)


async def test_a_consumer_that_leaves_at_the_finish_keeps_the_connection_too() -> None:
    async with service(end_after_the_mark) as running, model(running) as asked:
        for _ in range(3):
            stream = asked.stream(request(), Cancel())
            async for chunk in stream:
                if isinstance(chunk, Finish):
                    break
            await stream.aclose()  # type: ignore[attr-defined]  # the protocol promises an iterator, stream is a generator
    assert (running.requests, running.connections) == (3, 1)


async def test_answers_side_by_side_do_not_mix() -> None:
    async with service(whole) as running, model(running) as asked:
        answers = await asyncio.gather(*(ask(asked) for _ in range(8)))
    assert answers == [COMPLETE] * 8


async def test_a_cancelled_answer_leaves_the_others_alone() -> None:
    gate = asyncio.Event()

    async def gated(connection: Connection) -> None:
        await connection.send(CHUNKED, piece(HELLO))
        await gate.wait()
        await connection.send(piece(FINISH), piece(DONE), END)

    cancel = Cancel()
    async with service(gated) as running, model(running, idle_timeout_s=LONG_S) as asked:
        dropped = asyncio.create_task(ask(asked, cancel))
        kept = asyncio.create_task(ask(asked))
        await running.asked.wait()
        cancel.give()
        ended = code_of(await dropped)
        gate.set()
        assert (ended, await kept) == ("ABORTED", COMPLETE)
