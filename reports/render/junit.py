"""One column as a JUnit file: a suite of its own, in which nothing that did not run can count as passed.

Room: pure; takes a Board and returns the text of one XML document for each column.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from lanes.record import Attempt
from reports.admit import LiveProof
from reports.board import Board, Column
from reports.cells import NotRun, Reason
from reports.items import Item
from reports.render.characters import as_xml

# Legal in XML, but changed on reading unless spelled by number: line ends, and what attributes turn into blanks.
_BY_NUMBER = re.compile("[\t\n\r\x7f-\x9f\u2028]")
_PLAIN = re.compile("[ !#-%'-;=?-~]*").fullmatch  # nothing that XML spells in another way: nearly every value
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
    return "".join(column_pieces(board, column))


def column_pieces(board: Board, column: Column) -> Iterator[str]:
    """The same document in pieces, one line each."""
    claims = _claims_without_item(board, column)
    outcomes = Counter(_outcome_name(item) for item in column.items) + Counter(case.outcome for case in claims)
    attributes = {
        "name": f"{column.id} ({column.short})",
        "tests": str(len(column.items) + len(claims)),
        "failures": str(outcomes["failure"]),
        "errors": str(outcomes["error"]),
        "skipped": str(outcomes["skipped"]),
        "time": _seconds(sum(item.duration_ms for item in column.items)),
    }
    lines = ['<?xml version="1.0" encoding="utf-8"?>', "<testsuites>", _tag("testsuite", attributes)]
    lines += _properties(_facts_of_suite(board, column))
    yield "".join(f"{line}\n" for line in lines)
    for case in itertools.chain(map(_case_of_item, column.items), claims):
        yield "".join(f"{line}\n" for line in _case_lines(case))
    yield "</testsuite>\n</testsuites>\n"


def _case_lines(case: _Case) -> list[str]:
    head = {"classname": case.classname, "name": case.name, "time": _seconds(case.duration_ms)}
    inner = [*_properties(case.properties), *case.inner]
    return [_tag("testcase", head), *inner, "</testcase>"] if inner else [_tag("testcase", head, closed=True)]


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
    inner = _outcome(item)
    streams = [("system-out", item.stdout), ("system-err", item.stderr)]
    inner += [f"<{tag}>{_text(content)}</{tag}>" for tag, content in streams if content]
    return _Case(classname, name, item.duration_ms, tuple(properties), _outcome_name(item), tuple(inner))


def _outcome_name(item: Item) -> str:
    """What a test counts as in a form that knows four words."""
    match item.status:
        case "passed" | "flaky":
            return "passed"
        case "failed":
            return "skipped" if item.is_known else "failure"
        case "blocked":
            return "error"
        case "stale" | "not run":
            return "skipped"


def _outcome(item: Item) -> list[str]:
    words = item.reason.words if item.reason is not None else ""
    code = item.reason.code if item.reason is not None else ""
    match item.status:
        case "passed":
            return []
        case "flaky":
            return [_element("flakyFailure", text, "flaky", text) for text in _earlier_failures(item)]
        case "failed" if item.is_known:
            return [_element("skipped", f"failed (known): {item.reason.text if item.reason else ''}", code)]
        case "failed":
            return [_element("failure", words or _last_line(item.failure), code or "failed", item.failure)]
        case "blocked":
            return [_element("error", f"blocked: {words}", code, item.failure)]
        case "stale":
            return [_element("skipped", f"stale: {item.detail}", "stale")]
        case _:
            return [_element("skipped", f"not run: {words}", code)]


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
    return ["<properties>", *(_property(name, value) for name, value in facts), "</properties>"]


@lru_cache(maxsize=16_384)  # most facts of a column are those of thousands of its items
def _property(name: str, value: str) -> str:
    return f'<property name="{_attribute(name)}" value="{_attribute(value)}"/>'


def _element(tag: str, message: str, kind: str, text: str = "") -> str:
    attributes = {"type": kind, "message": message}
    return f"{_tag(tag, attributes)}{_text(text)}</{tag}>" if text else _tag(tag, attributes, closed=True)


def _tag(tag: str, attributes: dict[str, str], *, closed: bool = False) -> str:
    told = "".join(f' {name}="{_attribute(value)}"' for name, value in attributes.items())
    return f"<{tag}{told}{'/' if closed else ''}>"


def _attribute(value: str) -> str:
    if _PLAIN(value):
        return value
    return _BY_NUMBER.sub(_number, _escape(value).replace('"', "&quot;"))


def _text(value: str) -> str:
    return _BY_NUMBER_IN_TEXT.sub(_number, _escape(value))


def _escape(value: str) -> str:
    return as_xml(value).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _number(match: re.Match[str]) -> str:
    return f"&#{ord(match.group())};"
