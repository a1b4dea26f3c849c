"""Journeys with a live model: what is left in the folder is judged, never a word of the answer.

A token of this run stands in a file; the lane itself looks whether the model's words carry it.
"""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import httpx
import pytest

from harness.settings import PROVIDERS
from lanes.channels import Channels
from lanes.live_run import live_targets
from lanes.playing import Target, drive_story
from lanes.providers import Provider
from lanes.scenario import Run, Scenario, find_scenario
from lanes.story_log import log_facts, read_rows, turn_failures
from lanes.world import CommandCheck, FileCheck, check_world

TARGETS = [pytest.param(provider, model, id=provider.name) for provider, model in live_targets()]
OTHER_KEY = "HARNESS_API_KEY"  # the variable of the program for a service that it has no name for
TOKEN_TASK = "Then read token.txt and end your answer with the word that stands in it."


def _fix_test(token: str) -> Scenario:
    """Journey (a): any edit that makes the untouched test pass."""
    story = find_scenario("fix-test")
    check = "".join(story.workspace["check.py"])
    return dataclasses.replace(
        story,
        workspace={**story.workspace, "token.txt": f"{token}\n"},
        runs=(Run(f"The test `python -B check.py` fails. Find the mistake in calc.py and fix it. {TOKEN_TASK}"),),
        world=(
            CommandCheck(("python", "-B", "check.py"), stdout="ok: add(2, 3) gave 5\n"),
            CommandCheck(("python", "-B", "-c", "from calc import add; raise SystemExit(add(-4, 9) != 5)")),
            FileCheck("check.py", equals=check),
        ),
    )


def _resume_session(token: str) -> Scenario:
    """Journey (b): the third process knows what the first one was asked."""
    return dataclasses.replace(
        find_scenario("resume-session"),
        workspace={"notes.txt": "milk\n", "token.txt": f"{token}\n"},
        runs=(
            Run("Add a line with the single word bread to the end of notes.txt."),
            Run("Add a line with the single word salt to the end of notes.txt.", resume=True),
            Run(
                "Which word did I first ask you to add? Write that single word to first.txt, in lower case. "
                f"{TOKEN_TASK}",
                resume=True,
            ),
        ),
        world=(
            CommandCheck(("python", "-c", "print(*open('notes.txt').read().split())"), stdout="milk bread salt\n"),
            FileCheck("first.txt", contains="bread"),
        ),
    )


def _missing_file(token: str) -> Scenario:
    """Journey (d), as far as it can be asked of a model: a file that is not there, and the right one beside it."""
    return dataclasses.replace(
        find_scenario("tool-failures"),
        workspace={"notes.txt": "the answer is 42\n", "token.txt": f"{token}\n"},
        runs=(
            Run(
                "Read the file note.txt and write the number it holds to answer.txt. If it is not there, find the "
                f"file that must be meant and use that one. {TOKEN_TASK}"
            ),
        ),
        world=(
            CommandCheck(("python", "-c", "print(open('answer.txt').read().strip())"), stdout="42\n"),
            FileCheck("notes.txt", equals="the answer is 42\n"),
        ),
    )


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """A workspace and a session root."""
    workspace, sessions = tmp_path / "workspace", tmp_path / "sessions"
    workspace.mkdir()
    sessions.mkdir()
    return workspace, sessions


def _target(provider: Provider, model: str) -> tuple[Target, dict[str, str]]:
    """How the program is told of a provider of the table, and the environment it is told in."""
    environ = {**os.environ, "HARNESS_DIALECT": provider.dialect}
    if provider.name in PROVIDERS:
        return Target(provider.base_url, provider.name, model, provider.key), environ
    return Target(provider.base_url, "custom", model, OTHER_KEY), {**environ, OTHER_KEY: environ[provider.key]}


async def _play(
    story: Scenario, told: tuple[Provider, str], transport: httpx.AsyncBaseTransport, folders: tuple[Path, Path]
) -> list[str]:
    """What is not as the story says, world and log; the words of the model are no part of it."""
    workspace, sessions = folders
    target, environ = _target(*told)
    async with transport:
        log = await drive_story(story, target, environ, workspace, sessions, transport)
    rows = read_rows(log)
    ends = log_facts(rows).turn_ends
    unfinished = [] if ends == ("completed",) * len(story.runs) else [f"turns ended {ends}", *turn_failures(rows)]
    return [*unfinished, *check_world(story.world, workspace)]


@pytest.mark.claim("journey.fix-test")
@pytest.mark.parametrize(("provider", "model"), TARGETS)
async def test_a_live_model_fixes_the_failing_test(
    provider: Provider, model: str, channels: Channels, folders: tuple[Path, Path]
) -> None:
    transport = channels.live(provider.name)

    assert await _play(_fix_test(transport.new_challenge()), (provider, model), transport, folders) == []


@pytest.mark.claim("journey.resume-session")
@pytest.mark.parametrize(("provider", "model"), TARGETS)
async def test_a_live_model_goes_on_in_a_new_process(
    provider: Provider, model: str, channels: Channels, folders: tuple[Path, Path]
) -> None:
    transport = channels.live(provider.name)

    assert await _play(_resume_session(transport.new_challenge()), (provider, model), transport, folders) == []


@pytest.mark.claim("journey.missing-file")
@pytest.mark.parametrize(("provider", "model"), TARGETS)
async def test_a_live_model_recovers_from_a_file_that_is_not_there(
    provider: Provider, model: str, channels: Channels, folders: tuple[Path, Path]
) -> None:
    transport = channels.live(provider.name)

    assert await _play(_missing_file(transport.new_challenge()), (provider, model), transport, folders) == []
