"""The ready file is there whole or not at all, replaces nothing but files, and is taken away only by its owner."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mock_provider.errors import UsageError
from mock_provider.ready_file import ReadyFile


def test_it_is_written_whole_and_taken_away(tmp_path: Path) -> None:
    path = tmp_path / "ready.json"
    path.write_text("of an earlier server", encoding="utf-8")
    ready = ReadyFile(path)
    ready.write("line\n")
    assert (path.read_text(encoding="utf-8"), [one.name for one in tmp_path.iterdir()]) == ("line\n", ["ready.json"])
    ready.remove()
    assert list(tmp_path.iterdir()) == []


def test_that_of_another_server_stays(tmp_path: Path) -> None:
    path = tmp_path / "ready.json"
    ready = ReadyFile(path)
    ready.write("mine\n")
    ReadyFile(path).write("another's\n")
    ready.remove()
    assert path.read_text(encoding="utf-8") == "another's\n"


def make(path: Path, kind: str) -> Path:
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to("/dev/null")
    return Path("/dev/null") if kind == "device" else path


@pytest.mark.parametrize(
    ("kind", "word"),
    [("folder", "a folder"), ("device", "a device"), ("link", "a device"), ("pipe", "no regular file")],
)
def test_what_is_no_file_is_refused_and_left_alone(tmp_path: Path, kind: str, word: str) -> None:
    path = make(tmp_path / "ready", kind)
    before = path.stat().st_mode
    with pytest.raises(UsageError, match=f"the ready file cannot be written: it is {word}"):
        ReadyFile(path)
    assert path.stat().st_mode == before


def test_a_folder_that_is_not_there_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such folder"):
        ReadyFile(tmp_path / "none" / "ready.json")


def test_a_file_that_nobody_wrote_is_not_taken_away(tmp_path: Path) -> None:
    path = tmp_path / "ready.json"
    path.write_text("somebody's", encoding="utf-8")
    ReadyFile(path).remove()
    assert path.exists()
