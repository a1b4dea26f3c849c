"""What a person may pass on to pytest: a list of what no lane minds, read as pytest reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from lanes.errors import UsageError
from lanes.policy import LANES
from lanes.pytest_command import PytestArguments, build_command, check_arguments


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "lanes" / "unit"
    folder.mkdir(parents=True)
    (folder / "test_a.py").write_text("", "utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "paths"),
    [
        pytest.param((), (), id="none"),
        pytest.param(("-k", "one or two", "-x"), (), id="expression"),
        pytest.param(("-kone", "-qx", "--tb=short", "--maxfail", "2"), (), id="joined-and-combined"),
        pytest.param(("-k", "one", "lanes/unit", "-m", "claim"), ("lanes/unit",), id="folder-between-options"),
        pytest.param(("lanes/unit/test_a.py::test_b[x y]",), ("lanes/unit/test_a.py::test_b[x y]",), id="item"),
    ],
)
def test_what_no_lane_minds_is_passed_on_as_it_is(
    root: Path, arguments: tuple[str, ...], paths: tuple[str, ...]
) -> None:
    found = check_arguments(root, LANES["unit"], arguments)

    assert found == PytestArguments(arguments, paths)


@pytest.mark.parametrize(
    ("arguments", "end"),
    [
        pytest.param(("-x",), ("-x", "lanes/unit"), id="the-whole-lane"),
        pytest.param(("lanes/unit/test_a.py", "-x"), ("lanes/unit/test_a.py", "-x"), id="a-part-of-it"),
    ],
)
def test_the_folder_of_the_lane_is_asked_for_unless_files_are(
    root: Path, arguments: tuple[str, ...], end: tuple[str, ...]
) -> None:
    command = build_command(root, LANES["unit"], "0", check_arguments(root, LANES["unit"], arguments))

    assert command[-2:] == end


@pytest.mark.parametrize(
    "arguments",
    [
        ("-p", "no:lanes.plugin"),
        ("-pno:lanes.plugin",),
        ("-vp", "no:lanes.plugin"),
        ("-vo", "python_files=a.py"),
        ("-xc", "other.ini"),
        ("--override-ini=python_files=a.py",),
        ("--rootdir=/",),
        ("--rootdir=/a folder",),
        ("--root-dir", "/"),
        ("@arguments.txt",),
        ("lanes/unit", "@arguments.txt"),
        ("--collect-only",),
        ("--co",),
        ("--help",),
        ("--setup-plan",),
        ("--runxfail",),
        ("--reruns", "3"),
        ("--pyargs", "os"),
        ("--basetemp=elsewhere",),
        ("-W", "ignore"),
        ("-k",),
        ("--deselect", "-p"),
        ("--noconftest",),
        ("--an-option-of-tomorrow",),
    ],
    ids=" ".join,
)
def test_whatever_is_not_on_the_list_is_refused_however_it_is_spelled(root: Path, arguments: tuple[str, ...]) -> None:
    with pytest.raises(UsageError) as caught:
        check_arguments(root, LANES["unit"], arguments)

    assert caught.value.where == "lane 'unit'"
    assert "-k" in caught.value.expected


def test_a_file_that_is_not_there_is_named(root: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no file or folder 'lanes/unit/test_b\.py' here"):
        check_arguments(root, LANES["unit"], ["lanes/unit/test_b.py::test_one"])
