"""World checks: each is shown to fail as well as to hold."""

import subprocess
import sys
from pathlib import Path

import pytest

from lanes.world import CommandCheck, FileCheck, ProcessCheck, check_world


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_text("one\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("check", "problems"),
    [
        pytest.param(FileCheck("a.txt", equals="one\n"), [], id="equal"),
        pytest.param(FileCheck("a.txt", equals="one"), ["a.txt is 'one\\n', expected 'one'"], id="not-equal"),
        pytest.param(FileCheck("a.txt", contains="ne"), [], id="contains"),
        pytest.param(
            FileCheck("a.txt", contains="two"), ["a.txt is 'one\\n', expected to contain 'two'"], id="contains-not"
        ),
        pytest.param(FileCheck("b.txt", absent=True), [], id="absent"),
        pytest.param(FileCheck("a.txt", absent=True), ["a.txt exists, it should be absent"], id="not-absent"),
        pytest.param(FileCheck("b.txt", equals=""), ["b.txt is missing"], id="missing-is-not-empty"),
        pytest.param(CommandCheck(("python", "-c", "print(open('a.txt').read())"), stdout="one\n\n"), [], id="command"),
        pytest.param(
            CommandCheck(("python", "-c", "raise SystemExit('no')")),
            ["`python -c raise SystemExit('no')` ended with 1, expected 0: 'no\\n'"],
            id="command-fails",
        ),
        pytest.param(
            CommandCheck(("no-such-command-here",)),
            ["`no-such-command-here` could not be started: No such file or directory"],
            id="command-absent",
        ),
    ],
)
def test_a_check_says_what_is_not_as_it_should_be(workspace: Path, check: object, problems: list[str]) -> None:
    assert check_world((check,), workspace) == problems


def test_a_process_inside_the_workspace_is_found_and_one_outside_is_not(
    workspace: Path, tmp_path_factory: object
) -> None:
    command = [sys.executable, "-c", "input()  # marker-of-this-check"]
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    with (
        subprocess.Popen(command, cwd=workspace, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as inside,
        subprocess.Popen(command, cwd=elsewhere, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as outside,
    ):
        found = check_world((ProcessCheck("marker-of-this-check"),), workspace)
        inside.communicate(b"\n")
        gone = check_world((ProcessCheck("marker-of-this-check"),), workspace)
        outside.communicate(b"\n")

    assert [problem.split(":")[0] for problem in found] == [f"process {inside.pid} is left"]
    assert gone == []
