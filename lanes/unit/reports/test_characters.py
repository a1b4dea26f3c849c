"""Characters that an output cannot carry (case B40): shown by number in every field of every output."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as Xml

import pytest

from lanes.policy import LANES
from lanes.record import Attempt, Record
from lanes.record_form import record_from_json
from reports.board import Board
from reports.render.characters import as_line, as_text, as_unicode, as_xml, stand_in, width_of
from reports.render.json_board import render_json
from reports.render.junit import render_junit
from reports.render.markdown import render_markdown
from reports.render.text import render_text

if TYPE_CHECKING:
    from lanes.unit.reports.conftest import Evidence

CASE = json.loads((Path(__file__).parents[2] / "cases" / "reports" / "B40-strings.json").read_text(encoding="utf-8"))
STRINGS: list[str] = CASE["strings"]
NOT_UTF8 = bytes.fromhex(CASE["stdout_bytes_hex"]).decode("utf-8", "surrogateescape")
ALL = [*STRINGS, NOT_UTF8, "tab\tnew\nline\r\nend\rlone", "\u2028 \u202e"]
LANE = "la\x1bne"


def nasty_record(evidence: Evidence, number: int, text: str) -> Record:
    """One failing record with the text in every place that a test can write to."""
    return replace(
        evidence.record("unit", f"lanes/unit/test_a.py::test_{number}[{text}]", "failed"),
        lane=LANE,
        run_id="run-nasty",
        failure=f"AssertionError: {text}",
        captured_stdout=text,
        captured_stderr=text,
        reason_code="known-failure" if number % 3 == 0 else None,
        reason_text=text,
        model={"requested": text, "reported": text, "provider": text},
        attempts=(Attempt(1, "failed", failure=text),),
    )


@pytest.fixture
def board(evidence: Evidence) -> Board:
    records = [nasty_record(evidence, number, text) for number, text in enumerate(ALL)]
    skipped = replace(
        evidence.record("unit", "lanes/unit/test_a.py::test_skipped", "not run", reason_code="platform"),
        lane=LANE,
        run_id="run-nasty",
        reason_text="".join(ALL),
    )
    policy = {LANE: replace(LANES["unit"], name=LANE)}
    claims = evidence.claims(evidence.claim(required=(LANE,), optional=()))
    bundle = evidence.bundle(*records, skipped, lane=LANE, run_id="run-nasty", lane_mark="", tox_env="", marker="self")
    return evidence.fold(bundle, claims=claims, policy=policy)


def parse(board: Board) -> Xml.Element:
    return Xml.fromstring(render_junit(board)[LANE].encode("utf-8"))  # noqa: S314 - our own document


def restored(text: str) -> str:
    """What a strict XML parser must give back: the text with numbers for what XML forbids."""
    return as_xml(text)


def test_case_B40_a_strict_xml_parser_reads_the_file_with_every_case_and_result(board: Board) -> None:
    suite = parse(board).find("testsuite")

    assert suite is not None
    outcomes = ["skipped" if case.find("skipped") is not None else "failure" for case in suite.findall("testcase")]
    known = sum(1 for item in board.column(LANE).items if item.is_known)
    assert (
        len(outcomes),
        outcomes.count("skipped"),
        suite.get("tests"),
        suite.get("failures"),
        suite.get("skipped"),
    ) == (
        len(ALL) + 1,
        known + 1,
        str(len(ALL) + 1),
        str(len(ALL) - known),
        str(known + 1),
    )


def test_case_B40_every_place_comes_back_as_written_with_numbers_for_what_xml_forbids(board: Board) -> None:
    suite = parse(board).find("testsuite")
    assert suite is not None
    items = {item.node_id: item for item in board.column(LANE).items}

    found = {}
    for case in suite.findall("testcase"):
        properties = {each.get("name"): each.get("value") for each in case.iter("property")}
        failure = case.find("failure")
        found[case.get("name")] = (
            properties.get("model.reported"),
            case.findtext("system-out"),
            case.findtext("system-err"),
            None if failure is None else failure.text,
        )

    expected = {}
    for item in items.values():
        if item.status == "failed":
            text = item.stdout
            name = restored(item.node_id.partition("::")[2])
            failure = None if item.is_known else restored(item.failure)
            expected[name] = (restored(text), restored(text), restored(text), failure)
    assert {name: value for name, value in found.items() if name != "test_skipped"} == expected
    assert suite.get("name") == "la<U+001B>ne (scripted)"


def test_case_B40_a_skip_reason_comes_back_as_written(board: Board) -> None:
    root = parse(board)

    skipped = [case.find("skipped") for case in root.iter("testcase") if case.get("name") == "test_skipped"]

    assert [each.get("message") for each in skipped if each is not None] == [
        "not run: not on this platform: " + restored("".join(ALL))
    ]


@pytest.mark.parametrize("output", ["text", "markdown", "json", "junit"])
def test_case_B40_every_output_is_valid_utf8_without_a_control(board: Board, output: str) -> None:
    render = {
        "text": lambda: render_text(board),
        "markdown": lambda: render_markdown(board),
        "json": lambda: render_json(board),
        "junit": lambda: render_junit(board)[LANE],
    }[output]

    document = render().encode("utf-8").decode("utf-8")

    controls = [
        hex(ord(each)) for each in document if (ord(each) < 32 and each not in "\n\t") or 127 <= ord(each) < 160
    ]
    assert (controls, "U+001B" in document or "\\u001b" in document) == ([], True)


def test_case_B40_the_json_board_parses_and_holds_whole_characters_only(board: Board) -> None:
    document = json.loads(render_json(board))

    failures = {item["failure"] for column in document["columns"] for item in column["items"]}
    assert {f"AssertionError: {as_unicode(text)}" for text in ALL} <= failures
    json.dumps(document, ensure_ascii=False).encode("utf-8")


def test_case_B40_a_record_carries_every_string_to_the_disk_and_back(evidence: Evidence) -> None:
    records = [nasty_record(evidence, number, text) for number, text in enumerate(ALL)]

    assert [record_from_json(record.to_json()).captured_stdout for record in records] == ALL


@pytest.mark.parametrize(
    ("function", "value", "expected"),
    [
        pytest.param(as_xml, STRINGS[0], "colour <U+001B>[31mred<U+001B>[0m", id="xml-escape-sequence"),
        pytest.param(as_xml, STRINGS[1], "nul <U+0000> here", id="xml-nul"),
        pytest.param(as_xml, STRINGS[2], "vt <U+000B> ff <U+000C> bs <U+0008>", id="xml-controls"),
        pytest.param(as_xml, STRINGS[4], "nonchars <U+FFFE> <U+FFFF>", id="xml-nonchars"),
        pytest.param(as_xml, STRINGS[5], "lone <U+D800> half", id="xml-surrogate"),
        pytest.param(as_xml, STRINGS[6], STRINGS[6], id="xml-legal"),
        pytest.param(as_xml, STRINGS[7], STRINGS[7], id="xml-c1-is-legal"),
        pytest.param(as_text, STRINGS[7], "del <U+007F> c1 <U+0085> <U+009B>", id="text-c1"),
        pytest.param(as_text, "a\r\nb\tc\rd", "a\nb\tc<U+000D>d", id="text-line-ends"),
        pytest.param(as_text, "\u202eevil\u200b", "<U+202E>evil<U+200B>", id="text-tricks"),
        pytest.param(as_line, "a\n  b\tc\x00", "a b c<U+0000>", id="line"),
        pytest.param(as_unicode, "\x1b \ud800", "\x1b <U+D800>", id="unicode"),
    ],
)
def test_a_forbidden_character_is_shown_by_its_number(function: object, value: str, expected: str) -> None:
    assert function(value) == expected  # type: ignore[operator]


def test_a_stand_in_is_plain_ascii() -> None:
    assert stand_in("\x1b") == "<U+001B>"


@pytest.mark.parametrize(("text", "width"), [("abc", 3), ("日本", 4), ("e\u0301", 1), ("", 0)])
def test_the_width_of_a_line_is_counted_in_terminal_columns(text: str, width: int) -> None:
    assert width_of(text) == width
