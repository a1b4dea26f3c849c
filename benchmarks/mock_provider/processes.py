"""Servers as processes of their own, and what they use."""

from __future__ import annotations

import compileall
import contextlib
import os
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import mock_provider

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Running:
    """A server. Shape: pid is None for one that somebody else started."""

    name: str
    port: int
    pid: int | None
    start_s: float = 0.0

    def cpu_s(self) -> float:
        """Seconds of CPU it has used in all its threads, children not counted.

        The scheduler counts every nanosecond; the older account adds a hundredth of a second to whoever runs when the
        clock ticks, which overlooks servers that answer and sleep.
        """
        if self.pid is None:
            return float("nan")
        threads = Path(f"/proc/{self.pid}/task").glob("*/schedstat")
        with contextlib.suppress(OSError, ValueError):
            counted = sum(int(thread.read_text("ascii").split()[0]) for thread in threads)
            if counted:
                return counted / 1e9
        fields = Path(f"/proc/{self.pid}/stat").read_text("ascii").rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def resident_mib(self) -> float:
        """How much memory it holds."""
        if self.pid is None:
            return float("nan")
        fields = dict(line.split(":", 1) for line in Path(f"/proc/{self.pid}/status").read_text("ascii").splitlines())
        return int(fields["VmRSS"].split()[0]) / 1024


def free_port() -> int:
    """A port that nobody uses now."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@contextlib.contextmanager
def started(name: str, command: list[str], port: int) -> Iterator[Running]:
    """Start a server and wait until its port is open. It keeps compiled what it imports, as an installed package is."""
    surroundings = {key: text for key, text in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    before = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=surroundings)
    try:
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            if process.poll() is not None or time.perf_counter() - before > 30:
                raise RuntimeError(f"{name} does not listen: {shlex.join(command)}")
            time.sleep(0.005)
        yield Running(name, port, process.pid, time.perf_counter() - before)
    finally:
        process.terminate()
        process.wait()


@contextlib.contextmanager
def ours(script: str, folder: Path, *options: str) -> Iterator[Running]:
    """Serve a script with the command."""
    compileall.compile_dir(str(Path(mock_provider.__file__).parent), quiet=1)
    path = folder / "script.json"
    path.write_text(script, encoding="utf-8")
    port = free_port()
    command = [sys.executable, "-m", "mock_provider", "serve", str(path), "--port", str(port), *options]
    with started("ours", command, port) as running:
        yield running


@contextlib.contextmanager
def floor() -> Iterator[Running]:
    """The bare responder."""
    port = free_port()
    with started("floor", [sys.executable, "-m", "benchmarks.mock_provider.floor", str(port)], port) as running:
        yield running


@contextlib.contextmanager
def peer(name: str, how: str) -> Iterator[Running]:
    """Another mock server: one that runs (`http://127.0.0.1:PORT`), or a command with `{port}` in it."""
    if how.startswith("http://"):
        yield Running(name, int(how.rstrip("/").rpartition(":")[2]), None)
        return
    port = free_port()
    with started(name, [part.replace("{port}", str(port)) for part in shlex.split(how)], port) as running:
        yield running


def parse_peers(given: list[str]) -> Mapping[str, str]:
    """Read `NAME=HOW` as it stands on the command line."""
    peers: dict[str, str] = {}
    for one in given:
        name, sign, how = one.partition("=")
        if not sign or not name or not how:
            raise SystemExit(f"--peer {one}: expected NAME=http://127.0.0.1:PORT or NAME=COMMAND with {{port}}")
        peers[name] = how
    return peers
