"""The subject: equal code has one, changed code another, with git and without."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from lanes.record import Subject
from lanes.subject import current_subject, digest_package, imported_folder


def git(root: Path, *arguments: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    names = ("-c", "user.name=a", "-c", "user.email=a@b.example", "-c", "init.defaultBranch=main")
    done = subprocess.run(
        ["git", *names, "-C", str(root), *arguments], check=True, capture_output=True, text=True, env=environment
    )
    return done.stdout.strip()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    for name in ("harness", "lanes", "requirements"):
        (root / name).mkdir(parents=True)
    (root / "harness" / "__init__.py").write_text("ONE = 1\n")
    (root / "lanes" / "a.py").write_text("TWO = 2\n")
    (root / "requirements" / "unit.txt").write_text("pytest==9\n")
    (root / ".gitignore").write_text("__pycache__/\nreports/out/\n")
    return root


@pytest.fixture
def repository(project: Path) -> Path:
    git(project, "init", "--quiet")
    git(project, "add", ".")
    git(project, "commit", "--quiet", "--message", "one")
    return project


def look(root: Path) -> Subject:
    return current_subject(root, package_folder=root / "harness")


def test_a_clean_tree_is_named_by_its_commit(repository: Path) -> None:
    subject = look(repository)

    assert (subject.commit, subject.tree, subject.dirty, subject.dirty_digest) == (
        git(repository, "rev-parse", "HEAD"),
        git(repository, "rev-parse", "HEAD^{tree}"),
        False,
        "",
    )


@pytest.mark.parametrize("change", ["edit", "add", "remove", "stage"])
def test_edge51_a_changed_tree_is_dirty_and_says_by_which_change(repository: Path, change: str) -> None:
    path = repository / "lanes" / ("b.py" if change == "add" else "a.py")
    clean = look(repository)
    if change == "remove":
        path.unlink()
    else:
        path.write_text("THREE = 3\n")
    if change == "stage":
        git(repository, "add", "lanes/a.py")

    dirty = look(repository)

    assert (clean.dirty, dirty.dirty, dirty.commit == clean.commit, dirty.identity == clean.identity) == (
        False,
        True,
        True,
        False,
    )


def test_two_equal_changes_have_one_digest_and_others_another(repository: Path) -> None:
    path = repository / "lanes" / "a.py"
    digests = []
    for text in ("THREE = 3\n", "FOUR = 4\n", "THREE = 3\n"):
        path.write_text(text)
        digests.append(look(repository).dirty_digest)

    assert (digests[0] == digests[2], digests[0] == digests[1]) == (True, False)


def test_ignored_files_and_bytecode_change_nothing(repository: Path) -> None:
    before = look(repository)
    for name in ("harness/__pycache__/a.pyc", "reports/out/board.txt"):
        path = repository / name
        path.parent.mkdir(parents=True)
        path.write_text("x")

    assert look(repository) == before


def test_without_git_the_files_themselves_name_the_tree(project: Path) -> None:
    before = look(project)
    (project / "lanes" / "a.py").write_text("THREE = 3\n")
    after = look(project)

    assert (before.commit, before.dirty, before.tree.startswith("sha256:"), before.tree == after.tree) == (
        "",
        False,
        True,
        False,
    )


def test_a_folder_inside_somebody_elses_repository_has_no_commit(repository: Path) -> None:
    inside = repository / "unpacked"
    (inside / "harness").mkdir(parents=True)

    assert look(inside).commit == ""


def test_variables_of_git_do_not_point_elsewhere(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = look(repository)
    monkeypatch.setenv("GIT_DIR", str(repository / "nowhere"))

    assert look(repository) == before


def test_the_loop_digest_follows_the_package_that_is_imported(repository: Path, tmp_path: Path) -> None:
    copy = tmp_path / "site-packages" / "harness"
    copy.mkdir(parents=True)
    (copy / "__init__.py").write_text("ONE = 1\n")
    same = digest_package(copy)
    (copy / "late.py").write_text("")

    assert (same == look(repository).loop_digest, digest_package(copy) == same) == (True, False)


def test_the_lock_digest_follows_the_lock_files(repository: Path) -> None:
    before = look(repository)
    (repository / "requirements" / "unit.txt").write_text("pytest==10\n")

    assert look(repository).lock_digest != before.lock_digest


def test_a_package_that_is_not_there_has_no_folder() -> None:
    assert (imported_folder("no_such_package"), imported_folder("lanes")) == (
        None,
        Path(__file__).resolve().parents[2],
    )
