"""What happens around every item of a lane, in the process that runs it.

Room: the plugin registers it, also in workers. What it observes travels on the reports; it writes no evidence.
"""

from __future__ import annotations

import hashlib
import inspect
import os
from collections.abc import Generator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from _pytest.pathlib import fnmatch_ex

from lanes import guard
from lanes.errors import LanesError, compose_message
from lanes.expectation import EXPIRED, expectation_problem, is_expired, report_problem
from lanes.lane_run import LaneRun
from lanes.live_run import stop
from lanes.observation import Blocked, NotRun, Observation, ObservationView
from lanes.policy import LOCAL_ENVIRONMENT, lane_of_environment
from lanes.raised import PhaseWitness, take_raised
from lanes.record import Json, answer_class
from lanes.spec_ids import spec_ids
from lanes.spool import COLLECTED_FILE, RefusalReader, UnseenReader, write_document
from lanes.trouble import CONDITIONS

EVIDENCE_ATTRIBUTE = "lanes_evidence"
WITNESS_PLUGIN = "lanes-raised"

_OBSERVATION = pytest.StashKey[Observation]()
_REASON = pytest.StashKey[tuple[str, str]]()  # code and text of why the item has no verdict of its own
_CALL_PASSED = pytest.StashKey[bool]()


class ItemHooks:
    """The hooks around collection and around each item."""

    def __init__(self, run: LaneRun) -> None:
        self._run = run
        self._refusals = RefusalReader(run.spool)
        self._unseen = UnseenReader(run.spool)
        self._judged: dict[str, int] = {}  # how many refusals of an item have already failed one of its phases
        self._filtered: list[pytest.Item] = []
        self._left_out: list[str] = []  # paths of the lane that were not even looked into, so nobody knows their items

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Name the file in every refusal while it is loaded, and refuse items that the lane cannot judge."""
        _set_module(collector.nodeid or None)
        try:
            report = yield
        finally:
            _set_module(None)
        if report.passed:
            problem = self._find_problem([node for node in report.result if isinstance(node, pytest.Item)])
            if problem is not None:
                report.outcome = "failed"
                report.longrepr = problem
                report.result = []
        return report

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """Let an item be selected by the spec ids in its name."""
        item.extra_keyword_matches.update(spec_ids(item.name))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_ignore_collect(
        self, collection_path: Path, config: pytest.Config
    ) -> Generator[None, bool | None, bool | None]:
        """Notice what an option or a conftest file keeps from being looked into."""
        is_ignored = yield
        if _is_other_environment(collection_path, self._run):
            return True
        lane = self._run.root / self._run.policy.suite
        if is_ignored and collection_path.is_relative_to(lane) and not _holds_no_tests(collection_path, config):
            self._left_out.append(collection_path.relative_to(self._run.root).as_posix())
        return is_ignored

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> Generator[None, object, object]:
        """Leave the list of the whole lane in the spool and keep this shard's items.

        Shape: what was there before every other hook and is not there after it was taken out, whoever took it out.
        """
        collected = list(items)
        outcome = yield
        kept = {item.nodeid for item in items}
        self._filtered += [item for item in collected if item.nodeid not in kept]
        expected = self._described(items)
        selected: list[Json] | None = None
        if self._run.shard_total > 1:
            items[:] = [item for item in items if self._run.is_mine(item.nodeid)]
            selected = [item.nodeid for item in sorted(items, key=_node_id)]
        document: dict[str, Json] = {
            "expected": expected,
            "selected": selected,
            "deselected": self._described(list({item.nodeid: item for item in self._filtered}.values())),
            "is_partial": bool(self._left_out) or not _is_whole_lane(config, self._run),
        }
        write_document(self._run.spool / COLLECTED_FILE, document)
        return outcome

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Remember what a filter took out."""
        self._filtered.extend(items)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Look at what phases raise from inside of every wrapper of a conftest file: all of those are loaded by now."""
        session.config.pluginmanager.register(PhaseWitness(), WITNESS_PLUGIN)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Tell the guard of this process, and of the children it will have, which item runs."""
        renew_observation(item, self._run)
        _set_item(item.nodeid)
        try:
            return (yield)
        finally:
            _set_item(None)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Refuse to run an expected failure past its last day."""
        if is_expired(item, datetime.now(UTC).date()):
            item.stash[_REASON] = ("failure-expired", EXPIRED)
            item.own_markers = [mark for mark in item.own_markers if mark.name != "xfail"]

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Fail a phase in which the guard refused something, swallowed or not, and attach what was observed."""
        report = yield
        if call.excinfo is not None and isinstance(call.excinfo.value, NotRun | Blocked):
            item.stash[_REASON] = (call.excinfo.value.code, call.excinfo.value.text)
        error = None if call.excinfo is None else call.excinfo.value
        raised = take_raised(item, call.when)
        undeclared = report_problem(item, report, error, raised, datetime.now(UTC).date())
        if undeclared is not None:
            _fail(item, report, *undeclared)
        self._judge(item, report)
        if report.failed and _REASON not in item.stash:
            self._block(item, report)
        if report.when == "call":
            item.stash[_CALL_PASSED] = report.passed
        if report.when == "teardown":
            setattr(report, EVIDENCE_ATTRIBUTE, self._facts_of(item))
        return report

    @pytest.fixture
    def observation(self, request: pytest.FixtureRequest) -> ObservationView:
        """What the witnesses of this item have seen so far; a test reads it and adds nothing."""
        return ObservationView(observation_of(request.node))

    @pytest.fixture
    def lane_run(self) -> LaneRun:
        """The lane run that this item belongs to."""
        return self._run

    def _find_problem(self, items: Sequence[pytest.Item]) -> str | None:
        policy = self._run.policy
        for item in items:
            if not item.nodeid.startswith(f"{policy.home}/"):
                return compose_message(
                    f"a test outside {policy.home} cannot run in lane {policy.name!r}",
                    "USAGE",
                    where=item.nodeid,
                    fix=f"name files below {policy.home}; the folder of a test decides its lane",
                )
            try:
                self._run.claims.check_ids(_marked_claims(item), where=item.nodeid)
            except LanesError as error:
                return str(error)
            problem = expectation_problem(item)
            if problem is not None:
                return problem
        return None

    def _described(self, items: Sequence[pytest.Item]) -> list[Json]:
        return [
            {"node_id": item.nodeid, "claim_ids": list(self._claims_of(item))} for item in sorted(items, key=_node_id)
        ]

    def _claims_of(self, item: pytest.Item) -> tuple[str, ...]:
        return self._run.claims.ids_for(item.nodeid, _marked_claims(item))

    def _judge(self, item: pytest.Item, report: pytest.TestReport) -> None:
        code, problem = "guard-refusal", self._refusal_problem(item.nodeid)
        if problem is None and report.when == "teardown" and report.passed and item.stash.get(_CALL_PASSED, False):
            code, problem = self._answer_problem(item)
        if problem is None:
            return
        _fail(item, report, code, problem)

    def _block(self, item: pytest.Item, report: pytest.TestReport) -> None:
        """Take a failure for what it is when the provider, and not the program, stood in the way of the task."""
        observation = item.stash[_OBSERVATION]
        if observation.trouble is None:
            return
        provider, trouble = observation.trouble
        claims = self._run.claims.by_id
        conditions = {claims[each].condition for each in self._claims_of(item)}
        if conditions & CONDITIONS.get(trouble.code, frozenset()):
            return
        if trouble.is_lasting:
            stop(self._run.spool, provider, trouble)
        item.stash[_REASON] = (trouble.code, trouble.text)
        report.outcome = "skipped"
        report.longrepr = (str(item.path), item.location[1] or 0, f"blocked ({trouble.code}): {trouble.text}")

    def _refusal_problem(self, node_id: str) -> str | None:
        refusals = self._refusals.of_item(node_id)
        fresh = refusals[self._judged.get(node_id, 0) :]
        if not fresh:
            return None
        self._judged[node_id] = len(refusals)
        tries = "1 try" if len(fresh) == 1 else f"{len(fresh)} tries"
        tried = ", ".join(dict.fromkeys(refusal.what for refusal in fresh))
        return compose_message(
            f"lane {self._run.policy.name!r} refused {tries}: {tried}",
            fresh[0].code,
            where=node_id,
            fix="stay inside the lane; catching a refusal does not undo it",
        )

    def _answer_problem(self, item: pytest.Item) -> tuple[str, str | None]:
        policy, observation = self._run.policy, item.stash[_OBSERVATION]
        if policy.ceiling != "live" and any(answer_class(answer) == "live" for answer in observation.answers):
            message = f"a live answer in lane {policy.name!r}, whose ceiling is {policy.ceiling!r}"
            return "guard-refusal", compose_message(message, "GUARD", where=item.nodeid)
        needed = self._run.answers_needed(self._claims_of(item))
        if not policy.keyless or len(observation.answers) >= needed:
            return "", None
        return "too-few-answers", compose_message(
            f"{len(observation.answers)} model answers were seen, the claim asks for {needed}",
            "TOO_FEW_ANSWERS",
            where=item.nodeid,
            fix="let the test ask the model, or lower min_answers of the claim",
        )

    def _facts_of(self, item: pytest.Item) -> dict[str, Json]:
        here = guard.installed()
        claims = self._claims_of(item)
        tries: dict[str, int] = {}
        for refusal in self._refusals.of_item(item.nodeid):
            tries[refusal.what] = tries.get(refusal.what, 0) + 1
        return {
            **item.stash[_OBSERVATION].to_json(),
            "reason": list(item.stash.get(_REASON, ())) or None,
            "claim_ids": list(claims),
            "min_answers": self._run.answers_needed(claims),
            "needs_nonce": self._run.needs_nonce(claims),
            "conversations": self._run.conversations(claims),
            "params_digest": _params_digest(item),
            "test_digest": _test_digest(item),
            "worker": self._run.worker,
            "guard": {
                "depth": self._run.depth,
                "canary_start": here.start if here is not None else guard.NOT_SHOWN,
                "canary_end": here.probe() if here is not None else guard.NOT_SHOWN,
                "refusals": [{"what": what, "tries": tries[what]} for what in sorted(tries)],
                "unseen": list(self._unseen.of_item(item.nodeid)),
            },
        }


def observation_of(item: pytest.Item) -> Observation:
    """The item's observation, for the maker of its channels."""
    found: Observation = item.stash[_OBSERVATION]
    return found


def renew_observation(item: pytest.Item, run: LaneRun) -> None:
    """Start observing the item anew, for its first or its next attempt."""
    claims = run.claims.ids_for(item.nodeid, _marked_claims(item))
    item.stash[_OBSERVATION] = Observation(item.nodeid, spool=run.spool, secret=run.secret, claim_ids=claims)
    item.stash.setdefault(_REASON, ("", ""))
    del item.stash[_REASON]  # why an earlier attempt came to nothing says nothing about the next one


def _fail(item: pytest.Item, report: pytest.TestReport, code: str, problem: str) -> None:
    """Make a phase a failed one, with its reason; what it failed with already stays."""
    item.stash[_REASON] = (code, problem.partition("\n")[0])
    report.longrepr = f"{report.longreprtext}\n\n{problem}" if report.failed else problem
    report.outcome = "failed"
    report.__dict__.pop("wasxfail", None)


def _set_item(node_id: str | None) -> None:
    here = guard.installed()
    if here is not None:
        here.item = node_id
    if node_id is None:
        os.environ.pop(guard.ITEM_VARIABLE, None)
    else:
        os.environ[guard.ITEM_VARIABLE] = node_id


def _set_module(node_id: str | None) -> None:
    here = guard.installed()
    if here is not None:
        here.module = node_id


def _is_whole_lane(config: pytest.Config, run: LaneRun) -> bool:
    """Whether all of the lane's folder was asked for, as pytest itself understood its arguments and settings."""
    asked = {os.path.realpath(config.invocation_params.dir / argument) for argument in config.args}
    return asked == {os.path.realpath(run.root / run.policy.suite)}


def _is_other_environment(path: Path, run: LaneRun) -> bool:
    """Whether a folder is the part of the lane that an environment with a policy of its own runs."""
    other = lane_of_environment(LOCAL_ENVIRONMENT)
    own = run.root / run.policy.home / other.part
    return run.policy.name == other.name and not run.policy.part and path == own


def _holds_no_tests(path: Path, config: pytest.Config) -> bool:
    """Whether a path is one that pytest always passes by: bytecode, and folders that are named in its settings."""
    return path.name == "__pycache__" or any(fnmatch_ex(each, path) for each in config.getini("norecursedirs"))


def _node_id(item: pytest.Item) -> str:
    return item.nodeid


def _marked_claims(item: pytest.Item) -> tuple[str, ...]:
    return tuple(str(claim_id) for mark in item.iter_markers("claim") for claim_id in mark.args)


def _params_digest(item: pytest.Item) -> str:
    call = getattr(item, "callspec", None)
    return "" if call is None else _digest(str(call.id))


def _test_digest(item: pytest.Item) -> str:
    function = getattr(item, "function", None)
    try:
        return "" if function is None else _digest(inspect.getsource(function))
    except (OSError, TypeError):  # a function made at run time has no source to digest
        return ""


def _digest(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
