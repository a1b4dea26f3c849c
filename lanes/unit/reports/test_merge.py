"""Merging folders of evidence: in any order, any number of times, in any number of steps, with the same bytes."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lanes.bundle import Bundle, BundleWriter, ExpectedItem, bundle_folder
from lanes.errors import EvidenceError, UsageError
from lanes.record import Shard, Verdict
from reports.board import Board
from reports.merge import MERGED, merge_folders, read_merged
from reports.missing import shard_words
from reports.output import load_board
from reports.render.html import render_html
from reports.render.json_board import render_json
from reports.render.markdown import render_markdown

if TYPE_CHECKING:
    from lanes.unit.reports.conftest import Evidence

NOW = datetime(2031, 3, 7, 2, 0, tzinfo=UTC)
VERDICTS: tuple[Verdict, ...] = ("passed", "failed", "not run", "blocked")


def leave(bundle: Bundle, folder: Path) -> Path:
    """Write a bundle into a folder as its lane would have."""
    with BundleWriter(folder, bundle.header) as writer:
        for record in bundle.records:
            writer.write(record)
        writer.close(canary_end="refused")
    return folder


def shards_of(evidence: Evidence, total: int, verdicts: Sequence[Verdict], lane: str = "offline") -> list[Bundle]:
    """The items of one run dealt to its shards in turn."""
    nodes = [f"lanes/{lane}/test_a.py::test_{number}" for number in range(len(verdicts))]
    expected = [ExpectedItem(node, ("journey.fix-test",)) for node in nodes]
    hands: list[list[int]] = [list(range(index, len(nodes), total)) for index in range(total)]
    return [
        evidence.bundle(
            *(
                replace(evidence.record(lane, nodes[number], verdicts[number]), shard=Shard(index + 1, total))
                for number in hand
            ),
            lane=lane,
            expected=expected,
            shard=(index + 1, total),
            selected=tuple(nodes[number] for number in hand),
        )
        for index, hand in enumerate(hands)
    ]


def machine(bundle: Bundle, root: Path) -> Path:
    """The output folder that one machine left, with one bundle in it."""
    header = bundle.header
    leave(bundle, bundle_folder(root, header.lane, header.shard_index, header.shard_total))
    return root


def board_of(out: Path, evidence: Evidence) -> Board:
    return load_board(out, out, NOW, claims=evidence.claims(), admission=evidence.admission())


def outputs_of(out: Path, evidence: Evidence) -> tuple[str, str, str]:
    board = board_of(out, evidence)
    return render_html(board), render_json(board), render_markdown(board)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_edge43_shards_merged_in_any_order_twice_and_nested_give_the_same_html_json_and_markdown(
    evidence: Evidence, data: st.DataObject
) -> None:
    total = data.draw(st.integers(1, 4))
    verdicts = data.draw(st.lists(st.sampled_from(VERDICTS), min_size=1, max_size=6))
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        machines = [
            machine(bundle, root / f"machine-{number}")
            for number, bundle in enumerate(shards_of(evidence, total, verdicts))
        ]
        machines = [each for each in machines if data.draw(st.integers(0, 4)) > 0] or machines
        turned = data.draw(st.permutations(machines))
        cut = data.draw(st.integers(0, len(turned)))
        merge_folders(machines, root / "at-once")
        merge_folders([*turned, turned[0]], root / "turned")
        parts = [part for part in (turned[:cut], turned[cut:]) if part]
        for number, part in enumerate(parts):
            merge_folders(part, root / f"part-{number}")
        merge_folders([root / f"part-{number}" for number in range(len(parts))], root / "nested")

        expected = outputs_of(root / "at-once", evidence)
        assert outputs_of(root / "turned", evidence) == expected
        assert outputs_of(root / "nested", evidence) == expected
        assert (root / "nested" / MERGED).read_bytes() == (root / "at-once" / MERGED).read_bytes()


def test_a_bundle_is_carried_over_byte_for_byte_and_named_by_its_content(tmp_path: Path, evidence: Evidence) -> None:
    source = leave(evidence.bundle(evidence.record()), tmp_path / "a" / "bundles" / "offline" / "1-of-1")

    merged = merge_folders([tmp_path / "a"], tmp_path / "out")

    (listed,) = merged.inputs
    target = tmp_path / "out" / listed.place
    assert {path.name: path.read_bytes() for path in target.iterdir()} == {
        path.name: path.read_bytes() for path in source.iterdir()
    }
    assert (target.name, read_merged(tmp_path / "out")) == (f"1-of-1.{listed.digest[7:23]}", merged.inputs)


def test_edge53_a_field_unknown_to_this_version_survives_a_merge(tmp_path: Path, evidence: Evidence) -> None:
    record = replace(evidence.record(), extra={"weather": "rain"})
    leave(evidence.bundle(record), tmp_path / "a" / "bundles" / "offline" / "1-of-1")

    (listed,) = merge_folders([tmp_path / "a"], tmp_path / "out").inputs

    line = (tmp_path / "out" / listed.place / "records.jsonl").read_text("ascii")
    assert json.loads(line)["weather"] == "rain"


def test_an_earlier_merge_is_replaced_as_a_whole(tmp_path: Path, evidence: Evidence) -> None:
    one, two = shards_of(evidence, 2, ["passed", "passed"])
    machine(one, tmp_path / "a")
    machine(two, tmp_path / "b")
    merge_folders([tmp_path / "a"], tmp_path / "out")

    merge_folders([tmp_path / "b"], tmp_path / "out")

    merge_folders([tmp_path / "b"], tmp_path / "new")
    assert sorted(p.relative_to(tmp_path / "out") for p in (tmp_path / "out").rglob("*")) == sorted(
        p.relative_to(tmp_path / "new") for p in (tmp_path / "new").rglob("*")
    )


def test_a_merge_may_take_in_more_where_it_lies(tmp_path: Path, evidence: Evidence) -> None:
    one, two = shards_of(evidence, 2, ["passed", "passed"])
    merge_folders([machine(one, tmp_path / "a")], tmp_path / "out")

    merged = merge_folders([tmp_path / "out", machine(two, tmp_path / "b")], tmp_path / "out")

    assert (len(merged.inputs), merged.gaps) == (2, ())


def test_edge46_shards_that_are_missing_are_named_with_their_run(tmp_path: Path, evidence: Evidence) -> None:
    bundles = shards_of(evidence, 5, ["passed"] * 5)
    machines = [machine(bundles[number], tmp_path / str(number)) for number in (0, 3)]

    merged = merge_folders(machines, tmp_path / "out")

    assert (merged.gaps, merged.is_whole) == (
        ("offline: shard 2 to 3 of 5, 5 of 5 of run run-offline is missing",),
        False,
    )


def shard_of_many(evidence: Evidence, index: int, total: int, nodes: Sequence[str]) -> Bundle:
    """One shard of very many, which holds one item at most."""
    mine = tuple(nodes[index - 1 : index])
    return evidence.bundle(
        *(replace(evidence.record(node_id=node), shard=Shard(index, total)) for node in mine),
        lane="offline",
        expected=[ExpectedItem(node, ("journey.fix-test",)) for node in nodes],
        shard=(index, total),
        selected=mine,
    )


def test_two_thousand_shards_are_one_board(evidence: Evidence) -> None:
    total, missing = 2_000, {7, 8, 9, 1_200}
    nodes = [f"lanes/offline/test_a.py::test_{number}" for number in range(40)]
    bundles = [shard_of_many(evidence, index, total, nodes) for index in range(1, total + 1) if index not in missing]

    board = evidence.fold(*bundles)

    tally = board.column("offline").item_tally
    assert (tally.passed, tally.not_run, [each.text for each in board.notices]) == (
        37,
        3,
        ["shard 7 to 9 of 2000, 1200 of 2000 of run run-offline is missing"],
    )


def test_the_missing_ones_of_thousands_are_named_in_stretches(tmp_path: Path, evidence: Evidence) -> None:
    nodes = [f"lanes/offline/test_a.py::test_{number}" for number in range(5)]
    for index in (1, 2, 900, 2_000):
        machine(shard_of_many(evidence, index, 2_000, nodes), tmp_path / "all")

    merged = merge_folders([tmp_path / "all"], tmp_path / "out")

    told = "3 to 899 of 2000, 901 to 1999 of 2000"
    assert merged.gaps == (f"offline: shard {told} of run run-offline is missing",)


@pytest.mark.parametrize("name", ["header.json", "records.jsonl"])
def test_evidence_of_a_newer_version_is_refused_in_words_and_nothing_is_written(
    tmp_path: Path, evidence: Evidence, name: str
) -> None:
    folder = leave(evidence.bundle(evidence.record()), tmp_path / "a" / "bundles" / "offline" / "1-of-1")
    text = (folder / name).read_text("ascii")
    (folder / name).write_text(text.replace("bundle/1", "bundle/9").replace("evidence/1", "evidence/9"), "ascii")

    with pytest.raises(EvidenceError, match="/9") as raised:
        merge_folders([tmp_path / "a"], tmp_path / "out")

    assert (raised.value.error_code, "later" in raised.value.fix, (tmp_path / "out").exists()) == (
        "SCHEMA_NEWER",
        True,
        False,
    )


def test_what_is_wrong_with_a_bundle_is_carried_over_and_named(tmp_path: Path, evidence: Evidence) -> None:
    folder = leave(evidence.bundle(evidence.record()), tmp_path / "a" / "bundles" / "offline" / "1-of-1")
    with (folder / "records.jsonl").open("ab") as file:
        file.write(b'{"torn')
    shutil.copytree(folder, tmp_path / "b" / "bundles" / "offline" / "1-of-1")
    (tmp_path / "b" / "bundles" / "offline" / "1-of-1" / "header.json").write_bytes(b"nothing")

    merged = merge_folders([tmp_path / "a", tmp_path / "b"], tmp_path / "out")

    assert [problem.rpartition(" ")[2] for problem in merged.problems] == ["(unreadable)", "(torn)"]
    assert len(list((tmp_path / "out" / "bundles").rglob("records.jsonl"))) == 2


def test_a_folder_without_evidence_is_named(tmp_path: Path, evidence: Evidence) -> None:
    (tmp_path / "nothing").mkdir()
    machine(evidence.bundle(evidence.record()), tmp_path / "a")

    merged = merge_folders([tmp_path / "a", tmp_path / "nothing"], tmp_path / "out")

    assert (merged.empty, merged.is_whole) == ((str(tmp_path / "nothing"),), False)


def test_evidence_that_no_merge_laid_there_is_not_written_over(tmp_path: Path, evidence: Evidence) -> None:
    machine(evidence.bundle(evidence.record()), tmp_path / "a")

    with pytest.raises(UsageError, match="no merge laid there"):
        merge_folders([tmp_path / "a"], tmp_path / "a")

    assert len(list((tmp_path / "a").rglob("header.json"))) == 1


def test_a_folder_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no folder"):
        merge_folders([tmp_path / "nowhere"], tmp_path / "out")


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        pytest.param([3], "3 of 9", id="one"),
        pytest.param([1, 2, 3], "1 to 3 of 9", id="a-stretch"),
        pytest.param([1, 4, 5, 9], "1 of 9, 4 to 5 of 9, 9 of 9", id="mixed"),
    ],
)
def test_missing_shards_are_told_in_stretches(missing: list[int], words: str) -> None:
    assert shard_words(missing, 9) == words
