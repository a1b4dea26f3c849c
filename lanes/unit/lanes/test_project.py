"""What a project says about its lanes: read strictly, with the line of each mistake, and followed by a whole run."""

from __future__ import annotations

from pathlib import Path

import pytest

from lanes.errors import UsageError
from lanes.policy import LANES
from lanes.project import load_project
from lanes.subject import current_subject

TABLE = '[project]\nname = "x"\n\n[tool.lanes]\npackage = "agent"\n'
CLAIM = """schema = "claims/1"

[[claim]]
id = "a.claim"
sentence = "It holds."
surface = "none"
required = ["unit"]
owner = "us"
folders = ["checks/parts"]
"""


def load(tmp_path: Path, text: str):
    (tmp_path / "pyproject.toml").write_text(text, "utf-8")
    return load_project(tmp_path)


def test_without_a_table_the_folders_are_those_of_this_project(tmp_path: Path) -> None:
    project = load_project(tmp_path)

    assert (project.package, project.claims, project.is_declared) == ("harness", "lanes/claims.toml", False)
    assert project.folders == {name: f"lanes/{name}" for name in LANES}


def test_a_table_moves_claims_and_folders_and_keeps_the_others(tmp_path: Path) -> None:
    project = load(tmp_path, TABLE + 'claims = "checks/claims.toml"\nfolders = {unit = "checks/parts"}\n')

    assert project.claims_path == tmp_path / "checks/claims.toml"
    assert project.place(LANES["unit"]).suite == "checks/parts"
    assert project.place(LANES["offline"]).suite == "lanes/offline"


FOLDERS = TABLE + "[tool.lanes.folders]\n"


@pytest.mark.parametrize(
    ("text", "line", "field", "what"),
    [
        pytest.param(TABLE + "pakage = 1\n", 6, "pakage", "is unknown; did you mean 'package'?", id="unknown"),
        pytest.param('[tool.lanes]\nclaims = "c.toml"\n', 1, "package", "nothing says what", id="no-subject"),
        pytest.param(TABLE + 'sources = ["x"]\n', 6, "sources", "both 'package' and 'sources' are there", id="both"),
        pytest.param('[tool.lanes]\nsources = ["a"]\n', 2, "sources", "there is no 'a' here", id="missing-source"),
        pytest.param('[tool.lanes]\nsources = "x"\n', 2, "sources", "'x' is no list", id="no-list"),
        pytest.param('[tool.lanes]\npackage = "a.b"\n', 2, "package", "'a.b' is no name of a package", id="dotted"),
        pytest.param("[tool.lanes]\npackage = 3\n", 2, "package", "3 is no name of a package", id="number"),
        pytest.param(TABLE + 'claims = "../c.toml"\n', 6, "claims", "'../c.toml' is no path inside", id="outside"),
        pytest.param(TABLE + 'claims = "/c.toml"\n', 6, "claims", "'/c.toml' is no path inside", id="absolute"),
        pytest.param(FOLDERS + 'unti = "a"\n', 7, "unti", "is unknown; did you mean 'unit'?", id="unknown-lane"),
        pytest.param(
            FOLDERS + 'unit = "a"\nreal = "a/b"\n', 8, "real", "lies in the folder of lane 'unit'", id="nested"
        ),
        pytest.param(TABLE + 'folders = ["a"]\n', 6, "folders", "['a'] is no table", id="folders-list"),
    ],
)
def test_a_mistake_is_named_with_file_line_and_field(
    tmp_path: Path, text: str, line: int, field: str, what: str
) -> None:
    with pytest.raises(UsageError) as caught:
        load(tmp_path, text)

    assert (caught.value.where, caught.value.error_code) == (f"pyproject.toml:{line}, [tool.lanes] {field}", "PROJECT")
    assert what in caught.value.what


def test_all_mistakes_of_a_table_are_told_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = (
        '[tool.lanes]\npakage = 1\npackage = "a.b"\nsources = ["/a", 2, "b"]\nclaims = "../c"\nlocks = "x"\n'
        '[tool.lanes.folders]\nunti = "a"\nunit = "a"\noffline = ""\nreal = "a/b"\n'
    )
    with pytest.raises(UsageError) as caught:
        load(tmp_path, text)

    missing = '[tool.lanes]\nsources = ["a", "b"]\n'
    with pytest.raises(UsageError, match=r"there is no 'a' here(.|\n)*there is no 'b' here"):
        load(tmp_path, missing)
    found = [(each.where, each.error_code, each.what) for each in caught.value.parts]
    assert found == [
        ("pyproject.toml:2, [tool.lanes] pakage", "PROJECT", "field 'pakage' is unknown; did you mean 'package'?"),
        ("pyproject.toml:3, [tool.lanes] package", "PROJECT", "'a.b' is no name of a package"),
        ("pyproject.toml:4, [tool.lanes] sources", "PROJECT", "'/a' is no path inside the project"),
        ("pyproject.toml:4, [tool.lanes] sources", "PROJECT", "2 is no path inside the project"),
        ("pyproject.toml:4, [tool.lanes] sources", "PROJECT", "both 'package' and 'sources' are there"),
        ("pyproject.toml:5, [tool.lanes] claims", "PROJECT", "'../c' is no path inside the project"),
        ("pyproject.toml:6, [tool.lanes] locks", "PROJECT", "'x' is no list"),
        ("pyproject.toml:8, [tool.lanes] unti", "PROJECT", "lane 'unti' is unknown; did you mean 'unit'?"),
        ("pyproject.toml:10, [tool.lanes] offline", "PROJECT", "'' is no path inside the project"),
        ("pyproject.toml:11, [tool.lanes] real", "PROJECT", "'a/b' lies in the folder of lane 'unit'"),
    ]
    assert str(caught.value) == "\n".join(map(str, caught.value.parts))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("[tool]\nlanes = 1\n", "pyproject.toml: tool.lanes is no table", id="no-table"),
        pytest.param("[tool.lanes\n", "pyproject.toml: is no TOML", id="no-toml"),
    ],
)
def test_a_file_without_a_table_to_read_is_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        load(tmp_path, text)

    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("package", "said"),
    [
        pytest.param("nowhere_at_all", "package 'nowhere_at_all' cannot be imported here", id="missing"),
        pytest.param("keyword", "package 'keyword' is one file, no package", id="module"),
    ],
)
def test_a_declared_package_that_evidence_cannot_be_about_is_an_error_and_no_empty_digest(
    tmp_path: Path, package: str, said: str
) -> None:
    project = load(tmp_path, f'[tool.lanes]\npackage = "{package}"\n')

    with pytest.raises(UsageError, match=said) as caught:
        project.imported_package()

    assert caught.value.where == "pyproject.toml:2, [tool.lanes] package"


@pytest.mark.parametrize("place", ["", "src/"])
def test_a_package_of_the_project_is_found_also_by_a_command_that_is_started_elsewhere(
    tmp_path: Path, place: str
) -> None:
    folder = tmp_path / f"{place}own_agent"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("", "utf-8")

    assert load(tmp_path, '[tool.lanes]\npackage = "own_agent"\n').imported_package() == folder.resolve()


def test_evidence_about_files_changes_with_the_files_and_with_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "agent.js").write_text("1", "utf-8")
    load(tmp_path, '[tool.lanes]\nsources = ["agent.js"]\n')
    before = current_subject(tmp_path).loop_digest
    (tmp_path / "other.js").write_text("2", "utf-8")
    beside = current_subject(tmp_path).loop_digest
    (tmp_path / "agent.js").write_text("3", "utf-8")

    assert before == beside
    assert current_subject(tmp_path).loop_digest != before


def test_a_lane_runs_the_folder_that_the_project_says_and_binds_claims_to_it(project) -> None:
    project.write("agent/__init__.py", '"""An agent."""\n')
    project.write("pyproject.toml", TABLE + 'claims = "checks/claims.toml"\nfolders = {unit = "checks/parts"}\n')
    project.write("checks/claims.toml", CLAIM)
    project.write("checks/parts/test_a.py", "import agent\ndef test_passes(): pass\n")
    project.write("lanes/unit/test_b.py", "def test_fails(): assert False\n")

    ended = project.run("run", "unit", PYTHONPATH=f"{project.root}:{project.environ()['PYTHONPATH']}")

    record = project.records("unit")["test_passes"]
    assert (ended.exit_code, record.node_id, record.claim_ids) == (
        0,
        "checks/parts/test_a.py::test_passes",
        ("a.claim",),
    )
    assert (
        record.subject.loop_digest == current_subject(project.root, package_folder=project.root / "agent").loop_digest
    )


def test_a_process_that_ran_another_copy_of_the_declared_package_is_a_breach(project) -> None:
    project.write("agent/__init__.py", '"""An agent."""\n')
    project.write("other/agent/__init__.py", '"""Another."""\n')
    project.write("pyproject.toml", TABLE)
    project.write(
        "lanes/unit/test_a.py",
        "import os, subprocess, sys\n"
        "def test_starts_another():\n"
        "    paths = os.pathsep.join([os.path.abspath('other'), os.environ['PYTHONPATH']])\n"
        "    subprocess.run([sys.executable, '-P', '-c', 'import agent'], env={**os.environ, 'PYTHONPATH': paths})\n",
    )

    ended = project.run("run", "unit", PYTHONPATH=f"{project.root}:{project.environ()['PYTHONPATH']}")

    assert ended.exit_code == 3
    assert "1 process ran the loop of another copy" in ended.stderr


@pytest.mark.parametrize(
    ("first_line", "said"),
    [
        pytest.param("import agent", 0, id="imported"),
        pytest.param("import json", 2, id="not-imported"),
    ],
)
def test_a_run_in_which_nobody_imported_the_declared_package_says_so_below_the_board_and_on_it(
    project, first_line: str, said: int
) -> None:
    project.write("pyproject.toml", TABLE)
    project.write("agent/__init__.py", "")
    project.write("lanes/unit/test_a.py", f"{first_line}\ndef test_passes(): pass\n")

    ended = project.run("run", "unit", PYTHONPATH=f"{project.root}:{project.environ()['PYTHONPATH']}")

    words = "no process imported 'agent', the package that this evidence is about"
    assert (ended.exit_code, ended.stdout.count(words)) == (0, said)


def test_a_lane_whose_programs_would_not_find_the_package_is_told_where_it_is(project) -> None:
    project.write("pyproject.toml", TABLE)
    project.write("agent/__init__.py", "")
    project.write("lanes/unit/test_a.py", "import agent\ndef test_passes(): pass\n")

    ended = project.run("run", "unit")

    assert ended.exit_code == 2
    assert f"say where it is: PYTHONPATH={project.root} lanes run" in ended.stderr
