"""Further attempts after a failed one, in the lane that has them; every attempt is kept with its own answers.

Room: the plugin registers it where the policy allows retries, which is `real` alone.
"""

from __future__ import annotations

import pytest
from _pytest.runner import runtestprotocol

from lanes.items import EVIDENCE_ATTRIBUTE, renew_observation
from lanes.lane_run import LaneRun
from lanes.record import Json, digest_bytes


class AttemptHooks:
    """Runs an item again until it passes or its attempts are used up."""

    def __init__(self, run: LaneRun) -> None:
        self._run = run

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        """Run the item in place of pytest's own protocol and log the reports of its last attempt."""
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        attempts: list[Json] = []
        while True:
            if attempts:
                item._initrequest()  # type: ignore[attr-defined]  # noqa: SLF001 - as pytest itself does before a run
                renew_observation(item, self._run)
            reports = runtestprotocol(item, log=False, nextitem=nextitem)
            attempts.append(_attempt(len(attempts) + 1, reports))
            if not any(report.failed for report in reports) or len(attempts) > self._run.policy.retries:
                break
        facts = getattr(reports[-1], EVIDENCE_ATTRIBUTE)
        facts["attempts"] = attempts
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True


def _attempt(number: int, reports: list[pytest.TestReport]) -> dict[str, Json]:
    failure = next((report.longreprtext for report in reports if report.failed), None)
    skipped = any(report.skipped for report in reports)
    facts = getattr(reports[-1], EVIDENCE_ATTRIBUTE)
    return {
        "n": number,
        "verdict": "failed" if failure is not None else "not run" if skipped else "passed",
        "duration_ms": round(sum(report.duration for report in reports) * 1000),
        "answers": len(facts["answers"]),
        "failure": failure,
        "failure_digest": None if failure is None else digest_bytes(failure.encode("utf-8", "surrogatepass")),
    }
