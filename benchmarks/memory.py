"""What a session keeps in memory, measured in a process of its own: `python -m benchmarks.memory WHAT FILE`."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from pathlib import Path

from benchmarks.sessions import SESSION, clock
from harness.log.store import SessionStore


def resident_mib() -> float:
    """How much memory this process holds now."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text("ascii").splitlines())
    return int(fields["VmRSS"].split()[0]) / 1024


def kept_by(what: str, path: Path) -> float:
    """MiB that a fresh process keeps after it read this file as that."""
    command = [sys.executable, "-m", "benchmarks.memory", what, str(path)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main(what: str, path: Path) -> None:
    """Read the file and print what that keeps; what was used only on the way has been given back."""
    gc.collect()
    before = resident_mib()
    kept: object
    if what == "log":
        kept = SessionStore(path.parents[2], clock=clock).inspect(SESSION)
    else:
        with path.open("rb") as file:
            kept = [json.loads(line) for line in file]
    gc.collect()
    sys.stdout.write(f"{resident_mib() - before}\n")
    del kept


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
