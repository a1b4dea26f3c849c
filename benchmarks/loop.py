"""What one turn of the loop costs with an in-process model and the log on disk, against the writes it must make."""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import httpx

from benchmarks.memory import resident_mib
from benchmarks.timing import Row
from harness.assemble import assemble
from harness.model.messages import Message, MessageId, TextBlock, UserSource
from harness.settings import Flags, from_environment

_COMPARED = 100  # turns at each end of a session that are compared
_BARRIERS = 3  # durable points of a turn without tools: before its step, before the request, before idle is announced


def _answer() -> bytes:
    pieces = [{"choices": [{"index": 0, "delta": {"content": f"word {n} "}, "finish_reason": None}]} for n in range(20)]
    pieces.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
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


def _write_alone(root: Path, payload: bytes, turns: int) -> float:
    """Seconds a turn for writing the same bytes in as many durable pieces."""
    pieces = turns * _BARRIERS
    size = max(1, len(payload) // pieces)
    before = time.perf_counter()
    with (root / "floor").open("wb") as stream:
        for piece in range(pieces):
            stream.write(payload[piece * size : (piece + 1) * size])
            stream.flush()
            os.fsync(stream.fileno())
    return (time.perf_counter() - before) / turns


def measure(*, sizes: str) -> list[Row]:
    """The median turn against its writes, the last hundred turns of a long session against the first, and its memory.

    Units: 2,000 turns, 300 when sizes is quick and 10,000 when it is full.
    """
    turns = {"quick": 300, "full": 10_000}.get(sizes, 2_000)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        long, fresh, grew_mib = asyncio.run(_turns(root, turns))
        payload = long.path.read_bytes()
        floor = _write_alone(root, payload, turns)
    wall, cpu = statistics.median(long.wall[-_COMPARED:]), statistics.median(long.cpu[-_COMPARED:])
    last = f"last {_COMPARED} of {turns:,} turns"
    first = f"the first {_COMPARED} of a fresh session"
    rows = [
        Row(
            "loop: one turn, 20 chunks, log on disk",
            "the same writes alone",
            statistics.median(long.wall),
            floor,
            f"{len(payload) // turns} bytes a turn",
        ),
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
        size_mib, note = len(payload) / (1 << 20), f"{grew_mib * 1024 / turns:.1f} KiB a turn"
        rows.append(Row(f"loop: memory of {turns:,} turns", "the log on disk", grew_mib, size_mib, note, "MiB"))
    return rows
