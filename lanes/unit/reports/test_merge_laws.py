"""The merge laws: the board is a pure function of the set of records."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from lanes.bundle import Bundle, ExpectedItem
from lanes.record import Attempt, JsonObject, Record, Shard, Verdict
from reports.render.json_board import render_json
from reports.render.junit import render_junit
from reports.render.markdown import render_markdown
from reports.render.text import render_text

if TYPE_CHECKING:
    from lanes.unit.reports.conftest import Evidence

EXAMPLES = 40  # each folds and renders whole boards; more belongs into a run by hand
VERDICTS: tuple[Verdict, ...] = ("passed", "failed", "not run", "blocked")
CLAIM_IDS = ("journey.fix-test", "loop.other", "log.third")


@st.composite
def items(draw: st.DrawFn, lane: str) -> list[tuple[str, Verdict, tuple[str, ...], str | None]]:
    """Items of one lane: id, verdict, claims, and what they say their class is."""
    found = []
    for number in range(draw(st.integers(0, 5))):
        claims = tuple(draw(st.lists(st.sampled_from(CLAIM_IDS), unique=True, max_size=2)))
        verdict = draw(st.sampled_from(VERDICTS))
        stored = draw(st.sampled_from((None, None, None, "live")))
        found.append((f"lanes/{lane}/test_a.py::test_{number}", verdict, claims, stored))
    return found


@st.composite
def shards(draw: st.DrawFn, evidence: Evidence) -> list[Bundle]:
    """Every lane's items dealt to shards at random, some shards lost, some bundles there twice, in any order."""
    bundles: list[Bundle] = []
    for lane in ("unit", "offline", "replay"):
        listed = draw(items(lane))
        total = draw(st.integers(1, 3))
        expected = [ExpectedItem(node_id, claims) for node_id, _verdict, claims, _stored in listed]
        hands: list[list[Record]] = [[] for _ in range(total)]
        for node_id, verdict, claims, stored in listed:
            index = draw(st.integers(0, total - 1))
            record = replace(
                evidence.record(lane, node_id, verdict),
                claim_ids=claims,
                stored_class=stored,
                shard=Shard(index + 1, total, draw(st.sampled_from(("gw0", "gw1")))),
            )
            hands[index].append(record)
        for index, hand in enumerate(hands):
            if draw(st.integers(0, 5)) == 0:
                continue
            bundles.append(
                evidence.bundle(
                    *hand,
                    lane=lane,
                    expected=expected,
                    shard=(index + 1, total),
                    selected=tuple(record.node_id for record in hand),
                )
            )
    return bundles


def outputs(evidence: Evidence, bundles: list[Bundle]) -> list[str]:
    claims = evidence.claims(*(evidence.claim(claim_id) for claim_id in CLAIM_IDS))
    board = evidence.fold(*bundles, claims=claims)
    documents = render_junit(board)
    return [
        render_text(board),
        render_markdown(board),
        render_json(board),
        *(documents[each] for each in sorted(documents)),
    ]


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.data())
def test_edge43_order_and_repetition_of_bundles_change_no_byte_of_any_output(
    evidence: Evidence, data: st.DataObject
) -> None:
    bundles = data.draw(shards(evidence))
    turned = data.draw(st.permutations(bundles))
    again = data.draw(st.lists(st.sampled_from(bundles), max_size=4)) if bundles else []

    assert outputs(evidence, [*turned, *again]) == outputs(evidence, bundles)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.data())
def test_merging_in_two_steps_is_merging_at_once(evidence: Evidence, data: st.DataObject) -> None:
    bundles = data.draw(shards(evidence))
    cut = data.draw(st.integers(0, len(bundles)))
    left, right = bundles[:cut], bundles[cut:]

    assert outputs(evidence, [*right, *left, *right]) == outputs(evidence, [*left, *right])


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.data())
def test_edge52_an_empty_shard_of_the_same_run_changes_no_cell(evidence: Evidence, data: st.DataObject) -> None:
    listed = [node for node in data.draw(items("offline")) if node[3] is None]
    records = [
        replace(evidence.record("offline", node, verdict), claim_ids=claims) for node, verdict, claims, _ in listed
    ]
    if not records:
        records = [evidence.record()]
    expected = [ExpectedItem(record.node_id, record.claim_ids) for record in records]
    whole = evidence.bundle(*records, expected=expected)
    empty = evidence.bundle(lane="offline", expected=expected, selected=())

    with_it, without = evidence.fold(whole, empty), evidence.fold(whole)

    assert [row.cells for row in with_it.rows] == [row.cells for row in without.rows]


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.data())
def test_more_evidence_of_a_lane_never_makes_a_cell_better_than_its_worst_record(
    evidence: Evidence, data: st.DataObject
) -> None:
    bundles = data.draw(shards(evidence))
    failed = replace(
        evidence.record("offline", "lanes/offline/test_z.py::test_z", "failed"),
        run_id="run-z",
        attempts=(Attempt(1, "failed"),),
    )

    board = evidence.fold(*bundles, evidence.bundle(failed, run_id="run-z"))

    cell: JsonObject | object = board.row("journey.fix-test").cells["offline"]
    assert getattr(cell, "verdict", None) == "failed"
