"""How the servers end as processes: told to go by the terminal, kept up by nohup, with an input that cannot be read."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lanes.unit.surfaces.hangups import hear_hangups, ignore_hangups
from lanes.unit.surfaces.scripted import Script, say, served

ROOT = Path(__file__).parents[3]
HELLO = {
    "sdk": {"cwd": ".", "provider": "openai", "model": "m"},
    "acp": {"protocolVersion": 1},
}


@contextmanager
def program(
    folder: Path,
    base_url: str,
    *arguments: str,
    before: Callable[[], None] = hear_hangups,
    stdin: int = subprocess.PIPE,
) -> Iterator[subprocess.Popen[bytes]]:
    """The command as a process on three pipes."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HARNESS_", "OPENAI_"))}
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    own = {"HOME": str(folder), "HARNESS_SESSION_ROOT": str(folder / "sessions"), "HARNESS_BASE_URL": base_url}
    process = subprocess.Popen(
        [sys.executable, "-m", "harness", *arguments],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        env={**kept, **own, "PYTHONPATH": path},
        preexec_fn=before,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def send(process: subprocess.Popen[bytes], identity: int, method: str, params: Any) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps({"id": identity, "method": method, "params": params}).encode() + b"\n")
    process.stdin.flush()


def answer(process: subprocess.Popen[bytes], identity: int) -> Any:
    assert process.stdout is not None
    for line in process.stdout:
        frame = json.loads(line)
        if frame.get("id") == identity and "method" not in frame:
            return frame
    raise AssertionError(process.stderr.read() if process.stderr else "")


def open_turn(process: subprocess.Popen[bytes], wire: str, script: Script) -> None:
    """Have a turn run that waits for the model."""
    send(process, 1, "initialize", HELLO[wire])
    answer(process, 1)
    words = [{"type": "text", "text": "task"}]
    if wire == "sdk":
        send(process, 2, "session/prompt", {"sessionId": "s", "contentBlocks": words})
    else:
        send(process, 2, "session/new", {"cwd": "/", "mcpServers": []})
        session = answer(process, 2)["result"]["sessionId"]
        send(process, 3, "session/prompt", {"sessionId": session, "prompt": words})
    assert script.held.wait(60)


def last_reason(folder: Path) -> str:
    (log,) = (folder / "sessions").rglob("session.jsonl")
    ends = [row for row in map(json.loads, log.read_text().splitlines()) if row.get("type") == "turn/end"]
    return str(ends[-1]["data"]["reason"]["kind"])


@pytest.mark.parametrize("wire", ["sdk", "acp"])
def test_SV17_a_terminal_that_is_closed_ends_the_turn_in_the_log(wire: str, tmp_path: Path) -> None:
    script = Script([say("partial", hold=1)])
    with served(script) as base_url, program(tmp_path, base_url, wire) as process:
        open_turn(process, wire, script)
        process.send_signal(signal.SIGHUP)
        process.wait(60)  # with its input still open
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err, last_reason(tmp_path)) == (129, b"", "aborted")


@pytest.mark.parametrize("wire", ["sdk", "acp"])
def test_a_server_that_nohup_started_outlives_the_terminal(wire: str, tmp_path: Path) -> None:
    script = Script([say("partial", hold=1)])
    with served(script) as base_url, program(tmp_path, base_url, wire, before=ignore_hangups) as process:
        open_turn(process, wire, script)
        process.send_signal(signal.SIGHUP)
        send(process, 9, "initialize", HELLO[wire])
        served_on = "result" in answer(process, 9)
        script.gate.set()
        process.communicate(timeout=60)
    assert (served_on, process.returncode) == (True, 0)


def test_HL10_a_run_that_nohup_started_outlives_the_terminal(tmp_path: Path) -> None:
    script = Script([say("done", hold=1)])
    with served(script) as base_url, program(tmp_path, base_url, "run", "task", before=ignore_hangups) as process:
        assert script.held.wait(60)
        process.send_signal(signal.SIGHUP)
        script.gate.set()
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, b"done\n", b"")


@pytest.mark.parametrize("wire", ["sdk", "acp"])
def test_an_input_that_cannot_be_read_is_told_and_no_success(wire: str, tmp_path: Path) -> None:
    only_written = os.open(tmp_path / "written", os.O_WRONLY | os.O_CREAT)
    with program(tmp_path, "http://127.0.0.1:9/v1", wire, stdin=only_written) as process:
        _, err = process.communicate(timeout=60)
    os.close(only_written)
    assert (process.returncode, err.decode()) == (1, f"harness {wire}: the input cannot be read: bad file descriptor\n")


@pytest.mark.parametrize("wire", ["sdk", "acp"])
def test_AC29_a_client_that_stops_reading_for_good_ends_its_turn_although_nothing_is_written(
    wire: str, tmp_path: Path
) -> None:
    script = Script([say("partial", hold=0)])
    with served(script) as base_url, program(tmp_path, base_url, wire) as process:
        open_turn(process, wire, script)
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.wait(30)  # with its input still open, and its model silent
        err = process.stderr.read()
    told = f"harness {wire}: the output cannot be written: broken pipe [PIPE_CLOSED]\n"
    assert (process.returncode, err.decode(), last_reason(tmp_path)) == (0, told, "aborted")
