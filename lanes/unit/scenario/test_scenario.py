"""Scenario files: what is wrong in one is named by file and field, and every committed one loads."""

import copy
import json
from pathlib import Path

import pytest

from lanes.claims import CLAIMS_FILE, load_claims
from lanes.errors import ScenarioError
from lanes.scenario import SCENARIO_FOLDER, find_scenario, load_scenarios, parse_scenario, script_text, write_workspace
from lanes.world import FileCheck

GOOD = {
    "name": "tiny",
    "claim": "journey.fix-test",
    "story": "says hello",
    "workspace": {"a.txt": ["one", "two"], "dir/b.txt": "raw"},
    "script": {"version": 1},
    "runs": [{"task": "hello"}, {"task": "again", "resume": True, "exit": 3, "stdout": "hi\n"}],
    "world": [{"file": "a.txt", "equals": "one\ntwo\n"}],
}


def test_a_scenario_reads_back_as_it_was_written(tmp_path: Path) -> None:
    scenario = parse_scenario(GOOD, where="tiny.json")
    write_workspace(scenario, tmp_path)

    assert (tmp_path / "a.txt").read_bytes() == b"one\ntwo\n"
    assert (tmp_path / "dir/b.txt").read_bytes() == b"raw"
    assert [(run.task, run.resume, run.exit, run.stdout) for run in scenario.runs] == [
        ("hello", False, 0, None),
        ("again", True, 3, "hi\n"),
    ]
    assert scenario.world == (FileCheck(file="a.txt", equals="one\ntwo\n"),)
    assert script_text(scenario) == '{\n "version": 1\n}\n'


def _changed(path: str, value: object) -> dict[str, object]:
    document = copy.deepcopy(GOOD)
    target: object = document
    *parents, last = path.split(".")
    for key in parents:
        target = target[int(key)] if isinstance(target, list) else target[key]
    if isinstance(target, list):
        target[int(last)] = value
    else:
        target[last] = value
    return document


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        pytest.param("wrld", [], "tiny.json, wrld: unknown field", id="unknown-field"),
        pytest.param("runs", [], "tiny.json, runs: no run is given", id="no-run"),
        pytest.param("runs.0.resume", True, "tiny.json, runs[0].resume: the first run cannot", id="first-run-resumes"),
        pytest.param("runs.1.exit", True, "tiny.json, runs[1].exit: is a boolean", id="boolean-exit-code"),
        pytest.param("runs.1.exit", 256, "tiny.json, runs[1].exit: is 256", id="exit-code-out-of-range"),
        pytest.param("runs.0.interrupt_after", "x", "runs[0].interrupt_after: the run has no --json", id="no-json"),
        pytest.param("runs.0.task", "  ", "tiny.json, runs[0].task: is blank", id="blank-task"),
        pytest.param("workspace", {"../x": "a"}, "tiny.json, workspace.../x: leaves the workspace", id="outside"),
        pytest.param("workspace", {"/x": "a"}, "tiny.json, workspace./x: leaves the workspace", id="absolute"),
        pytest.param("world.0", {"file": "a", "absent": False}, "world[0].absent: is false", id="absent-false"),
        pytest.param("world.0", {"file": "a"}, "world[0].file: is checked 0 ways", id="nothing-checked"),
        pytest.param("world.0", {"command": []}, "world[0].command: is empty", id="empty-command"),
        pytest.param("world.0", {}, "tiny.json, world[0]: names 0 kinds of check", id="no-kind"),
        pytest.param("world", [], "tiny.json, world: nothing is checked", id="no-check-at-all"),
        pytest.param("script", [], "tiny.json, script: is a list", id="script-not-an-object"),
    ],
)
def test_a_mistake_is_named_by_file_and_field(path: str, value: object, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(_changed(path, value), where="tiny.json")

    assert message in str(caught.value)
    assert caught.value.fix
    assert caught.value.expected


def test_an_unknown_field_gets_the_near_miss() -> None:
    with pytest.raises(ScenarioError, match="did you mean 'world'"):
        parse_scenario({**GOOD, "wrld": []}, where="tiny.json")


def test_a_field_given_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tiny.json").write_text('{"name": "tiny", "name": "tiny"}', encoding="utf-8")

    with pytest.raises(ScenarioError, match="field 'name' is given twice"):
        load_scenarios(tmp_path)


def test_an_unknown_scenario_lists_the_known_ones(tmp_path: Path) -> None:
    (tmp_path / "fix-test.json").write_text("{}", encoding="utf-8")

    with pytest.raises(ScenarioError, match="did you mean 'fix-test'"):
        find_scenario("fix-tset", tmp_path)


def test_a_file_that_is_not_named_after_its_scenario_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text(json.dumps(GOOD), encoding="utf-8")

    with pytest.raises(ScenarioError, match=r"name is 'tiny', the file is other\.json"):
        load_scenarios(tmp_path)


def test_every_committed_scenario_loads_and_names_a_known_claim() -> None:
    scenarios = load_scenarios(SCENARIO_FOLDER)
    known = {claim.id for claim in load_claims(CLAIMS_FILE)}

    assert len(scenarios) >= 8
    assert {scenario.claim for scenario in scenarios.values()} - known == set()
