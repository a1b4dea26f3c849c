"""Locks and files."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pytest

from harness.errors import LogBusyError
from harness.log.disk import Disk, Lock, LogFile, is_held, make_folder


def test_a_lock_is_held_by_one_and_free_again_after_its_release(tmp_path):
    path = tmp_path / "locks" / "s1.lock"
    lock = Lock.acquire(path, "session 's1'", Disk())
    assert (is_held(path), path.read_text()) == (True, str(os.getpid()))
    with pytest.raises(LogBusyError) as caught:
        Lock.acquire(path, "session 's1'", Disk())
    assert caught.value.where == "session 's1'"
    lock.release()
    lock.release()
    assert (is_held(path), path.exists()) == (False, False)
    Lock.acquire(path, "session 's1'", Disk()).release()


def test_a_lock_file_left_by_a_killed_holder_is_free(tmp_path):
    path = tmp_path / "s1.lock"
    path.write_text("99999")
    assert is_held(path) is False
    lock = Lock.acquire(path, "s1", Disk())
    assert path.read_text() == str(os.getpid())
    lock.release()


def test_looking_for_a_lock_creates_nothing(tmp_path):
    assert (is_held(tmp_path / "none.lock"), list(tmp_path.iterdir())) == (False, [])


def test_looking_for_a_lock_waits_for_no_pipe_in_its_place(tmp_path):
    os.mkfifo(tmp_path / "s1.lock")
    assert is_held(tmp_path / "s1.lock") is False


def test_releasing_a_lock_whose_name_was_taken_by_another_leaves_the_others_name(tmp_path):
    path = tmp_path / "s1.lock"
    lock = Lock.acquire(path, "s1", Disk())
    path.unlink()
    other = Lock.acquire(path, "s1", Disk())
    lock.release()
    assert (path.exists(), is_held(path)) == (True, True)
    other.release()


def test_a_lock_taken_on_a_name_that_was_just_removed_is_taken_again(tmp_path, monkeypatch):
    """The last holder may remove the name between our open and our lock; then we hold a file nobody else can find."""
    path = tmp_path / "s1.lock"
    opened = os.open
    removed = []

    def open_and_lose(name, flags, mode=0o777):
        fd = opened(name, flags, mode)
        if not removed:
            removed.append(name)
            path.unlink()
        return fd

    monkeypatch.setattr(os, "open", open_and_lose)
    lock = Lock.acquire(path, "s1", Disk())
    monkeypatch.undo()
    assert (removed, is_held(path)) == ([path], True)
    lock.release()


@pytest.mark.parametrize("call", ["ftruncate", "pwrite"])
def test_P13_a_lock_the_disk_has_no_room_for_is_let_go_and_taken_once_there_is_room(tmp_path, monkeypatch, call):
    path = tmp_path / "s1.lock"

    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    before = len(list(Path("/proc/self/fd").iterdir()))
    with monkeypatch.context() as patch:
        patch.setattr(os, call, full)
        with pytest.raises(OSError, match="No space left"):
            Lock.acquire(path, "s1", Disk())
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    assert (is_held(path), path.exists()) == (False, False)
    lock = Lock.acquire(path, "s1", Disk())
    assert path.read_text() == str(os.getpid())
    lock.release()


def test_P13_a_lock_that_cannot_be_looked_at_is_let_go(tmp_path, monkeypatch):
    def failing(*arguments):
        raise OSError(errno.EIO, "Input/output error")

    before = len(list(Path("/proc/self/fd").iterdir()))
    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", failing)
        with pytest.raises(OSError, match="Input/output"):
            Lock.acquire(tmp_path / "s1.lock", "s1", Disk())
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_file_left_half_made_by_a_killed_holder_is_made_anew(tmp_path):
    path = tmp_path / "session.jsonl"
    path.with_name("session.jsonl.new").write_bytes(b"half of a hea")
    LogFile.appear(path, b"whole\n", Disk()).close()
    assert (path.read_bytes(), [at.name for at in tmp_path.iterdir()]) == (b"whole\n", ["session.jsonl"])


def test_a_file_reads_back_what_was_appended_and_what_was_cut(tmp_path):
    file = LogFile.appear(tmp_path / "session.jsonl", b"one\n", Disk())
    file.append(b"two\n")
    before = file.read()
    file.cut(4)
    file.append(b"three\n")
    assert (before, file.read(), file.size) == (b"one\ntwo\n", b"one\nthree\n", 10)
    file.close()
    file.close()


def test_folders_made_on_the_way_are_for_their_owner_only(tmp_path):
    make_folder(tmp_path / "a" / "b", Disk())
    assert [oct(path.stat().st_mode & 0o777) for path in (tmp_path / "a", tmp_path / "a" / "b")] == ["0o700"] * 2
