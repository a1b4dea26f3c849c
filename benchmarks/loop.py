"""What one turn of the loop costs with an in-process model and the log on disk, against the writes it must make."""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import tempfile
import time
from pathlib import Path

import httpx

from benchmarks.timing import Row
from harness.assemble import assemble
from harness.model.messages import Message, MessageId, TextBlock, UserSource
from harness.settings import Flags, from_environment

_BARRIERS = 3  # durable points of a turn without tools: before its step, before the request, before idle is announced


def _answer() -> bytes:
    pieces = [{"choices": [{"index": 0, "delta": {"content": f"word {n} "}, "finish_reason": None}]} for n in range(20)]
    pieces.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    return b"".join(b"data: " + json.dumps(piece).encode() + b"\n\n" for piece in pieces) + b"data: [DONE]\n\n"


async def _turns(root: Path, count: int) -> tuple[list[float], Path]:
    body = _answer()
    headers = {"content-type": "text/event-stream"}
    transport = httpx.MockTransport(lambda _request: httpx.Response(200, headers=headers, content=body))
    flags = Flags(
        provider="openai", model="m-small", base_url="http://127.0.0.1:9/v1", session_root=str(root), cwd=str(root)
    )
    assembled = await assemble(from_environment({}, flags), transport=transport)
    times: list[float] = []
    for number in range(count):
        before = time.perf_counter()
        assembled.agent.followup(Message(MessageId(f"message-{number}"), "user", (TextBlock("go on"),), UserSource()))
        await assembled.agent.when_idle()
        times.append(time.perf_counter() - before)
    path = assembled.writer.path
    await assembled.close()
    return times, path


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


def measure(*, quick: bool) -> list[Row]:
    """The median turn against its writes, and the last hundred turns of a long session against the first.

    Units: seconds of wall time a turn, since a turn waits for the disk; quick runs 300 turns instead of 2,000.
    """
    turns = 300 if quick else 2_000
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        times, path = asyncio.run(_turns(root, turns))
        payload = path.read_bytes()
        floor = _write_alone(root, payload, turns)
    first, last = statistics.median(times[:100]), statistics.median(times[-100:])
    size = f"{len(payload) // turns} bytes a turn"
    return [
        Row("loop: one turn, 20 chunks, log on disk", "the same writes alone", statistics.median(times), floor, size),
        Row(f"loop: last 100 of {turns:,} turns", "the first 100", last, first),
    ]
