"""The board: statuses, the worst of the parts, and what is named instead of dropped."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from typing import TYPE_CHECKING

import pytest

from lanes.bundle import Bundle, BundleProblem
from lanes.policy import LANES
from lanes.record import REASONS, Attempt, JsonObject, Record, Subject
from reports.board import Board, Row
from reports.cells import STATUSES, Observed, Proven, Tally, status_of, worst
from reports.words import NO_HOSTED, NO_LIVE, cell_words

if TYPE_CHECKING:
    from lanes.unit.reports.conftest import Evidence

CLAIM = "journey.fix-test"
RECORDING: JsonObject = {"id": "a", "entries": 1, "consumed": 1, "unmatched": 0, "age_days": 3}
REPLAYED: JsonObject = {"channel": "cassette", "class": "recorded", "live_proof_digest": "sha256:p"}


def words(board: Board, column: str, claim_id: str = CLAIM) -> str:
    return cell_words(board.row(claim_id).cells[column], is_live=board.column(column).is_live)


def void_codes(board: Board) -> list[str]:
    return [void.code for void in board.voids]


def notice_kinds(board: Board) -> list[str]:
    return [notice.kind for notice in board.notices]


def test_the_order_of_statuses_is_the_written_one() -> None:
    assert STATUSES == ("passed", "not run", "stale", "blocked", "flaky", "failed")
    assert [worst(STATUSES[: n + 1]) for n in range(6)] == list(STATUSES)


def test_nothing_at_all_is_five_columns_of_lanes_not_run(evidence: Evidence) -> None:
    board = evidence.fold()

    assert ([column.id for column in board.columns], [words(board, lane) for lane in LANES], board.banner) == (
        ["unit", "snapshot", "replay", "offline", "real"],
        [*["not run"] * 4, "not run: lane not run"],
        NO_LIVE,
    )


@pytest.mark.parametrize(
    ("lane", "changes", "expected"),
    [
        pytest.param("offline", {}, "passed 1", id="passed"),
        pytest.param("offline", {"verdict": "failed", "attempts": (Attempt(1, "failed"),)}, "failed 1", id="failed"),
        pytest.param(
            "offline",
            {"verdict": "not run", "attempts": (), "reason_code": "platform"},
            "not run: not on this platform",
            id="not-run",
        ),
        pytest.param(
            "unit",
            {"verdict": "not run", "attempts": (), "reason_code": None, "reason_text": "todo"},
            "not run: skipped without a reason code",
            id="edge32-skip-without-code",
        ),
        pytest.param(
            "offline",
            {
                "verdict": "failed",
                "attempts": (Attempt(1, "failed"),),
                "reason_code": "known-failure",
                "reason_text": "https://example.com/7 until 2999-01-01",
            },
            "failed 1 (known)",
            id="known-failure",
        ),
        pytest.param(
            "offline",
            {
                "verdict": "failed",
                "attempts": (Attempt(1, "failed"),),
                "reason_code": "known-failure",
                "reason_text": "reason: later",
            },
            "failed 1",
            id="edge36-known-by-its-own-word-alone",
        ),
        pytest.param(
            "offline",
            {"verdict": "failed", "attempts": (Attempt(1, "failed"),), "reason_code": "unexpected-pass"},
            "failed 1",
            id="edge36-unexpected-pass",
        ),
        pytest.param(
            "offline",
            {"verdict": "failed", "attempts": (Attempt(1, "failed"),), "reason_code": "worker-crashed", "guard": None},
            "failed 1",
            id="edge49-worker-crashed",
        ),
        pytest.param(
            "offline",
            {"guard": {"canary_start": "refused", "canary_end": "refused", "refusals": [{"what": "x", "tries": 3}]}},
            "failed 1",
            id="edge6-guard-refusal",
        ),
        pytest.param(
            "offline",
            {"guard": {"canary_start": "not shown", "canary_end": "refused"}},
            "blocked: guard not shown",
            id="edge8-canary",
        ),
        pytest.param("offline", {"guard": None}, "blocked: guard not shown", id="no-guard"),
        pytest.param("offline", {"script": {"entries": 3, "consumed": 2}}, "failed 1", id="script-left-over"),
        pytest.param(
            "offline", {"script": {"entries": 3, "consumed": 3, "unmatched": 1}}, "failed 1", id="extra-request"
        ),
        pytest.param("offline", {"min_answers": 2}, "failed 1", id="too-few-answers"),
        pytest.param("replay", {"cassette": RECORDING, "answers": (REPLAYED,)}, "passed 1", id="recorded"),
        pytest.param(
            "replay",
            {"cassette": {**RECORDING, "age_days": 103}, "answers": (REPLAYED,)},
            "stale 1 (103 d)",
            id="stale",
        ),
        pytest.param(
            "replay",
            {"cassette": {**RECORDING, "age_days": 60}, "answers": (REPLAYED,)},
            "passed 1 (the recording is 60 days old)",
            id="ageing",
        ),
        pytest.param(
            "replay",
            {"cassette": {**RECORDING, "stale_reasons": ["model retired"]}, "answers": (REPLAYED,)},
            "stale 1 (model retired)",
            id="stale-for-a-reason",
        ),
        pytest.param(
            "replay",
            {"cassette": {**RECORDING, "age_days": 12, "stale_days": 10}, "answers": (REPLAYED,)},
            "stale 1 (12 d)",
            id="stale-by-the-providers-own-limit",
        ),
        pytest.param(
            "replay",
            {"cassette": {**RECORDING, "age_days": 103, "stale_days": 900}, "answers": (REPLAYED,)},
            "stale 1 (103 d)",
            id="no-provider-loosens-the-limit",
        ),
        pytest.param(
            "offline",
            {"script": {"entries": 1, "consumed": 1, "stale_reasons": ["its provider drifted: whole:removed:.id"]}},
            "stale 1 (its provider drifted: whole:removed:.id)",
            id="edge65-offline-of-a-provider-that-drifted",
        ),
        pytest.param(
            "replay",
            {
                "cassette": {**RECORDING, "doubts": ["interaction 2: it was altered after it was recorded"]},
                "answers": ({"channel": "cassette", "class": "scripted"},),
            },
            "passed 1 (scripted: interaction 2: it was altered after it was recorded)",
            id="edge60-altered-answer",
        ),
        pytest.param(
            "replay", {"cassette": {**RECORDING, "consumed": 0}, "answers": (REPLAYED,)}, "failed 1", id="unconsumed"
        ),
        pytest.param(
            "replay",
            {"cassette": RECORDING, "answers": ({"channel": "session-log", "class": "scripted"},)},
            "passed 1 (scripted)",
            id="edge59-replay-of-scripted-answers",
        ),
        pytest.param(
            "offline",
            {"verdict": "blocked", "attempts": (), "reason_code": "worker-lost"},
            "blocked: worker lost",
            id="blocked",
        ),
    ],
)
def test_one_record_reads_in_its_column(
    evidence: Evidence, lane: str, changes: dict[str, object], expected: str
) -> None:
    record = replace(evidence.record(lane), **changes)  # type: ignore[arg-type]

    assert words(evidence.fold(evidence.bundle(record)), lane) == expected


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        pytest.param({"attempts": (Attempt(1, "failed"), Attempt(2, "passed"))}, "flaky 1", id="edge38-fail-pass"),
        pytest.param({"verdict": "failed", "attempts": (Attempt(1, "failed"),)}, "failed 1", id="failed"),
        pytest.param(
            {"verdict": "not run", "attempts": (), "answers": (), "reason_code": "budget"},
            "not run: budget spent before the start",
            id="edge63-budget",
        ),
        pytest.param(
            {"verdict": "blocked", "attempts": (), "answers": (), "reason_code": "credential-rejected"},
            "blocked: credential rejected",
            id="edge30-rejected-key",
        ),
        pytest.param(
            {"verdict": "failed", "attempts": (Attempt(1, "failed"),), "reason_code": "quota"},
            "blocked: quota spent",
            id="edge31-quota",
        ),
        pytest.param(
            {"verdict": "failed", "attempts": (Attempt(1, "failed"),), "answers": ()},
            "blocked: no model call",
            id="edge18-crash-before-the-first-call",
        ),
        pytest.param({"answers": ()}, "blocked: void evidence", id="edge18-passed-without-a-call"),
    ],
)
def test_one_live_record_reads_in_the_real_column(evidence: Evidence, record: dict[str, object], expected: str) -> None:
    attempts = record.get("attempts", ())
    facts = {**(evidence.live_record().live_proof or {}), "root_conversations": max(1, len(attempts))}  # type: ignore[arg-type]
    live = replace(evidence.live_record(), live_proof=facts, **record)  # type: ignore[arg-type]

    assert words(evidence.fold(evidence.bundle(live)), "real") == expected


def test_a_cell_is_the_worst_of_its_parts_and_shows_them_all(evidence: Evidence) -> None:
    records = [evidence.record(node_id=f"lanes/offline/test_a.py::test_{n}") for n in range(3)]
    skipped = evidence.record(verdict="not run", node_id="lanes/offline/test_a.py::test_4", reason_code="platform")
    failed = evidence.record(verdict="failed", node_id="lanes/offline/test_a.py::test_00")  # neither first nor last

    found = [
        words(evidence.fold(evidence.bundle(*records, *more)), "offline")
        for more in ((), (skipped,), (skipped, failed))
    ]

    assert found == [
        "passed 3",
        "not run 1 (not on this platform), passed 3",
        "failed 1, not run 1, passed 3",
    ]


def test_edge33_a_claim_without_a_test_in_a_lane_that_ran_says_so(evidence: Evidence) -> None:
    claims = evidence.claims(evidence.claim(), evidence.claim("loop.other"))

    assert words(evidence.fold(evidence.bundle(evidence.record()), claims=claims), "offline", "loop.other") == (
        "not run: no test"
    )


def test_edge35_a_deselected_test_keeps_its_claim_from_passing(evidence: Evidence) -> None:
    records = [evidence.record(node_id=f"lanes/offline/test_a.py::test_{n}") for n in range(2)]
    bundle = evidence.bundle(*records, deselected=(evidence.item("test_3"),))

    assert words(evidence.fold(bundle), "offline") == "not run 1 (deselected), passed 2"


def filtered(bundle: Bundle) -> Bundle:
    return replace_header(bundle, extra={"filtered": True})


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({}, "not run (deselected), passed 1", id="passed"),
        pytest.param({"verdict": "failed", "attempts": (Attempt(1, "failed"),)}, "failed 1", id="failed"),
        pytest.param({"attempts": (Attempt(1, "failed"), Attempt(2, "passed"))}, "flaky 1", id="flaky"),
    ],
)
def test_edge35_what_passed_in_a_part_of_a_lane_is_shown_beside_a_cell_that_is_not_run(
    evidence: Evidence, changes: dict[str, object], expected: str
) -> None:
    record = replace(evidence.record(), **changes)  # type: ignore[arg-type]

    assert words(evidence.fold(filtered(evidence.bundle(record))), "offline") == expected


def test_edge35_a_run_of_the_whole_lane_beside_it_lists_what_the_part_left_out(evidence: Evidence) -> None:
    part = filtered(evidence.bundle(evidence.record(run_id="run-2"), run_id="run-2"))
    whole = evidence.bundle(evidence.record(), evidence.record(node_id="lanes/offline/test_a.py::test_two"))

    assert words(evidence.fold(part, whole), "offline") == "passed 2"


def test_edge35_a_part_of_the_real_lane_fills_no_real_cell(evidence: Evidence) -> None:
    board = evidence.fold(filtered(evidence.bundle(evidence.live_record())))

    assert (words(board, "real"), board.banner) == ("not run (deselected), passed 1", NO_LIVE)


def test_a_test_file_that_could_not_be_loaded_keeps_every_claim_from_passing(evidence: Evidence) -> None:
    whole = evidence.bundle(evidence.record())
    assert whole.trailer is not None
    trailer = replace(whole.trailer, extra={"not_loaded": {"lanes/offline/test_b.py": "SyntaxError"}})

    board = evidence.fold(replace(whole, trailer=trailer))

    assert words(board, "offline") == "not run (a test file could not be loaded), passed 1"


def test_a_claim_that_does_not_ask_for_a_lane_has_no_cell_there(evidence: Evidence) -> None:
    claims = evidence.claims(evidence.claim(required=("offline",), optional=()))

    board = evidence.fold(evidence.bundle(evidence.record()), claims=claims)

    assert [words(board, lane) for lane in LANES] == ["-", "-", "-", "passed 1", "not required"]


def test_a_test_bound_by_its_folder_speaks_for_the_claim(evidence: Evidence) -> None:
    claims = evidence.claims(evidence.claim(folders=("lanes/offline/fix",)))
    record = evidence.record(node_id="lanes/offline/fix/test_a.py::test_one", claim_ids=())

    assert words(evidence.fold(evidence.bundle(record), claims=claims), "offline") == "passed 1"


def test_items_without_a_claim_are_counted_apart(evidence: Evidence) -> None:
    board = evidence.fold(evidence.bundle(evidence.record(claim_ids=())))

    assert (board.column("offline").unclaimed, words(board, "offline")) == (Tally(passed=1), "not run: no test")


def test_a_claim_asks_for_more_answers_than_the_record_was_told(evidence: Evidence) -> None:
    claims = evidence.claims(evidence.claim(min_answers={"offline": 2}))

    board = evidence.fold(evidence.bundle(evidence.record(min_answers=0)), claims=claims)

    item = board.column("offline").items[0]
    assert (words(board, "offline"), item.reason and item.reason.words) == (
        "failed 1",
        "fewer answers than the claim asks for: 1 of 2",
    )


VOIDED = [
    pytest.param(lambda r: replace(r, lane="real", stored_class="live"), "lane", id="S4-other-lane"),
    pytest.param(lambda r: replace(r, lane="snapshot"), "lane", id="S4-other-keyless-lane"),
    pytest.param(lambda r: replace(r, stored_class="live"), "self-graded", id="edge27-says-live"),
    pytest.param(lambda r: replace(r, stored_counts={"live": 1}), "self-graded", id="counts"),
    pytest.param(
        lambda r: replace(r, attempts=(Attempt(1, "failed"),)), "self-graded", id="passed-against-its-attempts"
    ),
    pytest.param(lambda r: replace(r, attempts=()), "self-graded", id="passed-without-an-attempt"),
    pytest.param(lambda r: replace(r, subject=Subject("other")), "subject", id="other-subject"),
    pytest.param(lambda r: replace(r, subject=replace(r.subject, loop_digest="x")), "loop-mismatch", id="other-loop"),
    pytest.param(lambda r: replace(r, run_id="run-9"), "run", id="other-run"),
    pytest.param(
        lambda r: replace(r, answers=({"channel": "live", "class": "live", "wire": {"stream": True}},)),
        "ceiling",
        id="live-answer-in-offline",
    ),
]


@pytest.mark.parametrize(("change", "code"), VOIDED)
def test_a_record_that_breaks_a_rule_is_void_and_its_own_cell_blocked(
    evidence: Evidence, change: object, code: str
) -> None:
    record = change(evidence.record())  # type: ignore[operator]
    board = evidence.fold(evidence.bundle(record, lane="offline", expected=[evidence.item()]))

    assert (void_codes(board), words(board, "offline"), words(board, "real")) == (
        [code],
        "blocked: void evidence",
        "not run: lane not run",
    )


@pytest.mark.parametrize(
    ("header", "cell"),
    [
        pytest.param({"lane_mark": "unit"}, "blocked: void evidence", id="mark"),
        pytest.param({"tox_env": "unit"}, "blocked: void evidence", id="environment"),
        pytest.param({"lane_mark": ""}, "blocked: void evidence", id="no-mark"),
        pytest.param({"lane": "astral"}, "not run", id="unknown-lane"),
    ],
)
def test_S4_a_bundle_whose_three_voices_disagree_is_void(evidence: Evidence, header: dict[str, str], cell: str) -> None:
    board = evidence.fold(replace_header(evidence.bundle(evidence.record()), **header))

    assert (void_codes(board), words(board, "offline")) == (["marker"], cell)


def replace_header(bundle: Bundle, **changes: object) -> Bundle:
    return replace(bundle, header=replace(bundle.header, **changes))  # type: ignore[arg-type]


def test_S4_an_offline_bundle_in_the_clothes_of_the_real_lane_fills_nothing(evidence: Evidence) -> None:
    records = [replace(evidence.record(), lane="real", stored_class="live")]
    bundle = evidence.bundle(*records, lane="real", lane_mark="offline", tox_env="offline")

    board = evidence.fold(bundle)

    assert (void_codes(board), words(board, "real"), board.banner) == (["marker"], "blocked: void evidence", NO_LIVE)


def test_a_forged_live_record_beside_the_words_that_there_was_no_key_changes_nothing(evidence: Evidence) -> None:
    empty = evidence.bundle(lane="real", not_run_code="no-key", not_run_text="set KEY", canary_start="")
    forged = evidence.bundle(
        evidence.live_record(), expected=[], not_run_code="no-key", not_run_text="set KEY", canary_start=""
    )

    before, after = evidence.fold(empty), evidence.fold(forged)

    assert (words(before, "real"), words(after, "real"), after.banner, void_codes(after)) == (
        "not run: no key",
        "not run: no key",
        NO_LIVE,
        ["unexpected"],
    )


def test_edge50_evidence_of_another_subject_is_set_aside_by_name(evidence: Evidence) -> None:
    other = Subject(commit="19bd77e" + "0" * 33, dirty=True, dirty_digest="sha256:1")
    bundle = evidence.bundle(replace(evidence.record(), subject=other), subject=other)

    board = evidence.fold(bundle)

    assert ([(s.lane, s.subject) for s in board.set_aside], words(board, "offline"), board.voids) == (
        [("offline", "19bd77e dirty")],
        "not run: other subject",
        (),
    )


def test_a_bundle_of_another_loop_is_void(evidence: Evidence) -> None:
    other = replace(evidence.subject, loop_digest="sha256:copy")

    board = evidence.fold(evidence.bundle(evidence.record(subject=other), subject=other))

    assert (void_codes(board), words(board, "offline")) == (["loop-mismatch"], "blocked: void evidence")


def test_edge45_one_observation_with_two_contents_is_a_conflict_that_nobody_wins(evidence: Evidence) -> None:
    passed, failed = evidence.record(), evidence.record(verdict="failed")
    board = evidence.fold(evidence.bundle(passed), evidence.bundle(failed))

    assert (words(board, "offline"), notice_kinds(board)) == ("blocked: evidence in conflict", ["conflict"])
    assert all(record.record_id in board.notices[0].text for record in (passed, failed))


def test_edge53_fields_that_this_version_does_not_know_are_told_as_unknown_with_their_records(
    evidence: Evidence,
) -> None:
    hue: JsonObject = {"hue": "<b>red</b>"}
    one, two = (
        evidence.record(node_id=f"lanes/offline/test_a.py::test_{name}", subject=replace(evidence.subject, extra=extra))
        for name, extra in (("one", {}), ("two", hue))
    )
    board = evidence.fold(
        evidence.bundle(replace(one, extra={**hue, "sample": 2}), replace(two, extra=hue), subject=evidence.subject)
    )

    told = [(notice.lane, notice.kind, notice.text) for notice in board.notices if "unknown" in notice.text]
    text = "records hold fields that are unknown here, and kept: hue (2), subject.hue (1)"
    assert (told, words(board, "offline")) == ([("offline", "note", text)], "passed 2")


def test_two_runs_that_disagree_are_flaky(evidence: Evidence) -> None:
    one = evidence.bundle(evidence.record())
    two = evidence.bundle(evidence.record(verdict="failed", run_id="run-2"), run_id="run-2")

    assert words(evidence.fold(one, two), "offline") == "flaky 1"


def test_edge44_one_item_in_two_shards_is_named_and_counted_once(evidence: Evidence) -> None:
    first, second = evidence.record(), evidence.record(shard=replace(evidence.record().shard, index=2, total=2))
    first = replace(first, shard=replace(first.shard, total=2))
    board = evidence.fold(evidence.bundle(first, shard=(1, 2)), evidence.bundle(second, shard=(2, 2)))

    assert (words(board, "offline"), notice_kinds(board)) == ("passed 1", ["overlap"])


def test_edge46_a_missing_shard_leaves_its_claims_not_run(evidence: Evidence) -> None:
    claims = evidence.claims(evidence.claim(), evidence.claim("loop.other"))
    expected = [evidence.item(), evidence.item("test_two", claims=("loop.other",))]
    bundle = evidence.bundle(
        evidence.record(), expected=expected, shard=(1, 3), selected=("lanes/offline/test_a.py::test_one",)
    )

    board = evidence.fold(bundle, claims=claims)

    assert (words(board, "offline"), words(board, "offline", "loop.other"), [n.text for n in board.notices]) == (
        "passed 1",
        "not run: shard missing",
        ["shard 2 to 3 of 3 of run run-offline is missing"],
    )


def test_a_shard_that_lists_other_items_is_named(evidence: Evidence) -> None:
    one = evidence.bundle(evidence.record(), shard=(1, 2), expected=[evidence.item()])
    two = evidence.bundle(shard=(2, 2), expected=[evidence.item(), evidence.item("test_two")], selected=())

    assert "differing lists" in notice_kinds(evidence.fold(one, two))


def with_problem(bundle: Bundle, code: str) -> Bundle:
    return replace(bundle, problems=(BundleProblem(code, "offline/1-of-1/records.jsonl:2", "text"),))


def test_edge47_the_item_of_a_torn_line_is_blocked_and_the_others_count(evidence: Evidence) -> None:
    bundle = evidence.bundle(evidence.record(), expected=[evidence.item(), evidence.item("test_two")])

    board = evidence.fold(with_problem(bundle, "torn"))

    assert (words(board, "offline"), notice_kinds(board)) == ("blocked 1 (evidence torn), passed 1", ["torn"])


def unjudged(bundle: Bundle) -> Bundle:
    assert bundle.trailer is not None
    return replace(with_problem(bundle, "unjudged"), trailer=replace(bundle.trailer, is_judged=False))


@pytest.mark.parametrize("ending", ["no-trailer", "trailer-of-a-parent-that-died"])
@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({}, "blocked: its run was not judged to the end", id="passed"),
        pytest.param(
            {"attempts": (Attempt(1, "failed"), Attempt(2, "passed"))},
            "blocked: its run was not judged to the end",
            id="flaky",
        ),
        pytest.param({"verdict": "failed", "attempts": (Attempt(1, "failed"),)}, "failed 1", id="failed"),
    ],
)
def test_a_pass_counts_only_once_the_run_was_judged_to_its_end(
    evidence: Evidence, ending: str, changes: dict[str, object], expected: str
) -> None:
    record = replace(evidence.record(), **changes)  # type: ignore[arg-type]
    whole = evidence.bundle(record)
    bundle = replace(with_problem(whole, ending), trailer=None) if ending == "no-trailer" else unjudged(whole)

    board = evidence.fold(bundle)

    assert (words(board, "offline"), notice_kinds(board)) == (expected, ["torn"])


def test_edge49_items_that_never_reported_are_blocked(evidence: Evidence) -> None:
    bundle = evidence.bundle(evidence.record(), expected=[evidence.item(), evidence.item("test_two")])

    assert words(evidence.fold(bundle), "offline") == "blocked 1 (worker lost), passed 1"


def test_edge48_a_bundle_with_the_trailer_of_another_run_is_void(evidence: Evidence) -> None:
    bundle = evidence.bundle(evidence.record())
    assert bundle.trailer is not None
    other = replace(bundle, trailer=replace(bundle.trailer, run_id="run-2"))

    board = evidence.fold(with_problem(other, "trailer"))

    assert (void_codes(board), words(board, "offline")) == (["trailer"], "blocked: void evidence")


def tampered(bundle: Bundle, *records: Record) -> Bundle:
    return with_problem(replace(bundle, records=records), "trailer")


def test_a_consistent_forgery_in_place_of_a_record_blocks_its_bundle(evidence: Evidence) -> None:
    bundle = evidence.bundle(evidence.record(verdict="failed"))

    board = evidence.fold(tampered(bundle, evidence.record()))

    assert (sorted(void_codes(board)), words(board, "offline")) == (["trailer", "trailer"], "blocked: void evidence")


def test_a_line_that_was_added_is_void_and_the_lines_of_the_writer_still_count(evidence: Evidence) -> None:
    honest, forged = evidence.record(), replace(evidence.record(), lane="real", stored_class="live")
    bundle = evidence.bundle(honest)

    board = evidence.fold(tampered(bundle, honest, forged))

    assert (sorted(void_codes(board)), words(board, "offline"), words(board, "real")) == (
        ["lane", "trailer"],
        "passed 1",
        "not run: lane not run",
    )


def test_an_item_that_its_bundle_does_not_list_is_void(evidence: Evidence) -> None:
    extra = evidence.record(node_id="lanes/offline/test_a.py::test_extra")
    bundle = evidence.bundle(evidence.record(), extra, expected=[evidence.item()])

    assert void_codes(evidence.fold(bundle)) == ["unexpected"]


@pytest.mark.parametrize("code", ["unreadable", "schema-newer", "expected"])
def test_a_bundle_that_cannot_be_read_whole_is_void(evidence: Evidence, code: str) -> None:
    board = evidence.fold(with_problem(evidence.bundle(evidence.record()), code))

    assert (void_codes(board), words(board, "offline")) == ([code], "blocked: void evidence")


@pytest.mark.parametrize("when", ["canary_start", "canary_end"])
def test_a_canary_that_was_not_refused_blocks_the_whole_lane(evidence: Evidence, when: str) -> None:
    board = evidence.fold(evidence.bundle(evidence.record(), **{when: "not shown"}))

    assert (words(board, "offline"), notice_kinds(board)) == ("blocked: guard not shown", ["breach"])


def test_a_breach_outside_the_items_is_named(evidence: Evidence) -> None:
    board = evidence.fold(evidence.bundle(evidence.record(), breaches=("tracked file changed: a.py",)))

    assert [(n.kind, n.text) for n in board.notices] == [("breach", "tracked file changed: a.py")]


@pytest.mark.parametrize(
    ("depth", "expected"),
    [
        pytest.param("D2", ["tests started what depth D2 does not look into: a child that is not Python (2)"], id="D2"),
        pytest.param("D3", [], id="behind-the-wall-of-the-host"),
    ],
)
def test_what_the_guard_could_not_look_into_is_named_where_nothing_else_held_it(
    evidence: Evidence, depth: str, expected: list[str]
) -> None:
    guard = {**(evidence.record().guard or {}), "depth": depth, "unseen": ["a child that is not Python"]}
    records = [evidence.record(node_id=f"lanes/offline/test_a.py::test_{n}", guard=guard) for n in range(2)]

    board = evidence.fold(evidence.bundle(*records, guard_depth=depth))

    assert ([notice.text for notice in board.notices], words(board, "offline")) == (expected, "passed 2")


def test_edge43_the_same_bundle_twice_is_counted_once_whatever_its_folder(evidence: Evidence) -> None:
    bundle = evidence.bundle(evidence.record())

    assert evidence.fold(bundle, replace(bundle, name="copy/1-of-1")) == evidence.fold(bundle)


def test_a_test_that_names_a_claim_that_is_gone_is_told(evidence: Evidence) -> None:
    board = evidence.fold(evidence.bundle(evidence.record(claim_ids=("gone.claim",))))

    assert (notice_kinds(board), board.column("offline").unclaimed) == (["unknown claim"], Tally(passed=1))


def test_a_live_pass_changes_the_banner_and_the_texts_of_its_column_alone(evidence: Evidence) -> None:
    board = evidence.fold(evidence.bundle(evidence.record()), evidence.bundle(evidence.live_record()))

    assert (board.banner, board.column("real").sub_heading, words(board, "real"), words(board, "offline")) == (
        "Observed against a hosted model: m-large-0221 at api.acme.example on 2031-03-04 (journey.fix-test).",
        "live, m-large-0221 at api.acme.example on 2031-03-04",
        "passed 1",
        "passed 1",
    )


def test_edge19_one_provider_id_in_two_records_voids_both(evidence: Evidence) -> None:
    records = [evidence.live_record(7, f"lanes/real/test_a.py::test_{n}") for n in range(2)]

    assert void_codes(evidence.fold(evidence.bundle(*records))) == ["id-reuse", "id-reuse"]


def test_a_local_model_has_a_column_of_its_own_and_leaves_the_real_one_empty(evidence: Evidence) -> None:
    board = evidence.fold(evidence.bundle(evidence.local_record(), lane_mark="real-local", tox_env="real-local"))

    assert (
        board.banner,
        board.column("real:local").heading,
        words(board, "real:local"),
        words(board, "real"),
    ) == (
        f"{NO_HOSTED} A model on this machine answered: small at this machine on 2031-03-04 (journey.fix-test).",
        "Real API, private endpoint local",
        "passed 1 (weights sha256:aaaaaaaaaaaa, llama 1.2)",
        "not run: lane not run",
    )


def test_live_26_a_private_endpoint_never_appears_under_a_vendor(evidence: Evidence) -> None:
    endpoint: JsonObject = {"scheme": "https", "host": "10.0.0.5", "port": 443, "path": "/v1/chat"}
    live = evidence.live_record()
    wire = {**live.answers[0]["wire"], "peer_ip": "10.0.0.5", "endpoint": endpoint}  # type: ignore[dict-item]
    record = replace(
        live,
        answers=({**live.answers[0], "wire": wire},),
        model={"provider": "lab", "reported": "m", "endpoint": endpoint},
        live_proof={**(live.live_proof or {}), "peer_ip": "10.0.0.5"},
    )

    board = evidence.fold(evidence.bundle(record))

    assert (
        [column.id for column in board.columns if column.is_live],
        words(board, "real:lab"),
        words(board, "real"),
    ) == (
        ["real", "real:lab"],
        "passed 1 (lab issues no response id)",
        "not run: no test",
    )


def test_S1_a_real_cell_accepts_live_proofs_only(evidence: Evidence) -> None:
    board = evidence.fold()
    forged = Proven("passed", (Observed("sha256:1"),), Tally(passed=1))

    with pytest.raises(ValueError, match="needs a proof"):
        Proven("passed", (), Tally(passed=1))
    with pytest.raises(ValueError, match="seal"):
        replace(board, rows=(Row(evidence.claim(), {"real": forged}),))
    with pytest.raises(TypeError, match="does not support item assignment"):
        board.rows[0].cells["real"] = forged  # type: ignore[index]
    with pytest.raises(FrozenInstanceError):
        board.banner = "All good."  # type: ignore[misc]


def test_S3_a_board_comes_from_fold_alone(evidence: Evidence) -> None:
    board = evidence.fold()

    with pytest.raises(TypeError, match=r"comes from reports\.board\.fold and from nowhere else"):
        Board(board.subject, "x", board.columns, (), (), (), (), (), seal=object())


def test_every_status_of_a_cell_is_one_of_the_six(evidence: Evidence) -> None:
    board = evidence.fold(
        evidence.bundle(evidence.record()), evidence.bundle(evidence.record("unit", verdict="failed"))
    )

    assert [status_of(cell) for cell in board.row(CLAIM).cells.values() if cell is not None] == [
        "failed",
        "not run",
        "not run",
        "passed",
        "not run",
    ]


def test_no_reason_reads_like_a_pass() -> None:
    assert [text for code, text in REASONS.items() if "pass" in text and code != "unexpected-pass"] == []
