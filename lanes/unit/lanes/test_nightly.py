"""The nightly command: what it writes down, what it says, and what it has the forge's program do."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from lanes.errors import UsageError
from lanes.nightly import PAGE, act_arguments, nightly
from reports.history import append_history, read_history
from reports.issues import Act
from reports.nights import chain, chain_problems
from reports.trend import NEVER

CLAIMS = """
schema = "claims/1"

[[claim]]
id = "a.claim"
sentence = "It holds."
surface = "none"
required = ["unit"]
optional = ["real"]
owner = "us"
"""


class Forge:
    """A forge whose program is never started; it keeps what it was told."""

    def __init__(self, issues: Sequence[dict[str, object]] = ()) -> None:
        self.issues = issues
        self.told: list[tuple[str, ...]] = []

    def __call__(self, arguments: Sequence[str]) -> str:
        self.told.append(tuple(arguments))
        return json.dumps(self.issues) if arguments[1] == "list" else ""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "lanes").mkdir()
    (tmp_path / "lanes" / "claims.toml").write_text(CLAIMS, "utf-8")
    return tmp_path


def run(root: Path, *arguments: str, forge: Forge | None = None) -> tuple[str, int, str]:
    return nightly(["--root", str(root), *arguments], forge=forge)


def history_of(root: Path) -> list[dict[str, object] | None]:
    return list(read_history(root / "reports" / "history.jsonl"))


def failed_night(root: Path, date: str) -> None:
    line = {"night": date, "at": f"{date}T03:00:00Z", "claim": "a.claim", "provider": "acme", "status": "failed"}
    append_history(root / "reports" / "history.jsonl", chain([line], ""))


def test_a_night_is_appended_and_the_page_of_the_trend_written(root: Path) -> None:
    text, code, complaint = run(root, "--append", "--night", "2031-03-04")

    (line,) = history_of(root)
    assert line is not None
    assert (line["night"], line["claim"], line["status"], line["previous"]) == ("2031-03-04", "a.claim", "not run", "")
    assert (code, complaint, (root / "reports" / "out" / PAGE).read_text("utf-8").startswith(text)) == (0, "", True)


def test_nights_follow_each_other_in_a_chain(root: Path) -> None:
    for date in ("2031-03-04", "2031-03-05"):
        run(root, "--append", "--night", date)

    assert (len(history_of(root)), chain_problems(history_of(root))) == (2, ())


def test_a_night_is_written_down_once(root: Path) -> None:
    run(root, "--append", "--night", "2031-03-04")

    with pytest.raises(UsageError, match=r"the night of 2031-03-04 is in the history already"):
        run(root, "--append", "--night", "2031-03-04")
    assert len(history_of(root)) == 1


@pytest.mark.parametrize("date", ["today", "2031-3-4", "2031-03-04 "])
def test_a_night_is_named_by_its_date(root: Path, date: str) -> None:
    with pytest.raises(UsageError, match="--night is"):
        run(root, "--append", "--night", date)


def test_without_any_night_that_is_the_finding(root: Path) -> None:
    _text, code, complaint = run(root)

    assert (code, complaint) == (1, f"{NEVER}\n")


def test_history_67_a_line_that_was_taken_out_ends_with_3(root: Path) -> None:
    for date in ("2031-03-04", "2031-03-05", "2031-03-06"):
        run(root, "--append", "--night", date)
    path = root / "reports" / "history.jsonl"
    lines = path.read_text("utf-8").splitlines(keepends=True)
    path.write_text(lines[0] + lines[2], "utf-8")

    _text, code, complaint = run(root)

    assert (code, "line 2 of the history does not follow" in complaint) == (3, True)


def test_a_missed_night_opens_an_issue_by_the_forge_s_own_program(root: Path) -> None:
    failed_night(root, "2020-03-04")
    forge = Forge()

    text, code, _complaint = run(root, "--issues", "--where", "run 7", forge=forge)

    listed, labelled, opened = forge.told
    assert (code, listed[:2], opened[:2]) == (1, ("issue", "list"), ("issue", "create"))
    assert labelled == ("label", "create", "nightly-real", "--force")
    assert "--label=nightly-real" in opened
    assert opened[-1].endswith("hours\nrun 7")
    assert "issue open: nightly real: no night was run" in text


def test_a_night_that_was_run_closes_the_issue_about_the_missed_one(root: Path) -> None:
    failed_night(root, "2020-03-04")
    forge = Forge([{"number": 9, "title": "nightly real: no night was run"}, {"number": "x", "title": 4}, 7])

    run(root, "--append", "--issues", "--night", "2031-03-04", forge=forge)

    assert forge.told[-1][:3] == ("issue", "close", "9")


def test_no_value_of_an_act_can_be_taken_for_a_flag() -> None:
    act = Act("open", "--delete", "-R other/repository")

    assert act_arguments(act) == (
        "issue",
        "create",
        "--label=nightly-real",
        "--title=--delete",
        "--body=-R other/repository",
    )
    assert act_arguments(Act("close", "t", "b", 4)) == ("issue", "close", "4", "--comment=b")


def test_a_machine_without_the_program_says_so(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)

    with pytest.raises(UsageError, match="the program gh is not here"):
        run(root, "--issues")


def test_an_answer_that_is_no_json_is_told(root: Path) -> None:
    with pytest.raises(UsageError, match="did not answer with JSON"):
        nightly(["--root", str(root), "--issues"], forge=lambda arguments: "<html>")


def test_an_append_that_was_cut_before_keeps_the_torn_line_apart(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    path.write_bytes(b'{"night": "2031')

    append_history(path, [{"night": "2031-03-04"}])

    assert read_history(path) == (None, {"night": "2031-03-04"})
