"""Verification: an honest folder holds, and each way to change one is named by its code."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lanes.bundle import BundleWriter, bundle_folder, next_digest, start_digest
from lanes.bundle_reading import read_bundle
from lanes.errors import UsageError
from lanes.record import Shard, canonical_json, digest_json
from reports.manifest import MANIFEST
from reports.merge import merge_folders
from reports.output import build_reports
from reports.verify import LACKING, verify_folder

if TYPE_CHECKING:
    from lanes.unit.reports.conftest import Evidence

NOW = datetime(2031, 3, 7, 2, 0, tzinfo=UTC)
CLAIMS = """\
schema = "claims/1"

[[claim]]
id = "journey.fix-test"
sentence = "A sentence."
surface = "headless"
required = ["offline"]
optional = ["real"]
owner = "owner"
"""


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory, evidence: Evidence) -> Path:
    """A project with one claim, and what an honest run of two shards and the lane without a key left beside it."""
    place = tmp_path_factory.mktemp("honest")
    root, out = place / "project", place / "out"
    (root / "lanes").mkdir(parents=True)
    (root / "lanes" / "claims.toml").write_text(CLAIMS, "utf-8")
    (root / "tox.ini").write_text("[tox]\n", "utf-8")
    nodes = ("lanes/offline/test_a.py::test_one", "lanes/offline/test_a.py::test_two")
    for index, node in enumerate(nodes, start=1):
        record = evidence.record(node_id=node, shard=Shard(index, 2))
        expected = [evidence.item(each.rpartition("::")[2]) for each in nodes]
        bundle = evidence.bundle(record, expected=expected, shard=(index, 2), selected=(node,))
        with BundleWriter(bundle_folder(out, "offline", index, 2), bundle.header) as writer:
            writer.write(record)
            writer.close(canary_end="refused")
    word = evidence.bundle(lane="real", not_run_code="no-key", canary_start="").header
    with BundleWriter(bundle_folder(out, "real"), word):
        pass
    build_reports(out, root, NOW, subject=evidence.subject)
    return place


@pytest.fixture
def root(honest: Path, tmp_path: Path) -> Path:
    """The project."""
    return shutil.copytree(honest / "project", tmp_path / "project")


@pytest.fixture
def out(honest: Path, tmp_path: Path) -> Path:
    """The bundles, and the board that was written from them."""
    return shutil.copytree(honest / "out", tmp_path / "out")


def shard(out: Path, index: int = 1) -> Path:
    return out / "bundles" / "offline" / f"{index}-of-2"


def change_json(path: Path, change: Callable[[Any], None]) -> None:
    document = json.loads(path.read_text("utf-8"))
    change(document)
    path.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", "utf-8")


def change_record(folder: Path, *, anew: bool, **changes: object) -> None:
    """Edit the first record of a bundle; anew says whether whoever did it also made the digests fit."""
    path = folder / "records.jsonl"
    document = json.loads(path.read_bytes()) | changes
    if anew:
        document["record_id"] = digest_json({name: each for name, each in document.items() if name != "record_id"})
    line = canonical_json(document)
    path.write_bytes(line + b"\n")
    if anew:
        header = read_bundle(folder).header

        def refit(trailer: Any) -> None:
            trailer["digest"] = next_digest(start_digest(header), line)

        change_json(folder / "trailer.json", refit)


def edit_a_record(out: Path) -> None:
    change_record(shard(out), anew=False, verdict="failed")


def take_a_record_out(out: Path) -> None:
    (shard(out) / "records.jsonl").write_bytes(b"")


def cut_the_last_line(out: Path) -> None:
    path = shard(out) / "records.jsonl"
    path.write_bytes(path.read_bytes()[:-20])


def grade_a_record_up(out: Path) -> None:
    change_record(shard(out), anew=True, **{"class": "live"})


def move_a_bundle_to_the_real_lane(out: Path) -> None:
    change_json(shard(out) / "header.json", lambda header: header.update(lane="real"))


def shorten_the_list_of_items(out: Path) -> None:
    change_json(shard(out) / "header.json", lambda header: header["expected"]["items"].pop())


def take_a_trailer_from_another_run(out: Path) -> None:
    change_json(shard(out) / "trailer.json", lambda trailer: trailer.update(run_id="another"))


def hide_a_breach(out: Path) -> None:
    change_json(shard(out) / "trailer.json", lambda trailer: trailer.update(exit_code=7))


def take_a_shard_away(out: Path) -> None:
    shutil.rmtree(shard(out, 2))


def write_a_cell_by_hand(out: Path) -> None:
    path = out / "board.json"
    path.write_text(path.read_text("ascii").replace("not run: no key", "passed 1"), "ascii")


def change_the_banner_of_the_page(out: Path) -> None:
    path = out / "board.html"
    path.write_text(path.read_text("utf-8").replace("No claim on this board", "Each claim on this board"), "utf-8")


def turn_a_statement(out: Path) -> None:
    change_json(out / "statement-unit.json", lambda statement: statement["predicate"].update(result="PASSED"))


def state_something_about_real(out: Path) -> None:
    shutil.copy(out / "statement-offline.json", out / "statement-real.json")


def count_another_file(out: Path) -> None:
    change_json(out / MANIFEST, lambda manifest: manifest["outputs"].update({"board.txt": "sha256:" + "0" * 64}))


@pytest.mark.parametrize(
    ("tamper", "code"),
    [
        pytest.param(edit_a_record, "record-id", id="record-edited"),
        pytest.param(take_a_record_out, "trailer", id="record-taken-out"),
        pytest.param(cut_the_last_line, "torn", id="last-line-cut"),
        pytest.param(grade_a_record_up, "self-graded", id="class-raised-and-digests-made-anew"),
        pytest.param(move_a_bundle_to_the_real_lane, "marker", id="bundle-moved-to-real"),
        pytest.param(shorten_the_list_of_items, "expected", id="list-of-items-shortened"),
        pytest.param(take_a_trailer_from_another_run, "trailer", id="trailer-of-another-run"),
        pytest.param(hide_a_breach, "bundle-unknown", id="trailer-edited"),
        pytest.param(take_a_shard_away, "bundle-missing", id="shard-taken-away"),
        pytest.param(write_a_cell_by_hand, "board", id="cell-written-by-hand"),
        pytest.param(change_the_banner_of_the_page, "output", id="banner-of-the-page-changed"),
        pytest.param(turn_a_statement, "statement", id="statement-turned"),
        pytest.param(state_something_about_real, "statement-unfounded", id="edge71-statement-about-real"),
        pytest.param(count_another_file, "manifest", id="manifest-edited"),
    ],
)
def test_each_tampering_is_named_by_its_code(out: Path, root: Path, tamper: Callable[[Path], None], code: str) -> None:
    tamper(out)

    codes = {finding.code for finding in verify_folder(out, root).findings}

    assert code in codes
    assert not codes <= LACKING - {"torn"}


def test_an_honest_folder_holds_and_says_what_nobody_looked_at(out: Path, root: Path) -> None:
    seen = verify_folder(out, root)

    assert seen.findings == set()
    assert any("not signed" in each for each in seen.unchecked)
    assert [each for each in seen.checked if "outputs" in each] == ["23 outputs, each rendered anew"]


def test_a_merge_of_honest_folders_holds_too(out: Path, root: Path, tmp_path: Path, evidence: Evidence) -> None:
    merge_folders([out], tmp_path / "merged")
    build_reports(tmp_path / "merged", root, NOW, subject=evidence.subject)

    assert verify_folder(tmp_path / "merged", root).findings == set()


def test_a_board_still_holds_after_later_nights_were_written_down(out: Path, root: Path) -> None:
    line = {
        "claim": "journey.fix-test",
        "status": "passed",
        "live": True,
        "commit": "19bd77e",
        "model": "m",
        "host": "h",
    }
    (root / "reports").mkdir()
    (root / "reports" / "history.jsonl").write_text(json.dumps({**line, "at": "2031-03-08T02:00:00Z"}) + "\n", "ascii")

    assert verify_folder(out, root).findings == set()


def test_a_bundle_taken_out_of_a_merge_is_missed(out: Path, root: Path, tmp_path: Path, evidence: Evidence) -> None:
    merged = merge_folders([out], tmp_path / "merged")
    shutil.rmtree(tmp_path / "merged" / merged.inputs[0].place)
    build_reports(tmp_path / "merged", root, NOW, subject=evidence.subject)

    found = verify_folder(tmp_path / "merged", root).findings
    assert [each.code for each in found if each.where == "merged.json"] == ["bundle-missing"]


def test_under_other_rules_the_outputs_are_not_compared_and_that_is_said(out: Path, root: Path) -> None:
    (root / "lanes" / "claims.toml").write_text(CLAIMS.replace("A sentence", "Another sentence"), "utf-8")

    seen = verify_folder(out, root)

    assert (seen.findings, [each.partition(" than")[0] for each in seen.unchecked if "outputs" in each]) == (
        set(),
        ["the outputs: they were written with other claims"],
    )


def test_without_a_manifest_the_bundles_alone_are_looked_at_and_that_is_said(out: Path, root: Path) -> None:
    (out / MANIFEST).unlink()

    seen = verify_folder(out, root)

    assert (seen.findings, any("no manifest.json" in each for each in seen.unchecked)) == (set(), True)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param('{"schema": "manifest/9"}', "schema is 'manifest/9'", id="newer"),
        pytest.param("{", "is no JSON", id="torn"),
        pytest.param('{"schema": "manifest/1"}', "field 'folded_at' has another form", id="bare"),
    ],
)
def test_a_manifest_that_cannot_be_read_is_named(out: Path, root: Path, text: str, told: str) -> None:
    (out / MANIFEST).write_text(text, "ascii")

    (finding,) = verify_folder(out, root).findings

    assert (finding.code, finding.text.startswith(told)) == ("manifest", True)


def test_evidence_of_another_subject_than_the_boards_is_named(out: Path, root: Path) -> None:
    change_json(out / MANIFEST, lambda manifest: manifest["subject"].update(commit="f" * 40))

    assert "subject" in {finding.code for finding in verify_folder(out, root).findings}


def test_a_folder_without_bundles_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no bundle"):
        verify_folder(tmp_path, tmp_path)
