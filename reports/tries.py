"""Tries: the attempts of one live record, each judged by what was seen in it, and what they come to together.

Room: pure. The judge and the gathering come in; no attempt counts that would not be admitted as a record of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from lanes.record import Attempt, JsonObject, Record
from reports.admit import Admission, LiveProof, Refusal, admit
from reports.cells import Status
from reports.rates import Rate

SEEN = "seen"  # the field of an attempt that holds its answers, its proof and its cost


@dataclass(frozen=True, slots=True)
class Sampled:
    """What a sample of attempts came to. proof is that of its last admitted attempt, None when there was none."""

    rate: Rate
    blocked: int
    proof: LiveProof | None

    @property
    def status(self) -> Status:
        """Passed when every attempt did, failed when none that was judged, flaky in between.

        Shape: blocked when none was judged, or when some were not and all the others passed: what was asked for did
        not come to its end.
        """
        if self.proof is None:
            return "blocked"
        if self.rate.passed == self.rate.total:
            return "blocked" if self.blocked else "passed"
        return "flaky" if self.rate.passed else "failed"

    @property
    def words(self) -> str:
        """The rate, and how many attempts could not be judged."""
        return f"{self.rate.words}, {self.blocked} not judged" if self.blocked else self.rate.words


def sample_size(record: Record) -> int:
    """How many attempts were asked for; 0 for a record that is no sample."""
    found = record.extra.get("sample")
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else 0


def attempt_records(record: Record) -> tuple[Record, ...]:
    """Each attempt as a record of its own, oldest first; one whose facts were not kept has no answers."""
    found: list[Record] = []
    for attempt in record.attempts[:-1]:
        seen = attempt.extra.get(SEEN)
        facts: JsonObject = seen if isinstance(seen, Mapping) else {}
        found.append(
            replace(
                record,
                verdict=attempt.verdict,
                attempts=(attempt,),
                answers=_objects(facts.get("answers")),
                model=_object(facts.get("model")),
                live_proof=_object(facts.get("live_proof")),
                cost=_object(facts.get("cost")),
                stored_class=None,
                stored_counts=None,
                stored_id=None,
            )
        )
    if record.attempts:
        last = record.attempts[-1]
        found.append(replace(record, verdict=last.verdict, attempts=(last,), stored_class=None, stored_counts=None))
    return tuple(found)


def without_seen(attempts: Sequence[Attempt]) -> tuple[Attempt, ...]:
    """The attempts without what a witness saw of each, for a reader of the board."""
    return tuple(
        replace(each, extra={name: value for name, value in each.extra.items() if name != SEEN}) if each.extra else each
        for each in attempts
    )


def judge_sample(record: Record, admission: Admission) -> Sampled | Refusal:
    """Judge each attempt of a sample; one that breaks a rule of admission voids them all."""
    passed = total = blocked = 0
    proof: LiveProof | None = None
    for each in attempt_records(record):
        if each.verdict in {"blocked", "not run"} or (not each.answers and each.verdict == "failed"):
            blocked += 1
            continue
        found = admit(each, admission)
        if isinstance(found, Refusal):
            return found
        proof, total, passed = found, total + 1, passed + (each.verdict == "passed")
    return repeated_id(record) or Sampled(Rate(passed, total), blocked, proof)


def check_earlier(record: Record, admission: Admission) -> Refusal | None:
    """The rule that an earlier attempt of a retried record broke; one that met no model broke none."""
    for each in attempt_records(record)[:-1]:
        found = admit(each, admission) if each.answers else None
        if isinstance(found, Refusal):
            return found
    return repeated_id(record)


def repeated_id(record: Record) -> Refusal | None:
    """The refusal of a record two of whose attempts were answered under one provider id."""
    seen: set[object] = set()
    for each in attempt_records(record):
        ids = {answer.get("provider_id") for answer in each.answers} - {None}
        if ids & seen:
            return Refusal("A8", "id-reuse", "a provider id was seen in an earlier attempt")
        seen |= ids
    return None


def _objects(value: object) -> tuple[JsonObject, ...]:
    found = value if isinstance(value, Sequence) and not isinstance(value, str) else ()
    return tuple(each for each in found if isinstance(each, Mapping))


def _object(value: object) -> JsonObject | None:
    return cast("JsonObject", value) if isinstance(value, Mapping) else None
