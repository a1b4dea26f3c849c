"""Children that live one life of a session, for the tests of this folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import lanes
from lanes.crash_child import sessions_of, workspace_of

Start = Callable[..., "subprocess.Popen[str]"]


def environment() -> dict[str, str]:
    """The environment of a child that finds the packages under test."""
    places = [str(Path(lanes.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, places))}


@pytest.fixture
def run_python() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the interpreter with these arguments and give what it printed."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *arguments]
        return subprocess.run(command, capture_output=True, text=True, env=environment(), check=False, timeout=100)

    return run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of one session."""
    sessions_of(tmp_path).mkdir()
    workspace_of(tmp_path).mkdir()
    return tmp_path


@pytest.fixture
def start(folder: Path) -> Iterator[Start]:
    """Start lives of one session; none outlives the test."""
    running: list[subprocess.Popen[str]] = []

    def begin(number: int, jobs: int, **options: Any) -> subprocess.Popen[str]:
        life = json.dumps({"folder": str(folder), "number": number, "jobs": jobs, **options})
        command = [sys.executable, "-m", "lanes.crash_child", life]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment())
        running.append(child)
        return child

    yield begin
    for child in running:
        child.kill()
        child.wait()
        assert child.stdout is not None
        child.stdout.close()
