"""One run of a scope inside a copy, by the lane command itself, and what its evidence says.

Room: `lanes.breakits` comes in, from several threads. It starts processes; a run ends with everything it started.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import lanes
from lanes.breakits_copy import Copy
from lanes.breakits_supervisor import LIMIT_MET
from lanes.bundle import bundle_folder
from lanes.bundle_reading import read_bundle
from lanes.reach import HITS_FILE, REACH_VARIABLE, WATCH_FILE
from lanes.record import Verdict

_SUPERVISOR = Path(__file__).with_name("breakits_supervisor.py")
_KEPT = frozenset({"HOME", "LANG", "LANGUAGE", "LD_LIBRARY_PATH", "PATH", "TERM", "TZ", "VIRTUAL_ENV"})
_LAST_LINES = 3
_WORDS: tuple[Verdict, ...] = ("failed", "passed", "blocked", "not run")


@dataclass(frozen=True, slots=True)
class ScopeRun:
    """What one run of a scope showed.

    Shape: verdicts and failures go by item id; problem is why the items could not be judged at all, in one line;
    hits are the watched lines that were executed, by file.
    """

    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)
    breaches: tuple[str, ...] = ()
    problem: str = ""
    is_hung: bool = False
    hits: Mapping[str, frozenset[int]] = field(default_factory=dict)

    @property
    def passed(self) -> frozenset[str]:
        """The items that passed."""
        return frozenset(item for item, verdict in self.verdicts.items() if verdict == "passed")

    @property
    def words(self) -> str:
        """The counts in words, as in `1 failed, 81 passed`."""
        if self.is_hung:
            return "hung"
        counts = [(sum(1 for each in self.verdicts.values() if each == word), word) for word in _WORDS]
        return ", ".join(f"{count} {word}" for count, word in counts if count) or "nothing ran"


class Processes:
    """The supervisors that run now, so that an interruption can end them all."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._is_stopped = False

    def run(self, command: Sequence[str], copy: Copy, variables: Mapping[str, str], output: Path) -> int:
        """Run a command to its end with its output in a file, and return its exit code."""
        with output.open("wb") as file:
            with self._lock:
                if self._is_stopped:
                    raise InterruptedError("the proofs were stopped")
                process = subprocess.Popen(
                    command,
                    cwd=copy.root,
                    env=dict(variables),
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
                self._running.add(process)
            try:
                return process.wait()
            finally:
                with self._lock:
                    self._running.discard(process)

    def stop(self) -> None:
        """End what runs, and start nothing more."""
        with self._lock:
            self._is_stopped = True
            running = tuple(self._running)
        for process in running:
            process.terminate()
        for process in running:
            process.wait()


def build_variables(environ: Mapping[str, str], copy: Copy) -> dict[str, str]:
    """The environment of everything that runs in a copy: few things of ours, and paths that lead to the copy alone.

    Shape: a copy that does not hold the lanes themselves, because its project has them installed, is given ours last.
    """
    kept = {name: value for name, value in environ.items() if name in _KEPT or name.startswith("LC_")}
    holds_lanes = (copy.root / "lanes" / "__init__.py").is_file()
    paths = [copy.root] if holds_lanes else [copy.root, Path(lanes.__file__).parents[1]]
    return kept | {
        "PYTHONPATH": os.pathsep.join(str(path) for path in paths),
        "PYTHONPYCACHEPREFIX": str(copy.bytecode),
        "PYTHONHASHSEED": "0",
        "TMPDIR": str(copy.temporary),
        "CI": "true",  # property tests then draw the same examples in every run
    }


def run_scope(
    processes: Processes,
    copy: Copy,
    variables: Mapping[str, str],
    *,
    lane: str,
    scope: Sequence[str],
    limit_s: float,
    out: Path,
    watch: Mapping[str, frozenset[int]] | None = None,
    items: Sequence[str] = (),
    reads: bool = False,
) -> ScopeRun:
    """Run a scope in a copy with its own lane and read the evidence.

    Shape: watch asks for the lines of some files that items execute, with reads for the files that they read.
    """
    out.mkdir(parents=True)
    environment = dict(variables)
    if watch:
        lines = {name: sorted(numbers) for name, numbers in watch.items()}
        document = {
            "root": str(copy.root),
            "lines": lines,
            "items": sorted(items),
            "reads": sorted(lines) if reads else [],
        }
        (out / WATCH_FILE).write_text(json.dumps(document), "utf-8")
        environment[REACH_VARIABLE] = str(out)
    evidence, output = out / "evidence", out / "output.txt"
    lane_command = [sys.executable, "-m", "lanes", "run", lane, "--out", str(evidence), "--root", str(copy.root)]
    lane_command.append("--no-board")  # which would take a fifth of the time of a small scope
    command = [sys.executable, "-I", "-S", str(_SUPERVISOR), str(limit_s), *lane_command, "--", *scope]
    code = processes.run(command, copy, environment, output)
    return _read(bundle_folder(evidence, lane), output, code, _hits(out / HITS_FILE))


def _read(folder: Path, output: Path, code: int, hits: Mapping[str, frozenset[int]]) -> ScopeRun:
    if code == LIMIT_MET:
        return ScopeRun(is_hung=True, problem="the time limit was met", hits=hits)
    bundle = read_bundle(folder)
    last = _last_lines(output)
    if bundle.trailer is None or bundle.problems:
        told = bundle.problems[0].text if bundle.problems else "no trailer"
        return ScopeRun(problem=f"it left no whole evidence ({told}), exit {code}: {last}", hits=hits)
    not_loaded = bundle.trailer.extra.get("not_loaded")
    if isinstance(not_loaded, Mapping) and not_loaded:
        told = "; ".join(f"{name}: {why}" for name, why in sorted(not_loaded.items()))
        return ScopeRun(problem=f"tests could not be loaded: {told:.400}", hits=hits)
    if not bundle.records:
        return ScopeRun(problem=f"nothing was collected, exit {code}: {last}", hits=hits)
    return ScopeRun(
        verdicts={record.node_id: record.verdict for record in bundle.records},
        failures={record.node_id: record.failure or record.reason_text for record in bundle.records},
        breaches=bundle.trailer.breaches,
        hits=hits,
    )


def _hits(path: Path) -> dict[str, frozenset[int]]:
    if not path.is_file():
        return {}
    found: dict[str, set[int]] = {}
    for line in path.read_text("utf-8").splitlines():
        hit = json.loads(line)
        found.setdefault(hit["file"], set()).add(hit["line"])
    return {name: frozenset(lines) for name, lines in found.items()}


def _last_lines(output: Path) -> str:
    lines = [line.strip() for line in output.read_text("utf-8", "replace").splitlines() if line.strip()]
    return " / ".join(lines[-_LAST_LINES:])[:400]
