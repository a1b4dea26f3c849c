"""Bundles: what is on the disk, and what is read back from a damaged one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from lanes.bundle import (
    BundleHeader,
    BundleWriter,
    ExpectedItem,
    amend_trailer,
    bundle_folder,
    clear_folder,
    find_bundles,
    write_not_run,
)
from lanes.bundle_reading import read_bundle
from lanes.errors import EvidenceError
from lanes.record import Attempt, Record, Subject, canonical_json, digest_json, encode_record

HEADER = BundleHeader(
    lane="offline",
    run_id="run-1",
    subject=Subject("c", "t", python="CPython 3"),
    expected=(ExpectedItem("a", ("journey.fix-test",)), ExpectedItem("b")),
    selected=("a", "b"),
    deselected=(ExpectedItem("c"),),
    configuration={"tox.ini": "sha256:1"},
    lane_mark="offline",
    tox_env="offline",
    guard_depth="D3",
    canary_start="refused",
    keys_removed=2,
    started_at="2031-03-04T02:00:00Z",
    extra={"later": 1},
)


def make_record(node_id: str) -> Record:
    return Record("offline", node_id, "run-1", "passed", HEADER.subject, attempts=(Attempt(1, "passed"),))


def write(folder: Path, *names: str) -> None:
    with BundleWriter(folder, HEADER) as writer:
        for name in names:
            writer.write(make_record(name))
        writer.close(canary_end="refused", exit_code=0, breaches=("one",))


def codes(folder: Path) -> list[str]:
    return [problem.code for problem in read_bundle(folder).problems]


def test_a_bundle_written_and_read_is_the_same(tmp_path: Path) -> None:
    folder = bundle_folder(tmp_path, "offline")
    write(folder, "a", "b")

    bundle = read_bundle(folder)

    trailer = bundle.trailer
    assert trailer is not None
    assert (bundle.header, bundle.problems, [r.node_id for r in bundle.records], bundle.name) == (
        HEADER,
        (),
        ["a", "b"],
        "offline/1-of-1",
    )
    assert (trailer.run_id, trailer.count, trailer.canary_end, trailer.exit_code, trailer.breaches) == (
        "run-1",
        2,
        "refused",
        0,
        ("one",),
    )


def test_each_record_is_on_the_disk_before_write_returns(tmp_path: Path) -> None:
    writer = BundleWriter(tmp_path / "b", HEADER)
    writer.write(make_record("a"))

    bundle = read_bundle(tmp_path / "b")
    writer.close()

    assert ([r.node_id for r in bundle.records], [p.code for p in bundle.problems]) == (["a"], ["no-trailer"])


def test_a_new_run_replaces_the_old_bundle_first(tmp_path: Path) -> None:
    write(tmp_path / "b", "a", "b")
    writer = BundleWriter(tmp_path / "b", HEADER)

    bundle = read_bundle(tmp_path / "b")
    writer.close()

    assert (bundle.records, bundle.trailer) == ((), None)


def test_a_writer_left_by_an_error_leaves_no_trailer(tmp_path: Path) -> None:
    def fail_midway() -> None:
        with BundleWriter(tmp_path / "b", HEADER) as writer:
            writer.write(make_record("a"))
            raise RuntimeError("the run died")

    with pytest.raises(RuntimeError, match="the run died"):
        fail_midway()

    assert codes(tmp_path / "b") == ["no-trailer"]


def test_edge47_a_torn_last_line_leaves_the_earlier_records(tmp_path: Path) -> None:
    write(tmp_path / "b", "a", "b")
    path = tmp_path / "b" / "records.jsonl"
    path.write_bytes(path.read_bytes()[:-40])

    bundle = read_bundle(tmp_path / "b")

    assert ([r.node_id for r in bundle.records], [p.code for p in bundle.problems]) == (["a"], ["torn", "trailer"])


def test_edge48_a_trailer_of_another_run_is_named(tmp_path: Path) -> None:
    write(tmp_path / "b", "a")
    path = tmp_path / "b" / "trailer.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "run_id": "run-2"}))

    problems = read_bundle(tmp_path / "b").problems

    assert [(problem.code, problem.text) for problem in problems] == [
        ("trailer", "the trailer is of run 'run-2', the header of run 'run-1'")
    ]


def test_an_edited_record_is_not_taken_and_is_named(tmp_path: Path) -> None:
    write(tmp_path / "b", "a", "b")
    path = tmp_path / "b" / "records.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"class":"none"', b'"class":"live"', 1))

    bundle = read_bundle(tmp_path / "b")

    assert ([r.node_id for r in bundle.records], [p.code for p in bundle.problems]) == (["b"], ["record-id", "trailer"])


def test_a_line_taken_out_is_noticed_by_the_trailer(tmp_path: Path) -> None:
    write(tmp_path / "b", "a", "b")
    path = tmp_path / "b" / "records.jsonl"
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[1])

    assert codes(tmp_path / "b") == ["trailer"]


def test_lines_in_another_order_are_noticed_by_the_trailer(tmp_path: Path) -> None:
    write(tmp_path / "b", "a", "b")
    path = tmp_path / "b" / "records.jsonl"
    path.write_bytes(b"".join(reversed(path.read_bytes().splitlines(keepends=True))))

    assert codes(tmp_path / "b") == ["trailer"]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        pytest.param(b"{", "damaged", id="no-json"),
        pytest.param(b"\xff\xfe", "damaged", id="no-text"),
        pytest.param(b"[1]", "damaged", id="no-object"),
        pytest.param(b'{"schema":"evidence/1"}', "damaged", id="fields-missing"),
        pytest.param(b'{"schema":"evidence/7"}', "schema-newer", id="newer"),
    ],
)
def test_a_damaged_line_in_the_middle_is_named_and_the_others_are_read(tmp_path: Path, line: bytes, code: str) -> None:
    write(tmp_path / "b", "a", "b")
    path = tmp_path / "b" / "records.jsonl"
    first, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + line + b"\n" + second)

    bundle = read_bundle(tmp_path / "b")

    assert ([r.node_id for r in bundle.records], bundle.problems[0].code, bundle.problems[0].where) == (
        ["a", "b"],
        code,
        f"{tmp_path.name}/b/records.jsonl:2",
    )


@pytest.mark.parametrize(
    ("text", "code"),
    [
        pytest.param(None, "unreadable", id="missing"),
        pytest.param("{", "unreadable", id="no-json"),
        pytest.param("[]", "unreadable", id="no-object"),
        pytest.param('{"schema": "bundle/9"}', "schema-newer", id="newer"),
        pytest.param('{"schema": "bundle/1"}', "unreadable", id="fields-missing"),
        pytest.param('{"schema": "bundle/1", "lane": 1, "shard": {}, "expected": {}}', "unreadable", id="wrong-type"),
    ],
)
def test_a_header_that_cannot_be_used_is_named(tmp_path: Path, text: str | None, code: str) -> None:
    write(tmp_path / "b", "a")
    path = tmp_path / "b" / "header.json"
    if text is None:
        path.unlink()
    else:
        path.write_text(text)

    bundle = read_bundle(tmp_path / "b")

    assert ([p.code for p in bundle.problems], bundle.records) == ([code], ())


def test_an_expected_list_that_was_shortened_is_noticed(tmp_path: Path) -> None:
    write(tmp_path / "b", "a", "b")
    path = tmp_path / "b" / "header.json"
    document = json.loads(path.read_text())
    del document["expected"]["items"][0]
    path.write_text(json.dumps(document))

    assert codes(tmp_path / "b") == ["expected"]


def test_a_bundle_without_its_records_file_says_so(tmp_path: Path) -> None:
    write(tmp_path / "b", "a")
    (tmp_path / "b" / "records.jsonl").unlink()

    assert codes(tmp_path / "b") == ["no-records", "trailer"]


@pytest.mark.parametrize("secret", ["sk-canary-0f3e9b", 'has"quote', "ümlaut-key", "back\\slash"])
def test_a_record_that_holds_a_key_is_not_written(tmp_path: Path, secret: str) -> None:
    writer = BundleWriter(tmp_path / "b", HEADER, secrets=(secret, "", "  "))
    record = replace(make_record("a"), failure=f"Authorization: Bearer {secret}.")

    with pytest.raises(EvidenceError) as caught:
        writer.write(record)
    writer.close()

    written = b"".join(path.read_bytes() for path in (tmp_path / "b").iterdir())
    assert (caught.value.error_code, secret in str(caught.value), read_bundle(tmp_path / "b").records) == (
        "SECRET_FOUND",
        False,
        (),
    )
    assert json.dumps(secret)[1:-1].encode() not in written


def test_the_header_may_be_completed_after_collection_but_not_moved(tmp_path: Path) -> None:
    writer = BundleWriter(tmp_path / "b", replace(HEADER, expected=()))
    writer.replace_header(HEADER)
    with pytest.raises(ValueError, match="may not change its run"):
        writer.replace_header(replace(HEADER, run_id="run-2"))
    writer.close()

    assert read_bundle(tmp_path / "b").header == HEADER


def test_the_parent_process_adds_to_a_trailer_without_breaking_it(tmp_path: Path) -> None:
    write(tmp_path / "b", "a")

    amend_trailer(tmp_path / "b", canary_end="not shown", exit_code=3, breaches=("two",))

    bundle = read_bundle(tmp_path / "b")
    assert bundle.trailer is not None
    assert (bundle.trailer.canary_end, bundle.trailer.exit_code, bundle.trailer.breaches, bundle.problems) == (
        "not shown",
        3,
        ("one", "two"),
        (),
    )


def test_amending_what_has_no_trailer_writes_nothing(tmp_path: Path) -> None:
    writer = BundleWriter(tmp_path / "b", HEADER)

    amend_trailer(tmp_path / "b", exit_code=1)

    found = sorted(path.name for path in (tmp_path / "b").iterdir())
    writer.close()
    assert found == ["header.json", "records.jsonl"]


def test_a_lane_that_did_not_start_leaves_a_whole_bundle(tmp_path: Path) -> None:
    header = BundleHeader("real", "run-1", HEADER.subject, not_run_code="no-key", not_run_text="set KEY")
    folder = bundle_folder(tmp_path, "real")

    write_not_run(folder, header)

    bundle = read_bundle(folder)
    assert (bundle.header, bundle.records, bundle.problems) == (header, (), ())


def test_bundles_are_found_in_a_stable_order_wherever_they_lie(tmp_path: Path) -> None:
    for parts in ("unit/1-of-1", "offline/2-of-2", "offline/1-of-2"):
        write(tmp_path / "bundles" / parts, "a")
    lonely = tmp_path / "bundles" / "replay" / "1-of-1"
    lonely.mkdir(parents=True)
    (lonely / "records.jsonl").write_bytes(encode_record(make_record("a")))

    found = [str(path.relative_to(tmp_path / "bundles")) for path in find_bundles(tmp_path)]

    assert found == ["offline/1-of-2", "offline/2-of-2", "replay/1-of-1", "unit/1-of-1"]


def test_no_output_folder_holds_no_bundles(tmp_path: Path) -> None:
    assert find_bundles(tmp_path / "nowhere") == ()


def test_a_trailer_counts_as_judged_only_once_the_parent_has_amended_it(tmp_path: Path) -> None:
    writer = BundleWriter(tmp_path / "b", HEADER)
    writer.close(canary_end="refused", is_judged=False)
    before = read_bundle(tmp_path / "b")

    amend_trailer(tmp_path / "b", exit_code=0)

    after = read_bundle(tmp_path / "b")
    assert before.trailer is not None
    assert after.trailer is not None
    assert (before.trailer.is_judged, [problem.code for problem in before.problems]) == (False, ["unjudged"])
    assert (after.trailer.is_judged, after.problems) == (True, ())


def test_a_trailer_that_says_nothing_of_a_judgement_is_unjudged(tmp_path: Path) -> None:
    write(tmp_path / "b", "a")
    path = tmp_path / "b" / "trailer.json"
    trailer = json.loads(path.read_text("utf-8"))
    del trailer["judged"]
    path.write_text(json.dumps(trailer), "utf-8")

    assert codes(tmp_path / "b") == ["unjudged"]


@pytest.mark.parametrize("text", ["[" * 100_000, "7", '{"breaches": 7}', ""], ids=["deep", "number", "odd", "empty"])
def test_amending_a_damaged_trailer_leaves_it_to_its_reader(tmp_path: Path, text: str) -> None:
    write(tmp_path / "b", "a")
    (tmp_path / "b" / "trailer.json").write_text(text, "utf-8")

    amend_trailer(tmp_path / "b", exit_code=0)

    assert (tmp_path / "b" / "trailer.json").read_text("utf-8") == text
    assert read_bundle(tmp_path / "b").problems != ()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param(
            {"shard": {"index": 1, "total": 10**9}}, "shard 1 of 1000000000 is none; 1 to 10000 are", id="total"
        ),
        pytest.param({"shard": {"index": 3, "total": 2}}, "shard 3 of 2 is none", id="index-past-total"),
        pytest.param({"shard": {"index": 0, "total": 2}}, "shard 0 of 2 is none", id="index-zero"),
        pytest.param({"configuration": 7}, "configuration is no object", id="configuration"),
        pytest.param({"configuration": ["a"]}, "configuration is no object", id="configuration-list"),
        pytest.param({"guard_depth": "\ud800"}, "guard_depth is '\\ud800'", id="depth-half-a-character"),
        pytest.param({"guard_depth": "D9"}, "guard_depth is 'D9'", id="depth-unknown"),
        pytest.param({"expected": {"items": 7}}, "wrong type", id="items"),
        pytest.param({"deselected": 7}, "wrong type", id="deselected"),
    ],
)
def test_a_header_that_cannot_be_meant_is_unreadable_and_says_which_field(
    tmp_path: Path, change: dict[str, object], said: str
) -> None:
    write(tmp_path / "b", "a")
    path = tmp_path / "b" / "header.json"
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **change}), "utf-8")

    bundle = read_bundle(tmp_path / "b")

    assert ([problem.code for problem in bundle.problems], bundle.records) == (["unreadable"], ())
    assert said in bundle.problems[0].text


@pytest.mark.parametrize(
    "number",
    [
        pytest.param("NaN", id="nan"),
        pytest.param("-Infinity", id="constant"),
        pytest.param("1e999", id="past"),
        pytest.param("1" * 400, id="long"),
        pytest.param("1" * 19, id="19-digits"),
        pytest.param("-" + "1" * 18, id="with-a-sign"),
        pytest.param("\t" + "9" * 19, id="after-a-tab"),
    ],
)
def test_a_number_that_is_none_damages_its_line_alone(tmp_path: Path, number: str) -> None:
    write(tmp_path / "b", "a", "b")
    path = tmp_path / "b" / "records.jsonl"
    first, second = path.read_text("ascii").splitlines()
    path.write_text("\n".join([first, second.replace('"duration_ms":0', f'"duration_ms":{number}'), ""]), "ascii")

    bundle = read_bundle(tmp_path / "b")

    assert ([record.node_id for record in bundle.records], codes(tmp_path / "b")) == (["a"], ["damaged", "trailer"])


def test_digits_are_no_number_inside_a_text_and_a_number_has_up_to_eighteen(tmp_path: Path) -> None:
    write(tmp_path / "b", "9" * 40)
    path = tmp_path / "b" / "records.jsonl"
    document = json.loads(path.read_text("ascii"))
    document["duration_ms"] = 10**18 - 1
    del document["record_id"]
    path.write_bytes(canonical_json({**document, "record_id": digest_json(document)}) + b"\n")

    (record,) = read_bundle(tmp_path / "b").records

    assert (record.node_id, record.duration_ms) == ("9" * 40, 10**18 - 1)


def test_a_header_nested_without_end_is_unreadable(tmp_path: Path) -> None:
    write(tmp_path / "b", "a")
    (tmp_path / "b" / "header.json").write_text("[" * 100_000, "utf-8")

    assert codes(tmp_path / "b") == ["unreadable"]


def test_what_lies_where_a_bundle_will_be_is_taken_away(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    (tmp_path / "kept").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    for name in ("file", "link", "nowhere/b"):
        clear_folder(tmp_path / name)

    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept", "nowhere"]
