"""What the session log costs, against parsing or writing the same bytes alone."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

from benchmarks.memory import kept_by
from benchmarks.sessions import KINDS, SESSION, clock, fill, header, resume_session, store_session
from benchmarks.timing import Row, compare
from harness.log.session_log import SessionLog
from harness.log.store import SessionStore
from harness.model.chunks import TextDelta

_LARGE = 1_000_000


def measure(*, sizes: str) -> list[Row]:
    """Append, store, load and resume a session, each beside its floor, and what a loaded one keeps in memory.

    Shape: one session of streamed text, which is stored packed, and one of small events, which is not.
    Units: 10,000 events, then 100,000 unless sizes is quick, and 1,000,000 when it is full.
    """
    counts = {"quick": (10_000,), "full": (10_000, 100_000, _LARGE)}.get(sizes, (10_000, 100_000))
    rows: list[Row] = []
    for events in counts:
        for kind in KINDS:
            with tempfile.TemporaryDirectory() as folder:
                rows += _measure(Path(folder), kind, events)
    return rows


def _measure(root: Path, kind: str, events: int) -> list[Row]:
    path = store_session(root, kind, events)
    lines = path.read_bytes().splitlines()
    size = f"{path.stat().st_size / 1e6:.1f} MB on disk"
    name = f"{events:,} {kind} events"
    rounds = 1 if events >= _LARGE else 3

    def parse() -> None:
        for line in lines:
            json.loads(line)

    def parse_and_keep() -> None:
        kept = [json.loads(line) for line in lines]
        del kept

    def load() -> None:
        SessionStore(root, clock=clock).inspect(SESSION)

    def append() -> None:
        fill(SessionLog(header(), clock=clock), kind, events)

    def collect() -> None:
        kept: list[tuple[int, object]] = []
        for seq in range(events):
            kept.append((seq, TextDelta(0, f"piece {seq} of a sentence ")))

    def store() -> None:
        with tempfile.TemporaryDirectory(dir=root) as inner:
            store_session(Path(inner), kind, events)

    def write() -> None:
        file = root / "floor"
        with file.open("wb") as stream:
            for value in values:
                stream.write(json.dumps(value, separators=(",", ":")).encode() + b"\n")
            os.fsync(stream.fileno())
        file.unlink()

    rows = [
        compare(f"log: load {name}", "json.loads of the same lines", load, parse, rounds=rounds, note=size),
        compare(f"log: load {name}", "json.loads, every value kept", load, parse_and_keep, rounds=rounds),
        compare(
            f"log: resume {name}", "json.loads of the same lines", lambda: resume_session(root), parse, rounds=rounds
        ),
    ]
    if sys.platform == "linux":
        kept, parsed = kept_by("log", path), kept_by("lines", path)
        note = f"{kept * (1 << 20) / events:.0f} bytes an event"
        rows.append(Row(f"log: memory of {name}", "the parsed lines", kept, parsed, note, "MiB"))
    if events < _LARGE:
        values = tuple(json.loads(line) for line in lines)
        rows += [
            compare(f"log: append {name} in memory", "a list of as many objects", append, collect, rounds=3),
            compare(f"log: append and store {name}", "json.dumps and write of the same lines", store, write, rounds=3),
        ]
    return rows
