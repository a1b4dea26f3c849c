"""Pinned transcripts: the frames between clients and the program, exactly as they were accepted."""

from __future__ import annotations

from pathlib import Path

import pytest

from lanes.channels import Channels
from lanes.expected import from_environment
from lanes.pinned_headers import EXPECTED_FOLDER
from lanes.plugin import not_run
from lanes.transcripts import STORIES, check_one, load_story, missing_program, play

PLAYED = [(name, producer) for name in STORIES for producer in load_story(name).producers]


@pytest.mark.claim("surfaces.transcripts")
@pytest.mark.parametrize(("name", "producer"), PLAYED, ids=[f"{name}-{producer}" for name, producer in PLAYED])
def test_the_frames_of_a_conversation_are_exactly_these(
    name: str, producer: str, channels: Channels, tmp_path: Path
) -> None:
    story, missing = load_story(name), missing_program(producer)
    if missing is not None:
        not_run("missing-dependency", missing)

    transcript = play(story, producer, tmp_path, channels.scripted_child)

    check_one(story, producer, transcript, from_environment(EXPECTED_FOLDER))
