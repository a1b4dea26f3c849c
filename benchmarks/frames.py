"""What frames cost on their way, against plain JSON lines; and how long an event takes to a client's callback.

Frames go through real pipes. Their floors move the same lines through such a pipe and do nothing but `json.loads` or
`json.dumps` to each: no frame is classified, bounded, checked for what JSON cannot hold, or handed to anybody. Both are
counted in CPU time, the threads at the pipes included, so that other load on the machine hits neither. An event
is followed from the moment the server's loop begins to append it to the moment the client's observer is called, in
another process; the floor is a line of the same length from a process that stamps and writes it to one that reads it.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.timing import Row
from harness.client import HarnessClient, Launch
from harness.log.events import Event
from harness.log.session_log import SessionLog
from harness.model.messages import JsonObject
from harness.transport.pipes import DescriptorSink, DescriptorSource
from harness.transport.rpc import Peer

_READ_BYTES = 1 << 16
_ROUNDS = 5
_PIECES = 20  # pieces of text in one answer
_FRAME: JsonObject = {
    "sessionId": "s",
    "event": {
        "type": "assistant/chunk", "seq": 123, "time": 1_700_000_000_000,
        "data": {"turn": 1, "step": 1, "chunk": {"type": "text-delta", "text": "a few words of an answer "}},
    },
}  # fmt: skip


def measure(*, sizes: str = "") -> list[Row]:
    """Frames each way, and the latency of events: paced by a model that speaks, and as fast as they can come."""
    count, turns = {"quick": (5_000, 10), "full": (200_000, 400)}.get(sizes, (50_000, 100))
    rows = [
        _median_row("frames read", "reading lines", count, _read_frames, _read_lines),
        _median_row("frames written", "writing lines", count, _write_frames, _write_lines),
    ]
    for subject, pause_s in (("event to callback, paced", 0.002), ("event to callback, in a burst", 0.0)):
        rows.append(_latency(subject, turns, pause_s))
    return rows


def _median_row(
    subject: str, floor: str, count: int, work: Callable[[int], float], base: Callable[[int], float]
) -> Row:
    times = [(work(count), base(count)) for _ in range(_ROUNDS)]
    own, other = (statistics.median(each) for each in zip(*times, strict=True))
    note = f"{count / own:,.0f} frames/s against {count / other:,.0f} lines/s, CPU"
    return Row(f"{subject}, {count}", floor, own, other, note)


def _say(problem: str) -> None:
    sys.stderr.write(f"{problem}\n")


# frames read


def _lines(count: int) -> bytes:
    line = json.dumps({"jsonrpc": "2.0", "method": "session.event", "params": _FRAME}, separators=(",", ":")).encode()
    return (line + b"\n") * count


def _read_frames(count: int) -> float:
    return asyncio.run(_heard(count))


async def _heard(count: int) -> float:
    source, end = _filled(_lines(count))
    done, heard = asyncio.Event(), 0

    def hear(method: str, params: JsonObject) -> None:
        nonlocal heard
        heard += 1
        if heard == count:
            done.set()

    into = os.open(os.devnull, os.O_WRONLY)
    peer = Peer(DescriptorSource(source), DescriptorSink(into), ids=str, report=_say, hear_all=hear)
    before = time.process_time()
    peer.start()
    await done.wait()
    took = time.process_time() - before
    peer.close()
    end.join()
    os.close(source)
    os.close(into)
    return took


def _read_lines(count: int) -> float:
    source, end = _filled(_lines(count))
    before = time.process_time()
    with os.fdopen(source, "rb", _READ_BYTES) as file:
        for line in file:
            json.loads(line)
    took = time.process_time() - before
    end.join()
    return took


def _filled(data: bytes) -> tuple[int, threading.Thread]:
    """The reading end of a pipe into which a thread writes these bytes, and the thread."""
    source, sink = os.pipe()

    def fill() -> None:
        with os.fdopen(sink, "wb", 0) as file:
            view = memoryview(data)
            while view:
                view = view[file.write(view[:_READ_BYTES]) or 0 :]

    thread = threading.Thread(target=fill)
    thread.start()
    return source, thread


# frames written


def _write_frames(count: int) -> float:
    return asyncio.run(_told(count))


async def _told(count: int) -> float:
    sink, end = _emptied()
    null = os.open(os.devnull, os.O_RDONLY)
    out = DescriptorSink(sink)
    peer = Peer(DescriptorSource(null), out, ids=str, report=_say)
    before = time.process_time()
    for _ in range(count):
        await peer.room()
        peer.notify("session.event", _FRAME)
    await peer.flush()
    took = time.process_time() - before
    peer.close()
    await out.finished()
    os.close(sink)
    os.close(null)
    end.join()
    return took


def _write_lines(count: int) -> float:
    sink, end = _emptied()
    frame = {"jsonrpc": "2.0", "method": "session.event", "params": _FRAME}
    before = time.process_time()
    with os.fdopen(sink, "wb", 0) as file:
        for _ in range(count):
            file.write(json.dumps(frame).encode() + b"\n")
    took = time.process_time() - before
    end.join()
    return took


def _emptied() -> tuple[int, threading.Thread]:
    """The writing end of a pipe that a thread empties, and the thread."""
    source, sink = os.pipe()

    def empty() -> None:
        with os.fdopen(source, "rb", 0) as file:
            while file.read(_READ_BYTES):
                continue

    thread = threading.Thread(target=empty)
    thread.start()
    return sink, thread


# from the log to the callback


def _latency(subject: str, turns: int, pause_s: float) -> Row:
    with tempfile.TemporaryDirectory() as folder:
        latencies = asyncio.run(_followed(Path(folder), turns, pause_s))
    floor = _line_latencies(len(latencies), pause_s)
    note = f"ms, median of {len(latencies)} events; 99 of 100 within {_at(latencies, 0.99):.2f}"
    return Row(subject, "a line through a pipe", _at(latencies, 0.5), _at(floor, 0.5), note, unit="ms")


def _at(latencies_s: list[float], part: float) -> float:
    return sorted(latencies_s)[min(len(latencies_s) - 1, int(len(latencies_s) * part))] * 1000


async def _followed(folder: Path, turns: int, pause_s: float) -> list[float]:
    """Seconds that each event took from the beginning of its append to the client's observer."""
    stamps, came = folder / "stamps.json", {}
    environ = {**os.environ, "HARNESS_SESSION_ROOT": str(folder / "sessions"), "OPENAI_API_KEY": "none"}
    environ |= {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    command = [sys.executable, "-m", "benchmarks.frames", "serve", str(stamps), str(pause_s)]
    environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[1]), environ.get("PYTHONPATH", "")])

    def see(told: Any) -> None:
        if told.method == "session.event":
            came[told.params["event"]["seq"]] = time.perf_counter()

    async with HarnessClient(Launch(folder, "openai", "m", command=command, environment=environ)) as client:
        for _ in range(turns):
            await client.run("go on", session_id="s", observer=see)
    appended = {int(seq): at for seq, at in json.loads(stamps.read_text("utf-8")).items()}
    return [at - appended[seq] for seq, at in came.items()]


def _line_latencies(count: int, pause_s: float) -> list[float]:
    command = [sys.executable, "-m", "benchmarks.frames", "write", str(count), str(pause_s)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        return [time.perf_counter() - json.loads(line)["at"] for line in process.stdout]


def _serve(stamps: Path, pause_s: float) -> int:
    """The SDK server with its model inside; when it ends, it says when it began to append each event."""
    import httpx

    from harness.cli import main

    appended: dict[int, float] = {}
    append = SessionLog.append

    def stamped(log: SessionLog, *arguments: Any, **more: Any) -> Event:
        before = time.perf_counter()
        event = append(log, *arguments, **more)
        appended[event.seq] = before
        return event

    SessionLog.append = stamped  # type: ignore[assignment, method-assign] # the one place that sees every event begin
    code = main(["sdk"], transport=httpx.MockTransport(lambda request: _answer(pause_s)))
    stamps.write_text(json.dumps(appended), "utf-8")
    return code


def _answer(pause_s: float) -> Any:
    import httpx

    async def pieces() -> Any:
        for number in range(_PIECES):
            if pause_s:
                await asyncio.sleep(pause_s)
            choice = {"index": 0, "delta": {"content": f"word {number} "}, "finish_reason": None}
            yield b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"
        yield b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'

    return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=pieces())


def _write(count: int, pause_s: float) -> int:
    padding = json.dumps(_FRAME)
    for _ in range(count):
        if pause_s:
            time.sleep(pause_s)
        os.write(1, json.dumps({"at": time.perf_counter(), "like": padding}).encode() + b"\n")
    return 0


if __name__ == "__main__":
    _, what, first, second = sys.argv
    raise SystemExit(_serve(Path(first), float(second)) if what == "serve" else _write(int(first), float(second)))
