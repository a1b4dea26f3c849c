"""The bench of a run of proofs: the copies that it works with, and runs of scopes inside them.

Room: `lanes.breakits` and `lanes.breakits_unedited` come in, from several threads.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from lanes.breakits_copy import Copy, copy_again, copy_tree, lend_bytecode, link_libraries
from lanes.breakits_run import Processes, ScopeRun, build_variables, run_scope
from lanes.proof_declaration import Proof

Scope: TypeAlias = tuple[str, tuple[str, ...]]  # a lane, and the files or folders of it


class Bench:
    """Copies of one tree, the first of which is never edited.

    Limits: everything lives below the work folder, which its maker removes.
    """

    def __init__(self, root: Path, work: Path, environ: Mapping[str, str], processes: Processes) -> None:
        self._work = work
        self._environ = environ
        self._processes = processes
        self._numbers = itertools.count()  # next() is one step of the interpreter, so that threads may share it
        self._source = copy_tree(root, work / "source")  # nothing ever runs in it
        self._unedited = self._new_copy()

    def new_copy_for(self, proof: Proof) -> Copy:
        """A fresh copy, lent the bytecode that the unedited one has of files which the proof leaves alone."""
        copy = self._new_copy()
        lend_bytecode(self._unedited, copy, {edit.file for edit in proof.edits})
        return copy

    def remove(self, copy: Copy) -> None:
        """Delete a copy with all that was left in it."""
        shutil.rmtree(copy.root.parent, ignore_errors=True)

    def variables(self, copy: Copy) -> dict[str, str]:
        """The environment in which everything of a copy runs."""
        return build_variables(self._environ, copy)

    def run_unedited(self, scope: Scope, limit_s: float, name: str) -> ScopeRun:
        """Run a scope in the unedited copy; name is of this run alone."""
        return self.run(self._unedited, scope, limit_s, name)

    def run(
        self,
        copy: Copy,
        scope: Scope,
        limit_s: float,
        name: str,
        watch: Mapping[str, frozenset[int]] | None = None,
        items: Sequence[str] = (),
        *,
        reads: bool = False,
    ) -> ScopeRun:
        """Run a scope in a copy, as `run_scope` does; name is of this run alone."""
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

    def _new_copy(self) -> Copy:
        # names of one length: bytecode that holds the place of its source is then lent by a replacement
        copy = copy_again(self._source, self._work / "copies" / f"{next(self._numbers):06}")
        link_libraries(copy, self._work / "libraries")
        return copy
