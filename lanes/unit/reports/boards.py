"""Boards to look at: one on which everything occurs, and one with a hostile text in every field.

Room: tests of the page come in, in the unit lane and in a browser.
"""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lanes.bundle import Bundle, ExpectedItem
from lanes.bundle_reading import read_bundle
from lanes.proof_declaration import Edit, Proof
from lanes.proof_record import Result, find_proof_bundles, save_result
from lanes.proof_verdict import Observation
from lanes.record import Attempt, JsonObject, Record
from reports.board import Board, LastSeen, fold
from reports.rates import Rate
from reports.trend import GAP, Trend

if TYPE_CHECKING:
    from lanes.unit.reports.conftest import Evidence

CASE = json.loads((Path(__file__).parents[2] / "cases" / "reports" / "B40-strings.json").read_text(encoding="utf-8"))
HOSTILE: list[str] = [
    *CASE["strings"],
    "<script>document.title='owned'</script>",
    "</style></script><img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)',
    "' autofocus onfocus='alert(1)",
    "{{ 7 * 7 }} {% raw %}",
    "&lt;b&gt; &amp;",
    "javascript:alert(1)",
    "\u202egnirts\u202c and \u200bhidden",
    "long" * 500,
    "<!-- a comment",
    "]]><svg onload=alert(1)>",
]
SENTENCES = {
    "journey.fix-test": "An agent reads a small project, edits a file, runs the tests and leaves them passing.",
    "journey.resume-session": "A session of several turns goes on in a new process with everything it knew.",
    "loop.cancel.no-late-request": "A cancelled prompt never reaches the model.",
    "loop.turns": "A turn ends when the model has nothing left to ask for, or its budget of steps is spent.",
    "log.durable": "What was answered to a caller is on the disk, whatever ends the process next.",
    "wire.reset-after-text": "A stream that breaks after its first piece is no answer, and is asked for again.",
    "tools.workspace": "No tool reaches a file outside its workspace.",
    "provider.keys": "A key occurs in no log, no error and no report.",
}
TREND = Trend(
    "journey.fix-test",
    "acme",
    "m-large-0221",
    strip=("passed",) * 9 + (GAP, "passed", "flaky", "passed", "failed", GAP, GAP, "passed", "passed"),
    rate=Rate(13, 15),
    days_since_live=1,
    ttfb_ms=640,
    usd=Decimal("0.0472"),
    clean_nights=2,
)
DIFF = "--- a/harness/loop/driver.py\n+++ b/harness/loop/driver.py\n@@ -1 +1 @@\n-    scope.check()\n+    pass"
TRACE = """\
    def test_a_stream_that_breaks_is_asked_for_again(server):
>       assert requests(server) == 2
E       AssertionError: assert 1 == 2
E        +  where 1 = requests(<Server http://127.0.0.1:39121>)

lanes/offline/wire/test_reset.py:41: AssertionError
"""


def hostile_board(evidence: Evidence) -> Board:
    """A board with a hostile text in every field that a test, a bundle or a person can fill."""
    records: list[Record] = []
    for number, text in enumerate(HOSTILE):
        records.append(
            evidence.record(
                node_id=f"lanes/offline/test_a.py::test_{number}[{text}]",
                verdict="failed",
                failure=text,
                reason_text=text,
                captured_stdout=text,
                captured_stderr=text,
                model={"reported": text, "requested": text},
                cassette={"id": text, "recorded_model": text},
                cost={"usd": text},
                attempts=(Attempt(1, "failed", failure=text), Attempt(2, "failed", failure=text)),
            )
        )
    expected = [ExpectedItem(record.node_id, record.claim_ids) for record in records]
    everything = " ".join(HOSTILE)
    claim = evidence.claim(sentence=everything, owner=everything, surface=everything)
    subject = replace(evidence.subject, python=everything, platform=everything)
    seen = LastSeen("journey.fix-test", everything, 3, everything, everything)
    bundle = evidence.bundle(
        *records, lane="offline", expected=expected, breaches=(everything,), started_at=everything, subject=subject
    )
    void = evidence.bundle(evidence.record("unit", f"lanes/unit/{everything}", stored_class="live"))
    word = evidence.bundle(lane="real", not_run_code="no-key", not_run_text=everything, canary_start="")
    admission = evidence.admission(subject=subject)
    night = replace(TREND, provider=everything, model=everything, strip=("passed", everything))
    claims = evidence.claims(claim)
    return fold((bundle, void, word), claims, admission=admission, last_seen=(seen,), trends=(night,))


def whole_board(evidence: Evidence, proofs: Path) -> Board:
    """A board as a project would have it, with every status, a live proof and guards; proofs is a folder to fill."""
    claims = evidence.claims(
        *(evidence.claim(claim_id, sentence=text, owner="core", guarded=True) for claim_id, text in SENTENCES.items())
    )
    names = iter(range(1_000))

    def record(lane: str, claim: str, **facts: Any) -> Record:
        node_id = f"lanes/{lane}/{claim.partition('.')[0]}/test_{claim.rpartition('.')[2]}.py::test_{next(names):03}"
        return evidence.record(lane, node_id.replace("-", "_"), claim_ids=(claim,), **facts)

    def cassette(age_days: int) -> JsonObject:
        facts = {"id": "tool-round", "recorded_model": "m-large-0221", "entries": 2, "consumed": 2}
        return {**facts, "age_days": age_days, "oldest_recorded_at": "2031-02-01T10:00:00Z"}

    recorded: JsonObject = {"channel": "cassette", "class": "recorded", "live_proof_digest": "sha256:1"}
    unit = [record("unit", claim) for claim in SENTENCES for _ in range(14)]
    snapshot = [record("snapshot", claim) for claim in list(SENTENCES)[:5]]
    replay = [
        record("replay", claim, answers=(recorded,), cassette=cassette(age))
        for claim, age in zip(SENTENCES, (12, 41, 103), strict=False)
    ]
    again = (Attempt(1, "failed", 810, 1, failure="E  the port was taken"), Attempt(2, "passed", 640, 2))
    offline = [
        *(record("offline", claim) for claim in list(SENTENCES)[:4]),
        record("offline", "log.durable", attempts=again),
        record("offline", "wire.reset-after-text", verdict="failed", failure=TRACE, captured_stdout="asked once\n"),
        record("offline", "tools.workspace", verdict="blocked", reason_code="worker-lost"),
        record("offline", "provider.keys", verdict="not run", reason_code="platform", reason_text="needs Linux"),
    ]
    live = evidence.live_record(cost={"usd": "0.0031", "in": 5_120, "out": 811})
    bundles = [made(evidence, each) for each in (unit, snapshot, replay, offline, [live]) if each]
    for number, (claim, is_red) in enumerate((("loop.cancel.no-late-request", True), ("loop.turns", False))):
        save_result(guard(f"guard-{number}", claim, is_red=is_red), proofs, evidence.subject)
    return fold(
        bundles,
        claims,
        admission=evidence.admission(),
        last_seen=(LastSeen("journey.resume-session", "19bd77e" + "0" * 33, 3, "m-large-0221", "api.acme.example"),),
        trends=(TREND, replace(TREND, claim_id="journey.resume-session", days_since_live=None, clean_nights=0)),
        proofs=[read_bundle(folder) for folder in find_proof_bundles(proofs)],
        declared=("guard-0", "guard-1", "guard-2"),
    )


def made(evidence: Evidence, records: list[Record]) -> Bundle:
    """The bundle of one lane."""
    return evidence.bundle(*records, started_at="2031-03-04T02:00:00Z")


def guard(proof_id: str, claim: str, *, is_red: bool) -> Result:
    """One proof that was run: its test turned red, or did not."""
    red = f"lanes/unit/test_{proof_id}.py::test_it"
    seen = Observation(frozenset({red}), red=(frozenset({red} if is_red else ()),), is_reached=True)
    proof = Proof(proof_id, claim, "a late request", (Edit("a.py", "1", "2"),), (red,), scope=("lanes/unit",))
    counts = "1 failed, 11 passed" if is_red else "12 passed"
    return Result(proof, seen, "12 passed", counts, "12 passed", {"harness/loop/driver.py": DIFF}, 4_200)
