"""The exit codes of section 3.6."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from lanes.bundle import Bundle
from lanes.record import Attempt
from reports.verdict import FAILED, NOT_LIVE, NOTHING_RUN, PASSED, USAGE, VOID, Asked, exit_code

if TYPE_CHECKING:
    from lanes.unit.reports.conftest import Evidence

KEYLESS = ("unit", "snapshot", "replay", "offline")


def whole(evidence: Evidence) -> list[Bundle]:
    """A passing bundle of every keyless lane, and a real lane without a key."""
    real = evidence.bundle(lane="real", not_run_code="no-key", canary_start="")
    return [*(evidence.bundle(evidence.record(lane)) for lane in KEYLESS), real]


def code(evidence: Evidence, *bundles: Bundle, asked: Asked = Asked(), **fold: object) -> int:  # noqa: B008 - frozen
    return exit_code(evidence.fold(*bundles, **fold), asked)  # type: ignore[arg-type]


def test_all_required_claims_passed_without_a_key_is_0(evidence: Evidence) -> None:
    assert code(evidence, *whole(evidence)) == PASSED


def test_one_lane_alone_is_judged_alone(evidence: Evidence) -> None:
    bundle = evidence.bundle(evidence.record())

    assert [code(evidence, bundle, asked=Asked(lanes)) for lanes in (("offline",), ("unit",), ())] == [
        PASSED,
        NOTHING_RUN,
        FAILED,
    ]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({"verdict": "failed", "attempts": (Attempt(1, "failed"),)}, FAILED, id="failed"),
        pytest.param(
            {
                "verdict": "failed",
                "attempts": (Attempt(1, "failed"),),
                "reason_code": "known-failure",
                "reason_text": "https://example.com/7 until 2999-01-01",
            },
            PASSED,
            id="known-failure",
        ),
        pytest.param(
            {
                "verdict": "failed",
                "attempts": (Attempt(1, "failed"),),
                "reason_code": "known-failure",
                "reason_text": "reason: later",
            },
            FAILED,
            id="edge36-known-by-its-own-word-alone",
        ),
        pytest.param(
            {"verdict": "failed", "attempts": (Attempt(1, "failed"),), "reason_code": "failure-expired"},
            FAILED,
            id="edge36-past-its-date",
        ),
        pytest.param({"verdict": "blocked", "attempts": (), "reason_code": "worker-lost"}, FAILED, id="blocked"),
        pytest.param(
            {"verdict": "not run", "attempts": (), "reason_code": "platform"}, NOTHING_RUN, id="edge37-all-skipped"
        ),
        pytest.param({"stored_class": "live"}, VOID, id="edge27-void"),
        pytest.param({"guard": {"canary_start": "not shown"}}, FAILED, id="guard-of-the-item"),
    ],
)
def test_one_record_of_a_keyless_lane_decides(evidence: Evidence, changes: dict[str, object], expected: int) -> None:
    record = replace(evidence.record(), **changes)  # type: ignore[arg-type]

    assert code(evidence, evidence.bundle(record), asked=Asked(("offline",))) == expected


def test_a_claim_without_a_test_is_1(evidence: Evidence) -> None:
    claims = evidence.claims(evidence.claim(), evidence.claim("loop.other"))

    assert code(evidence, evidence.bundle(evidence.record()), claims=claims, asked=Asked(("offline",))) == FAILED


def test_what_a_person_filtered_out_is_not_held_against_the_run(evidence: Evidence) -> None:
    claims = evidence.claims(evidence.claim(), evidence.claim("loop.other"))
    bundle = evidence.bundle(evidence.record(), deselected=(evidence.item("test_two"),))

    assert code(evidence, bundle, claims=claims, asked=Asked(("offline",))) == PASSED


def test_edge35_a_lane_of_which_a_part_ran_leaves_a_gap_in_the_whole_board_alone(evidence: Evidence) -> None:
    part = evidence.bundle(evidence.record(), extra={"filtered": True})
    others = [bundle for bundle in whole(evidence) if bundle.header.lane != "offline"]

    found = [code(evidence, part, *others, asked=Asked(lanes)) for lanes in (("offline",), ())]

    assert found == [PASSED, FAILED]


def test_a_failed_item_without_a_claim_is_1(evidence: Evidence) -> None:
    stray = evidence.record(node_id="lanes/offline/test_a.py::test_stray", verdict="failed", claim_ids=())

    assert code(evidence, evidence.bundle(evidence.record(), stray), asked=Asked(("offline",))) == FAILED


def test_nothing_collected_is_5(evidence: Evidence) -> None:
    assert [code(evidence, evidence.bundle(lane="offline"), asked=Asked(("offline",))), code(evidence)] == [
        NOTHING_RUN
    ] * 2


def test_a_collection_error_is_2(evidence: Evidence) -> None:
    assert code(evidence, evidence.bundle(lane="offline", exit_code=2), asked=Asked(("offline",))) == USAGE


def test_a_conflict_a_breach_and_a_guard_that_was_not_shown_are_3(evidence: Evidence) -> None:
    passed, failed = evidence.bundle(evidence.record()), evidence.bundle(evidence.record(verdict="failed"))
    breach = evidence.bundle(evidence.record(), breaches=("x",))
    down = evidence.bundle(evidence.record(), canary_end="not shown")

    assert [code(evidence, passed, failed), code(evidence, breach), code(evidence, down)] == [VOID] * 3


def test_edge46_a_missing_shard_is_1(evidence: Evidence) -> None:
    assert code(evidence, evidence.bundle(evidence.record(), shard=(1, 2)), asked=Asked(("offline",))) == FAILED


def test_flaky_and_stale_are_1_only_when_strict(evidence: Evidence) -> None:
    stale = evidence.bundle(evidence.record("replay", cassette={"age_days": 103, "entries": 1, "consumed": 1}))
    flaky = evidence.bundle(evidence.record("replay", attempts=(Attempt(1, "failed"), Attempt(2, "passed"))))

    found = [
        [code(evidence, bundle, asked=Asked(("replay",), strict=strict)) for strict in (False, True)]
        for bundle in (stale, flaky)
    ]

    assert found == [[PASSED, FAILED]] * 2


def test_edge32_a_skip_without_a_code_is_1_when_strict(evidence: Evidence) -> None:
    todo = evidence.record(node_id="lanes/offline/test_a.py::test_b", verdict="not run", claim_ids=(), reason_code=None)
    bundle = evidence.bundle(evidence.record(), todo)

    found = [code(evidence, bundle, asked=Asked(("offline",), strict=strict)) for strict in (False, True)]

    assert found == [PASSED, FAILED]


def test_without_a_key_the_real_lane_is_0_and_4_when_live_proof_is_required(evidence: Evidence) -> None:
    empty = evidence.bundle(lane="real", not_run_code="no-key", canary_start="")

    found = [code(evidence, empty, asked=Asked(("real",), require_live=live)) for live in (False, True)]

    assert found == [PASSED, NOT_LIVE]


def test_a_live_pass_satisfies_and_a_local_one_does_not(evidence: Evidence) -> None:
    asked = Asked(("real",), require_live=True)
    live = evidence.bundle(evidence.live_record())
    local = evidence.bundle(evidence.local_record(), lane_mark="real-local", tox_env="real-local")

    assert [code(evidence, live, asked=asked), code(evidence, local, asked=asked)] == [PASSED, NOT_LIVE]


def test_a_required_live_claim_must_be_among_the_passes(evidence: Evidence) -> None:
    claims = evidence.claims(evidence.claim(), evidence.claim("live.must", required=("real",), optional=()))

    live = evidence.bundle(evidence.live_record())

    assert code(evidence, live, claims=claims, asked=Asked(("real",), require_live=True)) == NOT_LIVE


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({"verdict": "failed", "attempts": (Attempt(1, "failed"),)}, FAILED, id="failed"),
        pytest.param(
            {"verdict": "failed", "attempts": (Attempt(1, "failed"),), "answers": ()}, FAILED, id="edge18-crash"
        ),
        pytest.param({"answers": ()}, VOID, id="edge18-passed-without-a-call"),
        pytest.param(
            {"verdict": "blocked", "attempts": (), "answers": (), "reason_code": "outage"}, PASSED, id="outage"
        ),
    ],
)
def test_one_record_of_the_real_lane_decides(evidence: Evidence, changes: dict[str, object], expected: int) -> None:
    record = replace(evidence.live_record(), **changes)  # type: ignore[arg-type]

    assert code(evidence, evidence.bundle(record), asked=Asked(("real",))) == expected


def test_a_record_edited_to_say_live_is_3_in_every_lane_that_is_asked_for_nothing_else(evidence: Evidence) -> None:
    forged = replace(evidence.record(), lane="real", stored_class="live")
    bundles = [*whole(evidence), evidence.bundle(forged, lane="offline", run_id="run-offline", expected=[])]

    assert code(evidence, *bundles) == VOID
