"""The one writer of a lane's evidence: from reports, wherever the items ran, to records.

Room: the plugin registers it in the process that has no master; it writes through `lanes.bundle` and nowhere else.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import pytest

from lanes import guard
from lanes.bundle import BundleHeader, BundleWriter, ExpectedItem, bundle_folder
from lanes.errors import EvidenceError
from lanes.items import EVIDENCE_ATTRIBUTE
from lanes.lane_run import LaneRun
from lanes.providers import load_providers
from lanes.record import BLOCKING_REASONS, Attempt, Json, JsonObject, Record, Shard, Verdict, digest_bytes
from lanes.spool import COLLECTED_FILE, SUMMARY_FILE, read_document, write_document

MAX_CAPTURED_CHARS = (
    20_000  # a failing test that prints without end must not fill the evidence; the terminal has it all
)
CRASHED = "???"  # the phase pytest-xdist gives an item whose worker died
NOTHING_RUN = 5


@dataclass(slots=True)
class _Phases:
    """The reports of one item so far."""

    reports: list[pytest.TestReport] = field(default_factory=list)

    @property
    def failed(self) -> pytest.TestReport | None:
        return next((report for report in self.reports if report.failed), None)

    @property
    def failure(self) -> str:
        """What went wrong in every phase, in order: the law that a teardown found broken is often the cause."""
        return "\n\n".join(report.longreprtext for report in self.reports if report.failed)

    @property
    def was_called(self) -> bool:
        """Whether the body of the test itself ran and passed."""
        return any(report.when == "call" and report.passed for report in self.reports)

    @property
    def skipped(self) -> pytest.TestReport | None:
        return next((report for report in self.reports if report.skipped), None)

    @property
    def duration_ms(self) -> int:
        return round(sum(report.duration for report in self.reports) * 1000)


class Controller:
    """Gathers reports into records, one per item, written as the items end."""

    def __init__(self, run: LaneRun, out: Path) -> None:
        self._run = run
        self._folder = bundle_folder(out, run.mark or run.policy.name, run.shard_index, run.shard_total)
        here = guard.installed()
        self._canary_start = here.start if here is not None else guard.NOT_SHOWN
        self._writer: BundleWriter | None = None
        self._phases: dict[str, _Phases] = {}
        self._verdicts: dict[str, Verdict] = {}
        self._breaches: list[str] = []
        self._refusals: dict[str, int] = {}
        self._not_loaded: dict[str, str] = {}
        self._crashed = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Open the bundle; whatever an earlier run left in its place is gone from now on."""
        secrets = () if self._run.policy.keyless else self._key_values()
        self._writer = BundleWriter(self._folder, self._header(), secrets=secrets)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep what could not be loaded: the tests in it cannot be judged."""
        if report.failed:  # every worker loads every file, so the same failure comes more than once
            self._not_loaded.setdefault(report.nodeid, _last_line(report.longreprtext))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write the record of an item with the last of its reports."""
        phases = self._phases.setdefault(report.nodeid, _Phases())
        phases.reports.append(report)
        if report.when == CRASHED:
            self._crashed = True
            self._write(report.nodeid, {}, "failed", "worker-crashed", report.longreprtext)
        elif report.when == "teardown":
            self._judge(report.nodeid, phases, getattr(report, EVIDENCE_ATTRIBUTE, {}))

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Account for what never reported, and close the bundle."""
        header = self._replace_header()
        planned = [item.node_id for item in header.expected] if header.selected is None else list(header.selected)
        for node_id in planned:
            if node_id in self._verdicts:
                continue
            if self._crashed:
                self._write(node_id, {}, "blocked", "worker-lost", "the worker that had it in its queue died")
            elif exitstatus == pytest.ExitCode.OK:  # nobody stopped it, and no failure did
                self._write(node_id, {}, "blocked", "unjudged", "the run ended in success before its turn")
            else:
                self._write(node_id, {}, "not run", "deselected", "the run was stopped before its turn")
        if set(self._verdicts.values()) == {"not run"} and exitstatus == pytest.ExitCode.OK:
            session.exitstatus = NOTHING_RUN
        here = guard.installed()
        if self._writer is not None:
            self._writer.close(
                canary_end=here.note_canary("finish") if here is not None else guard.NOT_SHOWN,
                exit_code=int(session.exitstatus),
                breaches=self._breaches,
                extra={"not_loaded": dict(self._not_loaded)} if self._not_loaded else {},
                is_judged=False,
            )
        summary: dict[str, Json] = {"not_loaded": len(self._not_loaded), "refusals": dict(self._refusals)}
        write_document(self._run.spool / SUMMARY_FILE, summary)

    def _header(self) -> BundleHeader:
        run = self._run
        return BundleHeader(
            lane=run.policy.name,
            run_id=run.run_id,
            subject=run.subject,
            shard_index=run.shard_index,
            shard_total=run.shard_total,
            configuration=run.configuration,
            lane_mark=run.mark,
            tox_env=run.tox_environment,
            marker=run.marker,
            guard_depth=run.depth,
            canary_start=self._canary_start,
            keys_removed=run.keys_removed,
            started_at=run.started_at,
        )

    def _replace_header(self) -> BundleHeader:
        header = self._header()
        collected = read_document(self._run.spool / COLLECTED_FILE)
        if collected is not None:
            selected = collected["selected"]
            header = replace(
                header,
                expected=_expected(collected["expected"]),
                selected=None if selected is None else tuple(cast("Sequence[str]", selected)),
                deselected=_expected(collected["deselected"]),
                extra={"filtered": True} if collected["is_partial"] is True else {},
            )
        if self._writer is not None and self._writer.header != header:
            self._writer.replace_header(header)
        return header

    def _judge(self, node_id: str, phases: _Phases, facts: JsonObject) -> None:
        self._refusals[node_id] = _tries(facts)
        reason = facts.get("reason")
        code, text = (str(reason[0]), str(reason[1])) if isinstance(reason, list | tuple) else (None, "")
        failed, skipped = phases.failed, phases.skipped
        if failed is not None:
            if code is None and "[XPASS(strict)]" in failed.longreprtext:
                code, text = "unexpected-pass", "expected to fail, passed"
            self._write(node_id, facts, "failed", code, text, failure=phases.failure)
        elif skipped is not None and hasattr(skipped, "wasxfail"):
            self._write(node_id, facts, "failed", "known-failure", str(skipped.wasxfail), failure=skipped.longreprtext)
        elif skipped is not None:
            said = text or _skip_text(skipped)
            verdict: Verdict = "blocked" if code in BLOCKING_REASONS else "not run"
            self._write(node_id, facts, verdict, code or "unclassified-skip", said)
        elif phases.was_called:
            self._write(node_id, facts, "passed", None, "")
        else:  # an option or a hook kept the body from running: nothing was attempted
            self._write(node_id, facts, "not run", "deselected", "its body did not run")

    def _write(
        self,
        node_id: str,
        facts: JsonObject,
        verdict: Verdict,
        code: str | None,
        text: str,
        *,
        failure: str | None = None,
    ) -> None:
        if self._writer is None or node_id in self._verdicts:
            return
        if not self._writer.header.expected:
            self._replace_header()
        self._verdicts[node_id] = verdict
        record = self._record(node_id, facts, verdict, code, text, failure)
        try:
            self._writer.write(record)
        except EvidenceError as error:
            self._breaches.append(str(error).partition("\n")[0])
            self._writer.write(self._record(node_id, {}, "failed", code, "its record held the value of a key", None))
            self._verdicts[node_id] = "failed"

    def _record(
        self, node_id: str, facts: JsonObject, verdict: Verdict, code: str | None, text: str, failure: str | None
    ) -> Record:
        run, phases = self._run, self._phases.get(node_id, _Phases())
        claims = cast("Sequence[str]", facts.get("claim_ids", run.claims.ids_for(node_id)))
        answers = cast("Sequence[JsonObject]", facts.get("answers", ()))
        shown = phases.reports[-1] if phases.reports and verdict == "failed" else None
        return Record(
            lane=run.policy.name,
            node_id=node_id,
            run_id=run.run_id,
            verdict=verdict,
            subject=run.subject,
            shard=Shard(run.shard_index, run.shard_total, str(facts.get("worker", ""))),
            params_digest=str(facts.get("params_digest", "")),
            test_digest=str(facts.get("test_digest", "")),
            claim_ids=tuple(claims),
            min_answers=cast("int", facts.get("min_answers", run.answers_needed(claims))),
            needs_nonce=bool(facts.get("needs_nonce", run.needs_nonce(claims))),
            conversations=cast("int", facts.get("conversations", run.conversations(claims))),
            reason_code=code,
            reason_text=text,
            attempts=_attempts(facts, verdict, phases.duration_ms, len(answers), failure),
            duration_ms=phases.duration_ms,
            failure=None if failure is None else failure[:MAX_CAPTURED_CHARS],
            captured_stdout="" if shown is None else shown.capstdout[-MAX_CAPTURED_CHARS:],
            captured_stderr="" if shown is None else shown.capstderr[-MAX_CAPTURED_CHARS:],
            answers=tuple(answers),
            model=cast("JsonObject | None", facts.get("model")),
            live_proof=cast("JsonObject | None", facts.get("live_proof")),
            cassette=cast("JsonObject | None", facts.get("cassette")),
            guard=cast("JsonObject | None", facts.get("guard")),
            script=cast("JsonObject | None", facts.get("script")),
            cost=cast("JsonObject | None", facts.get("cost")),
            extra=cast("JsonObject", {"sample": facts["sample"]} if facts.get("sample") else {}),
        )

    def _key_values(self) -> tuple[str, ...]:
        return tuple(filter(None, (os.environ.get(provider.key, "").strip() for provider in load_providers())))


def _attempts(
    facts: JsonObject, verdict: Verdict, duration_ms: int, answers: int, failure: str | None
) -> tuple[Attempt, ...]:
    kept = cast("Sequence[Mapping[str, Json]]", facts.get("attempts", ()))
    if kept:
        return tuple(
            Attempt(
                n=cast("int", each["n"]),
                verdict=cast("Verdict", each["verdict"]),
                duration_ms=cast("int", each["duration_ms"]),
                answers=cast("int", each["answers"]),
                failure_digest=cast("str | None", each["failure_digest"]),
                failure=cast("str | None", each["failure"]),
                extra=cast("JsonObject", {"seen": each["seen"]} if each.get("seen") else {}),
            )
            for each in kept
        )
    if verdict in {"not run", "blocked"}:
        return ()
    digest = None if failure is None else digest_bytes(failure.encode("utf-8", "surrogatepass"))
    return (Attempt(n=1, verdict=verdict, duration_ms=duration_ms, answers=answers, failure_digest=digest),)


def _tries(facts: JsonObject) -> int:
    found = cast("Mapping[str, Sequence[Mapping[str, int]]]", facts.get("guard", {})).get("refusals", ())
    return sum(each["tries"] for each in found)


def _expected(value: Json) -> tuple[ExpectedItem, ...]:
    return tuple(
        ExpectedItem(str(each["node_id"]), tuple(cast("Sequence[str]", each["claim_ids"])))
        for each in cast("Sequence[JsonObject]", value)
    )


def _skip_text(report: pytest.TestReport) -> str:
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
    return text.removeprefix("Skipped: ")


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    coded = [line for line in lines if line.endswith("]") and "[" in line]
    return (coded or lines or ["no reason was given"])[-1]
