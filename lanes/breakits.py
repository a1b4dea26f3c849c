"""Break-it proofs: each guard is broken on a copy, and exactly its tests must turn red.

Room: the command `lanes proofs` comes in. The working tree is read once and never written; proofs run side by side.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from lanes.breakits_bench import Bench, Scope
from lanes.breakits_copy import Applied, edit_copy, loading_fault, tree_digest, tree_state
from lanes.breakits_run import Processes, ScopeRun
from lanes.breakits_unedited import Unedited, batches_of
from lanes.proof_declaration import Proof
from lanes.proof_record import Result, save_result
from lanes.proof_verdict import Observation, judge
from lanes.record import Subject
from lanes.subject import current_subject

DEFAULT_WORKERS = min(os.cpu_count() or 1, 7) + 1  # every proof is one pytest process, and some wait at times
_Scope = tuple[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run.

    Shape: results are in the order of the proofs; changed names tracked files of the working tree that differ from
    what they were at the start; digest is the tree's at the start.
    """

    results: tuple[Result, ...]
    subject: Subject
    digest: str
    changed: tuple[str, ...] = ()


def run_proofs(
    root: Path,
    out: Path,
    proofs: Sequence[Proof],
    environ: Mapping[str, str],
    *,
    workers: int = DEFAULT_WORKERS,
    tell: Callable[[Result], None],
) -> Outcome:
    """Run proofs, leave their evidence under the output folder, and tell each result as soon as it is known.

    Raises: UsageError where there is no repository; nothing else that a proof does, which becomes its verdict.
    """
    before = tree_state(root)
    subject = current_subject(root)
    work = Path(tempfile.mkdtemp(prefix="proofs-")).resolve()
    processes = Processes()
    pool = ThreadPoolExecutor(workers, thread_name_prefix="proof")
    try:
        bench = Bench(root, work, environ, processes)
        results: dict[str, Result] = {}
        lock = threading.Lock()

        def keep(result: Result) -> None:
            with lock:
                save_result(result, out, subject)
                results[result.proof.id] = result
                tell(result)

        batches = [_Batch(bench, groups, f"{n}", keep) for n, groups in enumerate(batches_of(proofs))]
        running: list[Future[None]] = []
        for batch, following in itertools.pairwise((None, *batches, None)):
            # a batch starts ahead of the mutants of the one before it, so that no worker waits for its baseline
            running += [] if following is None else [pool.submit(following.run_before)]
            running += [] if batch is None else [pool.submit(batch.run_mutant, proof) for proof in batch.proofs]
        for future in running:
            future.result()
    finally:
        processes.stop()
        pool.shutdown(cancel_futures=True)
        shutil.rmtree(work, ignore_errors=True)
    after = tree_state(root)
    changed = tuple(sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name)))
    return Outcome(tuple(results[proof.id] for proof in proofs), subject, tree_digest(before), changed)


class _Batch:
    """The proofs of some scopes: their unedited runs before the first mutant, and once more after the last."""

    def __init__(
        self, bench: Bench, groups: Mapping[Scope, Sequence[Proof]], name: str, keep: Callable[[Result], None]
    ) -> None:
        limits = {scope: max(proof.timeout_s for proof in members) for scope, members in groups.items()}
        self.proofs = tuple(proof for members in groups.values() for proof in members)
        self._bench = bench
        self._unedited = Unedited(bench, limits, name)
        self._keep = keep
        self._lock = threading.Lock()
        self._left = len(self.proofs)
        self._done: list[Result] = []

    def run_before(self) -> None:
        """Run the scopes as they are."""
        self._unedited.run_before()

    def run_mutant(self, proof: Proof) -> None:
        """Break one guard; the last one of a batch then looks at the unedited copy again, and tells all results."""
        before = self._unedited.before(_scope_of(proof))  # its job came first: some thread is at it or through with it
        started = time.monotonic()
        result = self._break(proof, before)
        result = replace(result, duration_ms=round((time.monotonic() - started) * 1000))
        with self._lock:
            self._done.append(result)
            self._left -= 1
            is_last = not self._left
        if is_last:
            self._run_after()

    def _break(self, proof: Proof, before: ScopeRun) -> Result:
        fault = _baseline_fault(proof, before)
        if fault:
            seen = _halted(proof, Observation(frozenset(), "baseline red", fault))
            return Result(proof, seen, before.words, "not run", before.words, {}, 0)
        copy = self._bench.new_copy_for(proof)
        try:
            applied = edit_copy(copy, proof)
            if applied.problem == "not applied":
                seen = _halted(proof, Observation(frozenset(), "not applied", applied.detail))
                return Result(proof, seen, before.words, "not run", "", applied.diffs, 0)
            if applied.problem:
                seen = _halted(proof, Observation(frozenset(), "did not build", applied.detail))
                return Result(proof, seen, before.words, "not run", "", applied.diffs, 0)
            runs: list[ScopeRun] = []
            for number in range(proof.repeat):
                name = f"{proof.id}.{number + 1}"
                run = self._bench.run(
                    copy,
                    _scope_of(proof),
                    proof.timeout_s,
                    name,
                    applied.watch,
                    proof.expect_red,
                    reads=proof.reach == "read",
                )
                runs.append(run)
                if runs[-1].problem:
                    break
            seen = _observe(proof, before, runs, applied)
            # what was proven did load: an edited line of every module was executed, and from this copy
            needs_check = proof.reach == "read" or judge(seen).verdict != "proven"
            fault = loading_fault(copy, proof, self._bench.variables(copy)) if needs_check else ""
            if fault:
                seen = _halted(proof, Observation(frozenset(), "did not build", fault))
            return Result(proof, seen, before.words, runs[0].words, "", applied.diffs, 0)
        finally:
            self._bench.remove(copy)

    def _run_after(self) -> None:
        """Run the unedited copy once more: what the mutants did must not have reached it."""
        ran = {_scope_of(result.proof) for result in self._done if result.mutated != "not run"}
        afterwards = self._unedited.after(ran)
        for result in self._done:
            scope, seen = _scope_of(result.proof), result.seen
            before, after = self._unedited.before(scope), afterwards.get(scope)
            if after is not None and (after.problem or after.verdicts != before.verdicts) and not seen.halt:
                detail = f"unedited: {before.words}, afterwards {after.words}"
                seen = replace(seen, is_green_after=False, detail=detail)
            self._keep(replace(result, seen=seen, after="not run" if after is None else after.words))


def _scope_of(proof: Proof) -> Scope:
    return proof.lane, proof.scope


def _halted(proof: Proof, seen: Observation) -> Observation:
    return replace(seen, expected=frozenset(proof.expect_red), may_hang=proof.may_hang)


def _baseline_fault(proof: Proof, before: ScopeRun) -> str:
    """Why the unedited copy is no ground to stand on; empty when it is."""
    if before.problem:
        return before.problem
    red = sorted(item for item, verdict in before.verdicts.items() if verdict in {"failed", "blocked"})
    if red:
        reason = before.failures.get(red[0], "").strip().splitlines()
        return f"{red[0]} fails before anything is edited: {reason[-1] if reason else ''}".removesuffix(": ")
    for item in (*proof.expect_red, *(proof.stay_green or ())):
        if item not in before.verdicts:
            return f"{item} does not exist"
        if before.verdicts[item] != "passed":
            return f"{item} is {before.verdicts[item]} before anything is edited"
    return before.breaches[0] if before.breaches else ""


def _observe(proof: Proof, before: ScopeRun, runs: Sequence[ScopeRun], applied: Applied) -> Observation:
    faulty = next((run for run in runs if run.problem), None)
    if faulty is not None:
        halt = Observation(frozenset(), "hung" if faulty.is_hung else "did not build", faulty.problem)
        return _halted(proof, halt)
    red = tuple(before.passed - run.passed for run in runs)
    unmatched = {
        item
        for run in runs
        for item in proof.expect_red
        if item in run.verdicts and not re.search(proof.must_match[item], run.failures.get(item, ""))
    }
    reached = [name for name in applied.watch if any(run.hits.get(name) for run in runs)]
    missed = sorted(Path(name).name for name in applied.watch if name not in reached)
    return Observation(
        expected=frozenset(proof.expect_red),
        may_hang=proof.may_hang,
        red=red,
        unmatched=tuple(sorted(unmatched)),
        is_reached=not missed,
        detail=f"no expected test {proof.reach} {', '.join(missed)} where it was edited" if missed else "",
    )
