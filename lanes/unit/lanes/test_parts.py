"""Runs of a part of a lane: what was left out is never passed, whoever left it out."""

from __future__ import annotations

import pytest

CLAIM = """
schema = "claims/1"

[[claim]]
id = "a.claim"
sentence = "It holds."
surface = "none"
required = ["unit"]
owner = "us"
"""
PASSING = "def test_passes():\n    pass\n"
PART = "import pytest\npytestmark = pytest.mark.claim('a.claim')\n" + PASSING
DROPS = """
import os

collect_ignore = ["test_b.py"] if os.path.exists("leave-out") else []


def pytest_collection_modifyitems(items):
    if os.path.exists("drop"):
        del items[0]
"""


@pytest.fixture(scope="module")
def parts(make_project):
    project = make_project("parts")
    project.write("lanes/claims.toml", CLAIM)
    project.write("lanes/unit/conftest.py", DROPS)
    for name in ("test_a", "test_b"):
        project.write(f"lanes/unit/{name}.py", PART)
    return project


@pytest.mark.parametrize(
    ("arguments", "mark", "cell"),
    [
        pytest.param(("./lanes/unit/",), "", "passed 2", id="the-whole-lane-by-name"),
        pytest.param(("lanes/unit/test_a.py",), "", "not run (deselected), passed 1", id="file"),
        pytest.param(("lanes/unit/test_a.py::test_passes", "-n", "1"), "", "not run (deselected), passed 1", id="item"),
        pytest.param(("--ignore=lanes/unit/test_b.py",), "", "not run (deselected), passed 1", id="ignored"),
        pytest.param(("--ignore-glob=*_b.py",), "", "not run (deselected), passed 1", id="ignored-by-pattern"),
        pytest.param(("-k", "test_a"), "", "not run 1 (deselected), passed 1", id="expression"),
        pytest.param((), "leave-out", "not run (deselected), passed 1", id="left-out-by-a-conftest-file"),
        pytest.param((), "drop", "not run 1 (deselected), passed 1", id="dropped-by-a-conftest-file"),
    ],
)
def test_status_35_a_claim_does_not_pass_on_a_part_of_its_lane(
    parts, arguments: tuple[str, ...], mark: str, cell: str
) -> None:
    if mark:
        parts.write(mark, "")

    ended = parts.run("run", "unit", *arguments)

    if mark:
        (parts.root / mark).unlink()
    row = next(line for line in ended.stdout.splitlines() if line.startswith("a.claim"))
    assert (ended.exit_code, row.removeprefix("a.claim").partition("  -")[0].strip()) == (0, cell)


def test_shards_of_one_run_are_given_one_name_and_make_one_whole(project) -> None:
    project.write("lanes/claims.toml", CLAIM)
    project.write("lanes/unit/test_a.py", PART + "".join(f"def test_{n}():\n    pass\n" for n in range(9)))

    alone = project.run("run", "unit", "--shard", "1/2")
    for shard in ("1/2", "2/2"):
        project.run("run", "unit", "--shard", shard, "--run-id", "by-hand.1")
    report = project.run("report")

    assert {project.bundle("unit", index, 2).header.run_id for index in (1, 2)} == {"by-hand.1"}
    assert "give the others --run-id unit-" in alone.stdout
    assert "is missing" in alone.stdout
    assert "is missing" not in report.stdout
    assert "passed 10" in next(line for line in report.stdout.splitlines() if line.startswith("a.claim"))
