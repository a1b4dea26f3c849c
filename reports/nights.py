"""Nights: what one night saw of each claim and provider, as lines of a history that shows when one is taken out.

Room: pure. The nightly command comes in with a board; it appends, and nothing here rewrites a line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lanes.bundle import Bundle
from lanes.record import Json, JsonObject, digest_json
from reports.admit import LiveProof
from reports.board import Board
from reports.cells import Status, worst
from reports.costs import Cost, sum_costs
from reports.items import Item
from reports.rates import Rate

SCHEMA = "history/1"
COLUMN = "real"
FIRST = ""  # what the first line names as the line before it
JUDGED: frozenset[str] = frozenset({"passed", "failed", "flaky", "stale"})  # the others say nothing of a model: gaps


@dataclass(frozen=True, slots=True)
class Night:
    """What is the same for every line of one night. drift holds the ids of breaking findings, by provider."""

    date: str
    at: str
    drift: Mapping[str, tuple[str, ...]]


def hosted_targets(bundles: Iterable[Bundle]) -> tuple[tuple[str, str], ...]:
    """Provider and model of everything that the runs of the lane `real` asked."""
    found: set[tuple[str, str]] = set()
    for bundle in bundles:
        hosted = None if bundle.trailer is None else bundle.trailer.extra.get("hosted")
        targets = hosted.get("targets") if isinstance(hosted, Mapping) else None
        for each in targets if isinstance(targets, list) else ():
            if isinstance(each, Mapping):
                found.add((str(each.get("provider")), str(each.get("model"))))
    return tuple(sorted(found))


def night_lines(
    board: Board,
    targets: Sequence[tuple[str, str]],
    night: Night,
    provider_ids: Mapping[str, Sequence[str]],
    answers: Mapping[str, Sequence[str]],
) -> tuple[dict[str, Json], ...]:
    """One line a claim and provider that the column of hosted models asks for, before they are chained.

    Shape: a claim that no test of a provider speaks for has a line that says not run; provider_ids and answers, which
    are digests, go by record.
    """
    column = board.column(COLUMN)
    lines: list[dict[str, Json]] = []
    for provider, model in targets or (("", ""),):
        for row in board.rows:
            if COLUMN not in row.claim.lanes:
                continue
            items = [item for item in column.items if row.claim.id in item.claim_ids and _is_of(item, provider)]
            lines.append(_line(board, row.claim.id, provider, model, items, night, provider_ids, answers))
    return tuple(lines)


def chain(lines: Sequence[dict[str, Json]], last: str) -> tuple[dict[str, Json], ...]:
    """The lines, each naming the digest of the line before it; last is that of the history so far."""
    chained: list[dict[str, Json]] = []
    for line in lines:
        chained.append({**line, "previous": last})
        last = digest_json(chained[-1])
    return tuple(chained)


def last_digest(history: Sequence[JsonObject]) -> str:
    """The digest that the next line has to name."""
    return digest_json(history[-1]) if history else FIRST


def chain_problems(history: Sequence[JsonObject | None]) -> tuple[str, ...]:
    """Where the chain is broken: a line was changed, put in, or taken out before it. None is a line that is no JSON.

    Limits: lines taken from the end leave a whole chain; the missed night tells of them.
    """
    found: list[str] = []
    before = FIRST
    for number, line in enumerate(history, start=1):
        if line is None:
            found.append(f"line {number} of the history is no JSON object")
            before = ""
            continue
        if line.get("previous") != before:
            found.append(
                f"line {number} of the history does not follow the one before it: a line was changed or taken out"
            )
        before = digest_json(line)
    return tuple(found)


def _line(
    board: Board,
    claim_id: str,
    provider: str,
    model: str,
    items: Sequence[Item],
    night: Night,
    provider_ids: Mapping[str, Sequence[str]],
    answers: Mapping[str, Sequence[str]],
) -> dict[str, Json]:
    status: Status = worst(item.status for item in items) if items else "not run"
    proofs = [proof for item in items for proof in item.proofs if isinstance(proof, LiveProof)]
    rate, cost = _rate(items), _cost(items)
    reasons = sorted({item.reason.code for item in items if item.reason is not None})
    ids = sorted({found for proof in proofs for found in provider_ids.get(proof.record_id, ())})
    told = sorted({found for proof in proofs for found in answers.get(proof.record_id, ())})
    hosts = sorted({proof.host for proof in proofs})
    models = sorted({proof.model for proof in proofs})
    return {
        "schema": SCHEMA,
        "night": night.date,
        "at": night.at,
        "claim": claim_id,
        "provider": provider,
        "model": models[0] if models else model,
        "host": hosts[0] if hosts else "",
        "commit": board.subject.commit,
        "status": status,
        "reasons": [*reasons],
        "live": bool(proofs),
        "passed": rate.passed,
        "attempts": rate.total,
        "ttfb_ms": _median([number for item in items if (number := _first_byte(item)) is not None]),
        "in": 0 if cost is None else cost.sent,
        "out": 0 if cost is None else cost.out,
        "usd": None if cost is None or cost.usd is None else f"{cost.usd:f}",
        "drift": [*night.drift.get(provider, ())],
        "bundles": [*board.column(COLUMN).bundles],
        "provider_ids": [*ids],
        "answers": [*told],
    }


def _is_of(item: Item, provider: str) -> bool:
    told = dict(item.properties).get("model.provider", "")
    return told == provider or (not told and item.node_id.endswith(f"[{provider}]"))


def _rate(items: Sequence[Item]) -> Rate:
    verdicts = [attempt.verdict for item in items for attempt in item.attempts if item.status in JUDGED]
    judged = [verdict for verdict in verdicts if verdict in {"passed", "failed"}]
    return Rate(sum(1 for verdict in judged if verdict == "passed"), len(judged))


def _cost(items: Sequence[Item]) -> Cost | None:
    told = [item.cost for item in items if item.cost is not None]
    return sum_costs(told) if told else None


def _first_byte(item: Item) -> int | None:
    found = dict(item.properties).get("live_proof.ttfb_ms", "")
    return int(found) if found.isdecimal() else None


def _median(numbers: Sequence[int]) -> int | None:
    ranked = sorted(numbers)
    return ranked[len(ranked) // 2] if ranked else None
