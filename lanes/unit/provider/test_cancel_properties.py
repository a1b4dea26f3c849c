"""Cancels at every await of one answer: it ends as cancelled, in good order, and its connection is given up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import httpx
import pytest

from harness.log.events import Cause
from harness.loop.assembly import ChunkGrammar
from harness.loop.scope import CancelScope
from harness.model.call import ModelRequest
from harness.model.chunks import Chunk, Finish
from harness.model.messages import Message, MessageId, TextBlock, UserSource
from harness.provider.http import HttpModel, build_model

REQUEST = ModelRequest("custom", "m", (Message(MessageId("u"), "user", (TextBlock("hi"),), UserSource()),))
ANSWER = (
    b'data: {"choices":[{"index":0,"delta":{"content":"Hel',
    b'lo"}}]}\n\n',
    b": keep-alive\n\n",
    b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n',
    b"data: [DONE]\n\n",
)


class Body(httpx.AsyncByteStream):
    """A body that lets the loop turn before each of its pieces."""

    def __init__(self) -> None:
        self.is_closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in ANSWER:
            await asyncio.sleep(0)
            yield piece
        await asyncio.sleep(0)

    async def aclose(self) -> None:
        self.is_closed = True


class Channel(httpx.AsyncBaseTransport):
    """Answers in memory; bodies are those that were handed out."""

    def __init__(self, status: int) -> None:
        self.bodies: list[Body] = []
        self._status = status

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(0)
        self.bodies.append(Body())
        return httpx.Response(
            self._status, headers={"content-type": "text/event-stream"}, stream=self.bodies[-1], request=request
        )


class Asked:
    """One answer being read."""

    def __init__(self, status: int) -> None:
        self.channel = Channel(status)
        self.scope = CancelScope()
        self.chunks: list[Chunk] = []
        self.model: HttpModel = build_model(base_url="http://127.0.0.1:8/v1", api_key=None, transport=self.channel)
        self.reading = asyncio.ensure_future(self._read())

    async def _read(self) -> None:
        async for chunk in self.model.stream(REQUEST, self.scope):
            self.chunks.append(chunk)

    async def at_tick(self, tick: int, act: Callable[[], object]) -> None:
        for _ in range(tick):
            await asyncio.sleep(0)
        act()
        await asyncio.wait({self.reading})

    def check(self) -> None:
        grammar = ChunkGrammar()
        for chunk in self.chunks:
            grammar.feed(chunk)
        assert all(body.is_closed for body in self.channel.bodies)


async def count_ticks(status: int) -> int:
    asked, ticks = Asked(status), 0
    while not asked.reading.done():
        await asyncio.sleep(0)
        ticks += 1
    asked.check()
    return ticks


EACH_STATUS = pytest.mark.parametrize("status", [200, 503], ids=["answer", "error"])


@EACH_STATUS
async def test_S08_a_cancel_at_any_tick_ends_the_answer_as_cancelled_or_after_its_own_end(status: int) -> None:
    ticks = await count_ticks(status)
    assert ticks > 5
    ends = []
    for tick in range(ticks):
        asked = Asked(status)
        await asked.at_tick(tick, lambda asked=asked: asked.scope.cancel(Cause("user")))  # type: ignore[misc]
        asked.reading.result()
        asked.check()
        last = asked.chunks[-1]
        assert isinstance(last, Finish)
        ends.append(last.kind)
    own = "stop" if status == 200 else "error"
    cancelled = ends.count("aborted")
    assert (cancelled > ticks / 2, ends) == (True, ["aborted"] * cancelled + [own] * (len(ends) - cancelled))


@EACH_STATUS
async def test_S08_a_host_that_cancels_the_reader_at_any_tick_gets_its_cancel_and_the_connection_back(
    status: int,
) -> None:
    before = asyncio.all_tasks()
    for tick in range(await count_ticks(status)):
        asked = Asked(status)
        await asked.at_tick(tick, asked.reading.cancel)
        assert asked.reading.cancelled()
        asked.check()
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before
