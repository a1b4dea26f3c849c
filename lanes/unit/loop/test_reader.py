"""Reading a stream while listening for a cancel."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from harness.log.events import Cause
from harness.loop.reader import READ_AHEAD_CHUNKS, ChunkReader
from harness.loop.scope import CancelScope
from harness.model.chunks import Chunk, Finish, TextDelta

USER = Cause("user")


async def numbers(count: int, seen: list[int], closed: asyncio.Event) -> AsyncIterator[Chunk]:
    try:
        for number in range(count):
            seen.append(number)
            yield TextDelta(0, str(number))
        yield Finish("stop")
    finally:
        closed.set()


async def test_all_chunks_come_in_order_up_to_the_finish() -> None:
    closed, seen = asyncio.Event(), []
    reader = ChunkReader(lambda: numbers(3, seen, closed), CancelScope())
    got = [await reader.next() for _ in range(5)]
    await reader.close()
    assert got == [TextDelta(0, "0"), TextDelta(0, "1"), TextDelta(0, "2"), Finish("stop"), None]
    assert (closed.is_set(), reader.error) == (True, None)


async def test_S07_a_reader_nobody_asks_stops_reading_ahead() -> None:
    closed, seen = asyncio.Event(), []
    reader = ChunkReader(lambda: numbers(1000, seen, closed), CancelScope())
    await reader.next()
    for _ in range(5):
        await asyncio.sleep(0)
    assert len(seen) <= READ_AHEAD_CHUNKS + 1
    await reader.close()
    assert closed.is_set()


async def test_C04_a_cancel_ends_the_reading_at_once_and_close_waits_for_the_cleanup() -> None:
    scope, cleaned = CancelScope(), []

    async def stuck() -> AsyncIterator[Chunk]:
        try:
            yield TextDelta(0, "a")
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.append(True)

    reader = ChunkReader(stuck, scope)
    assert await reader.next() == TextDelta(0, "a")
    waiting = asyncio.ensure_future(reader.next())
    await asyncio.sleep(0)
    scope.cancel(USER)
    assert await waiting is None
    await reader.close()
    assert cleaned == [True]


async def test_one_task_reads_and_closes_the_stream() -> None:
    """A time limit entered inside a generator may only be left by the task that entered it."""

    async def limited() -> AsyncIterator[Chunk]:
        async with asyncio.timeout(60):
            yield TextDelta(0, "a")
            await asyncio.sleep(0)
            yield TextDelta(0, "b")
        yield Finish("stop")

    for reads in (1, 2, 3):
        reader = ChunkReader(limited, CancelScope())
        for _ in range(reads):
            await reader.next()
        await reader.close()
        assert reader.error is None


async def test_an_error_after_chunks_is_kept_and_the_chunks_still_come() -> None:
    async def breaking() -> AsyncIterator[Chunk]:
        yield TextDelta(0, "a")
        raise OSError("reset")

    reader = ChunkReader(breaking, CancelScope())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert [await reader.next(), await reader.next()] == [TextDelta(0, "a"), None]
    await reader.close()
    assert repr(reader.error) == "OSError('reset')"


async def test_a_stream_without_a_close_is_fine() -> None:
    class Bare:
        def __init__(self) -> None:
            self.left = [Finish("stop")]

        def __aiter__(self) -> Bare:
            return self

        async def __anext__(self) -> Chunk:
            return self.left.pop()

    reader = ChunkReader(Bare, CancelScope())
    assert await reader.next() == Finish("stop")
    await reader.close()
    assert reader.error is None


async def test_an_adapter_that_ignores_its_end_and_offers_more_is_stopped_at_its_next_chunk() -> None:
    released, offered = asyncio.Event(), []

    async def stubborn() -> AsyncIterator[Chunk]:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await released.wait()
        for _ in range(10):
            offered.append(True)
            yield TextDelta(0, "more")

    reader = ChunkReader(stubborn, CancelScope())
    await asyncio.sleep(0)
    closing = asyncio.ensure_future(reader.close())
    await asyncio.sleep(0)
    released.set()
    await closing
    assert offered == [True]


async def test_S08_a_stream_that_cannot_be_opened_is_over_with_its_error() -> None:
    def refuse() -> AsyncIterator[Chunk]:
        raise OSError("refused")

    reader = ChunkReader(refuse, CancelScope())
    assert await reader.next() is None
    await reader.close()
    assert repr(reader.error) == "OSError('refused')"


async def test_a_stream_nobody_came_to_read_is_closed_all_the_same() -> None:
    closed: list[bool] = []

    class Eager:
        def __aiter__(self) -> Eager:
            return self

        async def __anext__(self) -> Chunk:
            raise AssertionError("read")

        async def aclose(self) -> None:
            closed.append(True)

    await ChunkReader(Eager, CancelScope()).close()
    assert closed == [True]
