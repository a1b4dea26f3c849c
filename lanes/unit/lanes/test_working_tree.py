"""The working tree of a proof run: edits land in copies alone, and no change of the tree goes unseen."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from lanes.breakits_copy import copy_again, copy_tree, edit_copy, tree_digest, tree_state
from lanes.proof_declaration import Edit, Proof

CODE = "def may_enter(age):\n    return age >= 18\n"
PROOF = Proof("an-id", "a.claim", "it matters", (Edit("shop/door.py", "age >= 18", "age >= 0"),), ())


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository with a file, a link to it, and a file that nobody tracks."""
    root = tmp_path / "tree"
    (root / "shop").mkdir(parents=True)
    (root / "shop" / "door.py").write_text(CODE, "utf-8")
    (root / "shop" / "entrance.py").symlink_to("door.py")
    for command in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", "-C", str(root), *command], check=True, capture_output=True)
    (root / "untracked.txt").write_text("nobody's", "utf-8")
    return root


def test_proofs_79_an_edit_lands_in_its_copy_and_the_working_tree_is_what_it_was(tree: Path, tmp_path: Path) -> None:
    before = tree_state(tree)
    original = copy_tree(tree, tmp_path / "original")
    edited = copy_again(original, tmp_path / "edited")

    applied = [edit_copy(copy, PROOF).problem for copy in (edited, original)]

    assert (applied, tree_state(tree)) == (["", ""], before), "the working tree was edited"
    assert (edited.root / "shop" / "door.py").read_text("utf-8") == CODE.replace("18", "0")
    assert (edited.root / "shop" / "entrance.py").is_symlink()


def rewritten(file: Path) -> None:
    file.write_text(CODE.replace("18", "21"), "utf-8")  # as long as it was


def made_executable(file: Path) -> None:
    file.chmod(0o755)


def removed(file: Path) -> None:
    file.unlink()


def linked(file: Path) -> None:
    file.unlink()
    file.symlink_to("entrance.py")


@pytest.mark.parametrize("change", [rewritten, made_executable, removed, linked])
def test_proofs_79_a_change_of_a_tracked_file_gives_the_tree_another_digest(
    tree: Path, change: Callable[[Path], None]
) -> None:
    before = tree_digest(tree_state(tree))

    change(tree / "shop" / "door.py")

    assert tree_digest(tree_state(tree)) != before


def test_a_file_that_nobody_tracks_is_no_part_of_the_tree(tree: Path) -> None:
    before = tree_digest(tree_state(tree))

    (tree / "untracked.txt").write_text("somebody's", "utf-8")

    assert tree_digest(tree_state(tree)) == before
