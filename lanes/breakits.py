"""Break-it proofs: each guard is broken on a copy, and exactly its tests must turn red.

Room: the command `lanes proofs` comes in. The working tree is read once and never written; two proofs run side by side.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from lanes.breakits_copy import (
    Applied,
    Copy,
    copy_again,
    copy_tree,
    edit_copy,
    lend_bytecode,
    link_libraries,
    tree_digest,
    tree_state,
)
from lanes.breakits_run import Processes, ScopeRun, build_variables, run_scope
from lanes.proof_declaration import Proof
from lanes.proof_record import Result, save_result
from lanes.proof_verdict import Observation
from lanes.record import Subject
from lanes.subject import current_subject

DEFAULT_WORKERS = 2  # every proof is one pytest process; more of them than cores only make each other slow
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
        bench = _Bench(root, work, environ, processes)
        groups = _by_scope(proofs)
        results: dict[str, Result] = {}
        lock = threading.Lock()

        def keep(result: Result) -> None:
            with lock:
                save_result(result, out, subject)
                results[result.proof.id] = result
                tell(result)

        running: list[Future[None]] = []
        for scope, members in groups.items():
            group = _Group(bench, scope, members, keep)
            running.append(pool.submit(group.run_before))
            running += [pool.submit(group.run_mutant, proof) for proof in members]
        for future in running:
            future.result()
    finally:
        processes.stop()
        pool.shutdown(cancel_futures=True)
        shutil.rmtree(work, ignore_errors=True)
    after = tree_state(root)
    changed = tuple(sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name)))
    return Outcome(tuple(results[proof.id] for proof in proofs), subject, tree_digest(before), changed)


def _by_scope(proofs: Sequence[Proof]) -> dict[_Scope, list[Proof]]:
    groups: dict[_Scope, list[Proof]] = {}
    for proof in proofs:
        groups.setdefault((proof.lane, proof.scope), []).append(proof)
    return groups


class _Bench:
    """The copies that a run works with."""

    def __init__(self, root: Path, work: Path, environ: Mapping[str, str], processes: Processes) -> None:
        self._work = work
        self._environ = environ
        self._processes = processes
        self._shared = work / "libraries"
        self._source = copy_tree(root, work / "source")  # nothing ever runs in it
        self._unedited = self.new_copy("unedited")

    def new_copy(self, name: str) -> Copy:
        copy = copy_again(self._source, self._work / "copies" / name)
        link_libraries(copy, self._shared)
        return copy

    def new_copy_for(self, proof: Proof) -> Copy:
        copy = self.new_copy(proof.id)
        lend_bytecode(self._unedited, copy, {edit.file for edit in proof.edits})
        return copy

    def variables(self, copy: Copy) -> dict[str, str]:
        return build_variables(self._environ, copy)

    def run_unedited(self, scope: _Scope, limit_s: float, name: str) -> ScopeRun:
        return self.run(self._unedited, scope, limit_s, name)

    def run(
        self,
        copy: Copy,
        scope: _Scope,
        limit_s: float,
        name: str,
        watch: Mapping[str, frozenset[int]] | None = None,
        items: Sequence[str] = (),
        *,
        reads: bool = False,
    ) -> ScopeRun:
        return run_scope(
            self._processes,
            copy,
            self.variables(copy),
            lane=scope[0],
            scope=scope[1],
            limit_s=limit_s,
            out=self._work / "runs" / name,
            watch=watch,
            items=items,
            reads=reads,
        )

    def remove(self, name: str) -> None:
        shutil.rmtree(self._work / "copies" / name, ignore_errors=True)


class _Group:
    """All proofs of one scope: one baseline before them, and the unedited copy run again after the last of them."""

    def __init__(self, bench: _Bench, scope: _Scope, members: Sequence[Proof], keep: Callable[[Result], None]) -> None:
        self._bench = bench
        self._scope = scope
        self._limit_s = max(proof.timeout_s for proof in members)
        self._keep = keep
        self._name = members[0].id
        self._before: Future[ScopeRun] = Future()
        self._lock = threading.Lock()
        self._left = len(members)
        self._done: list[Result] = []

    def run_before(self) -> None:
        try:
            self._before.set_result(self._bench.run_unedited(self._scope, self._limit_s, f"{self._name}.before"))
        except BaseException as error:
            self._before.set_exception(error)
            raise

    def run_mutant(self, proof: Proof) -> None:
        before = self._before.result()  # its job came first, so some thread is at it or through with it
        started = time.monotonic()
        result = self._break(proof, before)
        result = replace(result, duration_ms=round((time.monotonic() - started) * 1000))
        with self._lock:
            self._done.append(result)
            self._left -= 1
            is_last = not self._left
        if is_last:
            self._run_after(before)

    def _break(self, proof: Proof, before: ScopeRun) -> Result:
        fault = _baseline_fault(proof, before)
        if fault:
            seen = _halted(proof, Observation(frozenset(), "baseline red", fault))
            return Result(proof, seen, before.words, "not run", before.words, {}, 0)
        copy = self._bench.new_copy_for(proof)
        try:
            applied = edit_copy(copy, proof, self._bench.variables(copy))
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
                    self._scope,
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
            return Result(proof, seen, before.words, runs[0].words, "", applied.diffs, 0)
        finally:
            self._bench.remove(proof.id)

    def _run_after(self, before: ScopeRun) -> None:
        """Run the unedited copy once more: what the mutants did must not have reached it."""
        ran = any(result.mutated != "not run" for result in self._done)
        after = self._bench.run_unedited(self._scope, self._limit_s, f"{self._name}.after") if ran else before
        is_same = after.verdicts == before.verdicts and not after.problem
        for result in self._done:
            seen = result.seen
            if not is_same and not seen.halt:
                seen = replace(seen, is_green_after=False, detail=f"unedited: {before.words}, afterwards {after.words}")
            self._keep(replace(result, seen=seen, after=after.words if ran else "not run"))


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
