"""A lane that is run to be measured: its tests decide, and nothing of it stays."""

from __future__ import annotations

import subprocess
import sys

import pytest

PASSING = "def test_passes():\n    pass\n"
FAILING = "def test_fails():\n    assert not 'reached'\n"


def measure(project, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "lanes.measured", *arguments],
        cwd=project.root,
        env={**project.environ(), "TOX_ENV_NAME": "coverage", **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize(("text", "code"), [(PASSING, 0), (FAILING, 1)], ids=["passing", "failing"])
def test_its_tests_decide_and_no_evidence_of_it_stays(project, text: str, code: int) -> None:
    project.write("lanes/unit/test_a.py", text)

    ended = measure(project, "unit")

    assert ended.returncode == code, ended.stdout + ended.stderr
    assert "lanes/unit/test_a.py" in ended.stdout
    assert [path for path in project.root.rglob("*") if path.name == "bundles"] == []


def test_its_processes_know_no_key_and_no_mark_of_the_environment_that_measures(project) -> None:
    project.write(
        "lanes/unit/test_environment.py",
        "import os\n"
        "def test_environment():\n"
        "    assert [os.environ.get(name) for name in ('OPENAI_API_KEY', 'TOX_ENV_NAME')] == [None, None]\n",
    )

    ended = measure(project, "unit", OPENAI_API_KEY="sk-canary-0f3e9b")

    assert ended.returncode == 0, ended.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param((), "one lane is wanted", id="no-lane"),
        pytest.param(("real",), "lane 'real' holds a key and is not measured", id="with-key"),
        pytest.param(("ofline",), "did you mean 'offline'?", id="unknown"),
    ],
)
def test_what_is_no_lane_to_measure_starts_nothing(project, arguments: tuple[str, ...], said: str) -> None:
    ended = measure(project, *arguments)

    assert (ended.returncode, ended.stdout) == (2, "")
    assert said in ended.stderr
