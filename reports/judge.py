"""Judging one record: its status in its column, or the void code that takes it off the board.

Room: pure. The board comes in with records that were read; a record's own word for itself is never taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lanes.policy import PROVENANCES, LanePolicy
from lanes.record import (
    BLOCKING_REASONS,
    EXPECTED_FAILURE,
    REASONS,
    Json,
    JsonObject,
    Record,
    answer_class,
    count_classes,
)
from reports.admit import Admission, LiveProof, Refusal, admit
from reports.cells import Observed, Reason, Status
from reports.tries import check_earlier, judge_sample, sample_size

STALE_AFTER_DAYS = 90  # the cassette rules: fresh up to 30 days, ageing up to 90
AGEING_AFTER_DAYS = 30
REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Judged:
    """One admissible record with its status. crashed: it failed before any model answered, in the real lane."""

    record: Record
    status: Status
    reason: Reason | None = None
    proof: LiveProof | Observed | None = None
    detail: str = ""
    notes: tuple[str, ...] = ()
    crashed: bool = False


def judge(
    record: Record,
    policy: LanePolicy,
    admission: Admission,
    *,
    answers_needed: int = 0,
    guarded: bool = True,
) -> Judged | Refusal:
    """Work out what a record proves in a lane, from its raw facts alone.

    Shape: answers_needed is what the claims ask for beside what the record says; guarded is False for evidence from
    outside, where no guard of ours stood.
    """
    if broken := _void_reason(record, policy, admission):
        return broken
    if sample_size(record) and record.attempts and policy.ceiling == "live":
        return _judge_sample(record, admission)
    if record.verdict == "not run":
        return Judged(record, "not run", _reason(record, "unclassified-skip"))
    if record.verdict == "blocked":
        return Judged(record, "blocked", _reason(record, "worker-lost"))
    if record.reason_code in BLOCKING_REASONS:
        return Judged(record, "blocked", _reason(record, "outage"))
    if policy.keyless:
        return _judge_keyless(record, policy, answers_needed, guarded=guarded)
    return _judge_live(record, admission)


def _void_reason(record: Record, policy: LanePolicy, admission: Admission) -> Refusal | None:
    if record.lane != policy.name:
        return Refusal("S4", "lane", f"the record says lane {record.lane!r}, its bundle is of lane {policy.name!r}")
    if record.subject.identity != admission.subject.identity:
        return Refusal("A1", "subject", f"the record is about {record.subject.commit or 'another tree'}")
    if record.subject.loop_digest != admission.subject.loop_digest:
        return Refusal("A1", "loop-mismatch", "the loop that ran is not the loop of this subject")
    if record.stored_class is not None and record.stored_class != record.provenance:
        text = f"the record says class {record.stored_class!r}, its answers are {record.provenance!r}"
        return Refusal("§3.4", "self-graded", text)
    if record.stored_counts is not None and dict(record.stored_counts) != count_classes(record.answers):
        return Refusal("§3.4", "self-graded", "the record's counts of answers are not the counts of its answers")
    if record.verdict == "passed" and (not record.attempts or record.attempts[-1].verdict != "passed"):
        return Refusal("§3.4", "self-graded", "the record says passed, its last attempt does not")
    ceiling = PROVENANCES.index(policy.ceiling)
    for answer in record.answers:
        if PROVENANCES.index(answer_class(answer)) > ceiling:
            text = f"a {answer_class(answer)} answer in lane {policy.name!r}, whose ceiling is {policy.ceiling}"
            return Refusal("§3.3", "ceiling", text)
    return None


def _judge_keyless(record: Record, policy: LanePolicy, answers_needed: int, *, guarded: bool) -> Judged:
    proof = Observed(record.record_id)
    notes = _ageing(record)
    detail = _scripted_detail(record) if policy.ceiling == "recorded" and record.provenance == "scripted" else ""
    if record.verdict == "failed":
        return Judged(record, "failed", _failure_reason(record, is_ours=guarded), proof, detail, notes)
    if guarded and (down := _guard_down(record.guard)):
        return Judged(record, "blocked", Reason("guard-down", down))
    if law := _broken_law(record, answers_needed):
        return Judged(record, "failed", law, proof, detail, notes)
    if stale := _staleness(record):
        return Judged(record, "stale", Reason("stale", stale), proof, stale, notes)
    if any(attempt.verdict != "passed" for attempt in record.attempts):
        return Judged(record, "flaky", None, proof, detail, notes)
    return Judged(record, "passed", None, proof, detail, notes)


def _judge_live(record: Record, admission: Admission) -> Judged | Refusal:
    if not record.answers and record.verdict == "failed":
        return Judged(record, "blocked", Reason("no-call", "it failed before a model answered"), crashed=True)
    proof = check_earlier(record, admission) or admit(record, admission)
    if isinstance(proof, Refusal):
        return proof
    notes = (*proof.notes, *proof.flags)
    if record.verdict == "failed":
        return Judged(record, "failed", _failure_reason(record), proof, notes=notes)
    if _refusals(record.guard):
        return Judged(record, "failed", Reason("guard-refusal"), proof, notes=notes)
    if any(attempt.verdict != "passed" for attempt in record.attempts):
        return Judged(record, "flaky", None, proof, notes=notes)
    return Judged(record, "passed", None, proof, notes=notes)


def _judge_sample(record: Record, admission: Admission) -> Judged | Refusal:
    sampled = judge_sample(record, admission)
    if isinstance(sampled, Refusal):
        return sampled
    if sampled.proof is None or sampled.status == "blocked":
        crashed = record.verdict == "failed" and sampled.proof is None
        return Judged(record, "blocked", _reason(record, "no-call"), detail=sampled.words, crashed=crashed)
    notes = (*sampled.proof.notes, *sampled.proof.flags)
    reason = Reason("guard-refusal") if _refusals(record.guard) else None
    status = sampled.status if reason is None else "failed"
    return Judged(record, status, reason, sampled.proof, sampled.words, notes)


def _reason(record: Record, fallback: str) -> Reason:
    if record.reason_code is None or record.reason_code not in REASONS:
        return Reason(fallback, record.reason_text or record.reason_code or "")
    return Reason(record.reason_code, record.reason_text)


def _failure_reason(record: Record, *, is_ours: bool = True) -> Reason | None:
    if record.reason_code is None:
        return None
    if is_ours and record.reason_code == "known-failure" and EXPECTED_FAILURE.search(record.reason_text) is None:
        return Reason("undeclared-failure", record.reason_text)  # by its own word alone no failure is a known one
    return Reason(record.reason_code, record.reason_text)


def _guard_down(guard: JsonObject | None) -> str:
    facts = guard or {}
    for when in ("canary_start", "canary_end"):
        if facts.get(when) != REFUSED:
            return f"the {when.replace('_', ' at the ')} was {_told(facts.get(when))}, not refused by the guard"
    return ""


def _broken_law(record: Record, answers_needed: int) -> Reason | None:
    if refusals := _refusals(record.guard):
        return Reason("guard-refusal", f"{refusals} tries")
    for name, facts in (("script", record.script), ("cassette", record.cassette)):
        entries, consumed, unmatched = (_count(facts, key) for key in ("entries", "consumed", "unmatched"))
        if unmatched:
            return Reason("unmatched", f"{name}, {unmatched} requests")
        if consumed < entries:
            return Reason("unconsumed", f"{name}, {consumed} of {entries} used")
    needed = max(record.min_answers, answers_needed)
    if len(record.answers) < needed:
        return Reason("too-few-answers", f"{len(record.answers)} of {needed}")
    return None


def _refusals(guard: JsonObject | None) -> int:
    found = (guard or {}).get("refusals")
    if not isinstance(found, list):
        return 0
    return sum(_count(entry, "tries") or 1 if isinstance(entry, Mapping) else 1 for entry in found)


def _staleness(record: Record) -> str:
    found = [*_texts(record.cassette, "stale_reasons"), *_texts(record.script, "stale_reasons")]
    if found:
        return ", ".join(dict.fromkeys(found))
    age = (record.cassette or {}).get("age_days")
    return f"{age} d" if isinstance(age, int) and age > _limit(record, "stale_days", STALE_AFTER_DAYS) else ""


def _scripted_detail(record: Record) -> str:
    """That nobody recorded the answers, or which of them is no recording any more, and why."""
    found = (record.cassette or {}).get("doubts")
    doubts = [str(each) for each in found] if isinstance(found, list) else []
    return f"scripted: {', '.join(doubts)}" if doubts else "scripted"


def _ageing(record: Record) -> tuple[str, ...]:
    age = (record.cassette or {}).get("age_days")
    fresh = _limit(record, "fresh_days", AGEING_AFTER_DAYS)
    is_ageing = isinstance(age, int) and fresh < age <= _limit(record, "stale_days", STALE_AFTER_DAYS)
    return (f"the recording is {age} days old",) if is_ageing else ()


def _limit(record: Record, name: str, most: int) -> int:
    """A limit in days; what a record says may tighten it and never loosen it."""
    told = (record.cassette or {}).get(name)
    return min(most, told) if isinstance(told, int) and not isinstance(told, bool) else most


def _texts(facts: JsonObject | None, name: str) -> list[str]:
    found = (facts or {}).get(name)
    return [str(each) for each in found] if isinstance(found, list) else []


def _count(facts: JsonObject | None, name: str) -> int:
    value = (facts or {}).get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _told(value: Json) -> str:
    return value if isinstance(value, str) and value else "not told"
