"""One copy of the packages for every process of a lane, and what a process says that has another one."""

from __future__ import annotations

from pathlib import Path

from lanes.one_copy import check_loops
from lanes.subject import digest_package

PASSING = "def test_passes():\n    pass\n"


def test_a_tree_whose_programs_would_be_another_copy_is_not_run(project) -> None:
    project.write("lanes/unit/test_a.py", PASSING)
    project.write("harness/__init__.py", "MINE = True\n")

    ended = project.run("run", "unit")

    assert (ended.exit_code, ended.stdout, "[OTHER_COPY]" in ended.stderr) == (2, "", True)
    assert "the programs its tests start would have package 'harness' from" in ended.stderr
    assert project.bundle("unit").records == ()


def test_a_child_that_runs_the_loop_of_another_copy_fails_the_lane(project) -> None:
    project.write("elsewhere/harness/__init__.py", "OTHER = True\n")
    project.write(
        "lanes/unit/test_a.py",
        "import subprocess, sys\n"
        "def test_child():\n"
        "    done = subprocess.run([sys.executable, '-c', 'import harness; harness.OTHER'], cwd='elsewhere')\n"
        "    assert done.returncode == 0\n",
    )

    ended = project.run("run", "unit")

    (breach,) = project.bundle("unit").trailer.breaches
    assert ended.exit_code == 3
    assert breach.startswith("1 process ran the loop of another copy, ")
    assert breach.endswith("elsewhere/harness [LOOP_MISMATCH]")


def test_two_places_with_equal_files_are_one_copy_and_others_are_named(tmp_path: Path) -> None:
    for name, text in (("one", "A = 1\n"), ("two", "A = 1\n"), ("three", "A = 2\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(text, "utf-8")
    files = {name: str(tmp_path / name / "__init__.py") for name in ("two", "three", "gone")}

    found = check_loops({files["two"]: 1, files["three"]: 2, files["gone"]: 1}, digest_package(tmp_path / "one"))

    assert found == (
        f"1 process ran the loop of another copy, {tmp_path / 'gone'} [LOOP_MISMATCH]",
        f"2 processes ran the loop of another copy, {tmp_path / 'three'} [LOOP_MISMATCH]",
    )
