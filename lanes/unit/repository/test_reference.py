"""The reference pages say what the code says."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lanes.observation import not_run
from lanes.unit.repository import reference
from lanes.unit.repository.documents import help_of


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if sys.version_info[:2] != (3, 11):
        not_run("platform", "argparse lays its help out in another way in each version; the pages are those of 3.11")
    folder = tmp_path_factory.mktemp("reference")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", reference.WIDTH)
        help_of.cache_clear()
        reference.main(folder)
        help_of.cache_clear()
    return folder


@pytest.mark.parametrize("name", ["commands.md", "claims.md", "exit-codes.md", "statuses.md", "lanes.md"])
def test_a_reference_page_is_what_the_code_says_today(written: Path, name: str) -> None:
    assert (reference.FOLDER / name).read_text("utf-8") == (written / name).read_text("utf-8")


def test_no_reference_page_is_left_that_nobody_writes(written: Path) -> None:
    assert {path.name for path in reference.FOLDER.iterdir()} == {path.name for path in written.iterdir()}
