"""The lane `real-local` from end to end, with a stand-in for the server of its model: it may die at any request."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from lanes.unit.lanes import local_stand_in
from lanes.unit.lanes.conftest import REPOSITORY, Ended, Project
from lanes.unit.lanes.stand_in import NOT_COPIED, PACKAGES, RUN_TIMEOUT_S
from reports.words import NO_HOSTED

STORIES = ("small.read-file", "small.remember", "small.run-command", "small.write-file")  # two requests each
NEVER = 0
OUTAGE = "blocked: provider not available"


def copy_project(root: Path, *, dies_at: int, speaks_first: bool = False) -> Project:
    """A copy of the project whose local model is the stand-in."""
    for package in PACKAGES:
        shutil.copytree(REPOSITORY / package, root / package, ignore=NOT_COPIED)
    shutil.copy(REPOSITORY / "pyproject.toml", root)
    shutil.copytree(REPOSITORY / "lanes" / "real", root / "lanes" / "real")
    shutil.copy(local_stand_in.__file__, root / "lanes" / "local_server.py")
    weights = json.dumps({"dies_at": dies_at, "speaks_first": speaks_first}).encode()
    (root / "lanes" / "stand-in.gguf").write_bytes(weights)
    table = local_stand_in.TABLE.format(digest=hashlib.sha256(weights).hexdigest())
    (root / "lanes" / "local_model.toml").write_text(table, "utf-8")
    return Project(root)


def run(project: Project, *arguments: str) -> Ended:
    process = project.start("run", "real-local", *arguments, PYTHONPATH=str(project.root))
    try:
        stdout, stderr = process.communicate(timeout=RUN_TIMEOUT_S)
    finally:
        process.kill()
    return Ended(process.returncode, stdout, stderr)


def board(project: Project) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((project.root / "reports/out/board.json").read_text("utf-8"))
    return found


def cells(project: Project) -> list[str]:
    """What the board says of each story under the heading of the local model, sorted."""
    rows = {each["id"]: each["cells"] for each in board(project)["claims"]}
    return sorted(rows[claim]["real:local"]["words"] for claim in STORIES)


def test_every_small_journey_passes_with_a_server_that_lives(tmp_path: Path) -> None:
    project = copy_project(tmp_path, dies_at=NEVER)

    ended = run(project, "--attempts", "2")

    assert (ended.exit_code, board(project)["voids"]) == (0, [])
    assert {words.partition(",")[0] for words in cells(project)} == {"passed 1 (2/2"}
    assert NO_HOSTED in ended.stdout


@pytest.mark.parametrize("speaks_first", [False, True], ids=["before-a-word", "in-the-middle-of-its-answer"])
def test_live_a_server_that_dies_blocks_what_was_not_finished_and_what_was_keeps_its_verdict(
    tmp_path: Path, speaks_first: bool
) -> None:
    project = copy_project(tmp_path, dies_at=6, speaks_first=speaks_first)  # the second request of the third story

    ended = run(project, "--attempts", "1")

    records = project.records("real-local").values()
    assert sorted((record.verdict, record.reason_code or "") for record in records) == [
        ("blocked", "outage"), ("blocked", "outage"), ("passed", ""), ("passed", ""),
    ]  # fmt: skip
    assert [words.partition(" (")[0] for words in cells(project)] == [OUTAGE, OUTAGE, "passed 1", "passed 1"]
    assert "the model server ended before the tests did: signal SIGKILL" in ended.stdout
    assert board(project)["voids"] == []


def test_a_server_that_dies_in_a_sample_blocks_it_whatever_its_first_attempts_were(tmp_path: Path) -> None:
    project = copy_project(tmp_path, dies_at=5)  # the third attempt of the only story

    run(project, "--attempts", "3", "-k", "small-read-file")

    (record,) = project.records("real-local").values()
    assert [attempt.verdict for attempt in record.attempts] == ["passed", "passed", "blocked"]
    assert (record.verdict, record.reason_code) == ("blocked", "outage")
    assert OUTAGE in {words.partition(" (")[0] for words in cells(project)}
