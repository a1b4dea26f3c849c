"""A command whose standard output or error is closed, or not read, does its work and says nothing about it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

PATH_OF_CHILDREN = os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), str(Path(__file__).parents[3])])
ENVIRONMENT = {**os.environ, "PYTHONPATH": PATH_OF_CHILDREN}


def command(*arguments: str) -> str:
    return " ".join([sys.executable, "-m", "mock_provider", *arguments])


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "plain.yaml"
    path.write_text("version: 1\nsteps:\n  - {reply: hi, optional: true}\n", encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("arguments", "closed"),
    [
        *((("check",), closed) for closed in (">&-", "2>&-", ">&- 2>&-", "| true", "2>/dev/full")),
        *((arguments, "| true") for arguments in (("check", "--format", "json"), ("schema",), ("new",))),
    ],
    ids=str,
)
def test_a_closed_stream_makes_no_noise(script: str, arguments: tuple[str, ...], closed: str) -> None:
    more = [script] if arguments[0] == "check" else []
    ended = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f"{command(*arguments, *more)} {closed}"],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        check=False,
        timeout=60,
    )
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize("arguments", [("check",), ("schema",), ("new",)], ids=str)
def test_an_answer_that_does_not_fit_is_told_and_exits_1(script: str, arguments: tuple[str, ...]) -> None:
    more = [script] if arguments[0] == "check" else []
    ended = subprocess.run(
        ["bash", "-c", f"{command(*arguments, *more)} >/dev/full"],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        check=False,
        timeout=60,
    )
    told = "standard output: not everything could be written: No space left on device [OUTPUT]"
    assert (ended.returncode, ended.stderr.splitlines()[0], "Traceback" in ended.stderr) == (1, told, False)


def test_what_a_stream_cannot_spell_is_escaped_and_not_left_out(tmp_path: Path) -> None:
    path = tmp_path / "na\u00efve \u2026.yaml"
    path.write_text("version: 1\nsteps: [{reply: hi}]\n", encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, "-m", "mock_provider", "check", str(path)],
        capture_output=True,
        env={**ENVIRONMENT, "PYTHONIOENCODING": "ascii"},
        check=False,
        timeout=60,
    )
    assert ended.stdout.splitlines()[0] == f"{tmp_path}/na\\xefve \\u2026.yaml: ok: 1 conversation, 1 step".encode(
        "ascii"
    )


@pytest.mark.parametrize("how", ["closed", "unread"])
def test_serve_goes_on_without_a_reader(script: str, tmp_path: Path, how: str) -> None:
    ready = tmp_path / "ready.json"
    reading, writing = os.pipe()
    os.close(reading)
    closed = " >&-" if how == "closed" else ""
    started = command("serve", script, "--ready-file", str(ready))
    with subprocess.Popen(
        ["bash", "-c", f"exec {started}{closed}"], stdout=writing, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT
    ) as process:
        os.close(writing)
        while not ready.exists():
            assert process.poll() is None
            os.sched_yield()
        root = json.loads(ready.read_text(encoding="utf-8"))["root"]
        assert httpx.get(f"{root}/__mock__/health").json()["ok"] is True
        process.terminate()
        _, told = process.communicate(timeout=30)
    assert (process.returncode, "Traceback" in told, "BrokenPipe" in told) == (0, False, False)
