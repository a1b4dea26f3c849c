"""The commands that read boards and evidence: what they say, and how they end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lanes.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable

    from lanes.unit.lanes.conftest import Project

CLAIMS = """\
schema = "claims/1"

[[claim]]
id = "sum.small"
sentence = "Small numbers are added."
surface = "none"
required = ["unit"]
owner = "owner"
"""
TEST = """\
import pytest

@pytest.mark.claim("sum.small")
@pytest.mark.parametrize("number", range(8))
def test_adds(number):
    assert number + 1 < 10
"""


@pytest.fixture(scope="module")
def ran(make_project: Callable[[str], Project]) -> Path:
    """A project whose unit lane ran in two shards, each into a folder of its own, and then as a whole."""
    project = make_project("commands")
    project.write("lanes/claims.toml", CLAIMS)
    project.write("lanes/unit/test_a.py", TEST)
    for shard in ("1", "2"):
        ended = project.run("run", "unit", "--shard", f"{shard}/2", "--run-id", "monday", "--out", f"machine-{shard}")
        assert ended.exit_code == 0, ended.stderr
    return project.root


@pytest.fixture
def place(ran: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project as the folder we stand in, outside tox and CI."""
    for name in ("LANE_MARK", "TOX_ENV_NAME", "CI", "LANE_WORKERS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(ran)
    return ran


def test_shards_a_merge_and_a_board_in_a_repository_are_no_change_of_it(make_project: Callable[[str], Project]) -> None:
    project = make_project("in-git")
    project.write("lanes/claims.toml", CLAIMS)
    project.write("lanes/unit/test_a.py", TEST)
    project.write(".gitignore", "__pycache__/\n.pytest_cache/\n")
    git = ["git", "-C", str(project.root), "-c", "user.name=a", "-c", "user.email=a@b.invalid"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "all"]):
        subprocess.run([*git, *words], check=True)

    for shard in ("1", "2"):
        project.run("run", "unit", "--shard", f"{shard}/2", "--run-id", "monday", "--out", f"machine-{shard}")
    project.run("merge", "machine-1", "machine-2", "--out", "merged")
    reported = project.run("report", "--out", "merged")

    head, _blank, _claim, _short, row = reported.stdout.splitlines()[1:6]
    assert ("  clean" in head, "passed 8" in row) == (True, True), reported.stdout


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(arguments)
    streams = capsys.readouterr()
    return code, streams.out, streams.err


def test_shards_of_two_machines_become_one_board_that_holds(
    place: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = str(tmp_path / "merged")

    merged = run(capsys, "merge", "machine-1", "machine-2", "--out", out)
    reported = run(capsys, "report", "--out", out)
    verified = run(capsys, "verify", out)

    assert (merged[0], merged[1].splitlines()[0]) == (0, f"merged 4 bundles into {out}")
    assert (reported[0], "passed 8" in reported[1]) == (0, True)
    assert (verified[0], verified[1].splitlines()[-1]) == (0, "nothing that was checked contradicts the evidence")
    assert "not checked:\n  who wrote the bundles" in verified[1]


def test_a_shard_that_is_missing_is_named_and_the_merge_is_no_success(
    place: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, _text, complaint = run(capsys, "merge", "machine-2", "--out", str(tmp_path / "merged"))

    assert (code, complaint) == (1, "unit: shard 1 of 2 of run monday is missing\n")


def test_a_record_edited_after_the_report_is_named_with_exit_code_3(
    place: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run(capsys, "merge", "machine-1", "machine-2", "--out", str(tmp_path / "merged"))
    run(capsys, "report", "--out", str(tmp_path / "merged"))
    path = next(
        each for each in (tmp_path / "merged" / "bundles" / "unit").rglob("records.jsonl") if each.stat().st_size
    )
    path.write_bytes(path.read_bytes().replace(b'"verdict":"passed"', b'"verdict":"failed"', 1))

    code, text, _complaint = run(capsys, "verify", str(tmp_path / "merged"))

    assert (code, "[record-id]" in text, "[bundle-missing]" in text) == (3, True, True)


def test_a_difference_names_what_was_lost_and_what_was_won(
    place: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for name, machines in (("all", ("machine-1", "machine-2")), ("half", ("machine-1",))):
        run(capsys, "merge", *machines, "--out", str(tmp_path / name))
        run(capsys, "report", "--out", str(tmp_path / name))

    lost = run(capsys, "diff", str(tmp_path / "all"), str(tmp_path / "half" / "board.json"))
    won = run(capsys, "diff", str(tmp_path / "half"), str(tmp_path / "all"))

    assert (
        lost[0],
        "Lost: passed before, and nobody knows now (1):\n  sum.small, Unit: passed 8 -> not run" in lost[1],
    ) == (
        1,
        True,
    )
    assert (won[0], "Newly proven (1):\n  sum.small, Unit: not run" in won[1]) == (0, True)


def test_a_claim_is_explained_by_its_records(place: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    run(capsys, "merge", "machine-1", "machine-2", "--out", str(tmp_path / "merged"))

    code, text, _ = run(capsys, "explain", "sum.small", "--lane", "unit", "--out", str(tmp_path / "merged"))

    assert (code, text.splitlines()[0]) == (0, "sum.small: Small numbers are added.")
    assert (text.count("  passed: lanes/unit/test_a.py::test_adds["), text.count("record sha256:")) == (8, 8)


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        pytest.param(["explain", "sum.smal"], 2, "claim 'sum.smal' is unknown; did you mean 'sum.small'?", id="claim"),
        pytest.param(["explain", "sum.small", "--lane", "unti"], 2, "did you mean 'unit'?", id="lane"),
        pytest.param(["verify", "nowhere"], 2, "there is no folder 'nowhere'", id="verify-nowhere"),
        pytest.param(["verify", "lanes"], 2, "there is no bundle below it", id="verify-nothing"),
        pytest.param(["diff", "lanes", "machine-1"], 2, "there is no board 'lanes/board.json'", id="diff-nothing"),
        pytest.param(["diff", "pyproject.toml"], 2, "the following arguments are required: B", id="diff-one"),
        pytest.param(["merge", "nowhere", "--out", "new"], 2, "there is no folder 'nowhere'", id="merge-nowhere"),
        pytest.param(["merge", "machine-1", "--out", "machine-2"], 2, "no merge laid there", id="merge-over-evidence"),
    ],
)
def test_what_cannot_be_done_is_said_in_words(
    place: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, told: str
) -> None:
    ended = run(capsys, *arguments)

    assert (ended[0], ended[1], told in ended[2], (place / "new").exists()) == (code, "", True, False)


def test_a_board_of_a_newer_version_is_refused_in_words(
    place: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "board.json").write_text(json.dumps({"schema": "board/9"}), "ascii")

    code, _text, complaint = run(capsys, "diff", str(tmp_path), str(tmp_path))

    assert (code, "schema is 'board/9' [EVIDENCE]" in complaint, "fix: " in complaint) == (3, True, True)


def test_without_the_template_engine_the_report_says_which_package_it_wants(ran: Path, tmp_path: Path) -> None:
    (tmp_path / "jinja2.py").write_text("raise ModuleNotFoundError('no', name='jinja2')\n", "ascii")
    paths = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[3])])
    environ = {**os.environ, "PYTHONPATH": paths}
    command = [sys.executable, "-m", "lanes", "report", "--out", "machine-1"]

    ended = subprocess.run(command, cwd=ran, env=environ, capture_output=True, text=True, check=False)

    assert (ended.returncode, "Traceback" in ended.stderr, "pip install 'five-lanes[reports]'" in ended.stderr) == (
        2,
        False,
        True,
    )
