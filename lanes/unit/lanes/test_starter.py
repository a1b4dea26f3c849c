"""Starting a project: all files or none, and nothing of a person replaced."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from lanes.errors import UsageError
from lanes.starter import Started, Wish, start_project

KEYLESS = ("unit", "snapshot", "replay", "offline")


def contents(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_files_that_are_there_are_named_and_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / "tox.ini").write_text("mine", "utf-8")
    (tmp_path / "tests").write_text("a file, not a folder", "utf-8")
    before = contents(tmp_path)

    with pytest.raises(UsageError) as caught:
        start_project(Wish(tmp_path))

    assert caught.value.what == "2 of the files to write are there already: tests, tox.ini"
    assert contents(tmp_path) == before


def test_a_second_start_writes_nothing(tmp_path: Path) -> None:
    start_project(Wish(tmp_path))
    before = contents(tmp_path)

    with pytest.raises(UsageError, match="has a table"):
        start_project(Wish(tmp_path))

    assert contents(tmp_path) == before


def test_a_dangling_link_is_in_the_way_too(tmp_path: Path) -> None:
    (tmp_path / "tox.ini").symlink_to(tmp_path / "nowhere")

    with pytest.raises(UsageError, match=r"tox\.ini"):
        start_project(Wish(tmp_path))

    assert not (tmp_path / "nowhere").exists()


def test_a_project_keeps_every_byte_of_its_configuration_and_is_installed_as_it_is_built(tmp_path: Path) -> None:
    own = '[project]\nname = "mine"\nversion = "1"\n\n[tool.other]\nx = 1'
    (tmp_path / "pyproject.toml").write_text(own, "utf-8")
    (tmp_path / ".gitignore").write_text("build/\n.tox/\n", "utf-8")
    (tmp_path / "src/mine").mkdir(parents=True)
    (tmp_path / "src/mine/__init__.py").write_text("", "utf-8")

    started = start_project(Wish(tmp_path, package="mine"))

    text = (tmp_path / "pyproject.toml").read_text("utf-8")
    assert started.extended == (".gitignore", "pyproject.toml")
    assert text.startswith(own)
    assert tomllib.loads(text)["tool"]["lanes"]["package"] == "mine"
    assert (tmp_path / ".gitignore").read_text("utf-8") == "build/\n.tox/\n.venv\n__pycache__/\nreports/out/\n"
    assert "\npackage = editable\n" in (tmp_path / "tox.ini").read_text("utf-8")


def test_a_folder_without_a_build_is_not_installed(tmp_path: Path) -> None:
    assert isinstance(start_project(Wish(tmp_path)), Started)

    assert "\npackage = skip\n" in (tmp_path / "tox.ini").read_text("utf-8")


def test_the_requirement_and_the_folder_of_the_tests_are_those_that_were_asked_for(tmp_path: Path) -> None:
    start_project(Wish(tmp_path, requirement="five-lanes[reports]==9.9", folder="checks"))

    assert "    five-lanes[reports]==9.9\n" in (tmp_path / "tox.ini").read_text("utf-8")
    assert (tmp_path / "checks/unit/test_first.py").is_file()
    assert '"checks/unit"' in (tmp_path / "pyproject.toml").read_text("utf-8")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param({"package": "not a name"}, "--package is", id="package-no-name"),
        pytest.param({"package": "absent"}, "there is no package 'absent' here", id="package-absent"),
        pytest.param({"folder": "/tmp"}, "--tests is", id="tests-absolute"),
        pytest.param({"folder": "../x"}, "--tests is", id="tests-outside"),
        pytest.param({"folder": ""}, "--tests is", id="tests-empty"),
        pytest.param({"requirement": " "}, "--requirement is", id="requirement-empty"),
        pytest.param({"requirement": "a\nb"}, "--requirement is", id="requirement-lines"),
    ],
)
def test_a_wish_that_cannot_be_meant_writes_nothing(tmp_path: Path, change: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        start_project(Wish(tmp_path, **change))

    assert contents(tmp_path) == {}


@pytest.mark.parametrize(
    "text", ["[tool.lanes]\npackage = 'x'\n", "tool = {}\n", "[broken\n"], ids=["table", "inline", "broken"]
)
def test_a_configuration_that_cannot_take_the_table_is_left_as_it_is(tmp_path: Path, text: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text, "utf-8")

    with pytest.raises(UsageError, match="nothing was written"):
        start_project(Wish(tmp_path))

    assert contents(tmp_path) == {"pyproject.toml": text.encode()}


def test_the_workflows_of_both_forges_run_the_four_lanes_and_a_closing_job_that_always_runs(tmp_path: Path) -> None:
    start_project(Wish(tmp_path))

    github = yaml.safe_load((tmp_path / ".github/workflows/lanes.yml").read_text("utf-8"))
    gitlab = yaml.safe_load((tmp_path / ".gitlab-ci.yml").read_text("utf-8"))
    uses = [step["uses"] for job in github["jobs"].values() for step in job["steps"] if "uses" in step]
    assert github["permissions"] == {"contents": "read"}
    assert github["jobs"]["lane"]["strategy"]["matrix"]["lane"] == list(KEYLESS)
    assert (github["jobs"]["board"]["if"], github["jobs"]["board"]["needs"]) == ("always()", ["lane"])
    assert all(len(each.partition("@")[2]) == 40 for each in uses)
    assert gitlab["lane"]["parallel"]["matrix"] == [{"LANE": list(KEYLESS)}]
    assert gitlab["board"]["when"] == "always"


CONFIGURED = """
import json, sys
from tox.config.cli.parse import get_options
from tox.session.state import State

arguments = ["config", "-c", sys.argv[1], "--workdir", sys.argv[2]]
state = State(get_options(*arguments), arguments)
found = {"env_list": list(state.conf.core["env_list"].envs)}
for name in (*found["env_list"], "real"):
    conf = state.envs[name].conf
    commands, deps = [list(each.args) for each in conf["commands"]], "\\n".join(conf["deps"].lines())
    found[name] = [sorted(conf["pass_env"]), commands, deps]
sys.stdout.write(json.dumps(found))
"""


def test_tox_reads_what_was_written_and_lets_a_key_into_the_real_lane_alone(tmp_path: Path) -> None:
    start_project(Wish(tmp_path / "project"))

    done = subprocess.run(
        [sys.executable, "-c", CONFIGURED, str(tmp_path / "project/tox.ini"), str(tmp_path / "work")],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    with_key = {name for name, told in found.items() if name != "env_list" and any("KEY" in each for each in told[0])}
    assert found["env_list"] == [*KEYLESS, "report"]
    assert with_key == {"real"}
    assert [found[lane][1] for lane in (*KEYLESS, "real")] == [
        [["python", "-m", "lanes", "run", lane]] for lane in (*KEYLESS, "real")
    ]
    assert ["vcrpy" in found[lane][2] for lane in (*KEYLESS, "real")] == [False, False, True, False, False]
