"""The unedited runs that proofs stand on: shared where they are green, alone where they are not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import pytest

from lanes.breakits_bench import Bench, Scope
from lanes.breakits_run import ScopeRun
from lanes.breakits_unedited import SCOPES_OF_A_RUN, Unedited, batches_of
from lanes.proof_declaration import Proof
from lanes.record import Verdict

DOORS: Scope = ("unit", ("lanes/unit/doors",))
TILLS: Scope = ("unit", ("lanes/unit/tills.py",))
BOTH: Scope = ("unit", ("lanes/unit/doors/left.py", "lanes/unit/tills.py"))
ITEMS = ("lanes/unit/doors/left.py::opens", "lanes/unit/doors/right.py::opens", "lanes/unit/tills.py::adds")


class Runs:
    """A bench on which nothing runs: what a run shows is decided by the test, from its paths and its name."""

    def __init__(self, show: Callable[[Sequence[str], str], ScopeRun]) -> None:
        self.asked: list[tuple[tuple[str, ...], float]] = []
        self._show = show

    def run_unedited(self, scope: Scope, limit_s: float, name: str) -> ScopeRun:
        self.asked.append((scope[1], limit_s))
        return self._show(scope[1], name)


def shown(paths: Sequence[str], verdict: Verdict = "passed") -> ScopeRun:
    inside = [item for item in ITEMS if any(item.startswith(path) for path in paths)]
    return ScopeRun(verdicts=dict.fromkeys(inside, verdict))


def unedited(runs: Runs, *scopes: Scope) -> Unedited:
    made = Unedited(cast("Bench", runs), dict.fromkeys(scopes, 100.0), "batch")
    made.run_before()
    return made


class TestBefore:
    def test_scopes_share_one_run_in_which_each_path_stands_once(self) -> None:
        runs = Runs(lambda paths, _name: shown(paths))

        made = unedited(runs, DOORS, TILLS, BOTH)

        assert [list(made.before(scope).verdicts) for scope in (DOORS, TILLS, BOTH)] == [
            [ITEMS[0], ITEMS[1]],
            [ITEMS[2]],
            [ITEMS[0], ITEMS[2]],
        ], "a scope was shown items of another"
        assert runs.asked == [(("lanes/unit/doors", "lanes/unit/tills.py"), 300.0)], (
            "one run of all, with all their time"
        )

    @pytest.mark.parametrize(
        "together",
        [
            ScopeRun(problem="the time limit was met", is_hung=True),
            ScopeRun(verdicts=dict.fromkeys(ITEMS, "passed"), breaches=("a child asked the network",)),
            ScopeRun(verdicts=dict.fromkeys(ITEMS, "failed")),
            ScopeRun(verdicts=dict.fromkeys(ITEMS, "blocked")),
        ],
        ids=["hung", "breach", "red", "blocked"],
    )
    def test_a_scope_whose_shared_run_is_no_ground_has_a_run_of_its_own_once(self, together: ScopeRun) -> None:
        runs = Runs(lambda paths, _name: together if len(paths) > 1 else shown(paths))

        made = unedited(runs, DOORS, TILLS)

        assert [made.before(DOORS), made.before(DOORS)] == [shown(DOORS[1])] * 2
        assert runs.asked[1:] == [(DOORS[1], 100.0)], "it was to be run alone, with its own time, and once"

    def test_a_scope_that_is_red_by_itself_stays_red(self) -> None:
        runs = Runs(lambda paths, _name: shown(paths, "failed"))

        assert set(unedited(runs, DOORS, TILLS).before(TILLS).verdicts.values()) == {"failed"}

    def test_a_red_scope_without_company_is_not_run_twice(self) -> None:
        runs = Runs(lambda paths, _name: shown(paths, "failed"))

        unedited(runs, TILLS).before(TILLS)

        assert len(runs.asked) == 1


class TestAfter:
    def test_only_scopes_in_which_a_mutant_ran_are_run_again(self) -> None:
        runs = Runs(lambda paths, _name: shown(paths))
        made = unedited(runs, DOORS, TILLS)
        before = made.before(TILLS)

        assert made.after({TILLS}) == {TILLS: before}
        assert runs.asked[1:] == [(TILLS[1], 100.0)]
        assert made.after(set()) == {}

    def test_a_scope_that_came_out_otherwise_in_company_is_judged_by_a_run_of_its_own(self) -> None:
        runs = Runs(lambda paths, name: shown(paths, "failed" if name.endswith(".after") else "passed"))
        made = unedited(runs, DOORS, TILLS)
        before = {scope: made.before(scope) for scope in (DOORS, TILLS)}

        assert made.after({DOORS, TILLS}) == before

    def test_a_scope_that_comes_out_otherwise_by_itself_too_is_shown_so(self) -> None:
        runs = Runs(lambda paths, name: shown(paths, "failed" if "after" in name else "passed"))
        made = unedited(runs, DOORS, TILLS)
        for scope in (DOORS, TILLS):
            made.before(scope)

        assert made.after({DOORS, TILLS})[TILLS].verdicts == {ITEMS[2]: "failed"}


class TestBatches:
    def test_a_batch_holds_scopes_of_one_lane_with_all_their_proofs(self) -> None:
        proofs = [
            Proof(id=f"{lane}-{number}", claim="c", why="w", edits=(), expect_red=(), lane=lane, scope=(f"s{number}",))
            for number in range(SCOPES_OF_A_RUN + 1)
            for lane in ("unit", "offline", "unit")
        ]

        batches = batches_of(proofs)

        assert [(len(batch), {lane for lane, _paths in batch}) for batch in batches] == [
            (SCOPES_OF_A_RUN, {"offline"}),
            (1, {"offline"}),
            (SCOPES_OF_A_RUN, {"unit"}),
            (1, {"unit"}),
        ]
        assert sum(len(members) for batch in batches for members in batch.values()) == len(proofs), "a proof was lost"
