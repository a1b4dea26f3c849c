"""What one turn of the loop costs with an in-process model and the log on disk, against what it cannot do without.

The floor makes the same writes: the same lines, encoded and synced in the same three pieces, with nothing in between.
In CPU time a turn is held against those writes and the bare exchange with the model: a client that sends the same body
and parses the same stream. Neither floor builds a request, keeps order, checks anything or hands work to a thread.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import httpx

from benchmarks.memory import resident_mib
from benchmarks.timing import Row
from harness.assemble import assemble
from harness.model.messages import Message, MessageId, TextBlock, UserSource
from harness.settings import Flags, from_environment

_COMPARED = 100  # turns at each end of a session that are compared
_SAMPLED = 200  # turns at the most that are held against their floors, each right after it ran
_PIECES = ("agent/inbox/spliced", "step/start", "assistant/chunk")  # what each durable piece of a turn begins with


def _answer() -> bytes:
    deltas: list[tuple[dict[str, str], str | None]] = [({"content": f"word {n} "}, None) for n in range(20)]
    deltas.append(({}, "stop"))
    pieces = [{"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]} for delta, finish in deltas]
    return b"".join(b"data: " + json.dumps(piece).encode() + b"\n\n" for piece in pieces) + b"data: [DONE]\n\n"


class _Session:
    """A session that takes turns, and what each of them took.

    Units: wall and cpu are seconds of each turn, of the whole process; body is the bytes of the last request.
    """

    def __init__(self, root: Path) -> None:
        self.wall: list[float] = []
        self.cpu: list[float] = []
        self.body = b""
        self._root = root
        self._answer = _answer()

    async def open(self) -> None:
        """Begin the session."""
        self._root.mkdir()
        root = str(self._root)
        flags = Flags(provider="openai", model="m-small", base_url="http://127.0.0.1:9/v1", session_root=root, cwd=root)
        self._assembled = await assemble(from_environment({}, flags), transport=httpx.MockTransport(self._reply))
        self.path = self._assembled.writer.path

    async def turn(self) -> None:
        """One prompt, up to idle."""
        message = Message(MessageId(f"message-{len(self.wall)}"), "user", (TextBlock("go on"),), UserSource())
        wall, cpu = time.perf_counter(), time.process_time()
        self._assembled.agent.followup(message)
        await self._assembled.agent.when_idle()
        self.wall.append(time.perf_counter() - wall)
        self.cpu.append(time.process_time() - cpu)

    async def close(self) -> None:
        """End the session."""
        await self._assembled.close()

    def _reply(self, request: httpx.Request) -> httpx.Response:
        self.body = request.content
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=self._answer)


async def _turns(root: Path, count: int) -> tuple[_Session, _Session, float]:
    """A long session, a fresh one, and by how many MiB the long one made the process grow.

    Shape: the last turns of the long one and the first of the fresh one are taken in turns, so that other load on the
    machine hits both alike; what a first turn of the process has to load was loaded by the long one.
    """
    long, fresh = _Session(root / "long"), _Session(root / "fresh")
    before = resident_mib() if sys.platform == "linux" else 0.0
    await long.open()
    for _ in range(count - _COMPARED):
        await long.turn()
    grew = resident_mib() - before if sys.platform == "linux" else 0.0
    await fresh.open()
    for _ in range(_COMPARED):
        await fresh.turn()
        await long.turn()
    await fresh.close()
    await long.close()
    return long, fresh, grew


def _copying(body: bytes) -> float:
    """Seconds to put the bytes of a body together once: the one part of a turn that grows with the session."""
    kept = bytearray(body)
    times: list[float] = []
    for _ in range(20):
        before = time.process_time()
        b"".join((b"{", kept, b"}"))
        times.append(time.process_time() - before)
    return statistics.median(times)


@dataclass(frozen=True, slots=True)
class _Cost:
    """Seconds of wall time and of CPU time."""

    wall: float
    cpu: float


class _Floors:
    """What a turn cannot do without, done alone."""

    def __init__(self, root: Path) -> None:
        self._answer = _answer()
        self._file = (root / "floor").open("ab", buffering=0)
        transport = httpx.MockTransport(self._reply)
        self._client = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:9/v1")

    def write(self, pieces: list[list[object]]) -> _Cost:
        """Encode, write and sync the lines of each piece."""
        wall, cpu = time.perf_counter(), time.process_time()
        for piece in pieces:
            self._file.write(b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in piece))
            os.fsync(self._file.fileno())
        return _Cost(time.perf_counter() - wall, time.process_time() - cpu)

    async def exchange(self, body: bytes) -> _Cost:
        """Send a body and parse what is streamed back."""
        wall, cpu = time.perf_counter(), time.process_time()
        async with self._client.stream("POST", "/chat/completions", content=body) as response:
            async for line in response.aiter_lines():
                if line.startswith("data: {"):
                    json.loads(line[6:])
        return _Cost(time.perf_counter() - wall, time.process_time() - cpu)

    async def close(self) -> None:
        """Let go of the file and the client."""
        self._file.close()
        await self._client.aclose()

    def _reply(self, _request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=self._answer)


def _pieces(lines: bytes) -> list[list[object]]:
    """The lines of one turn in the pieces the loop makes durable: before its step, before the request, before idle."""
    pieces: list[list[object]] = []
    for line in map(json.loads, lines.splitlines()):
        if len(pieces) < len(_PIECES) and line["type"] == _PIECES[len(pieces)]:
            pieces.append([])
        pieces[-1].append(line)
    return pieces


async def _against_floors(root: Path, turns: int) -> list[Row]:
    """Turns of a session, each followed by its floors, so that disk and other load hit all three alike."""
    session, floors = _Session(root / "sampled"), _Floors(root)
    await session.open()
    await session.turn()  # the first one logs the request's header and loads what a process needs once
    writes: list[_Cost] = []
    exchanges: list[_Cost] = []
    size = 0
    for _ in range(turns):
        start = session.path.stat().st_size
        await session.turn()
        lines = session.path.read_bytes()[start:]
        size += len(lines)
        writes.append(floors.write(_pieces(lines)))
        exchanges.append(await floors.exchange(session.body))
    await session.close()
    await floors.close()
    wall, cpu = session.wall[1:], session.cpu[1:]
    both = [write.cpu + exchange.cpu for write, exchange in zip(writes, exchanges, strict=True)]
    subject = "loop: one turn, 20 chunks, log on disk"
    return [
        Row(
            f"{subject}, wall time",
            "the same writes alone",
            statistics.median(wall),
            statistics.median(write.wall for write in writes),
            f"{size // turns} bytes a turn",
        ),
        Row(
            f"{subject}, CPU time",
            "the same writes and the bare exchange",
            statistics.median(cpu),
            statistics.median(both),
            f"writes {statistics.median(write.cpu for write in writes) * 1e3:.2f} ms of it",
        ),
    ]


def measure(*, sizes: str) -> list[Row]:
    """The median turn against its floors, the last hundred turns of a long session against the first, and its memory.

    Units: 2,000 turns, 300 when sizes is quick and 10,000 when it is full.
    """
    turns = {"quick": 300, "full": 10_000}.get(sizes, 2_000)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        long, fresh, grew_mib = asyncio.run(_turns(root, turns))
        payload_mib = long.path.stat().st_size / (1 << 20)
        rows = asyncio.run(_against_floors(root, min(turns, _SAMPLED)))
    wall, cpu = statistics.median(long.wall[-_COMPARED:]), statistics.median(long.cpu[-_COMPARED:])
    last = f"last {_COMPARED} of {turns:,} turns"
    first = f"the first {_COMPARED} of a fresh session"
    rows += [
        Row(f"loop: {last}, wall time", first, wall, statistics.median(fresh.wall)),
        Row(f"loop: {last}, CPU time", first, cpu, statistics.median(fresh.cpu)),
        Row(
            f"loop: {last}, CPU time",
            "copying the last body once",
            cpu,
            _copying(long.body),
            f"{len(long.body) / 1e6:.1f} MB in the last body",
        ),
    ]
    if sys.platform == "linux":
        note = f"{grew_mib * 1024 / turns:.1f} KiB a turn"
        rows.append(Row(f"loop: memory of {turns:,} turns", "the log on disk", grew_mib, payload_mib, note, "MiB"))
    return rows
