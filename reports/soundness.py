"""Soundness: which bundles may speak at all, before any of their records is judged.

Room: pure. gather comes in. A bundle that may not speak leaves a void line or a name, never a blank.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lanes.bundle import Bundle, BundleHeader, next_digest, start_digest
from lanes.claims import Claims
from lanes.policy import LanePolicy
from lanes.record import Record, encode_record
from reports.admit import Admission
from reports.items import Notice, SetAside, Void
from reports.judge import REFUSED
from reports.words import subject_words

FOREIGN = "junit"  # the marker of evidence that no lane of ours wrote
_VOID_PROBLEMS = frozenset({"record-id", "trailer", "schema-newer", "unreadable", "expected", "damaged"})
_WHOLE_BUNDLE = frozenset({"schema-newer", "unreadable", "expected"})
_LINE_PROBLEMS = frozenset({"record-id", "damaged"})


@dataclass(frozen=True, slots=True)
class Rules:
    """What evidence is judged by."""

    claims: Claims
    policies: Mapping[str, LanePolicy]
    environments: Mapping[str, str | None]
    admission: Admission


@dataclass(slots=True)
class Findings:
    """What was found beside the items."""

    voids: set[Void] = field(default_factory=set)
    notices: set[Notice] = field(default_factory=set)
    set_aside: set[SetAside] = field(default_factory=set)


def is_sound(bundle: Bundle, rules: Rules, findings: Findings) -> bool:
    """Whether the records of a bundle may be judged; why not is written to the findings."""
    header = bundle.header
    for problem in bundle.problems:
        if problem.code in _VOID_PROBLEMS:
            findings.voids.add(Void(header.lane, problem.code, "§3.7", problem.where, "", problem.text))
        else:
            findings.notices.add(Notice(header.lane, "torn", f"{problem.where}: {problem.text}"))
    if any(problem.code in _WHOLE_BUNDLE for problem in bundle.problems):
        return False
    if bundle.trailer is not None and bundle.trailer.run_id != header.run_id:
        return False
    if broken := _marker_problem(header, rules):
        findings.voids.add(Void(header.lane, "marker", "S4", bundle.name, "", broken))
        return False
    subject = rules.admission.subject
    if header.subject.identity != subject.identity:
        told = subject_words(header.subject)
        told += ", with other changes" if told == subject_words(subject) else ""
        findings.set_aside.add(SetAside(header.lane, bundle.name, told))
        return False
    if header.subject.loop_digest != subject.loop_digest:
        text = "the loop that ran is not the loop of this subject"
        findings.voids.add(Void(header.lane, "loop-mismatch", "§3.1", bundle.name, "", text))
        return False
    for breach in bundle.trailer.breaches if bundle.trailer is not None else ():
        findings.notices.add(Notice(header.lane, "breach", breach))
    return True


def _marker_problem(header: BundleHeader, rules: Rules) -> str:
    if header.lane not in rules.policies:
        return f"lane {header.lane!r} is unknown"
    if header.marker == FOREIGN:
        return "" if rules.policies[header.lane].keyless else "evidence from outside cannot enter a live column"
    voices = {"LANE_MARK": header.lane_mark, "TOX_ENV_NAME": header.tox_env}
    for voice, said in voices.items():
        if said and rules.environments.get(said) != header.lane:
            return f"the header says lane {header.lane!r}, {voice} said {said!r}"
    if header.marker == "tox" and not all(voices.values()):
        return "the header says that tox started the lane, the marker or the environment's name is missing"
    return ""


def is_tampered(bundle: Bundle, kept: Sequence[Record], refused: int) -> bool:
    """Whether the trailer shows a change that the refused lines do not explain.

    Shape: kept are the records that passed, in the order of the file. Lines that were added are explained when the
    kept ones alone give the trailer's digest; lines that were changed, when they and the kept ones give its count.
    """
    trailer = bundle.trailer
    if trailer is None or all(problem.code != "trailer" for problem in bundle.problems):
        return False
    if any(problem.code == "torn" for problem in bundle.problems):
        return False
    chain = start_digest(bundle.header)
    for record in kept:
        chain = next_digest(chain, encode_record(record))
    if (trailer.count, trailer.digest) == (len(kept), chain):
        return False
    culprits = refused + sum(1 for problem in bundle.problems if problem.code in _LINE_PROBLEMS)
    return culprits == 0 or len(kept) + culprits != trailer.count


def has_been_judged(bundle: Bundle) -> bool:
    """Whether the run of a bundle came to its end, and whoever started it has looked at all that it left."""
    return bundle.trailer is not None and bundle.trailer.is_judged


def guard_down(bundles: Sequence[Bundle]) -> str:
    """Why the guard of a lane was not shown to work in one of its bundles; empty when it was."""
    for bundle in bundles:
        header, trailer = bundle.header, bundle.trailer
        if header.marker == FOREIGN or header.not_run_code is not None:
            continue
        if header.canary_start != REFUSED:
            return f"the canary at the start of lane {header.lane!r} was not refused by the guard"
        if trailer is not None and trailer.canary_end != REFUSED:
            return f"the canary at the end of lane {header.lane!r} was not refused by the guard"
    return ""
