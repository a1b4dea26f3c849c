"""Pinned stories: wire requests, session log and standard output, exactly as they were accepted."""

from __future__ import annotations

from pathlib import Path

import pytest

from lanes.channels import Channels
from lanes.expected import from_environment, orphans
from lanes.pinned import EXPECTED_FOLDER, PINNED, expected_names, play_pinned
from lanes.scenario import find_scenario

STORIES = [pytest.param(name, id=name, marks=pytest.mark.claim(find_scenario(name).claim)) for name in PINNED]


@pytest.mark.parametrize("name", STORIES)
def test_the_program_turns_the_given_answers_into_exactly_this(name: str, channels: Channels, tmp_path: Path) -> None:
    played = play_pinned(find_scenario(name), tmp_path, channels.scripted_child)

    assert played.problems == ()
    played.check(from_environment(EXPECTED_FOLDER))


@pytest.mark.claim("expected.owned")
def test_every_expected_file_belongs_to_exactly_one_story() -> None:
    assert orphans(EXPECTED_FOLDER, expected_names()) == []
