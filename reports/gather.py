"""Gathering: bundles as read to items per column, with everything void, missing or in conflict named.

Room: pure. The board comes in. The outcome depends on the set of records alone: no order, no repetition matters.
Bundles are taken one after the other, and of a keyless one only what was seen in it is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lanes.bundle import Bundle, BundleHeader, ExpectedItem
from lanes.policy import LOCAL_ENVIRONMENT
from lanes.record import Record, digest_json
from reports.admit import ProviderRow, Refusal, provider_ids
from reports.cells import Reason
from reports.costs import budget_words
from reports.facts import model_facts, unknown_fields
from reports.items import Item, Notice, Void
from reports.judge import Judged, judge
from reports.missing import missing_items
from reports.observed import Seen, fold_item, see
from reports.soundness import FOREIGN, Findings, Rules, guard_down, has_been_judged, is_sound, is_tampered
from reports.tries import attempt_records

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


@dataclass(frozen=True, slots=True)
class _Held:
    """What is kept of one bundle.

    Shape: the records are gone from the bundle unless they can only be judged beside those of other bundles; seen are
    the admissible observations with the column of each.
    """

    bundle: Bundle
    seen: tuple[tuple[str, Seen], ...] = ()
    refused: tuple[Void, ...] = ()
    unseen: Mapping[str, frozenset[str]] = field(default_factory=dict)  # what the guard could not look into, by kind
    unknown: Mapping[str, frozenset[str]] = field(default_factory=dict)  # fields nobody here knows, to record ids


def gather(bundles: Iterable[Bundle], rules: Rules) -> Gathered:
    """Judge all bundles together."""
    gathered = Gathered()
    unique: dict[str, _Held] = {}
    lists: list[tuple[ExpectedItem, ...]] = []
    for bundle in bundles:
        key = identify(bundle)
        before = unique.get(key)
        if before is None:
            unique[key] = _hold(bundle, key, rules, lists)
        elif bundle.name < before.bundle.name:  # the same bytes in two places: the findings name the first of them
            kept = replace(bundle, header=before.bundle.header, records=before.bundle.records, digest=key)
            unique[key] = replace(before, bundle=kept)
    sound = [unique[key] for key in sorted(unique) if is_sound(unique[key].bundle, rules, gathered.findings)]
    rules = _with_used_ids(rules, [held.bundle for held in sound])
    by_column: dict[str, list[_Held]] = {}
    for held in sound:
        if not _is_keyless(held.bundle, rules):
            held = _judged(held.bundle, rules)
        by_column.setdefault(_column_of_bundle(held.bundle.header), []).append(held)
    for column_id in sorted(by_column):
        _gather_column(column_id, by_column[column_id], rules, gathered)
    return gathered


def _hold(bundle: Bundle, key: str, rules: Rules, lists: list[tuple[ExpectedItem, ...]]) -> _Held:
    """Judge a keyless bundle and let its records go; the list that all shards of a run name is kept once."""
    expected = next((known for known in lists if known == bundle.header.expected), None)
    if expected is None:
        lists.append(expected := bundle.header.expected)  # as many as lanes, and told apart by their first items
    bundle = replace(bundle, header=replace(bundle.header, expected=expected), digest=key)
    if not is_sound(bundle, rules, Findings()):
        return _Held(replace(bundle, records=()))
    return _judged(bundle, rules) if _is_keyless(bundle, rules) else _Held(bundle)


def _is_keyless(bundle: Bundle, rules: Rules) -> bool:
    return rules.policies[bundle.header.lane].keyless


def _judged(bundle: Bundle, rules: Rules) -> _Held:
    column_id = _column_of_bundle(bundle.header)
    kept, refused = _judge_bundle(bundle, rules)
    providers = rules.admission.providers
    seen = tuple((_column_of_record(each.record, column_id, providers), see(each, rules)) for each in kept)
    return _Held(replace(bundle, records=()), seen, tuple(refused), _unseen_in(bundle), _unknown_in(bundle))


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
            tries = (record, *attempt_records(record))
            for found in {found for each in tries for found in (*provider_ids(each), *_answer_ids(each))}:
                seen.setdefault(found, set()).add(record.record_id)
    repeated = frozenset(found for found, holders in seen.items() if len(holders) > 1)
    admission = replace(rules.admission, used_ids=rules.admission.used_ids | repeated)
    return replace(rules, admission=admission)


def _answer_ids(record: Record) -> set[str]:
    found = {answer.get("provider_id") for answer in record.answers}
    return {each for each in found if isinstance(each, str) and each}


def _column_of_bundle(header: BundleHeader) -> str:
    return LOCAL_COLUMN if header.lane == "real" and header.lane_mark == LOCAL_ENVIRONMENT else header.lane


def _column_of_record(record: Record, fallback: str, providers: Mapping[str, ProviderRow]) -> str:
    name = model_facts(record).get("provider")
    row = providers.get(name) if isinstance(name, str) else None
    if record.lane != "real" or row is None:
        return fallback
    if row.local:
        return LOCAL_COLUMN
    return f"real:{row.name}" if row.private else "real"


def _gather_column(column_id: str, held: Sequence[_Held], rules: Rules, gathered: Gathered) -> None:
    bundles = tuple(each.bundle for each in held)
    lane = bundles[0].header.lane
    findings = gathered.findings
    observed: dict[tuple[str, str], list[Seen]] = {}  # by column and item
    voided: dict[str, Void] = {}
    for each in held:
        for void in each.refused:
            findings.voids.add(void)
            voided[void.node_id] = min(void, voided.get(void.node_id, void))
        for place, seen in each.seen:
            observed.setdefault((place, seen.item.node_id), []).append(seen)
    down = guard_down(bundles)
    if down:
        findings.notices.add(Notice(lane, "breach", f"guard not shown: {down}"))
    unseen, unknown = (each.unseen for each in held), (each.unknown for each in held)
    _note_counts("tests started what depth D2 does not look into", unseen, lane, findings)
    _note_counts("records hold fields that are unknown here, and kept", unknown, lane, findings)
    findings.notices.update(Notice(lane, "note", words) for each in held if (words := budget_words(each.bundle)))
    findings.notices.update(Notice(lane, "note", words) for words in _not_imported(bundles))
    places = {column_id, *(place for place, _node_id in observed)}
    columns = {place: gathered.columns.setdefault(place, Column()) for place in sorted(places)}
    for (place, node_id), observations in sorted(observed.items()):
        item = fold_item(node_id, observations, rules, lane, findings)
        if down and item.status in {"passed", "stale", "flaky"}:
            item = Item(node_id, item.claim_ids, "blocked", Reason("guard-down", down))
        columns[place].items.append(item)
    known = {node_id for _place, node_id in observed}
    columns[column_id].items += missing_items(bundles, known, voided, rules, findings)
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


def _unseen_in(bundle: Bundle) -> dict[str, frozenset[str]]:
    """What the guard of a process could not look into, where no wall of the host stood around it: kind to items."""
    tests: dict[str, set[str]] = {}
    for record in bundle.records if bundle.header.guard_depth == "D2" else ():
        unseen = (record.guard or {}).get("unseen")
        for what in unseen if isinstance(unseen, list) else ():
            tests.setdefault(str(what), set()).add(record.node_id)
    return {what: frozenset(found) for what, found in tests.items()}


def _unknown_in(bundle: Bundle) -> dict[str, frozenset[str]]:
    """The fields of records that this version does not know, each with the records that have it."""
    holders: dict[str, set[str]] = {}
    for record in bundle.records:
        for name in unknown_fields(record):
            holders.setdefault(name, set()).add(record.record_id)
    return {name: frozenset(found) for name, found in holders.items()}


def _note_counts(lead: str, found: Iterable[Mapping[str, frozenset[str]]], lane: str, findings: Findings) -> None:
    """One note for a lane: what was found in any of its bundles, each with the number of those it was found in."""
    holders: dict[str, set[str]] = {}
    for each in found:
        for what, names in each.items():
            holders.setdefault(what, set()).update(names)
    if holders:
        told = ", ".join(f"{what} ({len(holders[what])})" for what in sorted(holders))
        findings.notices.add(Notice(lane, "note", f"{lead}: {told}"))


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


def _not_imported(bundles: Sequence[Bundle]) -> set[str]:
    """What the runs of a column say who never saw the package that they are about; nothing where one of them did."""
    told = [bundle.trailer.extra.get("not_imported") for bundle in bundles if bundle.trailer is not None]
    return {str(each) for each in told} if all(told) else set()


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
