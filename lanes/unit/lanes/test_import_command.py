"""`lanes import`: results of another runner on the board, marked for what they are, and never in the live column."""

from __future__ import annotations

import json

import pytest

CLAIMS = """schema = "claims/1"

[[claim]]
id = "a.adds"
sentence = "It adds."
surface = "program"
required = ["offline"]
min_answers = { offline = 1 }
owner = "us"
"""
JUNIT = '<testsuite tests="1"><testcase classname="agent" name="adds"/></testsuite>'
ENTRY = {
    "number": 1,
    "body": {},
    "reply_digest": "ab",
    "status": 200,
    "end": "complete",
    "conversation": None,
    "step": 1,
}

TAKE = ("junit.xml", "--lane", "offline")


@pytest.fixture
def results(project):
    project.write("lanes/claims.toml", CLAIMS)
    project.write("junit.xml", JUNIT)
    project.write("j.jsonl", json.dumps(ENTRY) + "\n")
    side = {
        "schema": "evidence-sidecar/1",
        "items": {"agent::adds": {"claims": ["a.adds"], "requests": [1], "class": "live"}},
    }
    project.write("side.json", json.dumps(side))
    return project


def test_results_of_another_runner_fill_their_cell_with_the_class_that_the_witness_proves(results) -> None:
    taken = results.run("import", "junit.xml", "--lane", "offline", "--sidecar", "side.json", "--journal", "j.jsonl")
    report = results.run("report", "--require", "offline")

    board = json.loads((results.root / "reports/out/board.json").read_text("utf-8"))
    [claim] = board["claims"]
    assert taken.stdout.startswith("1 results for lane 'offline': passed 1; answers that a witness saw: 1\n")
    assert taken.stderr == "agent::adds: claimed live, the witness shows scripted, and that counts\n"
    assert (report.exit_code, claim["cells"]["offline"]["status"]) == (0, "passed")


def test_without_the_witness_the_same_results_are_too_few_answers(results) -> None:
    side = {"schema": "evidence-sidecar/1", "items": {"agent::adds": {"claims": ["a.adds"], "class": "scripted"}}}
    results.write("side.json", json.dumps(side))
    results.run("import", "junit.xml", "--lane", "offline", "--sidecar", "side.json")

    assert results.run("report").exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        pytest.param(("junit.xml", "--lane", "real"), 2, "cannot enter the live column", id="real"),
        pytest.param(("nowhere.xml", "--lane", "unit"), 2, "nowhere.xml: cannot be read", id="missing"),
        pytest.param(("j.jsonl", "--lane", "unit"), 3, "CTRF is written only", id="no-junit"),
        pytest.param(("junit.xml", "--lane", "unit", "--journal", "j.jsonl"), 2, "a journal alone says", id="journal"),
        pytest.param((*TAKE, "--sidecar", "old.json"), 2, "it is about commit 'abc'", id="commit"),
        pytest.param((*TAKE, "--sidecar", "other.json"), 2, "claim 'a.ads' is unknown", id="claim"),
    ],
)  # fmt: skip
def test_what_cannot_be_taken_leaves_no_evidence(results, arguments: tuple[str, ...], code: int, said: str) -> None:
    results.write("old.json", '{"schema": "evidence-sidecar/1", "commit": "abc", "items": {}}')
    results.write("other.json", '{"schema": "evidence-sidecar/1", "items": {"agent::adds": {"claims": ["a.ads"]}}}')

    ended = results.run("import", *arguments)

    assert (ended.exit_code, said in ended.stderr, "Traceback" in ended.stderr) == (code, True, False)
    assert not (results.root / "reports/out/bundles").exists()
