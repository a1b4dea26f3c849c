"""Further attempts in the lane that has them: after a failed one, or a sample of a fixed number.

Room: the plugin registers it where the policy allows retries, which is `real` alone. Every attempt is kept with its own
answers, its own proof and its own cost.
"""

from __future__ import annotations

import pytest
from _pytest.runner import runtestprotocol

from lanes.items import EVIDENCE_ATTRIBUTE, renew_observation
from lanes.lane_run import LaneRun
from lanes.live_run import load_live_run
from lanes.record import BLOCKING_REASONS, Json, digest_bytes

_SEEN = ("answers", "model", "live_proof", "cost")  # what a witness saw of one attempt


class AttemptHooks:
    """Runs an item again until it passes or its attempts are used up; a sample is run to its number, whatever comes."""

    def __init__(self, run: LaneRun) -> None:
        self._run = run
        live = load_live_run(run.spool)
        self._sample = 0 if live is None else live.attempts

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        """Run the item in place of pytest's own protocol and log the reports of its last attempt."""
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        attempts: list[dict[str, Json]] = []
        while True:
            if attempts:
                item._initrequest()  # type: ignore[attr-defined]  # noqa: SLF001 - as pytest itself does before a run
                renew_observation(item, self._run)
            reports = runtestprotocol(item, log=False, nextitem=nextitem)
            attempts.append(_attempt(len(attempts) + 1, reports))
            if not self._goes_on(attempts):
                break
        facts = getattr(reports[-1], EVIDENCE_ATTRIBUTE)
        attempts[-1].pop("seen")  # the record itself holds those of the last one
        facts["attempts"] = attempts
        facts["sample"] = self._sample
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def _goes_on(self, attempts: list[dict[str, Json]]) -> bool:
        verdict = attempts[-1]["verdict"]
        if verdict in {"blocked", "not run"}:  # the next attempt would meet the same
            return False
        if self._sample:
            return len(attempts) < self._sample
        return verdict == "failed" and len(attempts) <= self._run.policy.retries


def _attempt(number: int, reports: list[pytest.TestReport]) -> dict[str, Json]:
    failure = next((report.longreprtext for report in reports if report.failed), None)
    skipped = any(report.skipped for report in reports)
    facts = getattr(reports[-1], EVIDENCE_ATTRIBUTE)
    reason = facts["reason"] or ("", "")
    blocked = skipped and reason[0] in BLOCKING_REASONS
    return {
        "n": number,
        "verdict": "failed" if failure is not None else "blocked" if blocked else "not run" if skipped else "passed",
        "duration_ms": round(sum(report.duration for report in reports) * 1000),
        "answers": len(facts["answers"]),
        "failure": failure,
        "failure_digest": None if failure is None else digest_bytes(failure.encode("utf-8", "surrogatepass")),
        "seen": {name: facts[name] for name in _SEEN},
    }
