"""The unedited runs that proofs stand on: scopes share a run where it is green, and have one each where it is not.

Room: `lanes.breakits` comes in, from several threads. To start a run costs more than most scopes take, so that
hundreds of scopes are run in a dozen of runs.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from itertools import groupby

from lanes.breakits_bench import Bench, Scope
from lanes.breakits_run import ScopeRun
from lanes.proof_declaration import Proof, is_below

SCOPES_OF_A_RUN = 16  # a red test costs a run for each of them
_RED = frozenset({"failed", "blocked"})


def batches_of(proofs: Sequence[Proof]) -> list[dict[Scope, list[Proof]]]:
    """Group proofs by scope, and the scopes into batches of one lane, those that name the same files together."""
    groups: dict[Scope, list[Proof]] = {}
    for proof in proofs:
        groups.setdefault((proof.lane, proof.scope), []).append(proof)
    batches: list[dict[Scope, list[Proof]]] = []
    for _lane, scopes in groupby(sorted(groups), key=lambda scope: scope[0]):
        those = list(scopes)
        for start in range(0, len(those), SCOPES_OF_A_RUN):
            batches.append({scope: groups[scope] for scope in those[start : start + SCOPES_OF_A_RUN]})
    return batches


class Unedited:
    """The runs of the unedited copy before the mutants of a batch, and after them.

    Shape: limits holds the time limit of each scope in seconds of wall time; name is of this batch alone.
    """

    def __init__(self, bench: Bench, limits: Mapping[Scope, float], name: str) -> None:
        self._bench = bench
        self._limits = limits
        self._name = name
        self._together: Future[ScopeRun] = Future()
        self._lock = threading.Lock()
        self._before: dict[Scope, ScopeRun] = {}

    def run_before(self) -> None:
        """Run all scopes in one run; `before` waits for it."""
        try:
            self._together.set_result(self._run(tuple(self._limits), "before"))
        except BaseException as error:
            self._together.set_exception(error)
            raise

    def before(self, scope: Scope) -> ScopeRun:
        """What a scope showed before anything was edited: its part of the run of all, or its own where that is red."""
        together = self._together.result()
        with self._lock:
            if scope not in self._before:
                part = part_of(together, scope)
                is_ground = not (part.problem or part.breaches) and _RED.isdisjoint(part.verdicts.values())
                self._before[scope] = part if is_ground or self._is_alone else self._run((scope,), "before-alone")
            return self._before[scope]

    def after(self, scopes: Collection[Scope]) -> dict[Scope, ScopeRun]:
        """What scopes show now; a scope that came out otherwise than before is run once more by itself."""
        if not scopes:
            return {}
        together = self._run(tuple(scope for scope in self._limits if scope in scopes), "after")
        found = {scope: part_of(together, scope) for scope in scopes}
        for scope, run in found.items():
            if not self._is_alone and (run.problem or run.verdicts != self._before[scope].verdicts):
                found[scope] = self._run((scope,), "after-alone")
        return found

    @property
    def _is_alone(self) -> bool:
        return len(self._limits) == 1

    def _run(self, scopes: Sequence[Scope], when: str) -> ScopeRun:
        lane = scopes[0][0]
        paths = tuple(sorted({path for _lane, paths in scopes for path in paths}))
        whole = tuple(path for path in paths if not any(path != each and is_below(path, each) for each in paths))
        limit_s = sum(self._limits[scope] for scope in scopes)
        number = list(self._limits).index(scopes[0])
        return self._bench.run_unedited((lane, whole), limit_s, f"{self._name}.{number}.{when}")


def part_of(run: ScopeRun, scope: Scope) -> ScopeRun:
    """The part of a run that is about the items of one scope; what is told of the run as a whole stays."""

    def is_inside(item: str) -> bool:
        file = item.partition("::")[0]
        return any(is_below(file, path) for path in scope[1])

    return replace(
        run,
        verdicts={item: verdict for item, verdict in run.verdicts.items() if is_inside(item)},
        failures={item: text for item, text in run.failures.items() if is_inside(item)},
    )
