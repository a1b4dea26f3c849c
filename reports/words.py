"""Words: how a cell, a reason, a count and the banner read, the same in every output.

Room: pure. The board and the renderers come in; none of them words a status of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lanes.policy import LanePolicy
from lanes.record import REASONS, Attempt, Subject
from reports.admit import LiveProof
from reports.cells import STATUSES, Blocked, Cell, NotRun, Proven, Reason, Status, Tally, status_of
from reports.items import Item

NO_LIVE = "No claim on this board has been observed against a real model."
NO_HOSTED = "No claim on this board has been observed against a hosted model."
NOT_ASKED = "-"
NOT_REQUIRED = "not required"
# The facts of a record that are told of each test, by the names that properties have.
_FACTS = (
    "model.requested",
    "model.reported",
    "cassette.id",
    "cassette.recorded_model",
    "cassette.oldest_recorded_at",
    "cassette.age_days",
    "script.script_id",
    "cost.usd",
    "cost.in",
    "cost.out",
    "guard.depth",
)
_WORST_FIRST: tuple[Status, ...] = tuple(reversed(STATUSES))


def cell_words(cell: Cell | None, *, is_live: bool) -> str:
    """What a cell reads, in words; an empty live cell is a sentence, never a blank, a dash or a tick."""
    if cell is None:
        return NOT_REQUIRED if is_live else NOT_ASKED
    match cell:
        case NotRun() if cell.reason.code == "lane-not-run" and not is_live:
            return "not run"  # the reason would only say it again
        case NotRun():
            return _led_words(cell.reason.code, "not run", cell.tally)
        case Blocked():
            return _led_words(cell.reason.code, "blocked", cell.tally)
        case Proven():
            lead = f"{cell.verdict} {cell.tally.of(cell.verdict)}"
            return ", ".join([f"{lead} ({cell.detail})" if cell.detail else lead, *_rest(cell.tally, cell.verdict)])


def _led_words(code: str, status: Status, tally: Tally) -> str:
    reason = REASONS.get(code, code)
    rest = _rest(tally, status)
    if not rest and tally.total <= 1:
        return f"{status}: {reason}"
    lead = f"{status} {tally.of(status)}" if tally.of(status) else status  # without a number: nobody knows how many
    return ", ".join([f"{lead} ({reason})", *rest])


def _rest(tally: Tally, leading: Status) -> list[str]:
    return [f"{status} {tally.of(status)}" for status in _WORST_FIRST if status != leading and tally.of(status)]


def subject_words(subject: Subject) -> str:
    """What evidence is about: the commit and whether the tree was changed, or the tree where there is no commit."""
    if subject.commit:
        return f"{subject.commit[:7]} {'dirty' if subject.dirty else 'clean'}"
    return f"tree {subject.tree[7:19]}" if subject.tree else "unknown"


def column_reason(reason: Reason) -> str:
    """Why a whole column has nothing to show: nobody tried, or what was left of it is void."""
    return f"{'blocked' if reason.code == 'void' else 'not run'}: {reason.words}"


def cell_reason(cell: Cell | None) -> str:
    """The whole reason of a cell that was not run or is blocked, with its free text."""
    return cell.reason.words if isinstance(cell, NotRun | Blocked) else ""


def cell_status(cell: Cell | None) -> str:
    """The one status word of a cell, or that the claim does not ask."""
    return "not asked" if cell is None else status_of(cell)


def tally_words(tally: Tally) -> str:
    """All six counts of a tally, in the fixed order passed to not run."""
    counts = (tally.passed, tally.failed, tally.flaky, tally.stale, tally.blocked, tally.not_run)
    return "/".join(str(count) for count in counts)


def counted_words(tally: Tally) -> str:
    """The counts of a tally that are not zero, in words; known failures are told apart."""
    found = [f"{status} {tally.of(status)}" for status in STATUSES if status != "failed" and tally.of(status)]
    unexpected = tally.failed - tally.known
    found += [f"failed {unexpected}"] if unexpected else []
    found += [f"failed (known) {tally.known}"] if tally.known else []
    return ", ".join(found) or "nothing"


def attempt_words(attempt: Attempt) -> str:
    """One attempt: how it ended, how long it took, and how many answers it had."""
    return f"attempt {attempt.n} {attempt.verdict}, {attempt.duration_ms} ms, {attempt.answers} answers"


def item_facts(item: Item) -> list[str]:
    """What a reader may want to know of one test: why, who answered, its attempts, its recording and its records."""
    facts = [item.reason.words] if item.reason is not None else []
    facts += [item.detail] if item.detail else []
    facts += [attempt_words(attempt) for attempt in item.attempts]
    facts += [f"answers: {item.provenance}"] if item.provenance != "none" else []
    told = dict(item.properties)
    facts += [f"{name} {told[name]}" for name in _FACTS if told.get(name)]
    facts += [f"live proof: {proof_words(proof)}" for proof in item.proofs if isinstance(proof, LiveProof)]
    facts += [*item.notes]
    records = [proof.record_id for proof in item.proofs] or [told[name] for name in ("record",) if name in told]
    return facts + [f"record {record_id}" for record_id in records]


def column_heading(column_id: str, policy: LanePolicy) -> str:
    """The heading of a column; a private endpoint has a column of its own and says so."""
    _lane, _colon, endpoint = column_id.partition(":")
    return f"{policy.heading}, private endpoint {endpoint}" if endpoint else policy.heading


def column_sub_heading(policy: LanePolicy, items: Sequence[Item]) -> str:
    """The sub-heading of a column with DATE, MODEL and HOST from the evidence, or the words that there are none."""
    if policy.ceiling == "live":
        return _live_sub_heading(items)
    if policy.ceiling == "recorded":
        return _recorded_sub_heading(policy, items)
    return policy.sub_heading


def column_short(policy: LanePolicy, items: Sequence[Item]) -> str:
    """Who answers in a column, in one word or two."""
    if policy.name == "unit":
        return "stand-ins"
    classes = {item.provenance for item in items if item.provenance != "none"}
    return "scripted" if policy.ceiling == "recorded" and classes == {"scripted"} else policy.ceiling


def _live_sub_heading(items: Sequence[Item]) -> str:
    proofs = [proof for item in items for proof in item.proofs if isinstance(proof, LiveProof)]
    if not proofs:
        return "live; nothing was observed"
    return "live, " + ", ".join(sorted({proof_words(proof) for proof in proofs}))


def proof_words(proof: LiveProof) -> str:
    """Which model answered, where and on which day."""
    day = proof.observed_at[:10]
    return f"{proof.model} at {proof.host}{f' on {day}' if day else ''}"


def _recorded_sub_heading(policy: LanePolicy, items: Sequence[Item]) -> str:
    judged = [item for item in items if item.status not in {"not run", "blocked"} and item.provenance != "none"]
    recorded = [dict(item.properties) for item in judged if item.provenance == "recorded"]
    scripted = sum(1 for item in judged if item.provenance == "scripted")
    if recorded:
        dates = sorted(found for each in recorded if (found := each.get("cassette.oldest_recorded_at", "")[:10]))
        models = sorted({found for each in recorded if (found := _recorded_model(each))})
        told = policy.sub_heading.replace("DATE", dates[0] if dates else "an unknown date")
        told = told.replace("MODEL", ", ".join(models) or "an unknown model")
        return told + (f"; {scripted} of {len(judged)} tests replay scripted answers" if scripted else "")
    if scripted:
        return "scripted answers replayed; no model spoke in them"
    return "recorded answers; nothing was replayed"


def _recorded_model(properties: Mapping[str, str]) -> str:
    """The model of a recording; one that was served on the recording machine is known by its weights."""
    model, weights = properties.get("cassette.recorded_model", ""), properties.get("cassette.recorded_weights", "")
    return f"{model} with weights {short_digest(weights)}" if model and weights else model


def short_digest(digest: str) -> str:
    """The beginning of a digest, long enough that no two weights share it."""
    return digest[:19]


def banner_text(proofs: Sequence[tuple[str, LiveProof]]) -> str:
    """The sentence every output opens with, from the proven cells of the live columns."""
    hosted = [(claim_id, proof) for claim_id, proof in proofs if proof.kind == "hosted"]
    local = [(claim_id, proof) for claim_id, proof in proofs if proof.kind == "local"]
    told = ""
    if local:
        told = f" A model on this machine answered: {_answered(local)}."
    if hosted:
        return f"Observed against a hosted model: {_answered(hosted)}.{told}"
    return f"{NO_HOSTED}{told}" if local else NO_LIVE


def _answered(proofs: Sequence[tuple[str, LiveProof]]) -> str:
    by_proof: dict[str, set[str]] = {}
    for claim_id, proof in proofs:
        by_proof.setdefault(proof_words(proof), set()).add(claim_id)
    return "; ".join(f"{words} ({', '.join(sorted(ids))})" for words, ids in sorted(by_proof.items()))
