"""`mock-provider check`: everything that is wrong, at once, each with its place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mock_provider.cli import main

FIVE_MISTAKES = """\
version: 1
model: m
conversations:
  main:
    when: {user_contains: README}
    steps:
      - expect: {lastuser: README}
        reply: hi
      - reply:
          - tool_call: {name: read_file, arguments: "{not json"}
      - reply: 42
      - http_error: {status: 299}
  main:
    steps:
      - {reply: again, repeat: forever}
      - {reply: never}
"""
FIVE = [
    (7, 18, "SCRIPT_KEY", "unknown key 'lastuser'; did you mean 'last_user'?"),
    (10, 53, "SCRIPT_VALUE", "the text is not JSON: "),
    (11, 16, "SCRIPT_TYPE", "found the number 42"),
    (12, 30, "SCRIPT_VALUE", "299 is out of range"),
    (13, 3, "SCRIPT_DUPLICATE", "'main' is given twice"),
]


def check(tmp_path: Path, text: str, name: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[list[object]]]:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    code = main(["check", "--format", "json", str(path)])
    problems = json.loads(capsys.readouterr().out)["scripts"][0]["problems"]
    return code, [[one["line"], one["column"], one["code"], one["what"]] for one in problems]


def test_five_mistakes_are_five_problems_with_line_and_column(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, found = check(tmp_path, FIVE_MISTAKES, "five.yaml", capsys)
    begun = [[*problem[:3], str(problem[3])[: len(what)]] for problem, (*_, what) in zip(found, FIVE, strict=True)]
    assert (code, begun) == (2, [list(one) for one in FIVE])


def test_the_same_mistakes_in_json_have_their_places_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = '{"version": 1,\n "steps": [\n  {"rply": "hi"},\n  {"reply": 3},\n  {"reply": "a", "repeat": 0}]}\n'
    code, found = check(tmp_path, text, "bad.json", capsys)
    assert (code, [problem[:3] for problem in found]) == (
        2,
        [[3, 3, "SCRIPT_MISSING"], [3, 4, "SCRIPT_KEY"], [4, 13, "SCRIPT_TYPE"], [5, 28, "SCRIPT_VALUE"]],
    )


def test_the_text_form_says_the_same_for_a_person(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "five.yaml"
    path.write_text(FIVE_MISTAKES, encoding="utf-8")
    code = main(["check", str(path)])
    told = capsys.readouterr().err
    assert (code, [f"{path}:{line}:{column}" in told for line, column, *_ in FIVE]) == (2, [True] * 5)


def test_a_summary_says_the_seed_of_faults_by_lot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "good.yaml"
    path.write_text("version: 1\nfault: {random: {weights: {reset: 1}, seed: 5}}\nsteps: [{reply: hi}]\n", "utf-8")
    assert main(["check", str(path)]) == 0
    assert "random faults, seed 5" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("limit", "reply", "what"),
    [
        pytest.param("script=20", "hi", "32 bytes are more than 20", id="script"),
        pytest.param("event=3", "four", "a piece of 4 bytes is more than 3", id="event"),
    ],
)
def test_a_limit_is_told_with_its_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], limit: str, reply: str, what: str
) -> None:
    path = tmp_path / "large.yaml"
    path.write_text(f"version: 1\nsteps: [{{reply: {reply}}}]\n", encoding="utf-8")
    assert main(["check", "--limit", limit, str(path)]) == 2
    assert f"{what} [SCRIPT_SIZE]" in capsys.readouterr().err
    assert main(["check", str(path)]) == 0


def test_pieces_within_the_limit_make_a_text_beyond_it(tmp_path: Path) -> None:
    path = tmp_path / "cut.yaml"
    path.write_text("version: 1\nsteps: [{reply: four, stream: {split: {chars: 2}}}]\n", encoding="utf-8")
    assert main(["check", "--limit", "event=3", str(path)]) == 0
