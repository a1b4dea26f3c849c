"""The queue between a log and its file, and its barriers."""

from __future__ import annotations

import asyncio
import errno
import os
import threading

import pytest

from harness.errors import LogBusyError, LogDamagedError, LogError, LogWriteError
from harness.log.disk import Disk
from harness.log.events import EndSeed, SessionHeader, TurnStart
from harness.log.load import scan
from harness.log.store import SessionStore
from harness.model.messages import SessionId

S = SessionId("s1")


class Windows:
    """Timers that ring when the test says so."""

    def __init__(self):
        self.begun, self.open = [], []

    def __call__(self, delay_s, ring):
        self.begun.append(delay_s)
        windows = self

        class Timer:
            def cancel(self):
                if self in windows.open:
                    windows.open.remove(self)

            def ring(self):
                windows.open.remove(self)
                ring()

        timer = Timer()
        self.open.append(timer)
        return timer

    def ring(self):
        (timer,) = self.open
        timer.ring()


class FaultyDisk(Disk):
    """A disk that fails at the calls it is told to, in order; each fault is (call, bytes written before it)."""

    def __init__(self):
        self.faults: list[tuple[str, int]] = []
        self.calls: list[str] = []
        self.gate: threading.Event | None = None
        self.at_gate = threading.Event()

    def _fails(self, call):
        self.calls.append(call)
        if self.faults and self.faults[0][0] == call:
            return self.faults.pop(0)
        return None

    def write(self, fd, data):
        if self.gate is not None:
            self.at_gate.set()
            assert self.gate.wait(10)
        fault = self._fails("write")
        if fault is not None:
            super().write(fd, data[: fault[1]])
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(fd, data[:7])  # the system may take less than it is given

    def sync(self, fd):
        if self._fails("sync") is not None:
            raise OSError(errno.EIO, "Input/output error")
        super().sync(fd)

    def truncate(self, fd, size):
        if self._fails("truncate") is not None:
            raise OSError(errno.EIO, "Input/output error")
        super().truncate(fd, size)

    def link(self, source, target):
        if self._fails("link") is not None:
            raise OSError(errno.EPERM, "Operation not permitted")
        super().link(source, target)


class Bench:
    """A store whose disk and timers obey the test."""

    def __init__(self, make, root):
        self.make, self.disk, self.windows, self.told = make, FaultyDisk(), Windows(), []
        self.store = SessionStore(root, clock=make.clock(), disk=self.disk, later=self.windows, report=self.told.append)

    async def writer(self):
        return await self.store.create(SessionHeader(S, 1))

    def stored(self, writer):
        return list(scan(writer.path.read_bytes(), clock=self.make.clock()).log)


@pytest.fixture
def bench(make, tmp_path):
    return Bench(make, tmp_path)


async def _settle(writer, reached):
    """Wait until the writer has come to that state, by handing the loop over and nothing else."""
    for _ in range(100_000):
        if reached():
            return
        await asyncio.sleep(0)
    raise AssertionError("the writer never came there")


async def test_P08_twenty_events_within_the_window_make_one_write(bench, make):
    writer = await bench.writer()
    for turn in range(1, 21):
        writer.log.append(TurnStart(turn))
    assert (bench.windows.begun, len(bench.windows.open)) == ([0.2], 1)
    bench.windows.ring()
    await _settle(writer, lambda: writer.durable_seq == 19)
    assert (writer.writes, bench.stored(writer)) == (1, list(writer.log))
    await writer.close()


async def test_P08_the_window_is_fixed_and_a_new_one_begins_with_the_next_event(bench, make):
    writer = await bench.writer()
    writer.log.append(TurnStart(1))
    (first,) = bench.windows.open
    writer.log.append(TurnStart(2))
    assert bench.windows.open == [first]
    bench.windows.ring()
    await _settle(writer, lambda: writer.durable_seq == 1 and writer._write is None)
    assert bench.windows.open == []
    writer.log.append(TurnStart(3))
    assert (len(bench.windows.open), len(bench.windows.begun)) == (1, 2)
    await writer.close()


async def test_P08_events_that_come_during_a_write_get_a_window_of_their_own(bench, make):
    writer = await bench.writer()
    bench.disk.gate = threading.Event()
    writer.log.append(TurnStart(1))
    bench.windows.ring()
    await _settle(writer, bench.disk.at_gate.is_set)
    writer.log.append(TurnStart(2))
    assert bench.windows.open == []
    bench.disk.gate.set()
    await _settle(writer, lambda: bench.windows.open)
    assert (writer.durable_seq, writer.writes) == (0, 1)
    bench.windows.ring()
    await _settle(writer, lambda: writer.durable_seq == 1)
    await writer.close()


async def test_flush_cancels_the_window_and_writes_now(bench, make):
    writer = await bench.writer()
    writer.log.append(TurnStart(1))
    await writer.flush()
    assert (bench.windows.open, writer.durable_seq) == ([], 0)
    await writer.close()


async def test_P09_flush_returns_only_when_what_came_during_it_is_durable(bench, make):
    writer = await bench.writer()
    bench.disk.gate = threading.Event()
    writer.log.append(TurnStart(1))
    barrier = asyncio.create_task(writer.flush())
    await _settle(writer, bench.disk.at_gate.is_set)
    writer.log.append(TurnStart(2))
    bench.disk.gate.set()
    await barrier
    assert (writer.durable_seq, writer.writes, bench.stored(writer)) == (1, 2, list(writer.log))
    await writer.close()


async def test_P09_concurrent_flushes_share_one_write(bench, make):
    writer = await bench.writer()
    writer.log.append(TurnStart(1))
    await asyncio.gather(*(writer.flush() for _ in range(5)))
    assert writer.writes == 1
    await writer.close()


async def test_P09_a_flush_in_the_moment_a_write_ends_waits_for_a_new_write(bench, make):
    writer = await bench.writer()
    settle = writer._settle
    suspended = []

    def settled(write, error):
        settle(write, error)
        if suspended:
            return
        writer.log.append(TurnStart(2))  # nobody was told of the end yet
        late = writer.flush()
        suspended.append(late.send(None))  # up to where it waits, if it ever does
        late.close()

    writer._settle = settled
    writer.log.append(TurnStart(1))
    async with asyncio.timeout(10):
        await writer.flush()
    assert (len(suspended), writer.durable_seq, bench.stored(writer)) == (1, 1, list(writer.log))
    await writer.close()


async def test_flush_of_nothing_writes_nothing(bench):
    writer = await bench.writer()
    await writer.flush()
    assert (writer.writes, writer.durable_seq) == (0, -1)
    await writer.close()


FIRST_FAULTS = {
    "write_at_once": [("write", 0)],
    "write_in_the_middle": [("write", 5)],
    "sync": [("sync", 0)],
    "link": [("link", 0)],
    "sync_of_the_folder": [("sync", 0), ("sync", 0)],
}


@pytest.mark.parametrize("faults", FIRST_FAULTS.values(), ids=FIRST_FAULTS.keys())
async def test_P07_a_failed_first_batch_leaves_no_file_and_the_retry_stores_it_once(bench, make, tmp_path, faults):
    writer = await bench.writer()
    writer.log.append(TurnStart(1))
    for fault in faults:
        bench.disk.faults = [fault]
        with pytest.raises(LogWriteError):
            await writer.flush()
        assert (list(tmp_path.rglob("session.jsonl*")), writer.durable_seq) == ([], -1)
    await writer.flush()
    assert bench.stored(writer) == list(writer.log)
    await writer.close()


async def test_P07_a_first_batch_whose_folder_cannot_be_synced_leaves_no_file(bench, make, tmp_path):
    writer = await bench.writer()
    writer.log.append(TurnStart(1))
    synced = bench.disk.sync

    def second_sync_fails(fd):
        if bench.disk.calls.count("link"):
            bench.disk.faults = [("sync", 0)]
        synced(fd)

    bench.disk.sync = second_sync_fails
    with pytest.raises(LogWriteError):
        await writer.flush()
    assert list(tmp_path.rglob("session.jsonl*")) == []
    bench.disk.sync = synced
    await writer.flush()
    assert bench.stored(writer) == list(writer.log)
    await writer.close()


LATER_FAULTS = {
    "write_at_once": [("write", 0)],
    "write_in_the_middle": [("write", 3)],
    "write_after_some": [("write", 7)],
    "sync": [("sync", 0)],
}


@pytest.mark.parametrize("faults", LATER_FAULTS.values(), ids=LATER_FAULTS.keys())
async def test_P07_a_failed_append_leaves_the_file_as_it_was_and_the_retry_stores_it_once(bench, make, faults):
    writer = await bench.writer()
    writer.log.append(TurnStart(1))
    await writer.flush()
    before = writer.path.read_bytes()
    writer.log.append(TurnStart(2))
    bench.disk.faults = list(faults)
    with pytest.raises(LogWriteError, match="free space or mend the disk"):
        await writer.flush()
    assert (writer.path.read_bytes(), writer.durable_seq, len(writer.log)) == (before, 0, 2)
    writer.log.append(TurnStart(3))
    await writer.flush()
    assert bench.stored(writer) == list(writer.log)
    await writer.close()


async def test_P07_a_failure_that_cannot_be_undone_reports_both(bench, make):
    writer = await bench.writer()
    writer.log.append(TurnStart(1))
    await writer.flush()
    size = writer.path.stat().st_size
    writer.log.append(TurnStart(2))
    bench.disk.faults = [("write", 4), ("truncate", 0)]
    with pytest.raises(LogWriteError) as caught:
        await writer.flush()
    text = str(caught.value)
    assert all(part in text for part in ("No space left on device", "Input/output error", f"{size} bytes"))
    with pytest.raises(LogBusyError):  # the half that stayed is caught by the size fence: nothing is welded onto it
        await writer.flush()
    with pytest.raises(LogBusyError):
        await writer.close()


async def test_a_background_failure_is_told_once_and_waits_for_an_event_or_a_flush(bench, make):
    writer = await bench.writer()
    writer.log.append(TurnStart(1))
    bench.disk.faults = [("write", 0), ("write", 0)]
    bench.windows.ring()
    await _settle(writer, lambda: writer.failures)
    await _settle(writer, lambda: writer._write is None)
    assert (bench.windows.open, len(bench.told)) == ([], 1)
    writer.log.append(TurnStart(2))
    bench.windows.ring()
    await _settle(writer, lambda: not bench.disk.faults and writer._write is None)
    assert (bench.windows.open, len(bench.told), writer.durable_seq) == ([], 1, -1)
    await writer.flush()
    assert (bench.stored(writer), len(writer.failures)) == (list(writer.log), 1)
    await writer.close()


async def test_a_cancelled_barrier_neither_stops_the_write_nor_doubles_it(bench, make):
    writer = await bench.writer()
    bench.disk.gate = threading.Event()
    writer.log.append(TurnStart(1))
    barrier = asyncio.create_task(writer.flush())
    await _settle(writer, bench.disk.at_gate.is_set)
    barrier.cancel()
    with pytest.raises(asyncio.CancelledError):
        await barrier
    bench.disk.gate.set()
    await writer.flush()
    assert (writer.writes, bench.stored(writer)) == (1, list(writer.log))
    await writer.close()


async def test_a_cancelled_write_task_is_not_written_twice(bench, make):
    """A loop that shuts down cancels every task; the thread goes on, and what it stored is counted there."""
    writer = await bench.writer()
    bench.disk.gate = threading.Event()
    writer.log.append(TurnStart(1))
    bench.windows.ring()
    await _settle(writer, bench.disk.at_gate.is_set)
    writer._write.cancel()
    await _settle(writer, lambda: writer._write is None)
    writer.log.append(TurnStart(2))
    bench.disk.gate.set()
    await writer.close()
    assert bench.stored(writer) == list(writer.log)


async def test_close_writes_what_waits_and_lets_another_writer_in(bench, make):
    writer = await bench.writer()
    writer.log.append(EndSeed())
    await writer.close()
    await writer.close()
    again = await bench.store.resume(S)
    assert list(again.log) == list(writer.log)
    await again.close()


@pytest.mark.parametrize("end", ["close", "abandon"])
async def test_an_event_after_the_end_of_the_writer_is_refused_by_name_and_changes_nothing(bench, make, end):
    writer = await bench.writer()
    writer.log.append(TurnStart(1))
    heard = []
    writer.log.observe(heard.append)
    await getattr(writer, end)()
    with pytest.raises(LogError) as caught:
        writer.log.append(EndSeed())
    assert (caught.value.error_code, make.types(writer.log), heard) == ("LOG_CLOSED", ["turn/start"], [])


async def test_what_is_appended_while_the_writer_closes_is_stored(bench, make):
    writer = await bench.writer()
    bench.disk.gate = threading.Event()
    writer.log.append(TurnStart(1))
    closing = asyncio.ensure_future(writer.close())
    await _settle(writer, bench.disk.at_gate.is_set)
    writer.log.append(TurnStart(2))
    bench.disk.gate.set()
    await closing
    assert bench.stored(writer) == list(writer.log)


async def test_a_log_whose_last_write_failed_takes_nothing_more(bench, make):
    writer = await bench.writer()
    writer.log.append(TurnStart(1))
    bench.disk.faults = [("sync", 0)]
    with pytest.raises(LogWriteError):
        await writer.close()
    with pytest.raises(LogError, match="LOG_CLOSED"):
        writer.log.append(EndSeed())


async def test_what_a_closed_writer_could_not_store_is_named_at_every_later_flush(bench, make):
    writer = await bench.writer()
    writer.log.append(TurnStart(1))
    bench.disk.faults = [("sync", 0)]
    with pytest.raises(LogWriteError):
        await writer.close()
    for _ in range(2):
        with pytest.raises(LogWriteError, match="nobody writes it any more") as caught:
            await asyncio.wait_for(writer.flush(), 10)
        assert caught.value.where == str(writer.path)


MENDS = {
    errno.ENOSPC: "free space or mend the disk",
    errno.EIO: "free space or mend the disk",
    errno.EROFS: "make the file system writable again",
    errno.EDQUOT: "free space within the quota of the user",
    errno.EFBIG: "raise the limit on the size of files",
}


@pytest.mark.parametrize(("number", "mend"), MENDS.items(), ids=map(errno.errorcode.get, MENDS))
async def test_a_disk_that_takes_nothing_and_cuts_nothing_is_told_with_what_mends_it(bench, make, number, mend):
    writer = await bench.writer()
    writer.log.append(TurnStart(1))
    await writer.flush()
    before, write, truncate = writer.path.read_bytes(), bench.disk.write, bench.disk.truncate

    def refuse(*_):
        raise OSError(number, os.strerror(number))

    bench.disk.write = bench.disk.truncate = refuse
    writer.log.append(TurnStart(2))
    with pytest.raises(LogWriteError) as caught:
        await writer.flush()
    assert (caught.value.what, caught.value.where, caught.value.fix) == (
        f"could not write: {os.strerror(number)}",
        str(writer.path),
        f"{mend}; what was not written is kept and tried again",
    )
    assert writer.path.read_bytes() == before
    bench.disk.write, bench.disk.truncate = write, truncate
    await writer.flush()
    assert bench.stored(writer) == list(writer.log)
    await writer.close()


async def test_close_lets_go_even_when_the_last_write_fails(bench, make):
    writer = await bench.writer()
    writer.log.append(TurnStart(1))
    await writer.flush()
    writer.log.append(TurnStart(2))
    bench.disk.faults = [("sync", 0)]
    with pytest.raises(LogWriteError):
        await writer.close()
    again = await bench.store.resume(S)
    assert again.log.last(TurnStart).seq == 0
    await again.close()


async def test_G02_an_abandoned_session_leaves_no_file_and_frees_its_id(bench, make):
    writer = await bench.writer()
    writer.log.append(TurnStart(1))
    await writer.abandon()
    await writer.abandon()
    await writer.close()
    assert (writer.path.exists(), bench.windows.open) == (False, [])
    other = await bench.writer()
    await other.close()


async def test_G02_abandoning_waits_for_a_write_under_way_and_begins_no_other(bench, make):
    writer = await bench.writer()
    bench.disk.gate = threading.Event()
    writer.log.append(TurnStart(1))
    bench.windows.ring()
    await _settle(writer, bench.disk.at_gate.is_set)
    writer.log.append(TurnStart(2))
    abandoning = asyncio.ensure_future(writer.abandon())
    await asyncio.sleep(0)
    bench.disk.gate.set()
    await abandoning
    assert (writer.writes, bench.stored(writer), bench.windows.open) == (1, list(writer.log[:1]), [])


async def test_events_appended_by_an_observer_are_stored_in_order(bench, make):
    writer = await bench.writer()
    writer.log.observe(lambda event: event.seq < 3 and writer.log.append(TurnStart(event.seq + 2)))
    writer.log.append(TurnStart(1))
    await writer.flush()
    assert [event.payload.turn for event in bench.stored(writer)] == [1, 2, 3, 4]
    await writer.close()


LIES = {
    "lost": lambda data: b"",
    "spoiled": lambda data: b"x" * len(data),
    "altered": lambda data: data.replace(b"4", b"3"),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
async def test_a_repair_that_does_not_read_back_as_it_was_written_is_refused(bench, make, lie):
    writer = await bench.writer()
    make.open_step(writer.log)  # its last event is of the time 1004, and so are the closers
    await writer.close()
    write = Disk.write

    def lying(fd, data):
        write(bench.disk, fd, lie(bytes(data)))
        return len(data)

    bench.disk.write = lying
    with pytest.raises(LogDamagedError):
        await bench.store.resume(S)
    assert list(bench.store.root.rglob("*.lock")) == []
