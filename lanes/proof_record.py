"""Proofs as evidence: one bundle a proof, with everything that its verdict was worked out from.

Room: file output and pure reading. The runner writes, reports read; both judge with `lanes.proof_verdict`.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from lanes.bundle import BundleHeader, BundleWriter, ExpectedItem
from lanes.proof_declaration import Proof
from lanes.proof_verdict import HALTS, Observation, Ruling, judge
from lanes.record import Attempt, Json, JsonObject, Record, Subject

FOLDER = "proofs"  # beside `bundles`, not in it: a proof fills no cell of any lane
GROUP = "proof"


@dataclass(frozen=True, slots=True)
class Result:
    """One proof after it was run.

    Shape: before, mutated and after are counts in words; diffs go by file.
    """

    proof: Proof
    seen: Observation
    before: str
    mutated: str
    after: str
    diffs: Mapping[str, str]
    duration_ms: int

    @property
    def ruling(self) -> Ruling:
        """The verdict on what was seen."""
        return judge(self.seen)

    @property
    def counts(self) -> str:
        """The counts before, mutated and after, as they are printed."""
        return "; ".join((self.before, self.mutated, self.after))


@dataclass(frozen=True, slots=True)
class Shown:
    """A proof as its evidence shows it. stored_verdict is what the evidence says of itself."""

    id: str
    claim: str
    lane: str
    why: str
    seen: Observation
    stored_verdict: str
    counts: str
    diffs: Mapping[str, str]
    duration_ms: int


def proof_folder(out: Path, proof_id: str) -> Path:
    """Where the bundle of a proof lives under an output folder."""
    return out / FOLDER / proof_id


def find_proof_bundles(out: Path) -> tuple[Path, ...]:
    """The folder of every proof that was run, sorted."""
    return tuple(sorted(path for path in (out / FOLDER).glob("*") if path.is_dir()))


def save_result(result: Result, out: Path, subject: Subject) -> Record:
    """Write the bundle of one proof in place of its earlier one."""
    proof, run_id = result.proof, f"proof-{secrets.token_hex(8)}"
    record = _record(result, run_id, subject)
    header = BundleHeader(
        lane=proof.lane,
        run_id=run_id,
        subject=subject,
        expected=(ExpectedItem(record.node_id, record.claim_ids),),
        marker="self",
        started_at=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    )
    with BundleWriter(proof_folder(out, proof.id), header) as writer:
        writer.write(record)
        writer.close(exit_code=0 if result.ruling.counts else 1)
    return record


def read_proof(record: Record) -> Shown | None:
    """The proof that a record is about, None when the record is not about one or tells it wrongly."""
    group = record.extra.get(GROUP)
    if not isinstance(group, Mapping):
        return None
    try:
        return Shown(
            id=str(group["id"]),
            claim=record.claim_ids[0],
            lane=record.lane,
            why=str(group["why"]),
            seen=_seen_from_json(group),
            stored_verdict=str(group["verdict"]),
            counts="; ".join(_texts(group["counts"])),
            diffs={str(name): str(diff) for name, diff in cast("JsonObject", group["diffs"]).items()},
            duration_ms=record.duration_ms,
        )
    except (AttributeError, IndexError, KeyError, TypeError):
        return None


def _record(result: Result, run_id: str, subject: Subject) -> Record:
    proof, ruling = result.proof, result.ruling
    verdict = "passed" if ruling.counts else "failed"
    diffs: dict[str, Json] = dict(result.diffs)
    group: dict[str, Json] = {
        "id": proof.id,
        "why": proof.why,
        "scope": list(proof.scope),
        "verdict": ruling.verdict,
        "text": ruling.text,
        "counts": [result.before, result.mutated, result.after],
        "diffs": diffs,
        **_seen_to_json(result.seen),
    }
    return Record(
        lane=proof.lane,
        node_id=proof.file,
        run_id=run_id,
        verdict="passed" if ruling.counts else "failed",
        subject=subject,
        claim_ids=(proof.claim,),
        reason_text="" if ruling.counts else f"{ruling.verdict}: {ruling.text}".removesuffix(": "),
        attempts=(Attempt(1, "passed" if verdict == "passed" else "failed", result.duration_ms),),
        duration_ms=result.duration_ms,
        extra={GROUP: group},
    )


def _seen_to_json(seen: Observation) -> dict[str, Json]:
    return {
        "expected_red": sorted(seen.expected),
        "observed_red": [sorted(items) for items in seen.red],
        "unmatched": list(seen.unmatched),
        "halt": seen.halt,
        "detail": seen.detail,
        "may_hang": seen.may_hang,
        "reached": seen.is_reached,
        "green_after": seen.is_green_after,
    }


def _seen_from_json(group: JsonObject) -> Observation:
    halt = group["halt"]
    if halt not in HALTS:
        raise TypeError("the proof halted for no reason that is known")
    red = cast("Sequence[Json]", group["observed_red"])
    return Observation(
        expected=frozenset(_texts(group["expected_red"])),
        halt=halt,
        detail=str(group["detail"]),
        may_hang=group["may_hang"] is True,
        red=tuple(frozenset(_texts(items)) for items in red),
        unmatched=_texts(group["unmatched"]),
        is_reached=group["reached"] is True,
        is_green_after=group["green_after"] is True,
    )


def _texts(value: Json) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise TypeError("a list of texts was expected")
    return tuple(str(item) for item in value)
