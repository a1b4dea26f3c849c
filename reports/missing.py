"""What was expected and is not there: every such item gets a status and a reason.

Room: pure. gather comes in after the records were judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from lanes.bundle import Bundle, ExpectedItem
from reports.cells import Reason, Status, worst
from reports.items import Item, Notice, Void
from reports.soundness import Findings, Rules


def missing_items(
    bundles: Sequence[Bundle], seen: set[str], voided: Mapping[str, Void], rules: Rules, findings: Findings
) -> list[Item]:
    """The items of a column's bundles that have no admissible record.

    Shape: seen are the items that have one; voided are those whose record was refused.
    """
    found: dict[str, Item] = {}
    for group in _groups(bundles):
        for expected, status, reason in _absent(group, voided, findings):
            if expected.node_id in seen:
                continue
            other = found.get(expected.node_id)
            if other is None or worst((other.status, status)) != other.status:
                claim_ids = rules.claims.ids_for(expected.node_id, expected.claim_ids)
                found[expected.node_id] = Item(expected.node_id, claim_ids, status, reason)
    return list(found.values())


def _absent(
    group: Sequence[Bundle], voided: Mapping[str, Void], findings: Findings
) -> Iterable[tuple[ExpectedItem, Status, Reason]]:
    run_id, lane = group[0].header.run_id, group[0].header.lane
    missing, total = missing_shards(group)
    if missing:
        told = shard_words(missing, total)
        findings.notices.add(Notice(lane, "missing shard", f"shard {told} of run {run_id} is missing"))
    if len({bundle.header.expected for bundle in group}) > 1:
        findings.notices.add(Notice(lane, "differing lists", f"the shards of run {run_id} list different items"))
    whole = [bundle for bundle in group if bundle.header.selected is None]
    picked: dict[str, list[Bundle]] = {}
    for bundle in group:
        for node_id in dict.fromkeys(bundle.header.selected or ()):
            picked.setdefault(node_id, []).append(bundle)
    for expected in _union(bundle.header.expected for bundle in group):
        void = voided.get(expected.node_id)
        holders = [*whole, *picked.get(expected.node_id, ())]
        problems = {problem.code for holder in holders for problem in holder.problems}
        if void is not None:
            yield expected, "blocked", Reason("void", void.code)
        elif missing and not holders:
            yield expected, "not run", Reason("shard-missing", f"{missing[0]} of {total}")
        elif "record-id" in problems:
            yield expected, "blocked", Reason("void", "record-id")
        elif problems & {"torn", "damaged", "trailer"}:
            yield expected, "blocked", Reason("torn")
        else:
            yield expected, "blocked", Reason("worker-lost", "no record was written")
    for expected in _union(bundle.header.deselected for bundle in group):
        yield expected, "not run", Reason("deselected")
    has_list = any(bundle.header.expected or bundle.header.not_run_code for bundle in group)
    for node_id, void in () if has_list else sorted(voided.items()):
        yield ExpectedItem(node_id), "blocked", Reason("void", void.code)


def missing_shards(group: Sequence[Bundle]) -> tuple[list[int], int]:
    """The shards of one run that are not among its bundles, and how many there should be."""
    total = max(bundle.header.shard_total for bundle in group)
    return sorted(set(range(1, total + 1)) - {bundle.header.shard_index for bundle in group}), total


def shard_words(missing: Sequence[int], total: int) -> str:
    """Shards by number, neighbours as one stretch: `3 of 8, 5 to 7 of 8`."""
    stretches: list[tuple[int, int]] = []
    for index in missing:
        if stretches and stretches[-1][1] == index - 1:
            stretches[-1] = (stretches[-1][0], index)
        else:
            stretches.append((index, index))
    told = [f"{first} to {last} of {total}" if last > first else f"{first} of {total}" for first, last in stretches]
    return ", ".join(told)


def _groups(bundles: Sequence[Bundle]) -> list[list[Bundle]]:
    groups: dict[tuple[str, str], list[Bundle]] = {}
    for bundle in bundles:
        groups.setdefault((bundle.header.run_id, bundle.header.tox_env), []).append(bundle)
    return [groups[key] for key in sorted(groups)]


def _union(lists: Iterable[Sequence[ExpectedItem]]) -> list[ExpectedItem]:
    found = {item.node_id: item for items in lists for item in items}
    return [found[node_id] for node_id in sorted(found)]
