"""What one turn of the loop costs with an in-process model and the log on disk, against the writes it must make."""

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

_BARRIERS = 3  # durable points of a turn without tools: before its step, before the request, before idle is announced


def _answer() -> bytes:
    pieces = [{"choices": [{"index": 0, "delta": {"content": f"word {n} "}, "finish_reason": None}]} for n in range(20)]
    pieces.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    return b"".join(b"data: " + json.dumps(piece).encode() + b"\n\n" for piece in pieces) + b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True)
class _Session:
    """What a session of many turns took.

    Units: wall and cpu are seconds of each turn, of the whole process; body is the bytes of its last request; grew_mib
    is by how much the process grew.
    """

    wall: list[float]
    cpu: list[float]
    body: bytes
    path: Path
    grew_mib: float


async def _turns(root: Path, count: int) -> _Session:
    answer = _answer()
    headers = {"content-type": "text/event-stream"}
    last: list[bytes] = [b""]

    def reply(request: httpx.Request) -> httpx.Response:
        last[0] = request.content
        return httpx.Response(200, headers=headers, content=answer)

    flags = Flags(
        provider="openai", model="m-small", base_url="http://127.0.0.1:9/v1", session_root=str(root), cwd=str(root)
    )
    before = resident_mib() if sys.platform == "linux" else 0.0
    assembled = await assemble(from_environment({}, flags), transport=httpx.MockTransport(reply))
    wall: list[float] = []
    cpu: list[float] = []
    for number in range(count):
        wall_before, cpu_before = time.perf_counter(), time.process_time()
        assembled.agent.followup(Message(MessageId(f"message-{number}"), "user", (TextBlock("go on"),), UserSource()))
        await assembled.agent.when_idle()
        wall.append(time.perf_counter() - wall_before)
        cpu.append(time.process_time() - cpu_before)
    grew = resident_mib() - before if sys.platform == "linux" else 0.0
    path = assembled.writer.path
    await assembled.close()
    return _Session(wall, cpu, last[0], path, grew)


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
        session = asyncio.run(_turns(root, turns))
        payload = session.path.read_bytes()
        floor = _write_alone(root, payload, turns)
    wall, cpu = session.wall, session.cpu
    size = f"{len(payload) // turns} bytes a turn"
    last = f"last 100 of {turns:,} turns"
    rows = [
        Row("loop: one turn, 20 chunks, log on disk", "the same writes alone", statistics.median(wall), floor, size),
        Row(f"loop: {last}, wall time", "the first 100", statistics.median(wall[-100:]), statistics.median(wall[:100])),
        Row(f"loop: {last}, CPU time", "the first 100", statistics.median(cpu[-100:]), statistics.median(cpu[:100])),
        Row(
            f"loop: {last}, CPU time",
            "copying the last body once",
            statistics.median(cpu[-100:]),
            _copying(session.body),
            f"{len(session.body) / 1e6:.1f} MB in the last body",
        ),
    ]
    if sys.platform == "linux":
        note = f"{session.grew_mib * 1024 / turns:.1f} KiB a turn"
        rows.append(
            Row(
                f"loop: memory of {turns:,} turns",
                "the log on disk",
                session.grew_mib,
                len(payload) / (1 << 20),
                note,
                "MiB",
            )
        )
    return rows
