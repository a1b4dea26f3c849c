"""Files of evidence on a strange disk: links, pipes, devices and folders where files ought to be."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lanes.bundle import BundleHeader, BundleWriter, find_bundles
from lanes.bundle_reading import read_bundle
from lanes.evidence_files import folders_with, read_plain_file
from lanes.record import Attempt, Record, Subject

NAMES = frozenset({"header.json"})


def write(folder: Path) -> Path:
    subject = Subject("c", "t")
    with BundleWriter(folder, BundleHeader(lane="unit", run_id="run-1", subject=subject)) as writer:
        writer.write(Record("unit", "a", "run-1", "passed", subject, attempts=(Attempt(1, "passed"),)))
    return folder


def lay(path: Path, kind: str) -> None:
    """Put something in the place of a file that can never be read to an end, or not at all."""
    path.unlink()
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case "folder":
            path.mkdir()


def test_a_plain_file_is_read_also_by_a_link_to_it(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"1")
    (tmp_path / "link").symlink_to(tmp_path / "one")

    assert (read_plain_file(tmp_path / "one"), read_plain_file(tmp_path / "link")) == (b"1", b"1")


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
@pytest.mark.parametrize("part", ["header.json", "records.jsonl", "trailer.json"])
def test_what_is_no_plain_file_is_named_and_never_waited_for(tmp_path: Path, part: str, kind: str) -> None:
    folder = write(tmp_path / "bundles" / "unit" / "1-of-1")
    lay(folder / part, kind)

    problems = read_bundle(folder).problems

    told = {problem.where: (problem.code, problem.text) for problem in problems}
    words = "it is a folder" if kind == "folder" else "it is a pipe or a device, not a plain file"
    assert told[f"unit/1-of-1/{part}"] == ("unreadable", f"it cannot be read: {words}")


def test_a_sparse_file_without_end_is_refused_before_it_is_read(tmp_path: Path) -> None:
    with (tmp_path / "one").open("wb") as file:
        file.truncate(5 << 30)

    with pytest.raises(OSError, match="larger than 4294967296 bytes"):
        read_plain_file(tmp_path / "one")


def test_a_bundle_behind_a_link_is_found_as_any_other(tmp_path: Path) -> None:
    write(tmp_path / "elsewhere" / "1-of-1")
    (tmp_path / "out" / "bundles").mkdir(parents=True)
    (tmp_path / "out" / "bundles" / "unit").symlink_to(tmp_path / "elsewhere")

    assert find_bundles(tmp_path / "out") == (tmp_path / "out" / "bundles" / "unit" / "1-of-1",)


def test_a_folder_that_two_links_lead_to_is_found_once_and_by_its_own_name(tmp_path: Path) -> None:
    write(tmp_path / "b")
    (tmp_path / "a").symlink_to(tmp_path / "b")

    assert list(folders_with(tmp_path, NAMES)) == [tmp_path / "b"]


def test_a_link_that_leads_back_ends_the_search(tmp_path: Path) -> None:
    write(tmp_path / "b")
    (tmp_path / "b" / "back").symlink_to(tmp_path)

    assert list(folders_with(tmp_path, NAMES)) == [tmp_path / "b"]


def test_a_link_that_leads_nowhere_is_a_file_that_is_missing(tmp_path: Path) -> None:
    folder = write(tmp_path / "b")
    (folder / "trailer.json").unlink()
    (folder / "trailer.json").symlink_to(tmp_path / "gone")

    assert [(each.code, each.text) for each in read_bundle(folder).problems] == [("unreadable", "the file is missing")]
