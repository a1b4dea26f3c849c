"""What the session log costs, against parsing or writing the same bytes alone."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from pathlib import Path

from benchmarks.timing import Row, compare
from harness.log.events import AssistantChunk, SessionHeader, StepEnd, StepStart, TurnEnd, TurnReason, TurnStart
from harness.log.session_log import SessionLog
from harness.log.store import SessionStore
from harness.model.chunks import BlockStart, TextDelta
from harness.model.messages import SessionId

_TURN = 200  # events in one turn of the sample session


def _clock() -> int:
    return 1_700_000_000_000


def _fill(log: SessionLog, events: int) -> None:
    """Append whole turns of streamed text until there are about that many events."""
    for turn in range(1, events // _TURN + 1):
        log.append(TurnStart(turn))
        log.append(StepStart(turn, 1))
        log.append(AssistantChunk(turn, 1, BlockStart(0, "text")))
        for piece in range(_TURN - 5):
            log.append(AssistantChunk(turn, 1, TextDelta(0, f"piece {piece} of a sentence ")))
        log.append(StepEnd(turn, 1))
        log.append(TurnEnd(turn, TurnReason("completed")))


def _header() -> SessionHeader:
    return SessionHeader(SessionId("bench"), created_at=_clock())


async def _store_session(root: Path, events: int) -> Path:
    writer = await SessionStore(root, clock=_clock).create(_header())
    _fill(writer.log, events)
    await writer.flush()
    await writer.close()
    return writer.path


def measure(*, quick: bool) -> list[Row]:
    """Append, store, load and resume a session, each beside its floor.

    Units: the sessions have 10,000 and 100,000 events; quick leaves out the larger one.
    """
    rows: list[Row] = []
    for events in (10_000,) if quick else (10_000, 100_000):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            path = asyncio.run(_store_session(root, events))
            lines = path.read_bytes().splitlines()
            payload = path.read_bytes()
            name = f"{events:,} events"

            def parse(lines: list[bytes] = lines) -> None:
                for line in lines:
                    json.loads(line)

            def load(root: Path = root) -> None:
                SessionStore(root, clock=_clock).inspect(SessionId("bench"))

            def resume(root: Path = root) -> None:
                async def open_and_close() -> None:
                    await (await SessionStore(root, clock=_clock).resume(SessionId("bench"))).close()

                asyncio.run(open_and_close())

            def append(events: int = events) -> None:
                _fill(SessionLog(_header(), clock=_clock), events)

            def collect(events: int = events) -> None:
                kept: list[tuple[int, object]] = []
                for seq in range(events):
                    kept.append((seq, TextDelta(0, f"piece {seq} of a sentence ")))

            def store(root: Path = root, events: int = events) -> None:
                with tempfile.TemporaryDirectory(dir=root) as inner:
                    asyncio.run(_store_session(Path(inner), events))

            values = tuple(json.loads(line) for line in lines)

            def write(root: Path = root, values: tuple[object, ...] = values) -> None:
                file = root / "floor"
                with file.open("wb") as stream:
                    for value in values:
                        stream.write(json.dumps(value, separators=(",", ":")).encode() + b"\n")
                    os.fsync(stream.fileno())
                file.unlink()

            size = f"{len(payload) / 1e6:.1f} MB on disk"
            rows += [
                compare(f"log: append {name} in memory", "a list of the same objects", append, collect, rounds=3),
                compare(
                    f"log: append and store {name}",
                    "json.dumps and write of the same lines",
                    store,
                    write,
                    rounds=3,
                    note=size,
                ),
                compare(f"log: load {name}", "json.loads of the same lines", load, parse, rounds=3),
                compare(f"log: resume {name}", "json.loads of the same lines", resume, parse, rounds=3),
            ]
    return rows
