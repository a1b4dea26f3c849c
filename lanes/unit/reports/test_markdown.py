"""The board as a step summary."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from lanes.bundle import ExpectedItem
from lanes.claims import Claims
from reports.render.markdown import MAX_BYTES, escape, render_column, render_markdown
from reports.words import NO_LIVE

if TYPE_CHECKING:
    from lanes.unit.reports.conftest import Evidence

ATTACK = (
    "a|b\n# head <img src=x onerror=y> [x](http://evil.example) ```sh\n"
    "`rm` *b* _i_ @you &amp; \x1b[31m ~~s~~ <!-- --> $x$"
)


def test_the_order_is_banner_columns_void_failures_and_then_the_rest(evidence: Evidence) -> None:
    void = replace(evidence.record("unit"), stored_class="live")
    board = evidence.fold(evidence.bundle(void), evidence.bundle(evidence.record(verdict="failed", failure="boom")))

    text = render_markdown(board)

    titles = re.findall(r"^#+ .*$", text, flags=re.MULTILINE)
    assert (titles, text.splitlines()[2]) == (
        [
            "## Evidence board",
            "### Void evidence, counted for nothing",
            "### Failed, flaky and blocked",
            "### Claims",
            "### Why cells are not run or blocked",
        ],
        f"**{NO_LIVE}**",
    )


def test_each_column_stands_with_its_texts(evidence: Evidence) -> None:
    board = evidence.fold(evidence.bundle(evidence.record()))
    rows = [line for line in render_markdown(board).splitlines() if line.startswith("| **")]

    assert [row.split(" | ")[0] for row in rows] == [
        "| **Unit**",
        "| **Snapshot**",
        "| **Replay**",
        "| **Offline**",
        "| **Real API**",
    ]
    assert [column.does_not_prove in row for column, row in zip(board.columns, rows, strict=True)] == [True] * 5


def test_edge68_markup_in_a_failure_message_is_inert_everywhere(evidence: Evidence) -> None:
    failed = evidence.record(
        node_id=f"lanes/offline/test_a.py::test_one[{ATTACK}]",
        verdict="failed",
        failure=ATTACK,
        reason_code="unexpected-pass",
        reason_text=ATTACK,
    )

    text = render_markdown(evidence.fold(evidence.bundle(failed)))

    lines = text.splitlines()
    start, end = lines.index("  ````text"), lines.index("  ````")
    outside = "\n".join([*lines[:start], *lines[end + 1 :]])
    live = [mark for mark in ("<img", "<!--", "@you", "](", "://", "\x1b") if mark in outside]
    assert (live, [line for line in lines if line.startswith("# ")], "a\\|b \\# head &lt;img" in outside) == (
        [],
        [],
        True,
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param("a|b", "a\\|b", id="table"),
        pytest.param("*b* _i_ ~s~ `c`", "\\*b\\* \\_i\\_ \\~s\\~ \\`c\\`", id="emphasis"),
        pytest.param("[x](y)!", "\\[x\\]\\(y\\)\\!", id="link"),
        pytest.param("<b>&amp;", "&lt;b&gt;&amp;amp;", id="html"),
        pytest.param("@you", "&#64;you", id="mention"),
        pytest.param("https://a.example", "https:&#47;/a.example", id="address"),
        pytest.param("two\nlines\x00", "two lines&lt;U+0000&gt;".replace("+", "\\+"), id="controls"),
        pytest.param("back\\slash", "back\\\\slash", id="backslash"),
    ],
)
def test_a_line_of_text_is_shown_as_it_is(value: str, expected: str) -> None:
    assert escape(value) == expected


def test_edge69_a_board_of_5000_claims_stays_under_the_limit_and_says_what_was_left_out(evidence: Evidence) -> None:
    claims = Claims({f"big.claim-{n:04}": evidence.claim(f"big.claim-{n:04}") for n in range(5000)})
    records = [
        evidence.record(
            node_id=f"lanes/offline/test_a.py::test_{n}",
            verdict="failed",
            claim_ids=(f"big.claim-{n:04}",),
            failure="x" * 400,
        )
        for n in range(5000)
    ]
    expected = [ExpectedItem(record.node_id, record.claim_ids) for record in records]

    text = render_markdown(evidence.fold(evidence.bundle(*records, expected=expected), claims=claims))

    shown = len(re.findall(r"^- Offline, failed", text, flags=re.MULTILINE))
    rows = len(re.findall(r"^\| big\.claim", text, flags=re.MULTILINE))
    assert (len(text.encode("utf-8")) <= MAX_BYTES, text.endswith("\n")) == (True, True)
    assert f"{5000 - shown} of 5000 left out: the summary is full." in text
    assert f"{5000 - rows} of 5000 left out: the summary is full." in text


@pytest.mark.parametrize("limit", [6_000, 10_000, 50_000])
def test_the_limit_holds_whatever_it_is(evidence: Evidence, limit: int) -> None:
    records = [
        evidence.record(node_id=f"lanes/offline/test_a.py::test_{n}", verdict="failed", failure="é" * 500)
        for n in range(60)
    ]

    text = render_markdown(evidence.fold(evidence.bundle(*records)), max_bytes=limit)

    assert (len(text.encode("utf-8")) <= limit, "left out: the summary is full." in text) == (True, True)


def test_a_column_page_holds_its_own_lane_and_what_it_does_not_prove(evidence: Evidence) -> None:
    board = evidence.fold(
        evidence.bundle(evidence.record()), evidence.bundle(lane="real", not_run_code="no-key", canary_start="")
    )

    pages = {column.id: render_column(board, column) for column in board.columns}

    assert list(pages) == ["unit", "snapshot", "replay", "offline", "real"]
    assert [("passed 1" in page, "not run: no key" in page, "Does not prove: " in page) for page in pages.values()] == [
        (False, False, True),
        (False, False, True),
        (False, False, True),
        (True, False, True),
        (False, True, True),
    ]


def test_the_real_page_of_a_board_without_live_proof_opens_with_the_banner_and_no_pass(evidence: Evidence) -> None:
    board = evidence.fold(evidence.bundle(evidence.record()))

    page = render_column(board, board.columns[-1])

    words = page.replace("passed/failed/flaky/stale/blocked/not run", "")
    assert (NO_LIVE in page.split("###")[0], "passed" in words, "\u2713" in page) == (True, False, False)
