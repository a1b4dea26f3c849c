"""One column as a CTRF document, for the tools that read that form; there is never one for all columns.

Room: pure; takes a Board and returns text. What CTRF has no word for stands in `rawStatus` and below `extra.lanes`.
Source: Common Test Report Format, schema 0.0 (ctrf.io); docs/schemas/ctrf-column-1.json is the part that is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from lanes.record import Json, digest_json, group_to_json
from reports.admit import LiveProof
from reports.board import Board, Column
from reports.cells import Status
from reports.items import Item
from reports.render.json_lines import Late, Value, json_pieces

_STATUS: Final[Mapping[Status, str]] = {
    "passed": "passed",
    "flaky": "passed",
    "failed": "failed",
    "not run": "skipped",
    "blocked": "other",
    "stale": "other",
}

_OPEN_LEVELS = 2  # the document, its results, and their tests, each of which is one line


def render_ctrf(board: Board, column: Column) -> str:
    """The CTRF document of one column, in ASCII with sorted keys, one test a line, ending in a newline."""
    return "".join(ctrf_pieces(board, column))


def ctrf_pieces(board: Board, column: Column) -> Iterator[str]:
    """The same document in pieces."""
    counts = {name: sum(1 for item in column.items if _STATUS[item.status] == name) for name in _STATUS.values()}
    document: dict[str, Value] = {
        "reportFormat": "CTRF",
        "specVersion": "0.0.0",
        "runId": _run_id(board),
        "generatedBy": "five-lanes",
        "results": {
            "tool": {"name": "five-lanes", "extra": {"lanes": {"column": column.id, "heading": column.heading}}},
            "summary": {
                "tests": len(column.items),
                "passed": counts["passed"],
                "failed": counts["failed"],
                "pending": 0,
                "skipped": counts["skipped"],
                "other": counts["other"],
                "flaky": sum(1 for item in column.items if item.status == "flaky"),
                "start": 0,
                "stop": sum(item.duration_ms for item in column.items),
            },
            "tests": Late(lambda: (_test(item) for item in column.items)),
            "extra": {
                "lanes": {
                    "banner": board.banner,
                    "subject": group_to_json(board.subject),
                    "answered_by": column.sub_heading,
                    "supports": column.supports,
                    "does_not_prove": column.does_not_prove,
                    "guard": column.guard,
                    "claims": dict(column.tally.as_dict()),
                    "voids": [void.text for void in board.voids if void.lane == column.lane],
                }
            },
        },
    }
    yield from json_pieces(document, _OPEN_LEVELS)


def _run_id(board: Board) -> str:
    """What the documents of one board have in common: its evidence."""
    return digest_json([[column.id, list(column.bundles)] for column in board.columns])


def _test(item: Item) -> Json:
    file, _, name = item.node_id.partition("::")
    test: dict[str, Json] = {
        "name": name or item.node_id,
        "status": _STATUS[item.status],
        "rawStatus": item.status,
        "duration": item.duration_ms,
        "filePath": file,
        "suite": [file],
        "type": "lane",
    }
    if item.status == "flaky":
        test["flaky"] = True
    earlier = item.attempts[:-1]
    if earlier:
        test["retries"] = len(earlier)
        test["retryAttempts"] = [_attempt(attempt.n, attempt.verdict, attempt.failure) for attempt in earlier]
    words = item.reason.words if item.reason is not None else item.detail
    if words or item.failure:
        test["message"] = words or item.failure.strip().splitlines()[-1]
    if item.failure:
        test["trace"] = item.failure
    test["extra"] = {
        "lanes": {
            "claims": list(item.claim_ids),
            "provenance": item.provenance,
            "known": item.is_known,
            "live_proofs": sum(1 for proof in item.proofs if isinstance(proof, LiveProof)),
        }
    }
    return test


def _attempt(number: int, verdict: str, failure: str | None) -> Json:
    attempt: dict[str, Json] = {"attempt": number, "status": "passed" if verdict == "passed" else "failed"}
    if failure:
        attempt["trace"] = failure
    return attempt
