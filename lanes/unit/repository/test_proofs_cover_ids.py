"""Every edge that a specification names has a proof that turns a test of its name red."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from lanes.id_coverage import id_coverage
from lanes.spec_ids import spec_ids

ROOT = Path(__file__).parents[3]
_CASE_ID = re.compile(r"(?<![A-Za-z0-9])([A-Z]{1,3})-?([0-9]{2})(?![A-Za-z0-9])")


def ids_of(item: str) -> frozenset[str]:
    """The ids an item stands for: those its test's name begins with, and those its case is called by."""
    name, _, case = item.rpartition("::")[2].partition("[")
    return frozenset(spec_ids(name)) | {f"{letters}-{number}" for letters, number in _CASE_ID.findall(case)}


def expected_red(root: Path) -> list[str]:
    """The items that some proof of a project says it turns red."""
    proofs = [tomllib.loads(path.read_text("utf-8")) for path in sorted((root / "lanes" / "proofs").glob("*.toml"))]
    return [item for proof in proofs for item in proof["expect_red"]]


ITEMS = {
    "one": ("lanes/unit/log/test_x.py::test_L01_a_seq", {"L-01"}),
    "two": ("lanes/unit/loop/test_x.py::test_P10_P11_both[sync-1]", {"P-10", "P-11"}),
    "by_case": ("lanes/unit/loop/test_x.py::test_a_table[T-06-x]", {"T-06"}),
    "by_case_without_hyphen": ("lanes/unit/loop/test_x.py::test_a_table[T06]", {"T-06"}),
    "later_in_the_name": ("lanes/unit/loop/test_x.py::test_a_name_with_L01", set()),
    "field_case": ("lanes/unit/loop/test_x.py::test_case_B20_a_call", set()),
}


@pytest.mark.parametrize(("item", "ids"), ITEMS.values(), ids=ITEMS.keys())
def test_an_item_stands_for_the_ids_it_is_called_by(item: str, ids: set[str]) -> None:
    assert ids_of(item) == ids


def test_every_edge_of_every_specification_has_a_proof_that_turns_its_test_red() -> None:
    proven = frozenset[str]().union(*map(ids_of, expected_red(ROOT)))
    missing = {group.name: [each for each in group.ids if each not in proven] for group in id_coverage(ROOT)}
    assert missing == {group.name: [] for group in id_coverage(ROOT)}
