"""Recordings that records name: digested anew where they lie, and never believed about another tree."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from lanes.bundle import BundleWriter, bundle_folder
from lanes.cassette import load_cassette
from lanes.record import digest_bytes
from lanes.recorded_log import load_recorded_session
from lanes.subject import current_subject
from reports.output import build_reports
from reports.recordings import compare_recordings
from reports.verify import Verification, verify_folder

if TYPE_CHECKING:
    from lanes.unit.reports.conftest import Evidence

ROOT = Path(__file__).parents[3]
NOW = datetime(2031, 3, 7, 2, 0, tzinfo=UTC)
NAME = "tests/replay/one.yaml"


def test_the_digests_are_those_that_the_replay_lane_tells_of_files_and_folders() -> None:
    cassette = next(path for path in sorted((ROOT / "cassettes").rglob("*.yaml")))
    session = ROOT / "cassettes" / "session-logs" / "fix-test"
    named = {
        cassette.relative_to(ROOT).as_posix(): {load_cassette(cassette).digest},
        session.relative_to(ROOT).as_posix(): {load_recorded_session(session).digest},
    }

    assert compare_recordings(ROOT, named) == (sorted(named), [], [])


def test_what_differs_and_what_is_not_there_are_told_apart_and_no_name_leads_outside(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "one").write_bytes(b"1")
    (tmp_path / "two").write_bytes(b"2")
    named = {"one": {digest_bytes(b"1")}, "../two": {digest_bytes(b"2")}, str(tmp_path / "two"): {digest_bytes(b"2")}}

    assert compare_recordings(tmp_path / "in", {**named, "gone": {"x"}})[2] == ["../two", str(tmp_path / "two"), "gone"]
    assert compare_recordings(tmp_path / "in", {"one": {"sha256:other"}}) == ([], ["one"], [])
    assert compare_recordings(tmp_path / "in", {"one": {digest_bytes(b"1"), "sha256:other"}}) == ([], ["one"], [])


def verified(tmp_path: Path, evidence: Evidence, *, played: bytes, is_of_this_tree: bool) -> Verification:
    """A project with one recording, and evidence that some bytes of its name were played in this tree or another."""
    root, out = tmp_path / "project", tmp_path / "out"
    (root / NAME).parent.mkdir(parents=True)
    (root / NAME).write_bytes(b"as it is")
    subject = current_subject(root)
    subject = subject if is_of_this_tree else replace(subject, tree="sha256:other")
    facts = {"id": NAME, "digest": digest_bytes(played), "entries": 1, "consumed": 1, "unmatched": 0}
    record = evidence.record("replay", subject=subject, cassette=facts)
    bundle = evidence.bundle(record, subject=subject)
    with BundleWriter(bundle_folder(out, "replay"), bundle.header) as writer:
        writer.write(record)
        writer.close(canary_end="refused")
    build_reports(out, root, NOW, subject=subject)
    return verify_folder(out, root)


def test_the_recording_that_was_played_is_checked(tmp_path: Path, evidence: Evidence) -> None:
    seen = verified(tmp_path, evidence, played=b"as it is", is_of_this_tree=True)

    assert ("the digests of 1 recordings that records name" in seen.checked, seen.findings) == (True, set())


def test_another_recording_than_the_one_of_this_very_tree_is_found(tmp_path: Path, evidence: Evidence) -> None:
    seen = verified(tmp_path, evidence, played=b"something else", is_of_this_tree=True)

    assert [(each.code, each.where) for each in seen.findings] == [("recording", NAME)]


def test_of_another_tree_a_recording_that_differs_is_said_to_be_unchecked(tmp_path: Path, evidence: Evidence) -> None:
    seen = verified(tmp_path, evidence, played=b"something else", is_of_this_tree=False)

    assert seen.findings == set()
    assert f"the recordings {NAME}: they differ here, where the tree is another one" in seen.unchecked
