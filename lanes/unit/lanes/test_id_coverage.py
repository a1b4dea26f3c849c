"""The ids of the specifications, compared with the names of the tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from lanes.cli import main
from lanes.errors import UsageError
from lanes.id_coverage import id_coverage

ROOT = Path(__file__).parents[3]
LIST = 'schema = "spec-ids/1"\n[loop]\nlog = ["L-01..L-03"]\ncancel = ["C-10"]\n[acp]\nacp = ["AC-01"]\n'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    suite = tmp_path / "lanes" / "unit" / "log"
    suite.mkdir(parents=True)
    (tmp_path / "lanes" / "spec_ids.toml").write_text(LIST)
    (suite / "test_log.py").write_text(
        "def test_L01_L03_reads(): ...\nasync def test_C10_x(): ...\ndef test_case_L02_y(): ...\n"
    )
    return tmp_path


def test_an_id_without_a_test_is_listed_and_a_field_case_of_the_same_spelling_does_not_count(project: Path) -> None:
    assert [(group.name, len(group.ids), group.missing) for group in id_coverage(project)] == [
        ("loop", 4, ("L-02",)),
        ("acp", 1, ("AC-01",)),
    ]


def test_the_command_lists_what_is_missing_and_fails(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["ids", "loop", "--root", str(project)])
    assert (code, capsys.readouterr().out) == (1, "loop: 4 ids, 1 without a test\n  L-02\n")


def test_the_command_succeeds_when_every_id_of_the_group_has_a_test(project: Path) -> None:
    (project / "lanes" / "spec_ids.toml").write_text('schema = "spec-ids/1"\n[loop]\nlog = ["L-01", "L-03"]\n')
    assert main(["ids", "loop", "--root", str(project)]) == 0


@pytest.mark.parametrize(
    ("text", "what"),
    [
        pytest.param('schema = "spec-ids/1"\n[loop]\nlog = ["L1"]\n', "L1 is no id", id="malformed"),
        pytest.param(
            'schema = "spec-ids/1"\n[loop]\nlog = ["L-01"]\nx = ["L-01"]\n', "L-01 is listed twice", id="twice"
        ),
        pytest.param('schema = "spec-ids/1"\nloop = 3\n', "is no table", id="no-table"),
        pytest.param('schema = "spec-ids/9"\n', "is of another form", id="other-schema"),
        pytest.param("[[[", "cannot be read", id="no-toml"),
    ],
)
def test_a_list_that_says_something_else_is_refused_with_its_place(project: Path, text: str, what: str) -> None:
    (project / "lanes" / "spec_ids.toml").write_text(text)
    with pytest.raises(UsageError, match=what) as refused:
        id_coverage(project)
    assert (refused.value.exit_code, refused.value.where.startswith("lanes/spec_ids.toml")) == (2, True)


def test_an_unknown_group_is_refused_with_the_nearest_name(project: Path) -> None:
    with pytest.raises(UsageError, match="did you mean 'loop'"):
        id_coverage(project, ["lop"])


@pytest.mark.parametrize("group", ["loop", "headless"])
def test_every_edge_of_what_is_built_has_a_test(group: str) -> None:
    assert [(each.name, each.missing) for each in id_coverage(ROOT, [group])] == [(group, ())]
