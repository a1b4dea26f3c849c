"""Observations: what stays of a record once it was judged, and how those of one item become an item.

Room: pure. gather comes in. A record is let go as soon as it was seen: hundreds of thousands of them need not fit in
memory at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from lanes.record import JsonObject, Record
from reports.cells import Reason, Status, worst
from reports.costs import cost_of_record
from reports.items import Item, Notice
from reports.judge import Judged
from reports.soundness import Findings, Rules
from reports.tries import without_seen

_GROUPS = (
    ("model", ("provider", "requested", "reported")),
    ("cassette", ("id", "oldest_recorded_at", "age_days", "recorded_model", "recorded_weights", "entries", "consumed")),
    ("script", ("script_id", "entries", "consumed")),
    ("guard", ("depth",)),
    ("live_proof", ("ttfb_ms",)),
    ("cost", ("usd", "in", "cached", "out", "reasoning", "price_table")),
)
_TOLD = (str, int)


@dataclass(frozen=True, slots=True)
class Seen:
    """One admissible observation: its key, and the item it would be if it were the only one."""

    record_id: str
    run_id: str
    shard_index: int
    shard_total: int
    item: Item

    @property
    def status(self) -> Status:
        """The status it has by itself."""
        return self.item.status

    @property
    def lacked_something(self) -> bool:
        """Whether it was not tried for want of a package; another environment of its lane may have it."""
        item = self.item
        return item.status == "not run" and item.reason is not None and item.reason.code == "missing-dependency"


def see(judged: Judged, rules: Rules) -> Seen:
    """What stays of a judged record."""
    record = judged.record
    item = Item(
        node_id=record.node_id,
        claim_ids=tuple(sorted(rules.claims.ids_for(record.node_id, record.claim_ids))),
        status=judged.status,
        reason=judged.reason,
        proofs=() if judged.proof is None else (judged.proof,),
        detail=judged.detail,
        attempts=without_seen(record.attempts),
        duration_ms=record.duration_ms,
        failure=record.failure or "",
        stdout=record.captured_stdout,
        stderr=record.captured_stderr,
        provenance=record.provenance,
        notes=judged.notes,
        properties=_properties(record),
        crashed=judged.crashed,
        cost=cost_of_record(record),
    )
    return Seen(record.record_id, record.run_id, record.shard.index, record.shard.total, item)


def fold_item(node_id: str, observations: Sequence[Seen], rules: Rules, lane: str, findings: Findings) -> Item:
    """All observations of one item in one column as one item; what does not fit together is named."""
    distinct = {each.record_id: each for each in observations}
    every = [distinct[record_id] for record_id in sorted(distinct)]
    claim_ids = every[0].item.claim_ids
    if len(every) > 1:
        claim_ids = tuple(sorted({claim_id for each in every for claim_id in each.item.claim_ids}))
    for claim_id in claim_ids:
        if claim_id not in rules.claims.by_id and len(rules.claims):
            findings.notices.add(
                Notice(lane, "unknown claim", f"{node_id} names claim {claim_id!r}, which is not there")
            )
    if len(every) == 1:
        return every[0].item
    if torn := _find_conflict(every):
        ids = ", ".join(torn)
        findings.notices.add(Notice(lane, "conflict", f"{node_id} was recorded twice with different content: {ids}"))
        return Item(node_id, claim_ids, "blocked", Reason("conflict", ids))
    every = [each for each in every if not each.lacked_something] or every
    shards = {(each.run_id, each.shard_index) for each in every}
    if len({run for run, _shard in shards}) < len(shards):
        findings.notices.add(Notice(lane, "overlap", f"{node_id} ran in more than one shard and is counted once"))
    statuses: set[Status] = {each.status for each in every}
    status = worst(statuses)
    if "failed" in statuses and statuses & {"passed", "stale", "flaky"}:
        status = "flaky"
    shown = next((each for each in every if each.status == status), every[0])
    if status == "flaky" and shown.status != "flaky":
        shown = next(each for each in every if each.status == "failed")
    return replace(
        shown.item,
        claim_ids=claim_ids,
        status=status,
        proofs=tuple(proof for each in every for proof in each.item.proofs),
        notes=tuple(dict.fromkeys(note for each in every for note in each.item.notes)),
        crashed=any(each.item.crashed for each in every),
    )


def _find_conflict(every: Sequence[Seen]) -> list[str]:
    """The ids of records that tell different things of one observation; none when there are no such."""
    found: dict[tuple[str, int, int], list[str]] = {}
    for each in every:
        found.setdefault((each.run_id, each.shard_index, each.shard_total), []).append(each.record_id)
    return next((ids for ids in found.values() if len(ids) > 1), [])


def _properties(record: Record) -> tuple[tuple[str, str], ...]:
    found: list[tuple[str, str]] = [("class", record.provenance)]
    found += [("claim", claim_id) for claim_id in record.claim_ids]
    for group, names in _GROUPS:
        facts: JsonObject = getattr(record, group) or {}
        for name in names if facts else ():
            value = facts.get(name)
            if isinstance(value, _TOLD) and not isinstance(value, bool):
                found.append((f"{group}.{name}", str(value)))
    return ("record", record.record_id), *_shared(tuple(found))


@lru_cache(maxsize=16_384)
def _shared(found: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """The same facts of many records are kept once."""
    return found
