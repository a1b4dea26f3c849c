"""The rules of the CI workflows: what may be missing shows, what is secret stays away, and nothing is skipped green."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from lanes.policy import LANES

WORKFLOWS = Path(__file__).parents[3] / ".github" / "workflows"
ALL = sorted(WORKFLOWS.glob("*.yml"))
KEYLESS = {name for name, policy in LANES.items() if policy.keyless}
# These keep the history of the nights and tell people of it; they see no key.
WRITES = {("nightly-real.yml", "history"), ("nightly-watch.yml", "missed")}
ALWAYS = {"always()", "${{ !cancelled() }}"}


def load(name: str) -> dict[str, Any]:
    return dict(yaml.safe_load((WORKFLOWS / name).read_text("utf-8")))


def steps(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for job, body in load(name)["jobs"].items():
        for step in body["steps"]:
            yield job, step


CI = load("ci.yml")
BOARD = CI["jobs"]["board"]


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
def test_a_workflow_may_only_read_and_no_job_gives_itself_more(path: Path) -> None:
    workflow = load(path.name)
    widened = {(path.name, job) for job, body in workflow["jobs"].items() if "permissions" in body}

    assert workflow["permissions"] == {"contents": "read"}
    assert widened <= WRITES


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
def test_every_action_is_pinned_to_a_commit_and_says_its_version(path: Path) -> None:
    used = re.findall(r"^\s*(?:- )?uses: (.*)$", path.read_text("utf-8"), re.MULTILINE)

    assert [each for each in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+(\.\d+)*", each)] == []


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
def test_no_checkout_leaves_a_token_behind(path: Path) -> None:
    left = [
        job
        for job, step in steps(path.name)
        if "actions/checkout@" in step.get("uses", "")
        and step.get("with", {}).get("persist-credentials") is not False
        and (path.name, job) not in WRITES
    ]

    assert left == []


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
def test_no_workflow_runs_the_code_of_a_fork_with_the_rights_of_this_project(path: Path) -> None:
    triggers = load(path.name)[True]  # YAML 1.1 reads the word `on` as true

    assert {"pull_request_target", "workflow_run"} & set(triggers) == set()


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
def test_a_secret_is_seen_by_single_steps_of_the_nightly_run_alone(path: Path) -> None:
    text = path.read_text("utf-8")
    in_steps = sum(str(step.get("env", {})).count("secrets.") for _job, step in steps(path.name))

    assert text.count("${{ secrets.") == in_steps
    assert in_steps == 0 or path.name.startswith("nightly")


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
def test_no_job_is_skipped_and_no_failure_is_swallowed(path: Path) -> None:
    jobs = load(path.name)["jobs"]
    skipped = {job: body["if"] for job, body in jobs.items() if body.get("if", "always()") not in ALWAYS}
    swallowed = [job for job, body in jobs.items() if "continue-on-error" in body]
    swallowed += [
        job for job, step in steps(path.name) if "continue-on-error" in step or "|| true" in step.get("run", "")
    ]

    assert (skipped, swallowed) == ({}, [])


def lane_parts() -> dict[str, list[tuple[int, int]]]:
    matrix = CI["jobs"]["lane"]["strategy"]["matrix"]
    parts = {lane: [(part, of) for part in matrix["part"] for of in matrix["of"]] for lane in matrix["lane"]}
    for each in matrix["include"]:
        parts.setdefault(each["lane"], []).append((each["part"], each["of"]))
    return parts


def test_every_keyless_lane_is_run_whole_each_part_once() -> None:
    parts = lane_parts()

    assert set(parts) == KEYLESS
    assert {lane: sorted(found) for lane, found in parts.items()} == {
        lane: [(part, len(found)) for part in range(1, len(found) + 1)] for lane, found in parts.items()
    }
    assert len(parts["unit"]) > 1
    assert CI["jobs"]["lane"]["strategy"]["fail-fast"] is False


def test_the_parts_of_a_lane_are_parts_of_one_run() -> None:
    (command,) = [step["run"] for job, step in steps("ci.yml") if job == "lane" and "tox -e" in step.get("run", "")]

    assert "--shard ${{ matrix.part }}/${{ matrix.of }}" in command
    assert command.endswith("--run-id ci-${{ github.run_id }}")
    assert "--require-depth D3" in command


def live_job(job: str) -> tuple[dict[str, Any], str, dict[str, Any]]:
    """A job of the nightly run against models, the command that runs its lane, and what it uploads."""
    body = load("nightly-real.yml")["jobs"][job]
    (command,) = [step["run"] for step in body["steps"] if f"tox -e {job} --skip-pkg-install" in step.get("run", "")]
    (upload,) = [step for step in body["steps"] if "upload-artifact@" in step.get("uses", "")]
    return body, command, upload


@pytest.mark.parametrize("job", ["real", "real-local"])
def test_every_night_both_kinds_of_models_are_asked_and_what_came_of_it_is_published(job: str) -> None:
    body, _command, upload = live_job(job)
    published = [step for step in body["steps"] if "GITHUB_STEP_SUMMARY" in step.get("run", "")]

    assert ("needs" in body, "if" in body) == (False, False)
    assert (upload["if"], upload["with"]["if-no-files-found"]) == ("always()", "error")
    assert [step["if"] for step in published] == ["always()"]
    assert ["--notest" in step.get("run", "") for step in body["steps"]].count(True) == 1


def test_hosted_models_are_required_to_answer_and_the_step_that_asks_them_alone_sees_a_key() -> None:
    body, command, _upload = live_job("real")
    with_keys = [step["run"] for step in body["steps"] if "secrets." in str(step.get("env", {}))]

    assert (with_keys, "--require-live" in command) == ([command], True)


def test_the_local_model_is_asked_behind_a_wall_and_without_a_secret() -> None:
    body, command, upload = live_job("real-local")

    assert "secrets." not in str(body)
    assert "--require-depth D3" in command
    assert "--require-live" not in command  # its pass never stands for a hosted one
    assert any(step.get("run") == "git diff --exit-code" for step in body["steps"])
    assert upload["with"]["path"] == "reports/out/*/real-local"


def test_what_a_night_finds_of_drift_is_kept_and_held_against_the_recordings_of_the_next_one() -> None:
    jobs = {
        name: "\n".join(step.get("run", "") for step in body["steps"])
        for name, body in load("nightly-real.yml")["jobs"].items()
    }
    kept, held = jobs["history"], jobs["stale"]

    order = [kept.index(each) for each in ("cp drift.json ../reports/", "lanes drift", "git add drift.json")]
    assert order == sorted(order)
    assert held.index("FETCH_HEAD:drift.json > reports/drift.json") < held.index("tox -e replay -- --strict")


@pytest.mark.parametrize("job", ["lane", "offline-clients"])
def test_a_lane_uploads_its_bundle_whatever_came_of_it_and_leaves_the_tree_as_it_was(job: str) -> None:
    found = [step for name, step in steps("ci.yml") if name == job]
    (upload,) = [step for step in found if "upload-artifact@" in step.get("uses", "")]

    assert (upload["if"], upload["with"]["if-no-files-found"]) == ("always()", "error")
    assert upload["with"]["name"].startswith("lane-")
    assert any(step.get("run") == "git diff --exit-code" for step in found)


def test_the_closing_job_always_runs_and_waits_for_every_job_that_leaves_evidence() -> None:
    leaving = {
        job
        for job, step in steps("ci.yml")
        if "upload-artifact@" in step.get("uses", "") and step["with"]["name"].startswith("lane-")
    }

    assert BOARD["if"] == "always()"
    assert leaving | {"lint"} <= set(BOARD["needs"])


def test_a_needed_job_that_was_skipped_or_cancelled_fails_the_closing_job() -> None:
    (judge,) = [step for step in BOARD["steps"] if step.get("name") == "Every needed job must have succeeded"]
    asked = {re.fullmatch(r"\$\{\{ needs\.([\w-]+)\.result \}\}", told)[1]: name for name, told in judge["env"].items()}  # type: ignore[index]

    assert judge["if"] == "always()"
    assert set(asked) == set(BOARD["needs"])
    assert all(f'"${name}"' in judge["run"] for name in asked.values())
    assert 'test "$result" = success' in judge["run"]


def test_the_closing_job_merges_folds_verifies_shows_and_attaches_also_after_a_failure() -> None:
    runs = [(step.get("run", ""), step.get("if")) for step in BOARD["steps"]]
    later = [(run, when) for run, when in runs if "$RUNNER_TEMP/board" in run]

    assert [
        re.search(r"lanes merge|-e report -- --out|lanes verify|GITHUB_STEP_SUMMARY", run)[0] for run, _ in later
    ] == [  # type: ignore[index]
        "lanes merge",
        "-e report -- --out",
        "lanes verify",
        "GITHUB_STEP_SUMMARY",
    ]
    assert {when for _run, when in later[1:]} == {"always()"}
    required = re.search(r"--require (\S+)", later[1][0])
    assert required is not None
    assert set(required[1].split(",")) == KEYLESS
    upload = BOARD["steps"][-1]
    assert (upload["if"], upload["with"]["path"]) == ("always()", "${{ runner.temp }}/board")


def test_what_is_downloaded_lies_beside_the_tree_and_makes_it_no_other_subject() -> None:
    (download,) = [step for step in BOARD["steps"] if "download-artifact@" in step.get("uses", "")]

    assert download["with"] == {"pattern": "lane-*", "path": "${{ runner.temp }}/parts"}
