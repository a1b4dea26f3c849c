"""A project that was started this moment: every lane is green, and its board says what that is worth."""

from __future__ import annotations

import json

import pytest

KEYLESS = ("unit", "snapshot", "replay", "offline")


@pytest.fixture(scope="module")
def started(make_project):
    """A project that was empty, after `lanes init` and every lane."""
    project = make_project("started")
    project.write("beside.txt", "mine")
    paths = {"PYTHONPATH": f"{project.root}:{project.environ()['PYTHONPATH']}"}
    begun = project.run("init")
    ended = {lane: project.run("run", lane, **paths) for lane in (*KEYLESS, "real")}
    report = project.run("report", "--require", ",".join(KEYLESS), **paths)
    return project, begun, ended, report


def test_an_empty_folder_has_every_lane_green_after_it(started) -> None:
    project, begun, ended, report = started

    assert (begun.exit_code, begun.stderr) == (0, "")
    assert {lane: (each.exit_code, each.stderr) for lane, each in ended.items()} == dict.fromkeys(ended, (0, ""))
    board = json.loads((project.root / "reports/out/board.json").read_text("utf-8"))
    answers = next(claim["cells"] for claim in board["claims"] if claim["id"] == "agent.answers")
    assert report.exit_code == 0
    assert {lane: answers[lane]["status"] for lane in ("unit", "replay", "offline", "real")} == {
        "unit": "passed",
        "replay": "passed",
        "offline": "passed",
        "real": "not run",
    }


def test_the_board_of_a_started_project_says_that_no_model_was_asked_and_that_the_recording_is_a_script(
    started,
) -> None:
    *_, report = started

    assert report.stdout.startswith("No claim on this board has been observed against a real model.")
    assert "not run: no key" in report.stdout
    assert "passed 1 (scripted)" in report.stdout


def test_evidence_of_a_started_project_is_about_its_own_package(started) -> None:
    from lanes.subject import digest_package

    project, *_ = started
    digests = {project.bundle(lane).header.subject.loop_digest for lane in KEYLESS}

    assert digests == {digest_package(project.root / "first_agent")}
