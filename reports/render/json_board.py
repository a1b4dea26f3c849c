"""The board as JSON: a versioned form with sorted keys, for whoever reads boards by program.

Room: pure; takes a Board and returns text. docs/schemas/board-1.json describes the form.
"""

from __future__ import annotations

from collections.abc import Iterator

from lanes.record import Json, group_to_json
from reports.admit import LiveProof
from reports.board import Board, Column, Row
from reports.cells import Blocked, Cell, NotRun, Observed, Proven, Reason
from reports.costs import costs_to_json
from reports.items import Item, Void
from reports.render.json_lines import Late, Value, json_pieces
from reports.trend import Trend
from reports.words import cell_status, cell_words

SCHEMA = "board/1"
_OPEN_LEVELS = 3  # board, columns, one column, its items; an item is one line


def render_json(board: Board) -> str:
    """The whole board as one JSON document in ASCII, sorted, one claim or item a line, ending in a newline."""
    return "".join(board_pieces(board))


def board_pieces(board: Board) -> Iterator[str]:
    """The same document in pieces, for a board that one text would not be kept for."""
    yield from json_pieces(_board(board), _OPEN_LEVELS)


def _board(board: Board) -> dict[str, Value]:
    return {
        "schema": SCHEMA,
        "banner": board.banner,
        "subject": group_to_json(board.subject),
        "columns": [_column(column) for column in board.columns],
        "claims": Late(lambda: (_row(board, row) for row in board.rows)),
        "voids": [_void(void) for void in board.voids],
        "notices": [{"lane": each.lane, "kind": each.kind, "text": each.text} for each in board.notices],
        "set_aside": [{"lane": s.lane, "bundle": s.bundle, "subject": s.subject} for s in board.set_aside],
        "guards": _guards(board),
        "costs": costs_to_json(board),
        "nights": [_trend(trend) for trend in board.trends],
        "last_seen_live": [
            {"claim": s.claim_id, "commit": s.commit, "days": s.days, "model": s.model, "host": s.host}
            for s in board.last_seen
        ],
    }


def _trend(trend: Trend) -> dict[str, Value]:
    return {
        "claim": trend.claim_id,
        "provider": trend.provider,
        "model": trend.model,
        "strip": list(trend.strip),
        "passed": trend.rate.passed,
        "judged": trend.rate.total,
        "days_since_live": trend.days_since_live,
        "ttfb_ms": trend.ttfb_ms,
        "usd": None if trend.usd is None else f"{trend.usd:f}",
        "clean_nights": trend.clean_nights,
        "may_be_required": trend.is_promoted,
    }


def _guards(board: Board) -> dict[str, Json]:
    guards = board.guards
    return {
        "heading": guards.heading,
        "sub_heading": guards.sub_heading,
        "supports": guards.supports,
        "does_not_prove": guards.does_not_prove,
        "not_run": list(guards.not_run),
        "proofs": [
            {
                "id": each.id,
                "claim": each.claim_id,
                "lane": each.lane,
                "why": each.why,
                "verdict": each.verdict,
                "counts_as_proof": each.is_proof and each.is_current,
                "text": each.text,
                "counts": each.counts,
                "diffs": dict(each.diffs),
                "expected_red": list(each.expected),
                "observed_red": list(each.observed),
                "duration_ms": each.duration_ms,
                "commit": each.commit,
                "current": each.is_current,
                "record": each.record_id,
            }
            for each in guards.shown
        ],
    }


def _void(void: Void) -> dict[str, Json]:
    return {
        "lane": void.lane,
        "code": void.code,
        "rule": void.rule,
        "node_id": void.node_id,
        "record": void.record_id,
        "text": void.text,
    }


def _column(column: Column) -> dict[str, Value]:
    return {
        "id": column.id,
        "lane": column.lane,
        "heading": column.heading,
        "short": column.short,
        "sub_heading": column.sub_heading,
        "supports": column.supports,
        "does_not_prove": column.does_not_prove,
        "live": column.is_live,
        "not_run": _reason(column.not_run),
        "guard": column.guard,
        "keys_removed": column.keys_removed,
        "markers": list(column.markers),
        "partial": column.is_partial,
        "started": list(column.started),
        "exit_codes": list(column.exit_codes),
        "claims": dict(column.tally.as_dict()),
        "item_counts": dict(column.item_tally.as_dict()),
        "unclaimed": dict(column.unclaimed.as_dict()),
        "bundles": list(column.bundles),
        "items": Late(lambda: (_item(item) for item in column.items)),
    }


def _item(item: Item) -> dict[str, Json]:
    return {
        "node_id": item.node_id,
        "claims": list(item.claim_ids),
        "status": item.status,
        "known": item.is_known,
        "reason": _reason(item.reason),
        "detail": item.detail,
        "provenance": item.provenance,
        "duration_ms": item.duration_ms,
        "attempts": [group_to_json(attempt) for attempt in item.attempts],
        "failure": item.failure,
        "notes": list(item.notes),
        "properties": [[name, value] for name, value in item.properties],
        "proofs": [_proof(proof) for proof in item.proofs],
    }


def _row(board: Board, row: Row) -> dict[str, Json]:
    claim = row.claim
    cells: dict[str, Json] = {}
    for column in board.columns:
        cells[column.id] = _cell(row.cells[column.id], is_live=column.is_live)
    return {
        "id": claim.id,
        "sentence": claim.sentence,
        "surface": claim.surface,
        "owner": claim.owner,
        "guarded": claim.guarded,
        "guard": board.guards.words_of(claim),
        "required": list(claim.required),
        "optional": list(claim.optional),
        "cells": cells,
    }


def _cell(cell: Cell | None, *, is_live: bool) -> dict[str, Json]:
    document: dict[str, Json] = {"status": cell_status(cell), "words": cell_words(cell, is_live=is_live)}
    match cell:
        case None:
            pass
        case NotRun() | Blocked():
            document |= {"reason": _reason(cell.reason), "counts": dict(cell.tally.as_dict())}
        case Proven():
            document |= {"detail": cell.detail, "counts": dict(cell.tally.as_dict())}
            document["proofs"] = [_proof(proof) for proof in cell.proofs]
    return document


def _proof(proof: LiveProof | Observed) -> dict[str, Json]:
    if isinstance(proof, Observed):
        return {"kind": "observed", "record": proof.record_id}
    return {
        "kind": proof.kind,
        "record": proof.record_id,
        "provider": proof.provider,
        "model": proof.model,
        "host": proof.host,
        "endpoint": proof.endpoint,
        "observed_at": proof.observed_at,
        "flags": list(proof.flags),
        "notes": list(proof.notes),
    }


def _reason(reason: Reason | None) -> Json:
    return None if reason is None else {"code": reason.code, "text": reason.text, "words": reason.words}
