"""A tiny project with lanes of its own, run by the real command in a child process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from lanes.bundle import Bundle, bundle_folder
from lanes.bundle_reading import read_bundle
from lanes.record import Record

REPOSITORY = Path(__file__).parents[3]
OUTER_MARKS = ("LANE_MARK", "TOX_ENV_NAME", "LANE_WORKERS", "CI", "COLUMNS")  # the last one decides where lines break


@dataclass(frozen=True, slots=True)
class Ended:
    """How one run of a command ended."""

    exit_code: int
    stdout: str
    stderr: str


@dataclass(frozen=True, slots=True)
class Project:
    """A folder with `lanes/<lane>/` suites; its tests are written by the test that uses it."""

    root: Path

    def write(self, path: str, text: str) -> Path:
        """Write a file, with its folders."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")
        return target

    def environ(self) -> dict[str, str]:
        """Return our own environment without the marks of the lane we run in."""
        inherited = {name: value for name, value in os.environ.items() if name not in OUTER_MARKS}
        paths = os.pathsep.join(filter(None, [inherited.get("PYTHONPATH"), str(REPOSITORY)]))
        return {**inherited, "PYTHONPATH": paths}

    def start(self, *arguments: str, **variables: str) -> subprocess.Popen[str]:
        """Start `lanes` with these arguments and these variables on top of ours."""
        return subprocess.Popen(
            [sys.executable, "-m", "lanes", *arguments],
            cwd=self.root,
            env={**self.environ(), **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, **variables: str) -> Ended:
        """Run `lanes` to its end."""
        with self.start(*arguments, **variables) as process:
            try:
                stdout, stderr = process.communicate(timeout=110)
            finally:
                process.kill()
        return Ended(process.returncode, stdout, stderr)

    def bundle(self, lane: str, index: int = 1, total: int = 1) -> Bundle:
        """Read the bundle that a run left."""
        return read_bundle(bundle_folder(self.root / "reports" / "out", lane, index, total))

    def records(self, lane: str) -> dict[str, Record]:
        """Return the records of a lane's bundle by the name of their test."""
        return {record.node_id.partition("::")[2]: record for record in self.bundle(lane).records}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """An empty project."""
    return Project(tmp_path)


@pytest.fixture(scope="module")
def make_project(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Project]:
    """Make projects that several tests of a file look at."""
    return lambda name: Project(tmp_path_factory.mktemp(name))
