"""The evidence record: what one test item did in one lane, and its digest.

Room: pure; imports nothing of ours. Lanes make records, reports judge them; a record never judges itself.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Literal, TypeAlias, cast, get_args

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
JsonObject: TypeAlias = Mapping[str, Json]
Verdict: TypeAlias = Literal["passed", "failed", "blocked", "not run"]
Provenance: TypeAlias = Literal["none", "scripted", "recorded", "live"]

SCHEMA = "evidence/1"
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
# Why an item was not run, was blocked, or failed by a law of the lanes. Closed: a code outside it is unclassified.
REASONS: Mapping[str, str] = {
    "no-key": "no key",
    "lane-not-run": "lane not run",
    "deselected": "deselected",
    "platform": "not on this platform",
    "missing-dependency": "a dependency is missing",
    "budget": "budget spent before the start",
    "shard-missing": "shard missing",
    "no-test": "no test",
    "unclassified-skip": "skipped without a reason code",
    "nothing-collected": "no tests",
    "other-subject": "other subject",
    "credential-rejected": "credential rejected",
    "quota": "quota spent",
    "outage": "provider not available",
    "preflight": "the first exchange with the provider failed",
    "clock": "the clock is off",
    "budget-midway": "budget spent midway",
    "worker-lost": "worker lost",
    "torn": "evidence torn",
    "unjudged": "its run was not judged to the end",
    "not-loaded": "a test file could not be loaded",
    "conflict": "evidence in conflict",
    "guard-down": "guard not shown",
    "void": "void evidence",
    "no-call": "no model call",
    "no-honest-case": "every claim is marked flaky",
    "loading-failed": "setup failed",
    "worker-crashed": "worker crashed",
    "guard-refusal": "guard refused a connection",
    "unconsumed": "scripted or recorded answers left over",
    "unmatched": "request without an answer",
    "too-few-answers": "fewer answers than the claim asks for",
    "known-failure": "known",
    "failure-expired": "the date of the known failure is past",
    "overruled": "a hook hid its failure",
    "undeclared-failure": "expected to fail without an issue and a last day",
    "unexpected-pass": "expected to fail, passed",
}

# Those that say "could not be judged"; every other code of a record that did not pass is its verdict's own.
BLOCKING_REASONS = frozenset(
    {
        "credential-rejected",
        "quota",
        "outage",
        "preflight",
        "clock",
        "budget-midway",
        "worker-lost",
        "torn",
        "guard-down",
        "no-honest-case",
    }
)

# Made once: every line of evidence is spelled and digested by it.
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
_VOLATILE = frozenset(
    {
        "record_id",
        "run_id",
        "worker",
        "duration_ms",
        "ttfb_ms",
        "total_ms",
        "started_at",
        "finished_at",
        "date_skew_ms",
        "port",
        "pid",
        "age_days",
        "unseen",  # a child that several tests share is started by whichever of them comes first
    }
)
# How the reason of an expected failure reads: its issue, and the last day on which it may still fail.
EXPECTED_FAILURE = re.compile(r"https?://\S+ until (\d{4}-\d{2}-\d{2})\b")
_PORT = re.compile(r"(127\.0\.0\.1|\[::1\]|localhost):\d{1,5}(?!\d)")


@dataclass(frozen=True, slots=True)
class Shard:
    """Which part of the lane ran this item, and on which worker."""

    index: int = 1
    total: int = 1
    worker: str = ""
    extra: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Subject:
    """What evidence is about: the exact code that ran.

    Shape: commit and tree are empty where there is no git; digests read "sha256:…" or are empty.
    """

    commit: str = ""
    tree: str = ""
    dirty: bool = False
    dirty_digest: str = ""
    lock_digest: str = ""
    loop_digest: str = ""
    python: str = ""
    platform: str = ""
    extra: JsonObject = field(default_factory=dict)

    @property
    def identity(self) -> tuple[str, str, bool, str, str]:
        """The facts that must be equal for two records to share a board.

        Shape: interpreter and platform may differ; the loop digest may not, but that is a fault of its own.
        """
        return (self.commit, self.tree, self.dirty, self.dirty_digest, self.lock_digest)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try of one item."""

    n: int
    verdict: Verdict
    duration_ms: int = 0
    answers: int = 0
    failure_digest: str | None = None
    failure: str | None = None
    extra: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Record:
    """One observation, immutable and addressed by its content.

    Shape: the groups model, live_proof, cassette, guard, script and cost are JSON objects as the witnesses wrote
    them, because whoever judges them must meet raw facts; None where the lane has no such fact.
    stored_class, stored_counts and stored_id are what a file claimed; readers compare them with what follows from
    the facts. `extra` holds fields this version does not know and writes them back.
    """

    lane: str
    node_id: str
    run_id: str
    verdict: Verdict
    subject: Subject = Subject()
    shard: Shard = Shard()
    params_digest: str = ""
    test_digest: str = ""
    claim_ids: tuple[str, ...] = ()
    min_answers: int = 0
    needs_nonce: bool = False
    conversations: int = 1
    reason_code: str | None = None
    reason_text: str = ""
    attempts: tuple[Attempt, ...] = ()
    duration_ms: int = 0
    failure: str | None = None
    captured_stdout: str = ""
    captured_stderr: str = ""
    answers: tuple[JsonObject, ...] = ()
    model: JsonObject | None = None
    live_proof: JsonObject | None = None
    cassette: JsonObject | None = None
    guard: JsonObject | None = None
    script: JsonObject | None = None
    cost: JsonObject | None = None
    schema: str = SCHEMA
    extra: JsonObject = field(default_factory=dict)
    stored_class: str | None = None
    stored_counts: JsonObject | None = None
    stored_id: str | None = field(default=None, compare=False)
    _digest: str | None = field(default=None, init=False, repr=False, compare=False)
    _source: JsonObject | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def provenance(self) -> Provenance:
        """The weakest class among the answers, worked out anew; "none" without answers."""
        return weakest_class(self.answers)

    @property
    def record_id(self) -> str:
        """The digest of the canonical form of every other field."""
        if self._digest is None:
            object.__setattr__(self, "_digest", digest_json(self.to_json(with_id=False)))
        return self._digest or ""

    def keep_source(self, document: JsonObject) -> None:
        """Remember the object this record was read from, so that writing it again changes nothing."""
        object.__setattr__(self, "_source", document)

    def keep_digest(self, checked: str) -> None:
        """Take over a record_id that was checked against the line this record was read from."""
        object.__setattr__(self, "_digest", checked)

    @property
    def observation_key(self) -> tuple[str, str, int, int, str]:
        """What may be observed once only: run, lane, shard and item."""
        return (self.run_id, self.lane, self.shard.index, self.shard.total, self.node_id)

    def to_json(self, *, with_id: bool = True) -> dict[str, Json]:
        """The record as a JSON object, unknown fields included; a record that was read comes back as it was read."""
        if self._source is not None:
            document = {name: value for name, value in self._source.items() if name != "record_id"}
            return document | {"record_id": self.record_id} if with_id else document
        document = dict(self.extra)
        for name in PLAIN_FIELDS:
            document[name] = getattr(self, name)
        document["subject"] = group_to_json(self.subject)
        document["shard"] = group_to_json(self.shard)
        document["attempts"] = [group_to_json(attempt) for attempt in self.attempts]
        document["claim_ids"] = list(self.claim_ids)
        document["answers"] = [dict(answer) for answer in self.answers]
        document["class"] = self.provenance if self.stored_class is None else self.stored_class
        counts = count_classes(self.answers) if self.stored_counts is None else self.stored_counts
        document["answers_by_class"] = dict(counts)
        if with_id:
            document["record_id"] = self.record_id
        return document


PLAIN_FIELDS = (
    "schema",
    "run_id",
    "lane",
    "node_id",
    "params_digest",
    "test_digest",
    "min_answers",
    "needs_nonce",
    "conversations",
    "verdict",
    "reason_code",
    "reason_text",
    "duration_ms",
    "failure",
    "captured_stdout",
    "captured_stderr",
    "model",
    "live_proof",
    "cassette",
    "guard",
    "script",
    "cost",
)


def canonical_json(value: Json) -> bytes:
    """The one spelling of a JSON value: sorted keys, no spaces, ASCII with escapes (lone surrogates too)."""
    return _CANONICAL.encode(value).encode("ascii")


def digest_bytes(data: bytes) -> str:
    """The digest of some bytes as it is written in evidence: "sha256:" and 64 hexadecimal digits."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def digest_json(value: Json) -> str:
    """The digest of the canonical form of a JSON value."""
    return digest_bytes(canonical_json(value))


def answer_class(answer: JsonObject) -> Literal["scripted", "recorded", "live"]:
    """The class an answer note may claim; whatever is unknown counts as scripted.

    Shape: `recorded` needs a cassette channel and the digest of the stored live proof of its entry; `live` needs
    the live channel and wire facts. An answer note that says more than its facts is taken down here.
    """
    claimed = answer.get("class")
    if claimed == "scripted":
        return "scripted"
    channel = answer.get("channel")
    if claimed == "live" and channel == "live" and isinstance(answer.get("wire"), Mapping) and answer.get("wire"):
        return "live"
    if claimed == "recorded" and channel in {"cassette", "session-log"} and answer.get("live_proof_digest"):
        return "recorded"
    return "scripted"


def count_classes(answers: Sequence[JsonObject]) -> dict[str, Json]:
    """How many answers of each class, classes without any left out."""
    counts: dict[str, int] = {}
    for answer in answers:
        name = answer_class(answer)
        counts[name] = counts.get(name, 0) + 1
    return {name: counts[name] for name in sorted(counts)}


def weakest_class(answers: Sequence[JsonObject]) -> Provenance:
    """The weakest class among some answers; "none" when there are none."""
    if not answers:
        return "none"
    weakest: Provenance = "live"
    for answer in answers:
        found = answer_class(answer)
        if found == "scripted":
            return found
        if found == "recorded":
            weakest = found
    return weakest


def encode_record(record: Record) -> bytes:
    """One line of records.jsonl, without its newline."""
    return canonical_json(record.to_json())


def comparable(record: Record) -> dict[str, Json]:
    """The one projection under which two runs of a keyless lane are equal.

    Shape: the JSON object without durations, times, run and record ids, worker names and port numbers; times in
    wire dates and ports inside loopback addresses in texts are taken out too.
    """
    return cast("dict[str, Json]", _without_volatile(record.to_json(with_id=False)))


def _without_volatile(value: Json) -> Json:
    if isinstance(value, str):
        return _PORT.sub(r"\1:PORT", value)
    if isinstance(value, Mapping):
        return {name: _without_volatile(item) for name, item in value.items() if name not in _VOLATILE}
    if isinstance(value, Sequence):
        return [_without_volatile(item) for item in value]
    return value


def group_to_json(group: Subject | Shard | Attempt) -> dict[str, Json]:
    """One typed group as a JSON object, unknown fields included."""
    document: dict[str, Json] = dict(group.extra)
    for name in _NAMES[type(group)]:
        document[name] = getattr(group, name)
    return document


_NAMES: Mapping[type, tuple[str, ...]] = {
    kind: tuple(each.name for each in fields(kind) if each.name != "extra") for kind in (Subject, Shard, Attempt)
}
