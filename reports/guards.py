"""Guards: break-it proofs as the board shows them, each judged anew from what its runs showed.

Room: pure. The board comes in with the bundles of proofs; a proof fills no cell of any lane.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lanes.bundle import Bundle
from lanes.claims import Claim, Claims
from lanes.policy import GUARDS
from lanes.proof_record import Shown, read_proof
from lanes.proof_verdict import Verdict, judge
from lanes.record import Record, Subject
from reports.items import Void

LANE = "guards"  # where void proofs are listed; no lane has that name
UNPROVEN = "guard not proven on this commit"


@dataclass(frozen=True, slots=True, order=True)
class Guard:
    """One proof that was run.

    Shape: counts are those before, mutated and after, in words; commit is the one it was run on; is_current says that
    it is about the board's subject, and only then does it count for anything.
    """

    id: str
    claim_id: str
    lane: str
    why: str
    verdict: Verdict
    is_proof: bool
    text: str
    counts: str
    diffs: tuple[tuple[str, str], ...]
    expected: tuple[str, ...]
    observed: tuple[str, ...]
    duration_ms: int
    commit: str
    is_current: bool
    record_id: str


@dataclass(frozen=True, slots=True)
class Guards:
    """All proofs: those that were run, sorted, and the ids of declared ones that were not."""

    heading: str = GUARDS.heading
    sub_heading: str = GUARDS.sub_heading
    supports: str = GUARDS.supports
    does_not_prove: str = GUARDS.does_not_prove
    shown: tuple[Guard, ...] = ()
    not_run: tuple[str, ...] = ()

    def words_of(self, claim: Claim) -> str:
        """What the board says of a claim's guard; empty for a claim that is not flagged as guarded."""
        if not claim.guarded:
            return ""
        current = [each for each in self.shown if each.claim_id == claim.id and each.is_current]
        if not current or not all(each.is_proof for each in current):
            return UNPROVEN
        return f"guard proven {len(current)}"


NO_GUARDS = Guards()


def gather_guards(
    bundles: Iterable[Bundle], declared: Sequence[str], subject: Subject, claims: Claims
) -> tuple[Guards, tuple[Void, ...]]:
    """Judge the bundles of proofs; what breaks a rule of evidence is void and counts for nothing."""
    found: dict[str, Guard] = {}
    voids: set[Void] = set()
    for bundle in bundles:
        problems = [Void(LANE, each.code, "§3.7", each.where, "", each.text) for each in bundle.problems]
        voids.update(problems)
        for record in bundle.records if not problems else ():
            outcome = _judge(record, bundle, subject, claims)
            if isinstance(outcome, Void):
                voids.add(outcome)
            elif (before := found.get(outcome.id)) is None or _weight(outcome) > _weight(before):
                found[outcome.id] = outcome
    shown = tuple(found[each] for each in sorted(found))
    run = {each.id for each in shown if each.is_current}
    return Guards(shown=shown, not_run=tuple(each for each in declared if each not in run)), tuple(sorted(voids))


def _judge(record: Record, bundle: Bundle, subject: Subject, claims: Claims) -> Guard | Void:
    proof = read_proof(record)
    if proof is None:
        return _void(record, "damaged", "the record does not say what was proven")
    if record.run_id != bundle.header.run_id or record.subject != bundle.header.subject:
        return _void(record, "run", "the record is of another run or subject than its bundle")
    ruling = judge(proof.seen)
    if ruling.verdict != proof.stored_verdict or (record.verdict == "passed") != ruling.counts:
        text = f"the record says {proof.stored_verdict!r}, its runs show {ruling.verdict!r}"
        return _void(record, "self-graded", text)
    if proof.claim not in claims.by_id and len(claims):
        return _void(record, "unexpected", f"claim {proof.claim!r} is not there")
    same = record.subject.identity == subject.identity and record.subject.loop_digest == subject.loop_digest
    return Guard(
        id=proof.id,
        claim_id=proof.claim,
        lane=proof.lane,
        why=proof.why,
        verdict=ruling.verdict,
        is_proof=ruling.counts,
        text=ruling.text,
        counts=proof.counts,
        diffs=tuple(sorted(proof.diffs.items())),
        expected=tuple(sorted(proof.seen.expected)),
        observed=_observed(proof),
        duration_ms=proof.duration_ms,
        commit=record.subject.commit or record.subject.tree,
        is_current=same,
        record_id=record.record_id,
    )


def _weight(guard: Guard) -> tuple[bool, bool, str]:
    """Of two records of one proof the current one counts, then the one that is no proof."""
    return guard.is_current, not guard.is_proof, guard.record_id


def _observed(proof: Shown) -> tuple[str, ...]:
    return tuple(sorted(set[str]().union(*proof.seen.red)))


def _void(record: Record, code: str, text: str) -> Void:
    return Void(LANE, code, "§4.4", record.node_id, record.record_id, text)
