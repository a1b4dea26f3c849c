"""What folding a large board costs, read from bundles and written in every form: `python -m benchmarks board`.

Each size is measured in a process of its own, because memory that was used once is not given back.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.timing import Row
from lanes.bundle import BundleHeader, BundleTrailer, ExpectedItem, bundle_folder, next_digest, start_digest
from lanes.record import Attempt, JsonObject, Record, Shard, Subject, encode_record
from reports.output import build_reports

LANES = ("unit", "snapshot", "replay", "offline")
SHARDS = 4
_SUBJECT = Subject(commit="4" * 40, tree="5" * 40, lock_digest="sha256:1", loop_digest="sha256:2", python="CPython 3")
_GUARD: JsonObject = {"depth": "D3", "canary_start": "refused", "canary_end": "refused", "refusals": []}
_WALL_S, _PEAK_MIB = 60.0, 1024.0  # the budget for the largest size that is measured by default


def measure(*, sizes: str) -> list[Row]:
    """Fold 5,000 claims and 200,000 records, a tenth of that when sizes is quick."""
    claims, records = (500, 20_000) if sizes == "quick" else (5_000, 200_000)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        size_mb = _write(root, claims, records) / 1e6
        command = [sys.executable, "-m", "benchmarks.board", str(root)]
        told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    name = f"board: {claims:,} claims, {records:,} records"
    note = f"{size_mb:.0f} MB of records, {told['wall_s']:.1f} s by the clock, {told['cells']}"
    return [
        Row(name, "json.loads of the same lines", told["cpu_s"], told["parse_s"], note),
        Row(f"{name}, by the clock", "the budget of a minute", told["wall_s"], _WALL_S),
        Row(f"{name}, peak memory", "the budget of 1 GiB", told["peak_mib"], _PEAK_MIB, unit="MiB"),
    ]


def _write(root: Path, claims: int, records: int) -> int:
    """Lay the bundles of every lane as their shards would have left them, and return the size of their records."""
    (root / "lanes").mkdir()
    tables = (
        f'[[claim]]\nid = "claim.number-{number}"\nsentence = "Sentence {number} holds."\nsurface = "all"\n'
        f'required = ["unit", "snapshot", "replay", "offline"]\nowner = "core"\n'
        for number in range(claims)
    )
    (root / "lanes" / "claims.toml").write_text('schema = "claims/1"\n\n' + "\n".join(tables), "utf-8")
    size = 0
    for lane in LANES:
        names = [
            (
                f"lanes/{lane}/room_{number % 97}/test_file_{number % 997}.py::test_the_edge_number_{number}",
                number % claims,
            )
            for number in range(records // len(LANES))
        ]
        expected = tuple(ExpectedItem(node, (f"claim.number-{claim}",)) for node, claim in names)
        for index in range(1, SHARDS + 1):
            size += _write_shard(root, lane, index, names[index - 1 :: SHARDS], expected)
    return size


def _write_shard(
    root: Path, lane: str, index: int, names: list[tuple[str, int]], expected: tuple[ExpectedItem, ...]
) -> int:
    header = BundleHeader(
        lane=lane,
        run_id="run",
        subject=_SUBJECT,
        shard_index=index,
        shard_total=SHARDS,
        expected=expected,
        selected=tuple(node for node, _claim in names),
        lane_mark=lane,
        tox_env=lane,
        guard_depth="D3",
        canary_start="refused",
        started_at="2031-03-04T02:00:00Z",
    )
    folder = bundle_folder(root, lane, index, SHARDS)
    folder.mkdir(parents=True)
    chain = start_digest(header)
    with (folder / "records.jsonl").open("wb") as file:
        for node, claim in names:
            line = encode_record(_record(lane, node, claim, index))
            chain = next_digest(chain, line)
            file.write(line + b"\n")
    trailer = BundleTrailer("run", len(names), chain, "refused")
    (folder / "header.json").write_text(json.dumps(header.to_json()), "ascii")
    (folder / "trailer.json").write_text(json.dumps(trailer.to_json()), "ascii")
    return (folder / "records.jsonl").stat().st_size


def _record(lane: str, node: str, claim: int, index: int) -> Record:
    is_red = claim % 400 == 7
    verdict = "failed" if is_red else "passed"
    answers = tuple({"ordinal": n, "channel": "loopback", "class": "scripted", "status": 200} for n in (1, 2))
    return Record(
        lane=lane,
        node_id=node,
        run_id="run",
        verdict=verdict,  # type: ignore[arg-type]  # one of the two words above
        subject=_SUBJECT,
        shard=Shard(index, SHARDS, "gw0"),
        claim_ids=(f"claim.number-{claim}",),
        attempts=(Attempt(1, verdict, 12, 2),),  # type: ignore[arg-type]  # the same word
        duration_ms=12,
        failure="E  assert 1 == 2\n" * 20 if is_red else None,
        answers=answers,
        guard=_GUARD,
        script={"script_id": "story", "entries": 2, "consumed": 2, "unmatched": 0},
    )


def _lines(root: Path) -> float:
    """CPU seconds for parsing every record alone."""
    before = time.process_time()
    for path in sorted(root.rglob("records.jsonl")):
        with path.open("rb") as file:
            for line in file:
                json.loads(line)
    return time.process_time() - before


def main(root: Path) -> None:
    """Fold and write the board of a folder, and print what it took as JSON."""
    parse_s = _lines(root)
    started, before = time.monotonic(), time.process_time()
    board, _code = build_reports(root, root, datetime(2031, 3, 7, tzinfo=UTC), subject=_SUBJECT)
    told = {
        "parse_s": parse_s,
        "cpu_s": time.process_time() - before,
        "wall_s": time.monotonic() - started,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "cells": ", ".join(f"{path.stat().st_size / 1e6:.0f} MB {path.name}" for path in sorted(root.glob("board.*"))),
    }
    assert len(board.rows) > 0
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
