"""Recordings that nobody plays: named by a run of the whole lane, and by no other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lanes.bundle import BundleHeader, BundleWriter, ExpectedItem
from lanes.kept_recordings import kept_names, recording_notes, times_of_commits
from lanes.policy import LANES
from lanes.record import Attempt, Json, Record, Subject

REPLAY = LANES["replay"]
PLAYED = "cassettes/openai_chat/played.yaml"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A tree with a cassette that is played, one that is not, and a recorded session."""
    for name in ("openai_chat/played.yaml", "openai_chat/idle.yaml", "session-logs/idle/session.jsonl"):
        path = tmp_path / "cassettes" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("", encoding="utf-8")
    (tmp_path / "cassettes" / "session-logs" / ".idle.new").mkdir()
    return tmp_path


def bundle(root: Path, facts: dict[str, Json] | None = None, **header: object) -> Path:
    """The bundle of a run that played one cassette, of which it noted these facts."""
    folder = root / "out"
    record = Record("replay", "lanes/replay/test_a.py::test_one", "run-1", "passed", attempts=(Attempt(1, "passed"),))
    whole = BundleHeader(lane="replay", run_id="run-1", subject=Subject(), expected=(ExpectedItem(record.node_id, ()),))
    writer = BundleWriter(folder, replace(whole, **header))  # type: ignore[arg-type] # fields of a header
    writer.write(replace(record, cassette={"id": PLAYED, **(facts or {})}))
    writer.close(exit_code=0, canary_end="refused")
    return folder


def test_names_are_those_of_evidence(root: Path) -> None:
    assert kept_names(root) == ("cassettes/openai_chat/idle.yaml", PLAYED, "cassettes/session-logs/idle")


def test_a_whole_run_names_what_nobody_played(root: Path) -> None:
    assert recording_notes(root, bundle(root), REPLAY) == (
        (
            "cassettes/openai_chat/idle.yaml: no test of a whole run plays it [CASSETTE_UNUSED]",
            "cassettes/session-logs/idle: no test of a whole run plays it [CASSETTE_UNUSED]",
        ),
        True,
    )


@pytest.mark.parametrize(
    ("header", "why"),
    [
        pytest.param({"shard_total": 2}, "one shard of several", id="shard"),
        pytest.param({"extra": {"filtered": True}}, "only a part of the lane ran", id="filtered"),
        pytest.param(
            {"deselected": (ExpectedItem("lanes/replay/test_a.py::test_two", ()),)},
            "only a part of the lane ran",
            id="deselected",
        ),
    ],
)
def test_cassettes_61_a_run_of_a_part_says_that_unused_is_not_judged(
    root: Path, header: dict[str, object], why: str
) -> None:
    assert recording_notes(root, bundle(root, **header), REPLAY) == ((f"recordings, unused: not judged: {why}",), False)


def test_a_lane_without_recordings_says_nothing_of_them(root: Path) -> None:
    assert recording_notes(root, bundle(root), LANES["offline"]) == ((), False)
    assert times_of_commits(root, LANES["offline"]) == {}


def test_a_stale_recording_is_named_with_the_command_that_records_it_anew(root: Path) -> None:
    facts: dict[str, Json] = {"stale_reasons": ["model m-1 is retired"], "level": "stale", "age_days": 103}
    notes, is_unused = recording_notes(root, bundle(root, facts, shard_total=2), REPLAY)

    why, command = "model m-1 is retired, 103 days old", "tox -e record -- played --target TARGET"
    assert (notes[0], is_unused) == (f"{PLAYED} is stale: {why}; record it anew: {command}", False)


def test_cassettes_an_exchange_that_was_altered_is_named_also_by_a_run_of_a_part(root: Path) -> None:
    facts: dict[str, Json] = {"doubts": ["interaction 2: it was altered after it was recorded"]}
    notes, is_unused = recording_notes(root, bundle(root, facts, shard_total=2), REPLAY)

    told = f"{PLAYED} counts as scripted: interaction 2: it was altered after it was recorded"
    assert (notes[0], is_unused) == (told, False)
