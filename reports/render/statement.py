"""One column as an in-toto statement with a test-result predicate; signing it is the business of who runs it.

Room: pure; takes a Board and digests and returns text, or nothing where there is nothing to state.
Source: in-toto attestation framework, statement v1 and predicate test-result v0.1.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from lanes.record import Json
from reports.board import Board, Column
from reports.cells import Proven, status_of

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://in-toto.io/attestation/test-result/v0.1"


def render_statement(board: Board, column: Column, digests: Mapping[str, str]) -> str | None:
    """The statement of one column, in ASCII with sorted keys; None for a live column without live proof.

    Shape: digests is name to SHA-256 in hexadecimal, of what configured the run; the column's bundles stand beside
    them, each by the digest of its three files. PASSED only when every claim the column asks for passed; WARNED with
    names when any is not run, stale or flaky, and for a tree that differs from its commit; FAILED when any failed or
    is blocked.
    """
    cells = {row.claim.id: row.cells[column.id] for row in board.rows if column.lane in row.claim.required}
    read = {claim: status_of(cell) for claim, cell in cells.items() if cell is not None}
    is_proven = any(isinstance(row.cells[column.id], Proven) for row in board.rows)
    if column.is_live and not is_proven:
        return None
    failed = sorted(claim for claim, status in read.items() if status in ("failed", "blocked"))
    warned = sorted(claim for claim, status in read.items() if status in ("not run", "stale", "flaky"))
    passed = sorted(claim for claim, status in read.items() if status == "passed")
    is_whole = bool(passed) and not failed and not warned and not column.is_partial and not board.subject.dirty
    configuration = sorted(digests.items())
    configuration += [
        (f"bundle {number}", each.removeprefix("sha256:")) for number, each in enumerate(column.bundles, 1)
    ]
    name = f"commit of column {column.id}"
    if board.subject.dirty:
        name += ", changed in the work tree"
        configuration.append(("changes in the work tree", board.subject.dirty_digest.removeprefix("sha256:")))
    statement: dict[str, Json] = {
        "_type": STATEMENT,
        "subject": [{"name": name, "digest": {"gitCommit": board.subject.commit}}],
        "predicateType": PREDICATE,
        "predicate": {
            "result": "FAILED" if failed else "PASSED" if is_whole else "WARNED",
            "configuration": [{"name": name, "digest": {"sha256": told}} for name, told in configuration],
            "passedTests": passed,
            "warnedTests": warned,
            "failedTests": failed,
        },
    }
    return json.dumps(statement, sort_keys=True, indent=1, ensure_ascii=True) + "\n"
