"""Pinned transcripts: one expected file, and all of its producers before it is accepted."""

from __future__ import annotations

from pathlib import Path

import pytest

from lanes.errors import ExpectedError
from lanes.expected import Expected, MismatchError
from lanes.transcripts import FRAMES, STORIES, check_all, check_one, check_producers, load_story

SDK = load_story("sdk-run")
SAID = [{"told": "session.status"}]


def test_the_transcript_of_the_sdk_wire_has_both_clients_as_producers_and_every_other_one() -> None:
    assert {name: load_story(name).producers for name in STORIES} == {
        name: ("python", "node") if name == "sdk-run" else (FRAMES,) for name in STORIES
    }


@pytest.mark.parametrize("producer", SDK.producers)
def test_one_producer_alone_is_not_accepted_and_nothing_is_stored(producer: str, tmp_path: Path) -> None:
    with pytest.raises(ExpectedError, match=f"{producer} alone is not accepted"):
        check_one(SDK, producer, SAID, Expected(tmp_path, "accept"))
    assert list(tmp_path.iterdir()) == []


def test_one_producer_alone_is_compared(tmp_path: Path) -> None:
    check_all(SDK, dict.fromkeys(SDK.producers, SAID), Expected(tmp_path, "accept"))

    check_one(SDK, "node", SAID, Expected(tmp_path))
    with pytest.raises(MismatchError):
        check_one(SDK, "node", [], Expected(tmp_path))


@pytest.mark.parametrize("producer", SDK.producers)
def test_a_transcript_without_one_of_its_producers_is_not_accepted(producer: str, tmp_path: Path) -> None:
    expected = Expected(tmp_path, "accept")
    with pytest.raises(ExpectedError, match="nothing came from"):
        check_all(SDK, {producer: SAID}, expected)
    assert (list(tmp_path.iterdir()), expected.changed) == ([], [])


def test_producers_that_differ_are_not_accepted_and_the_difference_is_shown() -> None:
    with pytest.raises(ExpectedError) as raised:
        check_producers(SDK, {"python": SAID, "node": [{"told": "session.state"}]})
    text = str(raised.value)
    assert [word in text for word in ("python and node", "session.status", "session.state")] == [True] * 3


def test_a_story_with_one_producer_is_accepted_from_it(tmp_path: Path) -> None:
    story, expected = load_story("acp-text"), Expected(tmp_path, "accept")
    check_one(story, FRAMES, SAID, expected)
    assert expected.changed == [story.file]
