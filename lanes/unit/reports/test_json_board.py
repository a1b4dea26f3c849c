"""The JSON board: its published form, and that it says what the board says."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lanes.record import Attempt, Subject
from reports.board import Board, LastSeen
from reports.render.json_board import render_json

if TYPE_CHECKING:
    from lanes.unit.reports.conftest import Evidence

SCHEMA = json.loads((Path(__file__).parents[3] / "docs" / "schemas" / "board-1.json").read_text(encoding="utf-8"))
TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "boolean": bool,
    "null": type(None),
}
KNOWN_KEYWORDS = {
    "$schema", "$defs", "$ref", "title", "description", "type", "const", "enum", "properties", "required",
    "additionalProperties", "items",
}  # fmt: skip


def problems(value: object, schema: dict[str, object], where: str = "$") -> list[str]:
    """What breaks the schema, for the part of JSON Schema that the published file uses."""
    assert schema.keys() <= KNOWN_KEYWORDS, f"the check does not know {sorted(schema.keys() - KNOWN_KEYWORDS)}"
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        return problems(value, SCHEMA["$defs"][name], where)
    found: list[str] = []
    if "const" in schema and value != schema["const"]:
        found.append(f"{where} is {value!r}")
    if "enum" in schema and value not in schema["enum"]:  # type: ignore[operator]
        found.append(f"{where} is {value!r}")
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(
        isinstance(value, TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))  # type: ignore[index]
        for kind in kinds  # type: ignore[attr-defined]
    ):
        return [*found, f"{where} is no {kinds}"]
    if isinstance(value, dict):
        properties: dict[str, dict[str, object]] = schema.get("properties", {})  # type: ignore[assignment]
        found += [f"{where}.{name} is missing" for name in schema.get("required", []) if name not in value]  # type: ignore[attr-defined]
        further = schema.get("additionalProperties", True)
        for name, item in value.items():
            if name in properties:
                found += problems(item, properties[name], f"{where}.{name}")
            elif further is False:
                found.append(f"{where}.{name} is unknown")
            elif isinstance(further, dict):
                found += problems(item, further, f"{where}.{name}")
    if isinstance(value, list) and "items" in schema:
        for number, item in enumerate(value):
            found += problems(item, schema["items"], f"{where}[{number}]")  # type: ignore[arg-type]
    return found


@pytest.fixture
def board(evidence: Evidence) -> Board:
    """A board with every kind of cell, and with everything that can stand beside the cells."""
    known = {"reason_code": "known-failure", "reason_text": "https://example.com/7 until 2999-01-01"}
    unit = [
        evidence.record("unit", "lanes/unit/test_a.py::test_1"),
        evidence.record("unit", "lanes/unit/test_a.py::test_2", "failed", failure="boom", **known),
    ]
    snapshot = evidence.record("snapshot", verdict="not run", reason_code="platform", reason_text="no forks")
    replay = evidence.record("replay", cassette={"age_days": 103, "entries": 1, "consumed": 1})
    offline = [
        evidence.record(),
        replace(evidence.record(), node_id="lanes/offline/test_a.py::test_2", stored_class="live"),
    ]
    facts = {**(evidence.live_record().live_proof or {}), "root_conversations": 2}
    real = evidence.live_record(attempts=(Attempt(1, "failed", failure="no"), Attempt(2, "passed")), live_proof=facts)
    other = Subject("19bd77e" + "0" * 33)
    return evidence.fold(
        evidence.bundle(*unit),
        evidence.bundle(snapshot),
        evidence.bundle(replay),
        evidence.bundle(*offline, breaches=("a tracked file was changed",)),
        evidence.bundle(real),
        evidence.bundle(evidence.record(subject=other), subject=other, run_id="run-0"),
        claims=evidence.claims(evidence.claim(), evidence.claim("loop.other", optional=())),
        last_seen=[LastSeen("journey.fix-test", "19bd77e" + "0" * 33, 3, "m-large-0221", "api.acme.example")],
    )


def test_the_json_board_has_the_published_form(board: Board) -> None:
    assert problems(json.loads(render_json(board)), SCHEMA) == []


def test_the_check_of_the_form_can_fail(board: Board) -> None:
    document = json.loads(render_json(board))
    document["total"] = 7
    document["columns"][0]["claims"]["passed"] = "many"
    del document["claims"][0]["cells"]["real"]["words"]

    assert set(problems(document, SCHEMA)) == {
        "$.columns[0].claims.passed is no ['integer']",
        "$.claims[0].cells.real.words is missing",
        "$.total is unknown",
    }


def test_the_cells_of_the_json_board_say_what_the_board_says(board: Board) -> None:
    cells = json.loads(render_json(board))["claims"][0]["cells"]

    assert {lane: (cell["status"], cell["words"]) for lane, cell in cells.items()} == {
        "unit": ("failed", "failed 1 (known), passed 1"),
        "snapshot": ("not run", "not run: not on this platform"),
        "replay": ("stale", "stale 1 (103 d)"),
        "offline": ("blocked", "blocked 1 (void evidence), passed 1"),
        "real": ("flaky", "flaky 1"),
    }


def test_a_claim_that_does_not_ask_says_so(board: Board) -> None:
    assert json.loads(render_json(board))["claims"][1]["cells"]["real"] == {
        "status": "not asked",
        "words": "not required",
    }


def test_there_is_no_total_over_columns(board: Board) -> None:
    document = json.loads(render_json(board))

    numbers = [name for name, value in document.items() if isinstance(value, int | float)]
    assert (numbers, [name for name in document if "total" in name or "summary" in name]) == ([], [])


def test_the_json_board_is_ascii_with_sorted_keys_and_an_item_a_line(board: Board) -> None:
    text = render_json(board)
    document = json.loads(text)

    def ordered(value: object) -> bool:
        if isinstance(value, dict):
            return list(value) == sorted(value) and all(map(ordered, value.values()))
        return not isinstance(value, list) or all(map(ordered, value))

    items = [line for line in text.splitlines() if '"node_id"' in line and '"provenance"' in line]
    assert (text.isascii(), text.endswith("}\n"), ordered(document), len(items)) == (
        True,
        True,
        True,
        sum(len(column["items"]) for column in document["columns"]),
    )
