"""The limits of one answer, on a clock that jumps ahead whenever nothing else can happen."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from harness.model.call import ModelRequest
from harness.model.chunks import BlockEnd, BlockStart, Chunk, Failure, Finish, TextDelta
from harness.model.messages import Message, MessageId, TextBlock, UserSource
from harness.provider.http import DRAIN_S, HttpModel

URL = "http://127.0.0.1:8/chat/completions"
COMMENT = b": keep-alive\n\n"
HELLO = b'data: {"choices":[{"index":0,"delta":{"content":"Hello"}}]}\n\n'
FINISH = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"
STARTED = (BlockStart(0, "text"), TextDelta(0, "Hello"))
COMPLETE = (*STARTED, BlockEnd(0, TextBlock("Hello")), Finish("stop"))
ABORTED = Finish("aborted", Failure("cancelled by the caller", "ABORTED"))


class JumpingSelector(selectors.DefaultSelector):
    """Never waits for a timer: the time it would have waited is added to the clock. Nothing else moves it."""

    jumped_s = 0.0

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            return super().select(timeout)
        found = super().select(0)
        if not found:
            self.jumped_s += max(0.0, timeout)
        return found


class JumpingLoop(asyncio.SelectorEventLoop):
    """An event loop with a clock of its own, so that a busy machine changes no result."""

    def __init__(self) -> None:
        self.chosen = JumpingSelector()
        super().__init__(self.chosen)

    def time(self) -> float:
        return self.chosen.jumped_s


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return "asyncio", {"loop_factory": JumpingLoop}


class Cancel:
    """A cancel signal that gives itself after some seconds of the loop's clock, or never."""

    def __init__(self, after_s: float | None = None) -> None:
        self._given = asyncio.Event()
        if after_s is not None:
            asyncio.get_running_loop().call_later(after_s, self._given.set)

    @property
    def cancelled(self) -> bool:
        return self._given.is_set()

    async def wait(self) -> None:
        await self._given.wait()


class Slow(httpx.AsyncByteStream):
    """A body of pieces and, as numbers, the seconds of silence between them."""

    def __init__(self, *script: bytes | float) -> None:
        self._script = script
        self.closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self._script:
            if isinstance(part, bytes):
                yield part
            else:
                await asyncio.sleep(part)

    async def aclose(self) -> None:
        self.closed = True


class Channel(httpx.AsyncBaseTransport):
    """Answers after some seconds with this body."""

    def __init__(self, body: Slow, *, after_s: float = 0, status: int = 200) -> None:
        self._body = body
        self._after_s = after_s
        self._status = status
        self.timeouts: dict[str, float] = {}
        self.given_up = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.timeouts = request.extensions["timeout"]
        try:
            await asyncio.sleep(self._after_s)
        except asyncio.CancelledError:
            self.given_up = True
            raise
        return httpx.Response(self._status, headers={"content-type": "text/event-stream"}, stream=self._body)


def model(channel: Channel, **options: Any) -> HttpModel:
    return HttpModel(base_url="http://127.0.0.1:8", api_key=None, transport=channel, **options)


def request() -> ModelRequest:
    return ModelRequest("deepseek", "m", (Message(MessageId("u"), "user", (TextBlock("hi"),), UserSource()),))


async def ask(asked: HttpModel, cancel: Cancel | None = None) -> tuple[tuple[Chunk, ...], float]:
    """The chunks, and how long they took on the loop's clock, to a tenth of a second."""
    clock = asyncio.get_running_loop().time
    began = clock()
    chunks = tuple([chunk async for chunk in asked.stream(request(), cancel or Cancel())])
    return chunks, round(clock() - began, 1)


def timed_out(text: str) -> Finish:
    return Finish("error", Failure(f"POST {URL}: {text}", "TIMEOUT"))


async def test_S07_no_response_ends_at_the_first_byte_limit() -> None:
    channel = Channel(Slow(), after_s=1000)
    assert (await ask(model(channel, first_byte_timeout_s=7)), channel.given_up) == (
        ((timed_out("no response for 7 s"),), 7.0),
        True,
    )


async def test_S07_silence_after_the_response_s_head_ends_at_the_idle_limit() -> None:
    body = Slow(1000.0)
    assert (await ask(model(Channel(body), idle_timeout_s=5)), body.closed) == (
        ((timed_out("silent for 5 s"),), 5.0),
        True,
    )


async def test_S07_silence_after_a_chunk_ends_at_the_idle_limit_and_keeps_what_came() -> None:
    body = Slow(3.0, HELLO, 1000.0)
    assert (await ask(model(Channel(body), idle_timeout_s=5)), body.closed) == (
        ((*STARTED, timed_out("silent for 5 s")), 8.0),
        True,
    )


async def test_S07_a_slow_and_steady_stream_completes() -> None:
    parts = [part for _ in range(20) for part in (4.0, HELLO)]
    chunks, took_s = await ask(model(Channel(Slow(*parts, FINISH, DONE)), idle_timeout_s=5))
    assert (chunks[-1], took_s) == (Finish("stop"), 80.0)


async def test_S07_a_slow_consumer_never_times_out() -> None:
    body = Slow(1.0, HELLO, 1.0, HELLO, 1.0, FINISH, DONE)
    asked = model(Channel(body), idle_timeout_s=5, keepalive_timeout_s=6)
    chunks: list[Chunk] = []
    async for chunk in asked.stream(request(), Cancel()):
        chunks.append(chunk)
        await asyncio.sleep(100)
    assert chunks[-1] == Finish("stop")


async def test_S07_comments_keep_the_stream_alive() -> None:
    parts = [part for _ in range(20) for part in (4.0, COMMENT)]
    body = Slow(*parts, HELLO, FINISH, DONE)
    assert await ask(model(Channel(body), idle_timeout_s=5)) == (COMPLETE, 80.0)


async def test_B12_comments_alone_keep_it_alive_only_so_long() -> None:
    parts = [part for _ in range(1000) for part in (4.0, COMMENT)]
    body = Slow(HELLO, *parts)
    assert (await ask(model(Channel(body), idle_timeout_s=5, keepalive_timeout_s=30)), body.closed) == (
        ((*STARTED, timed_out("no event for 30 s, only signs of life")), 30.0),
        True,
    )


async def test_B12_an_event_that_never_ends_counts_as_a_sign_of_life_only() -> None:
    body = Slow(*[part for _ in range(1000) for part in (4.0, b"data: x")])
    chunks, took_s = await ask(model(Channel(body), idle_timeout_s=5, keepalive_timeout_s=30))
    assert (chunks, took_s) == ((timed_out("no event for 30 s, only signs of life"),), 30.0)


async def test_B12_an_event_starts_the_keepalive_window_again() -> None:
    parts = [part for _ in range(5) for part in (4.0, COMMENT, 4.0, HELLO)]
    chunks, took_s = await ask(model(Channel(Slow(*parts, FINISH, DONE)), idle_timeout_s=5, keepalive_timeout_s=10))
    assert (chunks[-1], took_s) == (Finish("stop"), 40.0)


@pytest.mark.parametrize(
    ("channel", "chunks"),
    [
        pytest.param(Channel(Slow(), after_s=1000), (), id="before-the-response"),
        pytest.param(Channel(Slow(*[part for _ in range(99) for part in (1.0, COMMENT)])), (), id="in-the-body"),
        pytest.param(Channel(Slow(HELLO, 1000.0)), STARTED, id="after-a-chunk"),
    ],
)
async def test_B12_the_total_limit_holds_everywhere(channel: Channel, chunks: tuple[Chunk, ...]) -> None:
    expected = ((*chunks, timed_out("not complete after 9 s")), 9.0)
    assert await ask(model(channel, total_timeout_s=9)) == expected


async def test_B12_without_a_total_limit_a_long_stream_is_healthy() -> None:
    parts = [part for _ in range(100) for part in (50.0, HELLO)]
    chunks, took_s = await ask(model(Channel(Slow(*parts, FINISH, DONE))))
    assert (chunks[-1], took_s) == (Finish("stop"), 5000.0)


async def test_the_transport_learns_the_limits_too() -> None:
    channel = Channel(Slow(HELLO, FINISH, DONE))
    await ask(model(channel, first_byte_timeout_s=7, idle_timeout_s=9))
    assert channel.timeouts == {"connect": 7, "read": 9, "write": 7, "pool": 7}


async def test_case_B08c_silence_after_the_finish_reason_does_not_undo_the_answer() -> None:
    assert await ask(model(Channel(Slow(HELLO, FINISH, 1000.0)), idle_timeout_s=5)) == (COMPLETE, 5.0)


async def test_a_body_that_stays_open_after_its_end_mark_is_left_soon() -> None:
    body = Slow(HELLO, FINISH, DONE, 1000.0)
    assert (await ask(model(Channel(body))), body.closed) == ((COMPLETE, round(DRAIN_S, 1)), True)


async def test_an_error_body_that_stalls_leaves_its_status() -> None:
    chunks, took_s = await ask(model(Channel(Slow(b"half", 1000.0), status=503), idle_timeout_s=5))
    assert (chunks, took_s) == ((Finish("error", Failure("status 503: half", "SERVER", 503)),), 5.0)


@pytest.mark.parametrize(
    ("channel", "chunks"),
    [
        pytest.param(Channel(Slow(), after_s=1000), (), id="before-the-response"),
        pytest.param(Channel(Slow(1000.0)), (), id="before-the-first-chunk"),
        pytest.param(Channel(Slow(HELLO, 1000.0)), STARTED, id="mid-body"),
        pytest.param(Channel(Slow(HELLO, FINISH, 1000.0)), STARTED, id="before-the-end-mark"),
        pytest.param(Channel(Slow(b"half", 1000.0), status=503), (), id="in-an-error-body"),
    ],
)
async def test_S08_a_cancel_ends_every_wait_at_once(channel: Channel, chunks: tuple[Chunk, ...]) -> None:
    asked = model(channel, first_byte_timeout_s=60, idle_timeout_s=60)
    assert await ask(asked, Cancel(after_s=2)) == ((*chunks, ABORTED), 2.0)
    assert channel.given_up or channel._body.closed


async def test_S08_a_cancel_while_the_consumer_is_busy_ends_the_next_wait() -> None:
    cancel = Cancel(after_s=50)
    chunks: list[Chunk] = []
    async for chunk in model(Channel(Slow(HELLO, 1000.0))).stream(request(), cancel):
        chunks.append(chunk)
        await asyncio.sleep(40)
    assert chunks == [*STARTED, ABORTED]


async def test_S08_a_cancel_and_a_limit_at_the_same_time_is_a_cancel() -> None:
    chunks, _ = await ask(model(Channel(Slow(1000.0)), idle_timeout_s=5), Cancel(after_s=5))
    assert chunks == (ABORTED,)


async def test_S08_a_cancelled_task_frees_the_connection_and_stays_cancelled() -> None:
    body = Slow(HELLO, 1000.0)
    reading = asyncio.create_task(ask(model(Channel(body), idle_timeout_s=60)))
    asyncio.get_running_loop().call_later(3, reading.cancel)
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert body.closed


async def test_no_task_is_left_behind() -> None:
    before = asyncio.all_tasks()
    for channel in (Channel(Slow(HELLO, FINISH, DONE)), Channel(Slow(1000.0)), Channel(Slow(), after_s=1000)):
        await ask(model(channel, first_byte_timeout_s=3, idle_timeout_s=3))
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before
