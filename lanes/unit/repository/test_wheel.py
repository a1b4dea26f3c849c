"""The wheel holds the four packages and nothing of the suites, the recordings or the reports of a run."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def wheel_names(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        return tuple(sorted(wheel.namelist()))


def test_the_wheel_holds_exactly_the_four_packages(wheel_names: tuple[str, ...]) -> None:
    tops = {PurePosixPath(name).parts[0] for name in wheel_names if ".dist-info" not in name}
    assert tops == {"harness", "mock_provider", "lanes", "reports"}


def test_the_wheel_holds_no_suite_no_field_case_and_no_output(wheel_names: tuple[str, ...]) -> None:
    suites = ("lanes/unit/", "lanes/snapshot/", "lanes/replay/", "lanes/offline/", "lanes/real/", "lanes/cases/")
    strays = [
        name
        for name in wheel_names
        if name.startswith((*suites, "reports/out/"))
        or (PurePosixPath(name).name.startswith("test_") and not name.startswith("lanes/templates/"))
    ]
    assert strays == []


@pytest.mark.parametrize("package", ["harness", "mock_provider", "lanes", "reports"])
def test_each_package_says_that_it_is_typed(wheel_names: tuple[str, ...], package: str) -> None:
    assert f"{package}/py.typed" in wheel_names


def test_the_data_files_that_the_lanes_read_are_in_the_wheel(wheel_names: tuple[str, ...]) -> None:
    expected = {"lanes/claims.toml", "lanes/providers.toml", "lanes/startup/sitecustomize.py"}
    expected |= {f"reports/render/page/board.{kind}" for kind in ("html", "css", "js")}
    assert expected - set(wheel_names) == set()


def test_what_a_new_project_is_given_is_in_the_wheel_whole(wheel_names: tuple[str, ...]) -> None:
    templates = {path.relative_to(ROOT).as_posix() for path in (ROOT / "lanes" / "templates").iterdir()}

    assert len(templates) > 10
    assert templates - set(wheel_names) == set()
