"""Output: from bundles on the disk to files and an exit code."""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lanes.bundle import Bundle, BundleWriter, bundle_folder, write_not_run
from lanes.providers import load_providers, trust_store_digest
from lanes.record import canonical_json, digest_json
from reports import output
from reports.output import build_reports, configuration_digests, show_board, wants_colour
from reports.verdict import PASSED, VOID, Asked

if TYPE_CHECKING:
    from lanes.unit.reports.conftest import Evidence

NOW = datetime(2031, 3, 7, 2, 0, tzinfo=UTC)
OFFLINE = Asked(("offline",))


def leave(out: Path, bundle: Bundle) -> Path:
    """Write a bundle where a lane would have left it."""
    header = bundle.header
    folder = bundle_folder(out, header.lane, header.shard_index, header.shard_total)
    if header.not_run_code is not None:
        write_not_run(folder, header)
        return folder
    with BundleWriter(folder, header) as writer:
        for record in bundle.records:
            writer.write(record)
        writer.close(canary_end="refused")
    return folder


def board_text(out: Path) -> str:
    return (out / "board.txt").read_text(encoding="utf-8")


def rows_of(out: Path) -> list[object]:
    return [claim["cells"] for claim in json.loads((out / "board.json").read_text())["claims"]]


@pytest.fixture
def out(tmp_path: Path, evidence: Evidence) -> Path:
    """An output folder with an offline bundle and the bundle of a real lane without a key."""
    leave(tmp_path, evidence.bundle(evidence.record(), evidence.record(node_id="lanes/offline/test_a.py::test_two")))
    leave(tmp_path, evidence.bundle(lane="real", not_run_code="no-key", not_run_text="set KEY", canary_start=""))
    return tmp_path


def build(out: Path, evidence: Evidence, asked: Asked = OFFLINE) -> int:
    return build_reports(out, out, NOW, asked=asked, subject=evidence.subject, claims=evidence.claims())[1]


def test_bundles_on_the_disk_become_every_output_and_an_exit_code(out: Path, evidence: Evidence) -> None:
    code = build(out, evidence)

    files = sorted(path.name for path in out.iterdir() if path.is_file())
    assert (code, files, "passed 2" in board_text(out), "not run: no key" in board_text(out)) == (
        PASSED,
        [
            "board.html",
            "board.json",
            "board.md",
            "board.txt",
            "column-offline.md",
            "column-real.md",
            "column-replay.md",
            "column-snapshot.md",
            "column-unit.md",
            "ctrf-offline.json",
            "ctrf-real.json",
            "ctrf-replay.json",
            "ctrf-snapshot.json",
            "ctrf-unit.json",
            "junit-offline.xml",
            "junit-real.xml",
            "junit-replay.xml",
            "junit-snapshot.xml",
            "junit-unit.xml",
            "manifest.json",
            "statement-offline.json",
            "statement-replay.json",
            "statement-snapshot.json",
            "statement-unit.json",
        ],
        True,
        True,
    )


def test_the_same_bundles_give_the_same_bytes(out: Path, evidence: Evidence) -> None:
    build(out, evidence)
    first = {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}
    build(out, evidence)

    assert {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()} == first


@pytest.mark.parametrize(
    "name", ["junit-real-local.xml", "column-real-local.md", "ctrf-real-local.json", "statement-real.json"]
)
def test_a_file_of_a_column_that_is_gone_does_not_stay(out: Path, evidence: Evidence, name: str) -> None:
    (out / name).write_text("old")

    build(out, evidence)

    assert not (out / name).exists()


def edited(line: bytes, *, with_id: bool) -> bytes:
    document = json.loads(line) | {"lane": "real", "class": "live"}
    if with_id:
        document["record_id"] = digest_json({k: v for k, v in document.items() if k != "record_id"})
    return canonical_json(document)


@pytest.mark.parametrize("with_id", [True, False], ids=["digest-made-anew", "digest-left"])
@pytest.mark.parametrize("lane", ["offline", "real"])
def test_a_record_edited_to_say_live_changes_nothing_but_a_void_line_and_the_exit_code(
    out: Path, evidence: Evidence, lane: str, with_id: bool
) -> None:
    build(out, evidence)
    before = rows_of(out)
    line = (out / "bundles" / "offline" / "1-of-1" / "records.jsonl").read_bytes().splitlines()[0]
    path = out / "bundles" / lane / "1-of-1" / "records.jsonl"
    path.write_bytes(path.read_bytes() + edited(line, with_id=with_id) + b"\n")

    code = build(out, evidence, Asked())

    assert (code, rows_of(out), "\n  void (" in board_text(out), "✓" in board_text(out)) == (VOID, before, True, False)


@pytest.mark.parametrize("with_id", [True, False], ids=["digest-made-anew", "digest-left"])
def test_a_record_edited_in_its_place_leaves_the_real_column_as_it_was(
    out: Path, evidence: Evidence, with_id: bool
) -> None:
    build(out, evidence)
    before = rows_of(out)[0]["real"]  # type: ignore[index]
    path = out / "bundles" / "offline" / "1-of-1" / "records.jsonl"
    first, second = path.read_bytes().splitlines()
    path.write_bytes(edited(first, with_id=with_id) + b"\n" + second + b"\n")

    code = build(out, evidence, Asked())

    cells = rows_of(out)[0]
    assert (code, cells["real"], cells["offline"]["words"]) == (  # type: ignore[index]
        VOID,
        before,
        "blocked 1 (void evidence), passed 1",
    )


def test_an_offline_bundle_copied_into_the_real_folder_is_void_and_fills_nothing(out: Path, evidence: Evidence) -> None:
    build(out, evidence)
    before = rows_of(out)
    source, target = (out / "bundles" / lane / "1-of-1" for lane in ("offline", "real"))
    for path in source.iterdir():
        (target / path.name).write_bytes(path.read_bytes())
    header = json.loads((target / "header.json").read_text()) | {"lane": "real"}
    (target / "header.json").write_text(json.dumps(header))

    code = build(out, evidence, Asked())

    cells = rows_of(out)[0]
    assert (code, cells["offline"]) == (VOID, before[0]["offline"])  # type: ignore[index]
    assert cells["real"]["words"] == "blocked: void evidence"  # type: ignore[index]


def test_edge55_evidence_ages_by_what_it_says_and_not_by_the_times_of_files(out: Path, evidence: Evidence) -> None:
    build(out, evidence)
    first = board_text(out)
    for path in (out / "bundles").rglob("*.json*"):
        os.utime(path, (0, 0))
    build(out, evidence)

    assert board_text(out) == first


def test_a_folder_without_bundles_still_gives_a_board_in_words(tmp_path: Path, evidence: Evidence) -> None:
    build(tmp_path / "new", evidence, Asked())

    assert board_text(tmp_path / "new").count("not run: lane not run") >= 5


@pytest.mark.parametrize(
    ("environ", "is_terminal", "expected"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"TERM": "dumb"}, True, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
    ],
)
def test_colours_are_for_terminals_and_for_whoever_asks(
    environ: dict[str, str], is_terminal: bool, expected: bool
) -> None:
    assert wants_colour(environ, is_terminal=is_terminal) == expected


def test_the_board_is_shown_as_wide_as_the_terminal(evidence: Evidence) -> None:
    board = evidence.fold(evidence.bundle(evidence.record()))

    shown = show_board(board, {"NO_COLOR": "1"}, is_terminal=True, columns=60)

    assert max(len(line) for line in shown.splitlines()) <= 60


def hosted(evidence: Evidence, trust_store: str) -> Bundle:
    """A live record of a provider of the committed table, verified against a trust store."""
    provider = next(each for each in load_providers() if each.peers == "global")
    endpoint = {"scheme": "https", "host": provider.host, "port": 443, "path": f"{provider.path_prefix}chat"}
    live = evidence.live_record()
    tls = {"version": "TLSv1.3", "chain_verified": True, "name_verified": True, "trust_store": trust_store}
    answer = {
        **live.answers[0],
        "provider_id": "sha256:1",
        "provider_id_matches": True,
        "wire": {"stream": True, "peer_ip": "104.18.2.1", "tls": tls, "endpoint": endpoint},
    }
    return evidence.bundle(
        evidence.live_record(
            answers=(answer,),
            model={"provider": provider.name, "reported": "m-large", "endpoint": endpoint},
            live_proof={**(live.live_proof or {}), "tls": tls, "provider_ids": ["sha256:1"]},
        )
    )


@pytest.mark.parametrize(
    ("trust_store", "words", "expected"),
    [
        pytest.param(trust_store_digest(), "passed 1", PASSED, id="locked-store"),
        pytest.param("sha256:mine", "blocked: void evidence", VOID, id="edge15-another-store"),
    ],
)
def test_a_provider_of_the_table_is_admitted_against_the_locked_trust_store_alone(
    tmp_path: Path, evidence: Evidence, trust_store: str, words: str, expected: int
) -> None:
    leave(tmp_path, hosted(evidence, trust_store))

    code = build(tmp_path, evidence, Asked(("real",), require_live=True))

    assert (rows_of(tmp_path)[0]["real"]["words"], code) == (words, expected)  # type: ignore[index]


def test_edge19_an_id_of_a_committed_cassette_voids_a_live_record(tmp_path: Path, evidence: Evidence) -> None:
    (tmp_path / "cassettes").mkdir()
    (tmp_path / "cassettes" / "a.yaml").write_text("provider_id: sha256:1\n")
    leave(tmp_path, hosted(evidence, trust_store_digest()))

    board, code = build_reports(tmp_path, tmp_path, NOW, subject=evidence.subject, claims=evidence.claims())

    assert ([void.code for void in board.voids], code) == (["id-reuse"], VOID)


def test_recordings_are_part_of_what_configured_a_run(tmp_path: Path) -> None:
    (tmp_path / "cassettes" / "chat").mkdir(parents=True)
    (tmp_path / "cassettes" / "chat" / "a.yaml").write_text("one")
    before = configuration_digests(tmp_path)
    (tmp_path / "cassettes" / "chat" / "a.yaml").write_text("two")

    after = configuration_digests(tmp_path)

    assert (before.keys(), before == after) == ({"cassettes"}, False)


def test_a_fold_leaves_the_garbage_collector_as_it_was(out: Path, evidence: Evidence) -> None:
    was_at_work = gc.isenabled()
    build(out, evidence)

    assert gc.isenabled() == was_at_work


def test_a_file_that_breaks_off_leaves_the_one_of_before_and_nothing_beside_it(tmp_path: Path) -> None:
    def pieces() -> Iterator[str]:
        yield "half"
        raise OSError(28, "No space left on device")

    (tmp_path / "board.txt").write_text("before", "utf-8")

    with pytest.raises(OSError, match="No space left"):
        output._write_whole(tmp_path / "board.txt", pieces())

    assert {path.name: path.read_text("utf-8") for path in tmp_path.iterdir()} == {"board.txt": "before"}
