"""The store of expected output: differences are named, orphans found, accepting is refused where nobody reads."""

from pathlib import Path

import pytest

from lanes.errors import ExpectedError
from lanes.expected import Expected, MismatchError, diff_events, diff_json, mode_of, orphans

EVENTS = [{"type": "turn/start", "turn": 1}, {"type": "step/start", "step": 1}, {"type": "turn/end", "ok": True}]


def test_accepted_output_compares_equal_afterwards(tmp_path: Path) -> None:
    writer = Expected(tmp_path, "accept")
    writer.check_events("story/session.jsonl", EVENTS)
    writer.check_text("story/stdout.txt", "a\u2028b\n")

    reader = Expected(tmp_path)
    reader.check_events("story/session.jsonl", EVENTS)
    reader.check_text("story/stdout.txt", "a\u2028b\n")

    assert (writer.changed, reader.changed) == (["story/session.jsonl", "story/stdout.txt"], [])


def test_accepting_what_is_already_stored_writes_nothing(tmp_path: Path) -> None:
    Expected(tmp_path, "accept").check_events("a.jsonl", EVENTS)
    again = Expected(tmp_path, "accept")
    again.check_events("a.jsonl", EVENTS)

    assert again.changed == []


def test_a_difference_names_the_event_the_field_and_the_neighbour(tmp_path: Path) -> None:
    Expected(tmp_path, "accept").check_events("story/session.jsonl", EVENTS)
    changed = [EVENTS[0], {"type": "step/start", "step": 2}, EVENTS[2]]

    with pytest.raises(MismatchError) as caught:
        Expected(tmp_path).check_events("story/session.jsonl", changed)

    assert str(caught.value) == (
        "story/session.jsonl: output differs from the expected one [EXPECTED_MISMATCH]\n"
        "  event 1 (step/start) after turn/start:\n"
        "    step  expected 1  is 2\n"
        "  fix: undo the change, or accept the new output after reading it: tox -e accept"
    )


def test_a_missing_expected_file_fails_and_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(MismatchError, match="no expected output is stored"):
        Expected(tmp_path).check_text("story/stdout.txt", "x")

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(1, 1.0, id="integer-and-float"),
        pytest.param(1, True, id="integer-and-boolean"),
        pytest.param({"a": None}, {}, id="null-and-absent"),
        pytest.param([1, 2], [2, 1], id="order"),
        pytest.param("é", "e\u0301", id="two-spellings-of-a-letter"),
    ],
)
def test_values_that_python_calls_equal_or_people_call_equal_are_told_apart(old: object, new: object) -> None:
    assert diff_json(old, new) != []


def test_an_event_too_many_and_one_too_few_are_named() -> None:
    assert diff_events(EVENTS[:2], EVENTS) == ["2 events expected, 3 came; extra: turn/end"]
    assert diff_events(EVENTS, EVENTS[:1]) == ["3 events expected, 1 came; missing: step/start, turn/end"]


def test_orphans_missing_and_doubly_named_files_are_listed(tmp_path: Path) -> None:
    store = Expected(tmp_path, "accept")
    store.check_text("a/stdout.txt", "x")
    store.check_text("gone/stdout.txt", "x")

    found = orphans(tmp_path, ["a/stdout.txt", "a/stdout.txt", "b/stdout.txt"])

    assert found == [
        "gone/stdout.txt: no story names this file",
        "b/stdout.txt: named and not there",
        "a/stdout.txt: named by more than one story",
    ]


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        pytest.param({"LANES_EXPECTED": "accept", "CI": "true"}, "not accepted in CI", id="ci"),
        pytest.param({"LANES_EXPECTED": "accept", "PYTEST_XDIST_WORKER": "gw0"}, "parallel workers", id="worker"),
        pytest.param({"LANES_EXPECTED": "acept"}, "did you mean 'accept'", id="near-miss"),
        pytest.param({"LANES_EXPECTED": "update"}, "leave it unset", id="unknown-word"),
    ],
)
def test_accepting_is_refused_where_nobody_reads_the_difference(environ: dict[str, str], message: str) -> None:
    with pytest.raises(ExpectedError) as caught:
        mode_of(environ)

    assert message in str(caught.value)


def test_accepting_is_allowed_on_a_persons_machine_and_comparing_is_the_default() -> None:
    assert (mode_of({"LANES_EXPECTED": "accept"}), mode_of({}), mode_of({"LANES_EXPECTED": ""})) == (
        "accept",
        "compare",
        "compare",
    )


def test_a_damaged_expected_file_names_its_line(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"a":1}\n{"a":\n', encoding="utf-8")

    with pytest.raises(ExpectedError, match=r"a\.jsonl, line 2: not valid JSON"):
        Expected(tmp_path).check_events("a.jsonl", [])
