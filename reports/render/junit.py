"""One column as a JUnit file: a suite of its own, in which nothing that did not run can count as passed.

Room: pure; takes a Board and returns the text of one XML document for each column.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lanes.record import Attempt
from reports.admit import LiveProof
from reports.board import Board, Column
from reports.cells import NotRun, Reason
from reports.items import Item
from reports.render.characters import as_xml

# Legal in XML, but changed on reading unless spelled by number: line ends, and what attributes turn into blanks.
_BY_NUMBER = re.compile("[\t\n\r\x7f-\x9f\u2028]")
_BY_NUMBER_IN_TEXT = re.compile("[\r\x7f-\x9f\u2028]")


def render_junit(board: Board) -> dict[str, str]:
    """The JUnit document of every column, by column id; there is never one for all of them."""
    return {column.id: render_column(board, column) for column in board.columns}


@dataclass(frozen=True, slots=True)
class _Case:
    classname: str
    name: str
    duration_ms: int
    properties: tuple[tuple[str, str], ...]
    outcome: str  # passed, failure, error or skipped
    inner: tuple[str, ...]


def render_column(board: Board, column: Column) -> str:
    """The JUnit document of one column of a board."""
    cases = [_case_of_item(item) for item in column.items] + _claims_without_item(board, column)
    counts = {name: sum(1 for case in cases if case.outcome == name) for name in ("failure", "error", "skipped")}
    attributes = {
        "name": f"{column.id} ({column.short})",
        "tests": str(len(cases)),
        "failures": str(counts["failure"]),
        "errors": str(counts["error"]),
        "skipped": str(counts["skipped"]),
        "time": _seconds(sum(case.duration_ms for case in cases)),
    }
    lines = ['<?xml version="1.0" encoding="utf-8"?>', "<testsuites>", _tag("testsuite", attributes)]
    lines += _properties(_facts_of_suite(board, column))
    for case in cases:
        head = {"classname": case.classname, "name": case.name, "time": _seconds(case.duration_ms)}
        inner = [*_properties(case.properties), *case.inner]
        lines += [_tag("testcase", head), *inner, "</testcase>"] if inner else [_tag("testcase", head, closed=True)]
    return "\n".join([*lines, "</testsuite>", "</testsuites>"]) + "\n"


def _facts_of_suite(board: Board, column: Column) -> list[tuple[str, str]]:
    subject = board.subject
    facts = [
        ("banner", board.banner),
        ("subject.commit", subject.commit),
        ("subject.tree", subject.tree),
        ("subject.dirty", "true" if subject.dirty else "false"),
        ("column", column.heading),
        ("who answers", column.sub_heading),
        ("supports", column.supports),
        ("does not prove", column.does_not_prove),
        ("guard", column.guard),
    ]
    facts += [(f"claims.{name}", str(count)) for name, count in column.tally.as_dict().items()]
    facts += [("void", f"{void.code}: {void.node_id}: {void.text}") for void in board.voids if void.lane == column.lane]
    facts += [(notice.kind, notice.text) for notice in board.notices if notice.lane == column.lane]
    return facts


def _case_of_item(item: Item) -> _Case:
    classname, name = split_node_id(item.node_id)
    properties = [("status", item.status), *item.properties]
    properties += [(f"attempt.{each.n}", _attempt_words(each)) for each in item.attempts]
    properties += [("live proof", repr(proof)) for proof in item.proofs if isinstance(proof, LiveProof)]
    properties += [("note", note) for note in item.notes]
    outcome, inner = _outcome(item)
    streams = [("system-out", item.stdout), ("system-err", item.stderr)]
    inner += [f"<{tag}>{_text(content)}</{tag}>" for tag, content in streams if content]
    return _Case(classname, name, item.duration_ms, tuple(properties), outcome, tuple(inner))


def _outcome(item: Item) -> tuple[str, list[str]]:
    words = item.reason.words if item.reason is not None else ""
    code = item.reason.code if item.reason is not None else ""
    match item.status:
        case "passed":
            return "passed", []
        case "flaky":
            return "passed", [_element("flakyFailure", text, "flaky", text) for text in _earlier_failures(item)]
        case "failed" if item.is_known:
            return "skipped", [_element("skipped", f"failed (known): {item.reason.text if item.reason else ''}", code)]
        case "failed":
            message = words or _last_line(item.failure)
            return "failure", [_element("failure", message, code or "failed", item.failure)]
        case "blocked":
            return "error", [_element("error", f"blocked: {words}", code, item.failure)]
        case "stale":
            return "skipped", [_element("skipped", f"stale: {item.detail}", "stale")]
        case _:
            return "skipped", [_element("skipped", f"not run: {words}", code)]


def _earlier_failures(item: Item) -> list[str]:
    found = [each.failure or f"attempt {each.n} {each.verdict}" for each in item.attempts if each.verdict != "passed"]
    return found or [item.failure or "another observation failed"]


def _claims_without_item(board: Board, column: Column) -> list[_Case]:
    found: list[_Case] = []
    held = {claim_id for item in column.items for claim_id in item.claim_ids}
    for row in board.rows:
        cell = row.cells[column.id]
        if isinstance(cell, NotRun) and row.claim.id not in held:
            found.append(_case_of_claim(column.id, row.claim.id, cell.reason))
    return found


def _case_of_claim(column_id: str, claim_id: str, reason: Reason) -> _Case:
    inner = _element("skipped", f"not run: {reason.words}", reason.code)
    return _Case(f"claims.{column_id}", claim_id, 0, (("status", "not run"), ("claim", claim_id)), "skipped", (inner,))


def split_node_id(node_id: str) -> tuple[str, str]:
    """The class name and the name of a test as JUnit spells them; parameters stay with the name."""
    front, bracket, parameters = node_id.partition("[")
    path, _colons, inside = front.partition("::")
    parts = inside.split("::") if inside else []
    module = path.removesuffix(".py").replace("/", ".")
    name = (parts[-1] if parts else module) + bracket + parameters
    return ".".join([module, *parts[:-1]]) if parts else "", name


def _attempt_words(attempt: Attempt) -> str:
    return f"{attempt.verdict}, {attempt.duration_ms} ms, {attempt.answers} answers"


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "failed"


def _seconds(duration_ms: int) -> str:
    return f"{duration_ms / 1000:.3f}"


def _properties(facts: Sequence[tuple[str, str]]) -> Iterable[str]:
    if not facts:
        return []
    inner = [_tag("property", {"name": name, "value": value}, closed=True) for name, value in facts]
    return ["<properties>", *inner, "</properties>"]


def _element(tag: str, message: str, kind: str, text: str = "") -> str:
    attributes = {"type": kind, "message": message}
    return f"{_tag(tag, attributes)}{_text(text)}</{tag}>" if text else _tag(tag, attributes, closed=True)


def _tag(tag: str, attributes: dict[str, str], *, closed: bool = False) -> str:
    told = "".join(f' {name}="{_attribute(value)}"' for name, value in attributes.items())
    return f"<{tag}{told}{'/' if closed else ''}>"


def _attribute(value: str) -> str:
    return _BY_NUMBER.sub(_number, _escape(value).replace('"', "&quot;"))


def _text(value: str) -> str:
    return _BY_NUMBER_IN_TEXT.sub(_number, _escape(value))


def _escape(value: str) -> str:
    return as_xml(value).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _number(match: re.Match[str]) -> str:
    return f"&#{ord(match.group())};"
