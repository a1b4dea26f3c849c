from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path
from urllib.parse import quote

import pytest

from lanes.leftovers import TrackedFiles, remove_secrets

SECRET = 'sk-canary/123+"é"'


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(SECRET, id="plain"),
        pytest.param(json.dumps(SECRET), id="json"),
        pytest.param(quote(SECRET, safe=""), id="url"),
        pytest.param(base64.b64encode(SECRET.encode()).decode(), id="base64"),
        pytest.param(base64.b64encode(b"user:" + SECRET.encode()).decode(), id="base64-inside"),
    ],
)
def test_lane_72_a_key_is_found_in_every_spelling_and_its_file_is_gone(text: str, tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    leak = tmp_path / "deep" / "leak.txt"
    leak.write_text(f"before {text} after", "utf-8")
    (tmp_path / "clean.txt").write_text("nothing", "utf-8")

    assert remove_secrets(tmp_path, {SECRET}) == ("deep/leak.txt",)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["clean.txt"]


def test_without_a_key_nothing_is_searched(tmp_path: Path) -> None:
    (tmp_path / "clean.txt").write_text("nothing", "utf-8")

    assert remove_secrets(tmp_path, frozenset()) == ()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e@example.com"]
    for name in ("kept.txt", "edited.txt", "dirty.txt"):
        (tmp_path / name).write_text("as it was", "utf-8")
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "start"]):
        subprocess.run([*git, *command], check=True, capture_output=True)
    (tmp_path / "dirty.txt").write_text("changed before", "utf-8")
    return tmp_path


def test_only_what_changed_meanwhile_is_named(repository: Path) -> None:
    tracked = TrackedFiles(repository)

    (repository / "edited.txt").write_text("changed", "utf-8")
    (repository / "new.txt").write_text("not tracked", "utf-8")

    assert tracked.changed() == ("edited.txt",)


def test_a_dirty_file_that_changes_again_or_is_put_back_is_named(repository: Path) -> None:
    again, back = TrackedFiles(repository), TrackedFiles(repository)

    (repository / "dirty.txt").write_text("changed again", "utf-8")
    assert again.changed() == ("dirty.txt",)
    (repository / "dirty.txt").write_text("as it was", "utf-8")
    assert back.changed() == ("dirty.txt",)


def test_a_removed_file_is_named(repository: Path) -> None:
    tracked = TrackedFiles(repository)

    (repository / "kept.txt").unlink()

    assert tracked.changed() == ("kept.txt",)


def test_a_folder_without_version_control_has_no_tracked_files(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a", "utf-8")

    assert TrackedFiles(tmp_path).changed() == ()
