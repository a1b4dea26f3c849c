"""Records: content, digest, and what follows from the facts."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from types import MappingProxyType
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanes.errors import EvidenceError
from lanes.record import (
    Attempt,
    JsonObject,
    Record,
    Shard,
    Subject,
    answer_class,
    canonical_json,
    comparable,
    count_classes,
    encode_record,
    weakest_class,
)
from lanes.record_form import has_own_digest, record_from_json

WHOLE = Record(
    lane="replay",
    node_id="lanes/replay/test_a.py::test_one[x]",
    run_id="run-1",
    verdict="passed",
    subject=Subject("c", "t", True, "sha256:d", "sha256:l", "sha256:h", "CPython 3.11.7", "Linux x86_64"),
    shard=Shard(1, 2, "gw0"),
    params_digest="sha256:p",
    test_digest="sha256:s",
    claim_ids=("journey.fix-test",),
    min_answers=1,
    needs_nonce=True,
    conversations=2,
    reason_code="known-failure",
    reason_text="why",
    attempts=(Attempt(1, "passed", 12, 1, "sha256:f", "boom"),),
    duration_ms=12,
    failure="boom",
    captured_stdout="out",
    captured_stderr="err",
    answers=({"ordinal": 1, "channel": "session-log", "class": "scripted", "ttfb_ms": 3},),
    model={"provider": "acme", "endpoint": {"scheme": "http", "host": "127.0.0.1", "port": 4711}},
    live_proof={"date_skew_ms": 4},
    cassette={"id": "a", "age_days": 3},
    guard={"depth": "D3"},
    script={"entries": 1, "consumed": 1},
    cost={"in": 5},
    extra={"from_the_future": [1, {"two": None}]},
)
OTHER: dict[str, object] = {
    "lane": "unit",
    "node_id": "other",
    "run_id": "run-2",
    "verdict": "failed",
    "subject": Subject("d"),
    "shard": Shard(2, 2),
    "claim_ids": (),
    "needs_nonce": False,
    "attempts": (),
    "answers": (),
    "extra": {},
    "schema": "evidence/2",
}


def test_a_record_written_and_read_is_the_same_record() -> None:
    document = json.loads(encode_record(WHOLE))

    read = record_from_json(document)

    kept = replace(read, stored_class=None, stored_counts=None)
    assert (kept, read.record_id, read.to_json()) == (WHOLE, WHOLE.record_id, document)


@pytest.mark.parametrize(
    "name",
    [each.name for each in fields(Record) if each.init and not each.name.startswith("stored_")],
)
def test_the_record_id_covers_every_other_field(name: str) -> None:
    before = getattr(WHOLE, name)
    changed = OTHER.get(name, before + 1 if isinstance(before, int) else {"x": 1} if isinstance(before, dict) else "x")

    assert replace(WHOLE, **{name: changed}).record_id != WHOLE.record_id


def test_a_stored_class_that_was_edited_changes_the_record_id() -> None:
    document = json.loads(encode_record(WHOLE))

    edited = {**document, "class": "live"}

    assert (has_own_digest(document), has_own_digest(edited)) == (True, False)


def test_edge53_a_field_unknown_to_this_version_survives_reading_and_writing() -> None:
    document = json.loads(encode_record(WHOLE))
    document["subject"]["hardware"] = "two cores"
    document["attempts"][0]["colour"] = "green"
    document["later"] = {"deep": [1]}

    again = record_from_json(document)

    assert {name: value for name, value in again.to_json().items() if name != "record_id"} == {
        name: value for name, value in document.items() if name != "record_id"
    }
    assert (again.subject.extra, again.attempts[0].extra, again.extra["later"]) == (
        {"hardware": "two cores"},
        {"colour": "green"},
        {"deep": [1]},
    )


LIVE: JsonObject = {"channel": "live", "class": "live", "wire": {"stream": True}}
RECORDED: JsonObject = {"channel": "cassette", "class": "recorded", "live_proof_digest": "sha256:p"}
SCRIPTED: JsonObject = {"channel": "loopback", "class": "scripted"}


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        pytest.param((), "none", id="no-answers"),
        pytest.param((LIVE,), "live", id="live"),
        pytest.param((LIVE, RECORDED), "recorded", id="live-and-recorded"),
        pytest.param((LIVE, RECORDED, SCRIPTED), "scripted", id="one-scripted"),
        pytest.param(
            ({"channel": "telepathy", "class": "live", "wire": {"stream": True}},), "scripted", id="unknown-channel"
        ),
        pytest.param(({"channel": "live", "class": "live"},), "scripted", id="live-without-wire-facts"),
        pytest.param(({"channel": "live", "class": "live", "wire": {}},), "scripted", id="live-with-empty-wire-facts"),
        pytest.param(({"channel": "cassette", "class": "recorded"},), "scripted", id="recorded-without-live-proof"),
        pytest.param(
            ({"channel": "loopback", "class": "live", "wire": {"stream": True}},), "scripted", id="loopback-says-live"
        ),
        pytest.param(({},), "scripted", id="says-nothing"),
    ],
)
def test_the_class_of_a_record_is_the_weakest_that_its_answers_show(
    answers: tuple[JsonObject, ...], expected: str
) -> None:
    assert weakest_class(answers) == expected


def test_the_counts_of_all_classes_are_kept() -> None:
    assert count_classes((LIVE, SCRIPTED, LIVE, RECORDED)) == {"live": 2, "recorded": 1, "scripted": 1}


def test_an_answer_never_rises_above_what_it_claims() -> None:
    assert answer_class({"channel": "live", "class": "scripted", "wire": {"stream": True}}) == "scripted"


def test_two_runs_that_differ_in_times_names_and_ports_alone_are_comparable() -> None:
    later = replace(
        WHOLE,
        run_id="run-2",
        shard=Shard(1, 2, "gw1"),
        duration_ms=99,
        attempts=(replace(WHOLE.attempts[0], duration_ms=98),),
        answers=({**WHOLE.answers[0], "ttfb_ms": 77},),
        model={"provider": "acme", "endpoint": {"scheme": "http", "host": "127.0.0.1", "port": 4712}},
        live_proof={"date_skew_ms": 5},
        failure="boom",
    )

    assert (comparable(later), later.record_id == WHOLE.record_id) == (comparable(WHOLE), False)


@pytest.mark.parametrize(
    ("name", "value"),
    [("verdict", "failed"), ("failure", "bang"), ("node_id", "x"), ("reason_text", "y"), ("captured_stdout", "z")],
)
def test_comparable_keeps_what_a_test_did(name: str, value: str) -> None:
    assert comparable(replace(WHOLE, **{name: value})) != comparable(WHOLE)


def test_comparable_takes_the_port_out_of_a_loopback_address_in_a_text() -> None:
    one = replace(WHOLE, failure="connect to 127.0.0.1:8080 and [::1]:9 and localhost:33333 failed at 12:45")

    assert comparable(one)["failure"] == "connect to 127.0.0.1:PORT and [::1]:PORT and localhost:PORT failed at 12:45"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


@given(json_values)
def test_canonical_json_is_ascii_and_reads_back_equal(value: object) -> None:
    written = canonical_json(value)  # type: ignore[arg-type]

    assert json.loads(written.decode("ascii")) == value


@given(st.dictionaries(st.text(), json_values))
def test_canonical_json_does_not_depend_on_the_order_of_keys(value: dict[str, object]) -> None:
    turned = dict(reversed(list(value.items())))

    assert canonical_json(turned) == canonical_json(value)  # type: ignore[arg-type]


def test_half_of_a_surrogate_pair_survives_in_a_record() -> None:
    record = replace(WHOLE, failure="lone \ud800 half")

    assert record_from_json(json.loads(encode_record(record))).failure == "lone \ud800 half"


def test_a_record_of_a_newer_schema_is_refused_by_name() -> None:
    with pytest.raises(EvidenceError) as caught:
        record_from_json({**WHOLE.to_json(), "schema": "evidence/2"})

    assert (caught.value.error_code, caught.value.what) == (
        "RECORD_SCHEMA_NEWER",
        "schema 'evidence/2' is newer than 'evidence/1'",
    )


def test_a_record_of_an_older_schema_is_lifted_by_pure_functions() -> None:
    old = {**WHOLE.to_json(), "schema": "evidence/0", "test": WHOLE.node_id}
    del old["node_id"]

    def lift(document: JsonObject) -> JsonObject:
        renamed = {name: value for name, value in document.items() if name != "test"}
        return {**renamed, "schema": "evidence/1", "node_id": document["test"]}

    read = record_from_json(old, upgrades={0: lift})

    assert (read.node_id, read.schema) == (WHOLE.node_id, "evidence/1")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        pytest.param({"schema": "evidence/0"}, "RECORD_SCHEMA_UNKNOWN", id="no-upgrade"),
        pytest.param({"schema": None}, "RECORD_SCHEMA_UNKNOWN", id="no-schema"),
        pytest.param({"schema": "evidence/x"}, "RECORD_SCHEMA_UNKNOWN", id="no-number"),
        pytest.param({"verdict": "splendid"}, "RECORD_SHAPE", id="verdict"),
        pytest.param({"min_answers": True}, "RECORD_SHAPE", id="true-is-no-number"),
        pytest.param({"min_answers": "3"}, "RECORD_SHAPE", id="number-as-text"),
        pytest.param({"answers": {}}, "RECORD_SHAPE", id="answers"),
        pytest.param({"answers": [3]}, "RECORD_SHAPE", id="answer"),
        pytest.param({"claim_ids": "abc"}, "RECORD_SHAPE", id="claims-as-text"),
        pytest.param({"claim_ids": [1]}, "RECORD_SHAPE", id="claim"),
        pytest.param({"attempts": [{"n": 1}]}, "RECORD_SHAPE", id="attempt-without-verdict"),
        pytest.param({"attempts": [{"n": 1, "verdict": "maybe"}]}, "RECORD_SHAPE", id="attempt-verdict"),
        pytest.param({"attempts": [7]}, "RECORD_SHAPE", id="attempt"),
        pytest.param({"subject": "here"}, "RECORD_SHAPE", id="subject"),
        pytest.param({"subject": {"dirty": "yes"}}, "RECORD_SHAPE", id="dirty"),
        pytest.param({"model": []}, "RECORD_SHAPE", id="model"),
        pytest.param({"class": 1}, "RECORD_SHAPE", id="class"),
        pytest.param({"answers_by_class": 1}, "RECORD_SHAPE", id="counts"),
    ],
)
def test_what_is_no_record_is_refused(change: dict[str, object], code: str) -> None:
    with pytest.raises(EvidenceError) as caught:
        record_from_json({**WHOLE.to_json(), **change})  # type: ignore[dict-item]

    assert caught.value.error_code == code


@pytest.mark.parametrize("name", ["run_id", "lane", "node_id", "verdict"])
def test_a_record_without_a_field_it_needs_is_refused(name: str) -> None:
    document = {key: value for key, value in WHOLE.to_json().items() if key != name}

    with pytest.raises(EvidenceError, match=f"field '{name}' is missing"):
        record_from_json(document)


def test_a_record_of_the_usual_form_is_read_like_one_of_a_form_not_seen_before() -> None:
    usual = dict(Record("unit", "a", "r", "passed", attempts=(Attempt(1, "passed"),)).to_json())
    backwards = {name: usual[name] for name in reversed(usual)}
    wrapped = MappingProxyType({**usual, "shard": MappingProxyType(dict(cast("JsonObject", usual["shard"])))})

    assert [record_from_json(each) for each in (usual, usual, backwards, wrapped)] == [record_from_json(usual)] * 4


def test_records_hold_equal_groups_once_and_unequal_ones_apart() -> None:
    usual = Record("unit", "a", "r", "passed", guard={"depth": "D2", "refusals": []}).to_json()
    first, second = record_from_json(usual), record_from_json(dict(usual))
    other = record_from_json({**usual, "guard": {"depth": 1}})
    flag = record_from_json({**usual, "guard": {"depth": True}})

    assert (first.guard is second.guard, first.subject is second.subject, first.shard is second.shard) == (True,) * 3
    assert [str(each.guard) for each in (other, flag)] == ["{'depth': 1}", "{'depth': True}"]
