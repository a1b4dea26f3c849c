"""In CI both clients play the transcript that they share: the one that is not there would show as not run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

WORKFLOWS = Path(__file__).parents[3] / ".github" / "workflows"


def steps_of(workflow: str, job: str) -> list[str]:
    """The steps of one job, each as it is written."""
    text = (WORKFLOWS / workflow).read_text("utf-8")
    found = re.search(rf"^  {job}:\n(.*?)(?=^  \S|\Z)", text, re.MULTILINE | re.DOTALL)
    assert found is not None
    return re.split(r"\n(?=      - )", found[1])


@pytest.mark.parametrize(
    ("workflow", "job", "command"),
    [
        ("ci.yml", "lane", "tox -e ${{ matrix.lane }}"),
        ("ci.yml", "offline-clients", "tox -e offline-clients"),
        ("proofs.yml", "proofs", "tox -e proofs"),
        ("proofs.yml", "proofs-clients", "tox -e proofs-clients"),
    ],
)
def test_node_is_there_before_its_client_is_to_play(workflow: str, job: str, command: str) -> None:
    steps = steps_of(workflow, job)
    (node,) = [at for at, step in enumerate(steps) if "actions/setup-node@" in step]
    (run,) = [at for at, step in enumerate(steps) if f"run: {command}" in step]
    assert node < run


def test_the_snapshot_lane_is_one_of_those_that_ci_runs() -> None:
    assert re.search(r"lane: \[.*\bsnapshot\b.*\]", (WORKFLOWS / "ci.yml").read_text("utf-8"))
