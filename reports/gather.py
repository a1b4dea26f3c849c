"""Gathering: bundles as read to items per column, with everything void, missing or in conflict named.

Room: pure. The board comes in. The outcome depends on the set of records alone: no order, no repetition matters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lanes.bundle import Bundle, BundleHeader
from lanes.record import Record, digest_json
from reports.admit import Admission, ProviderRow, Refusal, provider_ids
from reports.cells import Reason, Status, worst
from reports.facts import model_facts
from reports.items import Item, Notice, Void
from reports.judge import Judged, judge
from reports.missing import missing_items
from reports.soundness import FOREIGN, Findings, Rules, guard_down, has_been_judged, is_sound, is_tampered

LOCAL_ENVIRONMENT = "real-local"
LOCAL_COLUMN = "real:local"


@dataclass(slots=True)
class Column:
    """What one column holds while it is being gathered."""

    items: list[Item] = field(default_factory=list)
    bundles: tuple[Bundle, ...] = ()
    not_run: Reason | None = None
    is_filtered: bool = False  # only when every run of it was: one that ran everything knows what has no test
    unseen: Reason | None = None  # why nobody knows all of its items; then none of its claims has passed


@dataclass(slots=True)
class Gathered:
    """All columns by id, and what was found beside them. Columns that no bundle speaks for are absent."""

    columns: dict[str, Column] = field(default_factory=dict)
    findings: Findings = field(default_factory=Findings)


def gather(bundles: Iterable[Bundle], rules: Rules) -> Gathered:
    """Judge all bundles together."""
    gathered = Gathered()
    unique: dict[str, Bundle] = {}
    for bundle in bundles:
        key = identify(bundle)
        unique[key] = min(bundle, unique.get(key, bundle), key=lambda each: each.name)
    sound = [unique[key] for key in sorted(unique) if is_sound(unique[key], rules, gathered.findings)]
    rules = _with_used_ids(rules, sound)
    by_column: dict[str, list[Bundle]] = {}
    for bundle in sound:
        by_column.setdefault(_column_of_bundle(bundle.header), []).append(bundle)
    for column_id in sorted(by_column):
        _gather_column(column_id, tuple(by_column[column_id]), rules, gathered)
    return gathered


def identify(bundle: Bundle) -> str:
    """What makes two bundles the same one: their bytes, or their content when they never were in a file."""
    if bundle.digest:
        return bundle.digest
    trailer = None if bundle.trailer is None else bundle.trailer.to_json()
    return digest_json([bundle.header.to_json(), [record.record_id for record in bundle.records], trailer])


def _with_used_ids(rules: Rules, bundles: Sequence[Bundle]) -> Rules:
    seen: dict[str, set[str]] = {}
    live = [bundle for bundle in bundles if not rules.policies[bundle.header.lane].keyless]
    for bundle in live:  # a keyless record must never be able to change the live column
        for record in bundle.records:
            for found in (*provider_ids(record), *_answer_ids(record)):
                seen.setdefault(found, set()).add(record.record_id)
    repeated = frozenset(found for found, holders in seen.items() if len(holders) > 1)
    before = rules.admission
    admission = Admission(before.subject, before.providers, before.trust_store, before.used_ids | repeated)
    return Rules(rules.claims, rules.policies, rules.environments, admission)


def _answer_ids(record: Record) -> set[str]:
    found = {answer.get("provider_id") for answer in record.answers}
    return {each for each in found if isinstance(each, str) and each}


def _column_of_bundle(header: BundleHeader) -> str:
    return LOCAL_COLUMN if header.lane == "real" and header.tox_env == LOCAL_ENVIRONMENT else header.lane


def _column_of_record(record: Record, fallback: str, providers: Mapping[str, ProviderRow]) -> str:
    name = model_facts(record).get("provider")
    row = providers.get(name) if isinstance(name, str) else None
    if record.lane != "real" or row is None:
        return fallback
    if row.local:
        return LOCAL_COLUMN
    return f"real:{row.name}" if row.private else "real"


def _gather_column(column_id: str, bundles: tuple[Bundle, ...], rules: Rules, gathered: Gathered) -> None:
    lane = bundles[0].header.lane
    findings = gathered.findings
    observed: dict[tuple[str, str], list[Judged]] = {}  # by column and item
    voided: dict[str, Void] = {}
    for bundle in bundles:
        kept, refused = _judge_bundle(bundle, rules)
        for void in refused:
            findings.voids.add(void)
            voided[void.node_id] = min(void, voided.get(void.node_id, void))
        for each in kept:
            place = _column_of_record(each.record, column_id, rules.admission.providers)
            observed.setdefault((place, each.record.node_id), []).append(each)
    down = guard_down(bundles)
    if down:
        findings.notices.add(Notice(lane, "breach", f"guard not shown: {down}"))
    _note_unseen(bundles, lane, findings)
    places = {column_id, *(place for place, _node_id in observed)}
    columns = {place: gathered.columns.setdefault(place, Column()) for place in sorted(places)}
    for (place, node_id), observations in sorted(observed.items()):
        item = _fold_item(node_id, observations, rules, lane, findings)
        if down and item.status in {"passed", "stale", "flaky"}:
            item = Item(node_id, item.claim_ids, "blocked", Reason("guard-down", down))
        columns[place].items.append(item)
    seen = {node_id for _place, node_id in observed}
    columns[column_id].items += missing_items(bundles, seen, voided, rules, findings)
    for column in columns.values():
        column.items.sort(key=lambda item: item.node_id)
        column.bundles += bundles
        column.is_filtered = all(_is_filtered(bundle.header) for bundle in column.bundles)
        column.unseen = _why_unseen(column.bundles)
    if not any(column.items for column in columns.values()):
        columns[column_id].not_run = _reason_not_run(bundles)


def _judge_bundle(bundle: Bundle, rules: Rules) -> tuple[list[Judged], list[Void]]:
    lane = bundle.header.lane
    listed = {item.node_id for item in (*bundle.header.expected, *bundle.header.deselected)}
    kept: list[Judged] = []
    refused: list[Void] = []
    for record in bundle.records:
        outcome = _judge_record(record, bundle.header, listed, rules)
        if isinstance(outcome, Judged):
            kept.append(outcome if has_been_judged(bundle) else _withheld(outcome))
        else:
            refused.append(_void(lane, record, outcome))
    if is_tampered(bundle, [each.record for each in kept], len(refused)):
        changed = Refusal("§3.7", "trailer", "a line of its bundle was added, taken out or changed")
        refused += [_void(lane, each.record, changed) for each in kept]
        kept = []
    return kept, refused


def _note_unseen(bundles: Sequence[Bundle], lane: str, findings: Findings) -> None:
    """Name what the guard of a process could not look into, where no wall of the host stood around it."""
    tests: dict[str, set[str]] = {}
    for bundle in bundles:
        for record in bundle.records if bundle.header.guard_depth == "D2" else ():
            unseen = (record.guard or {}).get("unseen")
            for what in unseen if isinstance(unseen, list) else ():
                tests.setdefault(str(what), set()).add(record.node_id)
    if tests:
        told = ", ".join(f"{what} ({len(tests[what])})" for what in sorted(tests))
        findings.notices.add(Notice(lane, "note", f"tests started what depth D2 does not look into: {told}"))


def _withheld(judged: Judged) -> Judged:
    """What a record is worth whose run nobody judged to the end: a failure stays one, a pass is none yet."""
    if judged.status not in {"passed", "stale", "flaky"}:
        return judged
    return Judged(judged.record, "blocked", Reason("unjudged"))


def _void(lane: str, record: Record, refusal: Refusal) -> Void:
    return Void(lane, refusal.code, refusal.rule, record.node_id, record.record_id, refusal.text)


def _judge_record(record: Record, header: BundleHeader, listed: set[str], rules: Rules) -> Judged | Refusal:
    claims = [rules.claims.by_id[each] for each in _claims_of(record, rules) if each in rules.claims.by_id]
    needed = max((claim.answers_needed(header.lane) for claim in claims), default=0)
    policy = rules.policies[header.lane]
    outcome = judge(record, policy, rules.admission, answers_needed=needed, guarded=header.marker != FOREIGN)
    if isinstance(outcome, Refusal):
        return outcome
    if record.run_id != header.run_id:
        return Refusal("§3.7", "run", f"the record is of run {record.run_id!r}, its bundle of run {header.run_id!r}")
    if header.not_run_code is not None:
        return Refusal("§3.7", "unexpected", "its bundle says that the lane did not start")
    if listed and record.node_id not in listed:
        return Refusal("§3.7", "unexpected", "its bundle does not list this item")
    return outcome


def _claims_of(record: Record, rules: Rules) -> tuple[str, ...]:
    return rules.claims.ids_for(record.node_id, record.claim_ids)


def _is_filtered(header: BundleHeader) -> bool:
    return bool(header.deselected) or header.extra.get("filtered") is True


def _why_unseen(bundles: Sequence[Bundle]) -> Reason | None:
    """Why the items of a column are not all known; None when one run at least listed the whole lane."""
    not_loaded = sorted({name for bundle in bundles for name in _not_loaded(bundle)})
    if not_loaded:
        return Reason("not-loaded", ", ".join(not_loaded))
    if bundles and all(bundle.header.extra.get("filtered") is True for bundle in bundles):
        return Reason("deselected", "only a part of the lane was looked into")
    return None


def _not_loaded(bundle: Bundle) -> Iterable[str]:
    found = None if bundle.trailer is None else bundle.trailer.extra.get("not_loaded")
    return (str(name) for name in found) if isinstance(found, Mapping) else ()


def _reason_not_run(bundles: Sequence[Bundle]) -> Reason:
    told = sorted((each.header.not_run_code, each.header.not_run_text) for each in bundles if each.header.not_run_code)
    return Reason(*told[0]) if told else Reason("nothing-collected")


def _fold_item(node_id: str, observations: Sequence[Judged], rules: Rules, lane: str, findings: Findings) -> Item:
    distinct = {each.record.record_id: each for each in observations}
    every = [distinct[record_id] for record_id in sorted(distinct)]
    claim_ids = tuple(sorted({each for found in every for each in _claims_of(found.record, rules)}))
    for claim_id in claim_ids:
        if claim_id not in rules.claims.by_id and len(rules.claims):
            findings.notices.add(
                Notice(lane, "unknown claim", f"{node_id} names claim {claim_id!r}, which is not there")
            )
    torn = _find_conflict(every)
    if torn:
        ids = ", ".join(torn)
        findings.notices.add(Notice(lane, "conflict", f"{node_id} was recorded twice with different content: {ids}"))
        return Item(node_id, claim_ids, "blocked", Reason("conflict", ids))
    every = [each for each in every if not _lacked_something(each)] or every
    statuses: set[Status] = {each.status for each in every}
    shards = {(each.record.run_id, each.record.shard.index) for each in every}
    if len({run for run, _shard in shards}) < len(shards):
        findings.notices.add(Notice(lane, "overlap", f"{node_id} ran in more than one shard and is counted once"))
    status = worst(statuses)
    if "failed" in statuses and statuses & {"passed", "stale", "flaky"}:
        status = "flaky"
    shown = next((each for each in every if each.status == status), every[0])
    if status == "flaky" and shown.status != "flaky":
        shown = next(each for each in every if each.status == "failed")
    record = shown.record
    return Item(
        node_id=node_id,
        claim_ids=claim_ids,
        status=status,
        reason=shown.reason,
        proofs=tuple(each.proof for each in every if each.proof is not None),
        detail=shown.detail,
        attempts=record.attempts,
        duration_ms=record.duration_ms,
        failure=record.failure or "",
        stdout=record.captured_stdout,
        stderr=record.captured_stderr,
        provenance=record.provenance,
        notes=tuple(dict.fromkeys(note for each in every for note in each.notes)),
        properties=_properties(record),
        crashed=any(each.crashed for each in every),
    )


def _lacked_something(judged: Judged) -> bool:
    """Whether the item was not tried for want of a package; another environment of its lane may have it."""
    return judged.status == "not run" and judged.reason is not None and judged.reason.code == "missing-dependency"


def _find_conflict(every: Sequence[Judged]) -> list[str]:
    """The ids of records that tell different things of one observation; none when there are no such."""
    if len(every) < 2:
        return []
    found: dict[tuple[str, str, int, int, str], list[str]] = {}
    for each in every:
        found.setdefault(each.record.observation_key, []).append(each.record.record_id)
    return next((ids for ids in found.values() if len(ids) > 1), [])


def _properties(record: Record) -> tuple[tuple[str, str], ...]:
    found: list[tuple[str, str]] = [("record", record.record_id), ("class", record.provenance)]
    found += [("claim", claim_id) for claim_id in record.claim_ids]
    for group, facts, names in (
        ("model", record.model, ("provider", "requested", "reported")),
        (
            "cassette",
            record.cassette,
            ("id", "oldest_recorded_at", "age_days", "recorded_model", "entries", "consumed"),
        ),
        ("script", record.script, ("script_id", "entries", "consumed")),
        ("guard", record.guard, ("depth",)),
    ):
        for name in names:
            value = (facts or {}).get(name)
            if isinstance(value, str | int) and not isinstance(value, bool):
                found.append((f"{group}.{name}", str(value)))
    return tuple(found)
