"""Edits of a proof as text: what does not fit is said, and nothing is edited then."""

from __future__ import annotations

from pathlib import Path

import pytest

from lanes.breakits_copy import Copy, edit_copy
from lanes.proof_declaration import Edit, Proof
from lanes.proof_edit import EditProblem, apply_edits
from lanes.proof_verdict import Observation, judge

TEXT = "def one():\n    return 1\n\n\ndef two():\n    return 1\n"


def test_proofs_73_an_anchor_that_matches_twice_is_not_applied(tmp_path: Path) -> None:
    copy = Copy(tmp_path / "tree", tmp_path / "bytecode", tmp_path / "tmp")
    copy.root.mkdir()
    file = copy.root / "numbers.py"
    file.write_text(TEXT, "utf-8")
    edit = Edit("numbers.py", "    return 1\n", "    return 2\n")

    applied = edit_copy(copy, Proof("an-id", "a.claim", "it matters", (edit,), ()))

    assert (applied.problem, file.read_text("utf-8")) == ("not applied", TEXT)
    assert applied.detail == "numbers.py: the anchor occurs 2 times: return 1"
    assert judge(Observation(frozenset({"an item"}), halt="not applied")).verdict == "not applied"


@pytest.mark.parametrize(
    ("anchor", "replace", "message"),
    [
        pytest.param("return 3", "return 4", "the anchor occurs 0 times: return 3", id="missing"),
        pytest.param("def one", "def one", "the edit changes nothing", id="without-effect"),
    ],
)
def test_an_edit_that_changes_nothing_is_told(anchor: str, replace: str, message: str) -> None:
    with pytest.raises(EditProblem) as caught:
        apply_edits(TEXT, [Edit("numbers.py", anchor, replace)])

    assert str(caught.value) == message
