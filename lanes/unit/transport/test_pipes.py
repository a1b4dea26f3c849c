"""Real descriptors: pipes, files and the null device, slow readers and readers that are gone."""

from __future__ import annotations

import asyncio
import fcntl
import os
import resource
import select
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.transport.pipes import DescriptorSink, DescriptorSource, PipeClosedError

POLL = select.poll


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reader, writer = os.pipe()
    yield reader, writer
    for descriptor in (reader, writer):
        try:
            os.close(descriptor)
        except OSError:
            continue  # the test closed it


async def everything(descriptor: int) -> tuple[bytes, str | None]:
    """All bytes of a descriptor and what its end said."""
    source = DescriptorSource(descriptor)
    data = bytearray()
    ended: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
    source.start(lambda piece: data.extend(piece), ended.set_result)
    problem = await asyncio.wait_for(ended, 10)
    source.close()
    return bytes(data), problem


async def test_TR20_a_regular_file_and_the_null_device_are_read_to_their_end(tmp_path: Path) -> None:
    path = tmp_path / "frames"
    path.write_bytes(b"x" * 300_000)
    for name, content in ((path, b"x" * 300_000), (os.devnull, b"")):
        descriptor = os.open(name, os.O_RDONLY)
        assert await everything(descriptor) == (content, None)
        os.close(descriptor)


async def test_an_input_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    with (tmp_path / "written").open("wb") as file:
        assert await everything(file.fileno()) == (b"", "bad file descriptor")


@pytest.fixture
def far_pipe(pipe: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """A pipe whose descriptors are beyond what select.select can hold, as in a program with a thousand files open."""
    least = 1500
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, least + 100), hard))
    far = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, least) for end in pipe)
    yield far[0], far[1]
    for descriptor in far:
        os.close(descriptor)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_frames_go_both_ways_in_a_program_with_a_thousand_files_open(
    pipe: tuple[int, int], far_pipe: tuple[int, int]
) -> None:
    reader, writer = far_pipe
    sink = DescriptorSink(writer)
    sink.put(b"one\n")
    await sink.flush()
    came: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    source = DescriptorSource(reader)
    source.start(came.set_result, lambda problem: came.set_exception(AssertionError(problem)))
    assert await asyncio.wait_for(came, 10) == b"one\n"
    await asyncio.to_thread(source.close)
    sink.close()
    await sink.finished()


async def test_a_source_is_closed_while_it_waits_and_delivers_nothing_more(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    taken: list[bytes] = []
    source = DescriptorSource(reader)
    source.start(taken.append, lambda problem: taken.append(b"end"))
    await asyncio.to_thread(source.close)
    source.close()
    os.write(writer, b"late")
    await asyncio.sleep(0)
    assert taken == []


async def test_a_flood_waits_in_the_pipe_until_the_loop_took_what_came_before(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    os.set_blocking(writer, False)
    source = DescriptorSource(reader)
    taken: list[int] = []
    source.start(lambda piece: taken.append(len(piece)), lambda problem: None)
    held = 0
    full = 0
    while full < 200:  # the loop does not run in here, so nothing is taken
        try:
            held += os.write(writer, b"x" * 65536)
            full = 0
        except BlockingIOError:
            full += 1
            threading.Event().wait(0.001)
    await asyncio.to_thread(source.close)
    assert (taken, held < 1_000_000) == ([], True)


async def test_TR14_flush_waits_for_a_slow_reader(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    sink = DescriptorSink(writer)
    sink.put(b"x" * 200_000)
    flushing = asyncio.ensure_future(sink.flush())
    await asyncio.sleep(0)
    assert not flushing.done()
    taken = await asyncio.to_thread(read_exactly, reader, 200_000)
    await flushing
    assert (taken, sink.queued_bytes) == (200_000, 0)


async def test_TR14_flush_says_that_the_reader_is_gone(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    os.close(reader)
    sink = DescriptorSink(writer)
    failures: list[str] = []
    sink.on_failure = failures.append
    sink.put(b"x")
    for wait in (sink.flush, sink.flush, sink.room):
        with pytest.raises(PipeClosedError, match="broken pipe"):
            await wait()
    with pytest.raises(PipeClosedError):
        sink.put(b"y")
    assert failures == ["the output cannot be written: broken pipe"]


async def test_TR21_who_can_wait_waits_above_the_high_water_and_goes_on_below_it(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    sink = DescriptorSink(writer, high_water_bytes=100_000)
    sink.put(b"x" * 300_000)
    waiting = asyncio.ensure_future(sink.room())
    await asyncio.sleep(0)
    assert not waiting.done()
    await asyncio.to_thread(read_exactly, reader, 250_000)
    await waiting
    assert sink.queued_bytes <= 100_000
    await asyncio.to_thread(read_exactly, reader, 50_000)


async def test_TR21_a_reader_that_stopped_reading_counts_as_gone(pipe: tuple[int, int]) -> None:
    _, writer = pipe
    sink = DescriptorSink(writer, write_timeout_s=0.05)
    sink.put(b"x" * 300_000)
    with pytest.raises(PipeClosedError, match=r"nothing was read for 0\.05 s"):
        await sink.flush()


async def test_TR21_who_asks_and_reads_no_answer_is_not_read_either_until_it_does(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    asking_reader, asking_writer = os.pipe()
    sink = DescriptorSink(writer)
    source = DescriptorSource(asking_reader, answers=sink, max_answers_bytes=500_000)
    source.start(sink.put, lambda problem: None)  # every byte is answered with a byte
    asking = asyncio.ensure_future(asyncio.to_thread(write_all, asking_writer, b"x" * 3_000_000))
    await until_quiet(lambda: sink.queued_bytes)
    held = sink.queued_bytes
    answers = asyncio.to_thread(read_exactly, reader, 3_000_000)
    assert (500_000 < held < 1_000_000, asking.done(), await answers) == (True, False, 3_000_000)
    await asking
    for end in (asking_reader, asking_writer):
        os.close(end)


async def test_TR21_a_source_that_waits_for_answers_to_be_read_can_be_closed(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    asking_reader, asking_writer = os.pipe()
    sink = DescriptorSink(writer)
    source = DescriptorSource(asking_reader, answers=sink, max_answers_bytes=100_000)
    sink.put(b"x" * 300_000)
    source.start(lambda data: None, lambda problem: None)
    await asyncio.wait_for(asyncio.to_thread(source.close), 10)
    await asyncio.to_thread(read_exactly, reader, 300_000)
    for end in (asking_reader, asking_writer):
        os.close(end)


class CountedPoll:
    """What select.poll gives, with the times it said that something is ready."""

    returned = 0

    def __init__(self) -> None:
        self._poll = POLL()
        self.register, self.unregister = self._poll.register, self._poll.unregister

    def poll(self) -> list[tuple[int, int]]:
        ready = self._poll.poll()
        CountedPoll.returned += 1
        return ready


async def test_a_reader_that_goes_while_nothing_is_written_is_noticed_once_and_the_input_is_read_on(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, writer = pipe
    asking_reader, asking_writer = os.pipe()
    monkeypatch.setattr(select, "poll", CountedPoll)
    monkeypatch.setattr(CountedPoll, "returned", 0)
    loop = asyncio.get_running_loop()
    failed: asyncio.Future[str] = loop.create_future()
    came: asyncio.Future[bytes] = loop.create_future()
    sink = DescriptorSink(writer)
    sink.on_failure = failed.set_result
    source = DescriptorSource(asking_reader, answers=sink)
    source.start(came.set_result, lambda problem: None)
    os.close(reader)
    problem = await asyncio.wait_for(failed, 10)
    with pytest.raises(PipeClosedError, match="broken pipe"):
        sink.put(b"late")
    os.write(asking_writer, b"more")
    taken = await asyncio.wait_for(came, 10)
    looks = CountedPoll.returned
    await asyncio.to_thread(source.close)
    assert (problem, taken, looks) == ("the output cannot be written: broken pipe", b"more", 2)
    for end in (asking_reader, asking_writer):
        os.close(end)


async def test_what_a_client_sent_before_it_went_is_read_to_its_end_first(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    asking_reader, asking_writer = os.pipe()
    os.write(asking_writer, b"last words")
    os.close(asking_writer)
    os.close(reader)
    told: list[object] = []
    ended: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
    sink = DescriptorSink(writer)
    sink.on_failure = told.append
    source = DescriptorSource(asking_reader, answers=sink)
    source.start(told.append, ended.set_result)
    problem = await asyncio.wait_for(ended, 10)
    await asyncio.to_thread(source.close)
    assert (told, problem) == ([b"last words"], None)
    os.close(asking_reader)


async def test_a_reader_of_a_socket_that_is_read_from_too_is_heard_to_its_end() -> None:
    ours, theirs = socket.socketpair()
    sink = DescriptorSink(ours.fileno())
    told: list[object] = []
    ended = asyncio.Event()
    sink.on_failure = told.append
    source = DescriptorSource(ours.fileno(), answers=sink)
    source.start(told.append, lambda problem: ended.set())
    theirs.send(b"one")
    theirs.close()
    await asyncio.wait_for(ended.wait(), 10)
    await asyncio.to_thread(source.close)
    ours.close()
    assert told == [b"one"]


async def test_TR15_senders_from_many_tasks_never_mix_within_a_piece(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    sink = DescriptorSink(writer)

    async def send(name: str) -> None:
        for _ in range(20):
            sink.put(name.encode() * 9999 + b"\n")
            await asyncio.sleep(0)

    await asyncio.gather(*(send(name) for name in "abcdef"))
    data = await asyncio.to_thread(read_all, reader, 6 * 20 * 10_000)
    assert {(len(line), len(set(line))) for line in data.splitlines()} == {(9999, 1)}


async def test_what_was_put_before_close_is_still_written(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    sink = DescriptorSink(writer)
    sink.put(b"last words")
    sink.close()
    sink.close()
    assert await asyncio.to_thread(os.read, reader, 100) == b"last words"
    with pytest.raises(PipeClosedError, match="transport closed"):
        sink.put(b"later")


async def until_quiet(measure: Callable[[], int]) -> None:
    """Return once a number has grown and then stayed the same for a while."""
    last, same = 0, 0
    while same < 200 or last == 0:
        await asyncio.to_thread(threading.Event().wait, 0.001)
        same = same + 1 if measure() == last else 0
        last = measure()


def write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def read_exactly(descriptor: int, count: int) -> int:
    return len(read_all(descriptor, count))


def read_all(descriptor: int, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        data += os.read(descriptor, min(65536, count - len(data)))
    return bytes(data)
