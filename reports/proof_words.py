"""Words of proofs: how a verdict, its counts and the sum of a run read, and the exit code that follows.

Room: pure. The lane command comes in with results, the renderers with what evidence shows.
"""

from __future__ import annotations

from collections.abc import Sequence

from lanes.proof_record import Result
from lanes.proof_verdict import FAILED, MEANINGS, VERDICTS
from reports.guards import Guard, Guards

_VERDICT_WIDTH = max(len(verdict) for verdict in VERDICTS)
_PROVEN, _FAILED, _NOTHING_SHOWN = 0, 1, 3


def result_lines(result: Result) -> str:
    """One proof for a terminal: verdict, id, counts before, mutated and after; more only when it is no proof."""
    ruling = result.ruling
    seconds = f"{result.duration_ms / 1000:.1f} s"
    lines = [f"{ruling.verdict:<{_VERDICT_WIDTH}}  {result.proof.id}  {result.counts}  ({seconds})"]
    if ruling.verdict != "proven":
        lines.append(f"  {MEANINGS[ruling.verdict]}{f': {ruling.text}' if ruling.text else ''}")
        lines.append(f"  declared in {result.proof.file}: {result.proof.why}")
    return "\n".join(lines) + "\n"


def total_line(results: Sequence[Result]) -> str:
    """How many proofs had each verdict."""
    found = [result.ruling.verdict for result in results]
    return "guards: " + ", ".join(f"{found.count(each)} {each}" for each in VERDICTS if each in found)


def proofs_exit_code(results: Sequence[Result], *, has_changed: bool) -> int:
    """The exit code of a run of proofs.

    Shape: 0 when all are proven; 1 when a guard was seen not to hold as declared; 3 when a proof says nothing about
    its guard, or the working tree changed meanwhile.
    """
    unproven = {result.ruling.verdict for result in results if not result.ruling.counts}
    if has_changed or unproven - FAILED:
        return _NOTHING_SHOWN
    return _FAILED if unproven else _PROVEN


def guards_line(guards: Guards) -> str:
    """How many of the proofs about this subject had each verdict, and how many were not run."""
    current = [each.verdict for each in guards.shown if each.is_current]
    found = [f"{current.count(each)} {each}" for each in VERDICTS if each in current]
    found += [f"{len(guards.not_run)} not run"] if guards.not_run else []
    return ", ".join(found) or "nothing was run"


def guard_line(guard: Guard) -> str:
    """One proof that says something else than proven, or says it of another subject."""
    where = "" if guard.is_current else f" on {guard.commit[:7] or 'another tree'} (not this commit)"
    text = f": {guard.text}" if guard.text else ""
    return f"{guard.verdict}{where}: {guard.id}, {guard.counts}{text}"
