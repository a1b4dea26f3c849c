"""The output folder: out of git's sight, also when shards, merges and boards make it in the tree they are about."""

from __future__ import annotations

from pathlib import Path

import pytest

from lanes.bundle import BundleHeader, bundle_folder, write_not_run
from lanes.errors import UsageError
from lanes.output_place import held_place, keep_from_git
from lanes.record import Subject

HEADER = BundleHeader(lane="unit", run_id="run-1", subject=Subject("c", "t"), not_run_code="no-key")


def test_a_new_folder_is_none_of_gits_business_whoever_writes_there_first(tmp_path: Path) -> None:
    keep_from_git(tmp_path / "one")
    write_not_run(bundle_folder(tmp_path / "two", "unit"), HEADER)
    with held_place(tmp_path / "three", "unit", "unit-1-of-1"):
        pass

    words = {name: (tmp_path / name / ".gitignore").read_text("ascii") for name in ("one", "two", "three")}
    assert words == dict.fromkeys(words, "*\n")


def test_a_folder_that_is_there_is_left_as_it_is(tmp_path: Path) -> None:
    write_not_run(bundle_folder(tmp_path, "unit"), HEADER)

    assert [path.name for path in tmp_path.iterdir()] == ["bundles"]


def test_a_place_has_one_writer_at_a_time_and_is_free_after_it(tmp_path: Path) -> None:
    with held_place(tmp_path, "unit", "unit-1-of-1"):
        with held_place(tmp_path, "unit", "unit-2-of-2"):
            pass
        with (
            pytest.raises(UsageError, match="another run writes the evidence of this lane and shard here"),
            held_place(tmp_path, "unit", "unit-1-of-1"),
        ):
            pass
    with held_place(tmp_path, "unit", "unit-1-of-1"):
        pass
