"""Difference: what changed between two boards, cell by cell, for whoever reviews a change.

Room: pure. The lane command comes in with two board.json files; a form of another version is refused in words.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from lanes.errors import EvidenceError
from reports.render.characters import as_line
from reports.render.json_board import SCHEMA

Kind: TypeAlias = Literal["lost", "failed", "flaky", "stale", "newly proven", "changed"]
KINDS: Mapping[Kind, str] = {
    "lost": "Lost: passed before, and nobody knows now",
    "failed": "Failed, and did not before",
    "flaky": "Flaky, and was not before",
    "stale": "Stale, and was not before",
    "newly proven": "Newly proven",
    "changed": "Changed in another way",
}
WORSE: frozenset[Kind] = frozenset({"lost", "failed", "flaky", "stale"})
_ABSENT = ("absent", "not on this board")


@dataclass(frozen=True, slots=True)
class BoardRead:
    """What a difference needs of a board that was written: cells are status and words by claim and column id."""

    name: str
    about: str
    banner: str
    headings: Mapping[str, str]
    cells: Mapping[tuple[str, str], tuple[str, str]]
    voids: int


@dataclass(frozen=True, slots=True)
class Change:
    """One cell that reads otherwise than before."""

    kind: Kind
    claim_id: str
    column: str
    before: str
    after: str


def parse_board(data: bytes, name: str) -> BoardRead:
    """Read a board as it was written to board.json.

    Raises: EvidenceError for what is no board, and for one of a version that this one does not know.
    """
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise EvidenceError(f"is no JSON: {error!s:.80}", where=name, expected="a board.json") from None
    told = document.get("schema") if isinstance(document, dict) else None
    if told != SCHEMA:
        fix = "read it with the version that wrote it, or fold its bundles anew: lanes report"
        raise EvidenceError(f"schema is {told!r:.80}", where=name, expected=f'"{SCHEMA}"', fix=fix)
    try:
        subject = document["subject"]
        about = f"{subject['commit'][:12] or subject['tree'][:19]}{' dirty' if subject['dirty'] else ''}"
        cells = {
            (str(claim["id"]), str(column)): (str(cell["status"]), str(cell["words"]))
            for claim in document["claims"]
            for column, cell in claim["cells"].items()
        }
        headings = {str(column["id"]): str(column["heading"]) for column in document["columns"]}
        return BoardRead(name, about, str(document["banner"]), headings, cells, len(document["voids"]))
    except (KeyError, TypeError, AttributeError) as error:
        message = f"a part of the board has another form: {error!s:.80}"
        raise EvidenceError(message, where=name, expected="docs/schemas/board-1.json") from None


def compare_boards(before: BoardRead, after: BoardRead) -> tuple[Change, ...]:
    """Every cell that reads otherwise, in the order of the second board and then of what only the first one has."""
    found: list[Change] = []
    headings = {**before.headings, **after.headings}
    for key in dict.fromkeys((*after.cells, *before.cells)):
        one, other = before.cells.get(key, _ABSENT), after.cells.get(key, _ABSENT)
        if one != other:
            claim_id, column = key
            found.append(Change(_kind(one[0], other[0]), claim_id, headings.get(column, column), one[1], other[1]))
    return tuple(found)


def _kind(before: str, after: str) -> Kind:
    match after:
        case "passed" if before != "passed":
            return "newly proven"
        case "failed" if before != "failed":
            return "failed"
        case "flaky" if before != "flaky":
            return "flaky"
        case "stale" if before != "stale":
            return "stale"
        case "not run" | "blocked" | "not asked" | "absent" if before == "passed":
            return "lost"
        case _:
            return "changed"


def difference_text(before: BoardRead, after: BoardRead, changes: Sequence[Change]) -> str:
    """The difference for a person, worst first."""
    lines = [
        f"before: {as_line(before.name)}, about {as_line(before.about)}",
        f"        {as_line(before.banner)}",
        f"after:  {as_line(after.name)}, about {as_line(after.about)}",
        f"        {as_line(after.banner)}",
    ]
    if before.voids != after.voids:
        lines.append(f"void evidence: {before.voids} before, {after.voids} after")
    for kind, title in KINDS.items():
        of_kind = [change for change in changes if change.kind == kind]
        lines += ["", f"{title} ({len(of_kind)}):"] if of_kind else []
        lines += [f"  {as_line(_change_line(change))}" for change in of_kind]
    same = len(after.cells.keys() | before.cells.keys()) - len(changes)
    lines += ["", f"{len(changes)} cells read otherwise, {same} read as before"]
    return "\n".join(lines) + "\n"


def _change_line(change: Change) -> str:
    return f"{change.claim_id}, {change.column}: {change.before} -> {change.after}"
