"""Every counterfeit of a live pass is void, with the codes of the rules that give it away (§3.5)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lanes.record import Record
from lanes.unit.lanes.stand_in import COPIED_ID, LiveCopy, copy_project, open_stand_in
from reports.admit import Admission, all_refusals
from reports.board import Board
from reports.history import read_used_ids
from reports.output import load_board, provider_rows

SUITE = Path(__file__).with_name("counterfeit_suite.py")


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveCopy]:
    """A run of the whole suite of counterfeits, and of no other test, against a stand-in."""
    folder = tmp_path_factory.mktemp("counterfeits")
    with open_stand_in(folder) as stand_in:
        project = copy_project(folder / "project", stand_in.authority, stand_in.port)
        shutil.rmtree(project.root / "lanes" / "real")
        project.write("lanes/real/test_counterfeits.py", SUITE.read_text("utf-8"))
        project.write("cassettes/openai_chat/earlier.yaml", f"provider_id: {COPIED_ID}\n")
        yield LiveCopy(project, stand_in)


@pytest.fixture(scope="module")
def ended(live: LiveCopy) -> tuple[int, str]:
    ended = live.run()
    return ended.exit_code, ended.stdout + ended.stderr


@pytest.fixture(scope="module")
def records(live: LiveCopy, ended: tuple[int, str]) -> Mapping[str, Record]:
    return live.project.records("real")


@pytest.fixture(scope="module")
def admission(live: LiveCopy, records: Mapping[str, Record]) -> Admission:
    """What the board of the copy judges by: its own table, and the ids of its own cassettes."""
    (honest,) = [record for name, record in records.items() if name == "test_honest"]
    root = live.project.root
    providers = live.providers()
    return Admission(honest.subject, provider_rows(providers, live.table), "sha256:locked", read_used_ids(root))


COUNTERFEITS = [
    pytest.param("test_base_url_aimed_elsewhere", {"override"}, id="A3-live13-base-url-aimed-at-a-mock"),
    pytest.param("test_name_mapped_to_loopback", {"peer", "trust"}, id="A4-A5-live14-live15-name-mapped-to-loopback"),
    pytest.param("test_verification_switched_off", {"peer", "tls"}, id="A5-live16-verification-off"),
    pytest.param("test_local_proxy_in_the_place_of_the_connection", {"recorder"}, id="A6-local-proxy"),
    pytest.param("test_recorder_loaded", {"recorder"}, id="A6-live17-recorder-loaded"),
    pytest.param("test_canned_objects", {"wire", "tls", "date"}, id="A7-canned-objects"),
    pytest.param("test_copied_id", {"id-reuse"}, id="A8-live19-copied-id"),
    pytest.param("test_answer_that_lacks_something[m-no-id]", {"id-missing"}, id="A8-live20-no-id"),
    pytest.param("test_answer_that_lacks_something[m-odd-id]", {"id-missing"}, id="A8-id-of-another-form"),
    pytest.param("test_answer_that_lacks_something[m-old-date]", {"date"}, id="A9-live21-old-date"),
    pytest.param("test_answer_that_lacks_something[m-no-date]", {"date"}, id="A9-no-date"),
    pytest.param("test_no_usage", {"usage"}, id="A10-no-usage"),
    pytest.param("test_answer_of_last_night", {"id-reuse", "nonce"}, id="A8-A11-caching-gateway"),
    pytest.param("test_retries_inside_the_body", {"hidden-retry"}, id="A12-hidden-retry"),
    pytest.param("test_returns_early", {"no-call"}, id="A2-live18-returns-early"),
    pytest.param("test_never_asks", {"no-call"}, id="A2-live18-never-asks"),
]


@pytest.mark.parametrize(("name", "codes"), COUNTERFEITS)
def test_a_counterfeit_is_given_away_by_the_rules_that_are_meant_for_it(
    records: Mapping[str, Record], admission: Admission, name: str, codes: set[str]
) -> None:
    record = records[name]

    found = {refusal.code for refusal in all_refusals(record, admission)}

    assert (record.verdict, codes - found) == ("passed", set())


@pytest.mark.parametrize(
    ("provider", "codes"),
    [
        pytest.param("acme", {"host", "peer", "trust"}, id="A3-A4-A5-a-vendor-s-name-for-what-answered-here"),
        pytest.param("nobody", {"host"}, id="A3-a-provider-that-is-not-in-the-table"),
    ],
)
def test_a_smaller_model_under_another_name_is_void(
    records: Mapping[str, Record], admission: Admission, provider: str, codes: set[str]
) -> None:
    honest = records["test_honest"]

    found = {
        each.code for each in all_refusals(replace(honest, model={**honest.model, "provider": provider}), admission)
    }

    assert codes - found == set()


def test_A1_evidence_about_another_commit_is_void(records: Mapping[str, Record], admission: Admission) -> None:
    honest = records["test_honest"]
    other = replace(honest, subject=replace(honest.subject, commit="4f0c2a1"))

    assert [each.code for each in all_refusals(honest, admission)] == []
    assert [each.code for each in all_refusals(other, admission)] == ["subject"]


def test_all_of_them_are_void_on_the_board_and_the_honest_one_alone_counts(
    live: LiveCopy, ended: tuple[int, str], records: Mapping[str, Record]
) -> None:
    board = live.board
    void = {each["node_id"].partition("::")[2] for each in board["voids"]}
    column = next(each for each in board["columns"] if each["id"] == "real:stand-in")

    assert (ended[0], records.keys() - void) == (3, {"test_honest"})
    assert [each["node_id"].partition("::")[2] for each in column["items"] if each["status"] == "passed"] == [
        "test_honest"
    ]


def read_board(live: LiveCopy, out: Path) -> Board:
    return load_board(out, live.project.root, datetime.now(UTC))


def test_with_the_committed_table_not_even_the_honest_one_counts(live: LiveCopy, records: Mapping[str, Record]) -> None:
    board = read_board(live, live.project.root / "reports" / "out")

    assert {void.node_id.partition("::")[2] for void in board.voids} == records.keys()


def test_the_bundle_of_another_lane_in_the_place_of_the_real_one_is_void(
    live: LiveCopy, ended: tuple[int, str], tmp_path: Path
) -> None:
    live.project.write("lanes/unit/test_a.py", "def test_passes():\n    pass\n")
    live.project.run("run", "unit", "--out", str(tmp_path), PYTHONPATH=str(live.project.root))
    shutil.rmtree(tmp_path / "bundles" / "real", ignore_errors=True)
    (tmp_path / "bundles" / "unit").rename(tmp_path / "bundles" / "real")
    header = tmp_path / "bundles" / "real" / "1-of-1" / "header.json"
    header.write_text(json.dumps({**json.loads(header.read_text("utf-8")), "lane": "real"}), "utf-8")

    board = read_board(live, tmp_path)

    assert {void.code for void in board.voids} >= {"marker"}
    assert [item for item in board.column("real").items if item.status == "passed"] == []


def test_evidence_that_was_edited_by_hand_is_void(live: LiveCopy, ended: tuple[int, str], tmp_path: Path) -> None:
    shutil.copytree(live.project.root / "reports" / "out" / "bundles", tmp_path / "bundles")
    lines = tmp_path / "bundles" / "real" / "1-of-1" / "records.jsonl"
    text = lines.read_text("utf-8")
    lines.write_text(
        text.replace('"proxy_used":true', '"proxy_used":false').replace("127.0.0.1", "104.18.2.1"), "utf-8"
    )

    board = read_board(live, tmp_path)

    assert {void.code for void in board.voids} >= {"record-id"}
    assert not any(item.status == "passed" for item in board.column("real").items)
