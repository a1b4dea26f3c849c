"""Standard output of each assembled program: what belongs to it, whoever else prints, writes, logs or ends late."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lanes.unit.surfaces.scripted import Script, say, served

ROOT = Path(__file__).parents[3]
# Strangers in the program's own process: before it starts, while it serves, when it has ended, and at its exit.
LOUD = """
import atexit, ctypes, logging, os, subprocess, sys
from harness import cli
from harness.loop.agent import Agent

logging.basicConfig(level=logging.DEBUG, stream=sys.stdout)
atexit.register(print, "at exit")

def noise(self, message, followup=Agent.followup):
    print("printed")
    os.write(1, b"descriptor\\n")
    subprocess.run(["echo", "child"], check=True)
    ctypes.CDLL(None).puts(b"library")
    sys.__stdout__.write("original\\n")
    logging.getLogger("neighbour").debug("logged")
    followup(self, message)

Agent.followup = noise
code = cli.main()
loggers = [logging.root, *map(logging.getLogger, list(logging.root.manager.loggerDict))]
own = [one.name for one in loggers if one.handlers and one is not logging.root]
sys.stderr.write(f"handlers {own}\\n")
sys.exit(code)
"""
NOISE = ("printed", "descriptor", "child", "library", "original", "DEBUG:neighbour:logged")
SPOKEN = {
    "run": [],
    "sdk": [
        ("initialize", {"cwd": ".", "provider": "openai", "model": "m"}),
        ("session/prompt", {"sessionId": "s", "contentBlocks": [{"type": "text", "text": "task"}]}),
    ],
    "acp": [("initialize", {"protocolVersion": 1}), ("session/new", {"cwd": "/", "mcpServers": []})],
}


def started(program: str, folder: Path, base_url: str) -> subprocess.Popen[bytes]:
    """The program with its strangers, on three pipes."""
    own = {"HOME": str(folder), "HARNESS_SESSION_ROOT": str(folder / "sessions"), "HARNESS_BASE_URL": base_url}
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("HARNESS_", "OPENAI_"))}
    inherited.pop("PYTHONUNBUFFERED", None)
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "-c", LOUD, program, *(["task"] if program == "run" else [])],
        cwd=folder,
        env={**inherited, **own, "PYTHONPATH": path},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def talk(process: subprocess.Popen[bytes], program: str) -> list[Any]:
    """Speak to it frame by frame until its one turn is over; every line of its output."""
    lines: list[Any] = []
    assert process.stdin is not None
    assert process.stdout is not None

    def ask(method: str, params: Any) -> Any:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps({"id": len(lines) + 1, "method": method, "params": params}).encode() + b"\n")
        process.stdin.flush()
        for line in process.stdout:
            lines.append(json.loads(line))
            if "result" in lines[-1]:
                return lines[-1]["result"]
        raise AssertionError(f"{method} was not answered")

    answers = [ask(method, params) for method, params in SPOKEN[program]]
    if program == "acp":
        session = answers[-1]["sessionId"]
        ask("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "task"}]})
    while program == "sdk" and lines[-1].get("params", {}).get("status") != "idle":
        lines.append(json.loads(process.stdout.readline()))
    return lines


@pytest.mark.claim("transport.streams")
@pytest.mark.parametrize("program", SPOKEN)
def test_TR16_an_assembled_program_writes_what_is_its_own_whoever_else_prints_logs_or_ends_late(
    program: str, tmp_path: Path
) -> None:
    with served(Script([say("done")])) as base_url, started(program, tmp_path, base_url) as process:
        frames = talk(process, program)
        out, err = process.communicate(timeout=60)
    said = err.decode()

    rest = out.splitlines()
    assert rest == ([b"done"] if program == "run" else [])
    assert all(frame["jsonrpc"] == "2.0" for frame in frames)
    assert [word for word in (*NOISE, "at exit") if word not in said] == []
    assert (process.returncode, said.count("handlers []")) == (0, 1)
