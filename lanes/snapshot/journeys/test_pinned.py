"""Pinned stories: wire requests, session log and standard output, exactly as they were accepted."""

from __future__ import annotations

from pathlib import Path

import pytest

from lanes.channels import Channels
from lanes.expected import decode_events, diff_events, from_environment, orphans
from lanes.normalize import Identities, normalize_log
from lanes.pinned import PINNED, expected_names, play_pinned
from lanes.pinned_headers import EXPECTED_FOLDER, Header, doubled_pins, read_classes, take_headers
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


@pytest.mark.claim("expected.owned")
def test_no_two_classes_of_request_headers_are_pinned_with_the_same_content() -> None:
    assert doubled_pins() == []


@pytest.mark.claim("expected.owned")
@pytest.mark.parametrize("name", [name for name in expected_names() if name.endswith(".jsonl")])
def test_scrubbing_a_stored_file_again_changes_nothing(name: str) -> None:
    stored = decode_events((EXPECTED_FOLDER / name).read_text(encoding="utf-8"), where=name)
    taken: list[Header] = []

    again = [take_headers(row, read_classes(), taken) for row in normalize_log(stored, (), Identities())]

    assert (diff_events(stored, again), taken) == ([], [])
