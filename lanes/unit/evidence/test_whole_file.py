"""A file is the old one or the new one, whoever writes, and however a write ends."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lanes.whole_file import whole_file, write_whole


def everything_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def begin_and_fail(path: Path, error: BaseException) -> None:
    with whole_file(path, synced=True) as file:
        file.write(b"half")
        file.flush()
        raise error


@pytest.mark.parametrize("synced", [pytest.param(False, id="plain"), pytest.param(True, id="synced")])
def test_a_written_file_stands_alone_and_only_its_owner_may_read_it(tmp_path: Path, synced: bool) -> None:
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "a").chmod(0o644)

    write_whole(tmp_path / "a", b"new", synced=synced)

    assert (everything_in(tmp_path), (tmp_path / "a").stat().st_mode & 0o777) == ({"a": b"new"}, 0o600)


def test_a_reader_sees_the_old_file_until_all_is_written(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    with whole_file(tmp_path / "a") as file:
        file.write(b"new")
        file.flush()
        assert (tmp_path / "a").read_bytes() == b"old"
    assert everything_in(tmp_path) == {"a": b"new"}


@pytest.mark.parametrize("error", [OSError("full"), ValueError("no cassette"), KeyboardInterrupt()], ids=repr)
def test_a_write_that_fails_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path, error: BaseException) -> None:
    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises(type(error)):
        begin_and_fail(tmp_path / "a", error)
    assert everything_in(tmp_path) == {"a": b"old"}


def test_a_file_that_cannot_be_put_in_its_place_leaves_nothing_beside_it(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(IsADirectoryError):
        write_whole(tmp_path / "a", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_two_writers_at_once_do_not_mix_and_the_last_to_end_stays(tmp_path: Path) -> None:
    with whole_file(tmp_path / "a") as first:
        first.write(b"first " * 10_000)
        with whole_file(tmp_path / "a") as second:
            second.write(b"second")
            first.write(b"first " * 10_000)
        assert (tmp_path / "a").read_bytes() == b"second"
    assert everything_in(tmp_path) == {"a": b"first " * 20_000}


def test_what_a_killed_writer_left_is_in_nobodys_way(tmp_path: Path) -> None:
    with whole_file(tmp_path / "a") as file:
        own = Path(file.name).name
    front, _dash, number = own.rpartition("-")
    left = [f"{front}-{int(number.removesuffix('.new')) + ahead}.new" for ahead in range(1, 4)]
    for name in left:
        (tmp_path / name).write_bytes(b"half")

    write_whole(tmp_path / "a", b"new")

    assert everything_in(tmp_path) == {"a": b"new", **dict.fromkeys(left, b"half")}


def test_the_longest_name_that_a_folder_takes_can_be_written(tmp_path: Path) -> None:
    name = "ü" * (os.pathconf(tmp_path, "PC_NAME_MAX") // 2)
    write_whole(tmp_path / name, b"new")
    assert everything_in(tmp_path) == {name: b"new"}
