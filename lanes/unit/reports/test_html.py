"""The page: one file that needs nothing from elsewhere, in which no text of a test is anything but text."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lanes.claims import Claims
from lanes.record import Attempt
from lanes.unit.reports.boards import HOSTILE, hostile_board, whole_board
from reports.board import fold
from reports.render import html_view
from reports.render.html import render_html
from reports.words import NO_LIVE

if TYPE_CHECKING:
    from lanes.unit.reports.conftest import Evidence


class Page(HTMLParser):
    """A page as a parser of others reads it: tags with their attributes in order, and the text outside of scripts."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in {"meta", "link", "input", "rect"}:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in {"script", "style"}:
            self.texts.append(data)

    @property
    def text(self) -> str:
        """All text of the page."""
        return "".join(self.texts)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of every tag of a kind."""
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def hostile(evidence: Evidence) -> str:
    """The page of that board."""
    return render_html(hostile_board(evidence))


def test_edge68_no_text_becomes_a_tag_an_attribute_or_a_script(hostile: str) -> None:
    page = Page(hostile)

    handlers = [name for _tag, attributes in page.tags for name in attributes if name.startswith("on")]
    links = {str(each["href"])[0] for each in page.all("a")}
    assert (len(page.all("script")), len(page.all("style")), page.all("img"), handlers) == (1, 1, [], [])
    assert (page.open, links) == ([], {"#"})


def test_case_B40_every_text_is_there_as_written_with_numbers_for_what_a_page_cannot_carry(hostile: str) -> None:
    text = Page(hostile).text

    shown = [as_shown(each) for each in HOSTILE]
    assert [each for each in shown if each not in text] == []


def as_shown(text: str) -> str:
    """How a hostile text reads on the page: marks that reorder or hide it, and controls, by number."""
    special = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\ud800-\udfff\ufffe\uffff]")
    return special.sub(lambda match: f"<U+{ord(match.group()):04X}>", text)


def test_edge68_no_control_and_no_mark_that_reorders_text_is_on_the_page(hostile: str) -> None:
    document = hostile.encode("utf-8").decode("utf-8")

    found = {each for each in document if (each < " " and each != "\n") or each in "\x7f\u202e\u200b\ufffe\uffff"}
    assert found == set()


def test_nothing_is_fetched_from_anywhere(hostile: str) -> None:
    page = Page(hostile)
    sources = [each for _tag, each in page.tags if {"src", "srcset", "action", "data"} & each.keys()]
    style = re.search("<style>(.*?)</style>", hostile, re.DOTALL)

    assert style is not None
    assert (sources, [each["href"] for each in page.all("link")]) == ([], ["data:,"])
    assert re.findall(r"url\(|@import|https?:", style[1]) == []


def test_the_policy_lets_in_the_one_style_and_the_one_script_by_their_digests_and_nothing_else(hostile: str) -> None:
    page = Page(hostile)
    policy = next(each["content"] for each in page.all("meta") if each.get("http-equiv") == "Content-Security-Policy")
    digests = {}
    for tag in ("style", "script"):
        found = re.search(f"<{tag}>(.*?)</{tag}>", hostile, re.DOTALL)
        assert found is not None
        digests[tag] = base64.b64encode(hashlib.sha256(found[1].encode()).digest()).decode()

    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digests['style']}'; script-src 'sha256-{digests['script']}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    assert [each for _tag, each in page.tags if "style" in each] == []


def test_the_banner_is_the_first_text_of_the_page(evidence: Evidence) -> None:
    text = Page(render_html(evidence.fold())).text

    after = text.partition("Skip to the claims")[2].lstrip()
    assert after.startswith(NO_LIVE)


def test_with_live_proof_the_banner_says_who_answered_and_where(evidence: Evidence) -> None:
    page = render_html(evidence.fold(evidence.bundle(evidence.live_record())))

    assert ('<p class="banner live">Observed against a hosted model: m-large-0221' in page) is True


def test_the_head_of_the_page_says_of_each_column_in_words_what_was_seen_and_what_was_not(evidence: Evidence) -> None:
    other = replace(evidence.subject, dirty=True, dirty_digest="sha256:1")
    page = render_html(
        evidence.fold(
            evidence.bundle(evidence.record("unit", claim_ids=("loop.late",))),
            evidence.bundle(evidence.record(verdict="failed")),
            evidence.bundle(evidence.record("replay", subject=other), subject=other),
            evidence.bundle(lane="real", not_run_code="no-key", not_run_text="set KEY", canary_start=""),
        )
    )

    head = re.sub(r"<[^>]+>", " ", page.partition("<header>")[2].partition("</header>")[0]).split()
    told = " ".join(head).replace("○ ", "").replace("● ", "")
    for words in (
        "Unit stand-ins not run 1",
        "Offline scripted ✕ failed 1",
        "Snapshot scripted not run",
        "Replay recorded not run: other subject",
        "Real API live not run: no key",
        "not run: Snapshot, Replay",
        "1 bundle is about another subject, and set aside",
    ):
        assert words in told, told


def test_status_28_without_a_key_the_real_column_reads_not_run_and_holds_no_tick(evidence: Evidence) -> None:
    board = evidence.fold(
        evidence.bundle(evidence.record()), evidence.bundle(lane="real", not_run_code="no-key", canary_start="")
    )
    document = render_html(board)

    row = re.search(r'<td role="cell" data-column="column-5".*?</td>', document, re.DOTALL)
    card = re.search(r'<article class="card of-live".*?</article>', document, re.DOTALL)
    assert row is not None
    assert card is not None
    assert ("not run: no key" in row[0], re.findall("passed|✓|✔|☑", row[0] + card[0])) == (True, [])


def test_every_table_has_a_caption_and_every_heading_of_one_its_scope(hostile: str) -> None:
    page = Page(hostile)

    assert len(page.all("caption")) == len(page.all("table"))
    assert {each.get("scope") for each in page.all("th")} == {"col", "row"}


def test_the_page_has_its_landmarks_one_first_heading_a_language_and_a_way_past_the_head(hostile: str) -> None:
    page = Page(hostile)
    ids = [str(each["id"]) for _tag, each in page.tags if "id" in each]

    assert [len(page.all(tag)) for tag in ("header", "nav", "main", "footer", "h1")] == [1, 1, 1, 1, 1]
    assert (page.all("html"), page.all("a")[0]["href"], len(ids)) == ([{"lang": "en"}], "#claims", len(set(ids)))
    assert [each["href"] for each in page.all("a") if str(each["href"])[1:] not in ids] == []
    assert [each["aria-labelledby"] for _tag, each in page.tags if each.get("aria-labelledby", ids[0]) not in ids] == []


def test_every_status_is_told_in_words_beside_its_sign_and_its_colour(evidence: Evidence) -> None:
    page = Page(render_html(evidence.fold(evidence.bundle(evidence.record(verdict="failed")))))

    chips = [each for each in page.all("span") if str(each.get("class")).startswith("chip")]
    assert (len(chips) > 0, "failed 1" in page.text) == (True, True)


def test_the_tests_of_a_cell_stand_below_it_with_attempts_recording_cost_and_record(evidence: Evidence) -> None:
    record = evidence.record(
        "replay",
        attempts=(Attempt(1, "failed", 7, 1, failure="boom"), Attempt(2, "passed", 9, 2)),
        cassette={"id": "tool-round", "age_days": 41, "recorded_model": "m-small", "entries": 1, "consumed": 1},
        cost={"usd": "0.0031"},
        verdict="passed",
    )

    text = Page(render_html(evidence.fold(evidence.bundle(record)))).text

    for told in (
        "attempt 1 failed, 7 ms, 1 answers",
        "attempt 2 passed, 9 ms, 2 answers",
        "cassette.age_days 41",
        "cassette.recorded_model m-small",
        "cost.usd 0.0031",
        f"record {record.record_id}",
        "boom",
    ):
        assert told in text


def test_nights_are_a_strip_to_look_at_and_the_same_in_words_with_gaps_that_are_no_zeros(
    evidence: Evidence, tmp_path: Path
) -> None:
    document = render_html(whole_board(evidence, tmp_path))

    strip = re.search(r'<svg class="strip".*?</svg>', document, re.DOTALL)
    words = "passed 9, no data 1, passed 1, flaky 1, passed 1, failed 1, no data 2, passed 2"
    assert strip is not None
    bars = re.findall(r'<rect class="f-([a-z-]+)"', strip[0])
    assert (f'aria-label="{words}"' in strip[0], Page(document).text.count(words)) == (True, 2)
    assert (len(bars), bars.count("gap"), bars.count("passed")) == (18, 3, 13)
    assert "13/15, 95 % interval" in document


def test_the_proofs_of_a_claims_guards_stand_with_the_claim_and_lead_to_their_edits(
    evidence: Evidence, tmp_path: Path
) -> None:
    document = render_html(whole_board(evidence, tmp_path))

    claim = re.search(r'<article class="claim" id="claim-loop.turns".*?</article>', document, re.DOTALL)
    assert claim is not None
    assert ('<a href="#guard-2">guard-1</a>' in claim[0], "survived" in claim[0]) == (True, True)
    assert '<details id="guard-2">' in document


def test_what_live_answers_cost_is_told_by_claim_and_as_an_estimate(evidence: Evidence, tmp_path: Path) -> None:
    text = Page(render_html(whole_board(evidence, tmp_path))).text

    assert "What live answers cost, an estimate" in text
    assert "journey.fix-test, Real API: 5120 tokens in" in text


def test_a_long_list_of_passed_tests_is_cut_with_the_exact_number(evidence: Evidence) -> None:
    records = [evidence.record(node_id=f"lanes/offline/test_a.py::test_{number:03}") for number in range(25)]

    text = Page(render_html(evidence.fold(evidence.bundle(*records)))).text

    assert (text.count("lanes/offline/test_a.py::test_"), "Left out here: 15 more passed" in text) == (10, True)


def test_a_full_page_leaves_out_what_passed_before_what_failed(
    evidence: Evidence, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html_view, "ITEMS_SHOWN", 3)
    verdicts = ["passed", "failed", "passed", "failed", "passed"]
    records = [
        evidence.record(node_id=f"lanes/offline/test_a.py::test_{number}", verdict=verdict)  # type: ignore[arg-type]
        for number, verdict in enumerate(verdicts)
    ]

    text = Page(render_html(evidence.fold(evidence.bundle(*records)))).text

    assert "Left out here: 2 more passed" in text


def test_the_same_board_gives_the_same_bytes(evidence: Evidence) -> None:
    board = hostile_board(evidence)

    assert render_html(board) == render_html(board)


def test_a_board_without_claims_or_evidence_is_still_a_page(evidence: Evidence) -> None:
    page = Page(render_html(fold((), Claims(), admission=evidence.admission())))

    assert (page.open, "No claims." in page.text) == ([], True)
