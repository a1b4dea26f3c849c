"""What taking in a batch of pictures costs, against decoding their base64 alone; and what a start of a server costs."""

from __future__ import annotations

import asyncio
import base64
import importlib.util
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

from benchmarks.timing import Row
from harness.log.attachments import AttachmentStore
from harness.surfaces.acp.content import read_prompt, uploads_of

_MIB = 1 << 20
_STARTS = 5
_PICTURE_BYTES = 4 * _MIB  # the store's own limit for one picture is above this; a batch has several


def measure(*, sizes: str = "") -> list[Row]:
    """Admission of 1, 5 and 100 MiB batches: wall time and CPU against decoding, and the memory it peaks at."""
    rows: list[Row] = []
    for mib in (1, 5) if sizes == "quick" else (1, 5, 100):
        rows += _measured_in_child(mib)
    rows += _starts()
    return rows


def _measured_in_child(mib: int) -> list[Row]:
    """One size in a process of its own, so that its peak of memory is its own."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.admission", str(mib)], capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    name = f"admission of {mib} MiB of pictures"
    return [
        Row(f"{name}, wall", "decoding their base64", found["wall_s"], found["decode_s"]),
        Row(f"{name}, CPU", "decoding their base64", found["cpu_s"], found["decode_cpu_s"]),
        Row(f"{name}, peak memory", "the pictures", found["peak_mib"], float(mib), unit="MiB"),
    ]


def _picture(number: int, size: int) -> bytes:
    """A PNG of about that size whose pixels do not shrink."""
    width = 1024
    height = max(1, size // (3 * width))
    noise = os.urandom(3 * width)
    rows = b"".join(b"\0" + noise[at % width :] + noise[: at % width] for at in range(height))
    header = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes([8, 2, 0, 0, 0])
    chunks = (b"IHDR" + header, b"tEXt" + b"n\0" + str(number).encode(), b"IDAT" + zlib.compress(rows, 0), b"IEND")
    framed = (len(c[4:]).to_bytes(4, "big") + c + zlib.crc32(c).to_bytes(4, "big") for c in (*chunks[:3], chunks[3]))
    return b"\x89PNG\r\n\x1a\n" + b"".join(framed)


async def _admit(store: AttachmentStore, batches: list[list[dict[str, str]]]) -> None:
    for blocks in batches:
        parts = read_prompt(blocks, may_hold_pictures=True)  # type: ignore[arg-type] # plain JSON
        await store.admit(uploads_of(parts))


def _run(mib: int) -> None:
    size = min(_PICTURE_BYTES, mib * _MIB)
    count = max(1, mib * _MIB // size)
    blocks = [
        {"type": "image", "mimeType": "image/png", "data": base64.b64encode(_picture(n, size)).decode()}
        for n in range(count)
    ]
    most = AttachmentStore(Path(tempfile.gettempdir())).limits
    per_batch = max(1, min(most.max_images, most.max_batch_bytes // (size + 65536)))
    batches = [blocks[at : at + per_batch] for at in range(0, count, per_batch)]
    before, cpu_before = time.perf_counter(), time.process_time()
    for block in blocks:
        base64.b64decode(block["data"])
    decode_s, decode_cpu_s = time.perf_counter() - before, time.process_time() - cpu_before
    with tempfile.TemporaryDirectory() as folder:
        wall, cpu = time.perf_counter(), time.process_time()
        asyncio.run(_admit(AttachmentStore(Path(folder)), batches))
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    found = {"wall_s": wall, "cpu_s": cpu, "decode_s": decode_s, "decode_cpu_s": decode_cpu_s, "peak_mib": peak}
    sys.stdout.write(json.dumps(found))


def _starts() -> list[Row]:
    """From the start of `harness acp` to its first answer, against importing the published package alone."""
    own = statistics.median(_first_answer() for _ in range(_STARTS))
    if importlib.util.find_spec("acp") is None:
        return [Row("harness acp, start to first answer", "itself", own, own, "the ACP package is not installed")]
    other = statistics.median(_bare_import() for _ in range(_STARTS))
    return [Row("harness acp, start to first answer", "importing the ACP package", own, other, "wall")]


def _first_answer() -> float:
    environ = {**os.environ, "OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "HARNESS_SESSION_ROOT": tempfile.gettempdir()}
    environ |= {"OPENAI_API_KEY": "none"}
    before = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-m", "harness", "acp"], env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b'{"id":1,"method":"initialize","params":{"protocolVersion":1}}\n')
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        took = time.perf_counter() - before
        process.stdin.close()
    assert answer["result"]["protocolVersion"] == 1
    return took


def _bare_import() -> float:
    before = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import acp"], check=True)
    return time.perf_counter() - before


if __name__ == "__main__":
    _run(int(sys.argv[1]))
