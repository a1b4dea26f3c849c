"""The real column cannot be filled by mistake (S7), whatever the records say of themselves."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from hypothesis import given, settings
from hypothesis import strategies as st

from lanes.bundle import Bundle
from lanes.policy import LANES
from lanes.record import Attempt, Json, JsonObject, Record, Verdict
from reports.board import Board
from reports.cells import Proven
from reports.render.json_board import render_json
from reports.render.junit import render_junit
from reports.render.markdown import render_markdown
from reports.render.text import render_text
from reports.words import NO_LIVE, cell_words

if TYPE_CHECKING:
    from lanes.unit.reports.conftest import Evidence

EXAMPLES = 40  # each folds and renders whole boards; more belongs into a run by hand
VERDICTS: tuple[Verdict, ...] = ("passed",) * 9 + ("failed", "not run", "blocked")  # most have to come to be judged
TICKS = "✓✔✅☑🗸√"
junk = st.none() | st.booleans() | st.integers(-10, 10**6) | st.text(max_size=6) | st.lists(st.integers(), max_size=2)
facts = st.dictionaries(
    st.sampled_from(
        ("peer_ip", "peer_scope", "tls", "proxy_used", "recorders", "override_variables", "nonce", "date_skew_ms")
    ),
    junk | st.just(False) | st.just([]) | st.just("104.18.2.1"),
)


@st.composite
def claimed_records(draw: st.DrawFn, evidence: Evidence, bundle_lane: str) -> Record:
    """Records that claim to be live in every way but have at least one fact missing: TLS by the locked store.

    Most of them fit their bundle and themselves, so that this fact is what they are refused for.
    """
    lane = draw(st.sampled_from((*[bundle_lane] * 9, *LANES)))
    verdict = draw(st.sampled_from(VERDICTS))
    answers: list[JsonObject] = []
    for ordinal in range(draw(st.integers(0, 3))):
        wire = draw(st.sampled_from(({}, {"stream": True}, {"stream": True, "peer_ip": "104.18.2.1"})))
        answers.append(
            {
                "ordinal": ordinal,
                "class": draw(st.sampled_from(("live", "live", "live", "recorded", "scripted", "alive"))),
                "channel": draw(st.sampled_from(("live", "loopback", "cassette"))),
                "wire": cast("JsonObject", wire),
                "provider_id": f"resp-{ordinal}",
                "usage": {"total": 4},
                "status": 200,
            }
        )
    live = evidence.live_record()
    proof: dict[str, Json] = {**(live.live_proof or {}), **draw(facts)}
    proof["tls"] = draw(st.sampled_from((None, {}, {"version": "TLSv1.3", "trust_store": "sha256:x"})))
    return replace(
        live,
        lane=lane,
        node_id=f"lanes/{lane}/test_a.py::test_{draw(st.integers(0, 3))}",
        run_id=f"run-{draw(st.sampled_from(tuple(LANES)))}",
        verdict=verdict,
        attempts=() if verdict in {"not run", "blocked"} else (Attempt(1, verdict),),
        answers=tuple(answers),
        live_proof=proof,
        stored_class=draw(st.sampled_from((None, None, "live", "scripted"))),
    )


@st.composite
def claimed_bundles(draw: st.DrawFn, evidence: Evidence) -> list[Bundle]:
    """Bundles of any lane that hold such records."""
    bundles = []
    for _ in range(draw(st.integers(1, 2))):
        lane = draw(st.sampled_from((*["real"] * 5, *LANES)))
        records = draw(st.lists(claimed_records(evidence, lane), min_size=1, max_size=2))
        mark = draw(st.sampled_from((*[lane] * 8, "offline", "real")))
        bundles.append(evidence.bundle(*records, lane=lane, lane_mark=mark))
    return bundles


def real_cells(board: Board) -> list[object]:
    return [cell for row in board.rows for column, cell in row.cells.items() if column.startswith("real")]


@settings(max_examples=5 * EXAMPLES, deadline=None)  # it renders nothing, and few draws come as far as a proven cell
@given(st.data())
def test_S7_without_admissible_live_facts_the_real_column_holds_no_proven_cell(
    evidence: Evidence, data: st.DataObject
) -> None:
    board = evidence.fold(*data.draw(claimed_bundles(evidence)))

    assert [cell for cell in real_cells(board) if isinstance(cell, Proven)] == []
    assert board.banner == NO_LIVE


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.data())
def test_S7_keyless_records_never_change_the_real_column(evidence: Evidence, data: st.DataObject) -> None:
    live = evidence.bundle(evidence.live_record())
    bundles = [bundle for bundle in data.draw(claimed_bundles(evidence)) if bundle.header.lane != "real"]

    alone, beside = evidence.fold(live), evidence.fold(live, *bundles)

    assert (real_cells(beside), beside.banner) == (real_cells(alone), alone.banner)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.data())
def test_S6_every_output_opens_with_the_sentence_and_the_real_column_never_reads_passed(
    evidence: Evidence, data: st.DataObject
) -> None:
    board = evidence.fold(*data.draw(claimed_bundles(evidence)))

    for row in board.rows:
        words = cell_words(row.cells["real"], is_live=True)
        assert ("passed" in words, words.startswith(("not run", "blocked")), words.strip("- ") == "") == (
            False,
            True,
            False,
        )
    documents = [render_text(board), render_markdown(board), render_json(board), *render_junit(board).values()]
    for document in documents:
        assert (NO_LIVE in document, any(tick in document for tick in TICKS)) == (True, False)
    assert render_text(board).startswith(NO_LIVE)
    assert "all tests passed" not in "".join(documents).lower()


def test_status_28_without_a_key_the_real_column_of_every_output_says_so(evidence: Evidence) -> None:
    keyless = evidence.bundle(evidence.record())
    empty = evidence.bundle(lane="real", not_run_code="no-key", not_run_text="set KEY", canary_start="")

    board = evidence.fold(keyless, empty)

    document = json.loads(render_json(board))
    columns = [column for column in document["columns"] if column["id"] == "real"]
    real_json = json.dumps([columns, [claim["cells"]["real"] for claim in document["claims"]]])
    found = [render_text(board), render_markdown(board), real_json, render_junit(board)["real"]]
    assert ["not run: no key" in document for document in found] == [True] * 4
    assert ["passed" in document for document in (real_json, render_junit(board)["real"])] == [False, False]
