"""A sidecar beside a JUnit file: what the journal of a mock provider shows counts, and nothing that is only said."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from lanes.bundle import Bundle
from lanes.errors import UsageError
from mock_provider import Mock, transport
from mock_provider.script import build_script
from reports.judge import judge
from reports.junit_input import read_junit
from reports.sidecar import attach, read_journal, read_sidecar

if TYPE_CHECKING:
    from lanes.unit.reports.conftest import Evidence

JUNIT = b"""<testsuite tests="2"><testcase classname="agent" name="adds"/>
<testcase classname="agent" name="asks"><skipped message="later"/></testcase></testsuite>"""
ENTRY = {
    "number": 1,
    "body": {"model": "m"},
    "reply_digest": "ab" * 32,
    "status": 200,
    "end": "complete",
    "conversation": None,
    "step": 1,
}

FIRST = {"requests": [1]}
TWICE = "request 1 is claimed by 'agent::adds' too"
ADDS = "did you mean 'agent::adds'"
HEAD = b'{"schema": "evidence-sidecar/1", '


def bundle(evidence: Evidence) -> Bundle:
    return read_junit(JUNIT, lane="offline", subject=evidence.subject, name="junit.xml")


def sidecar(**items: Any):
    document = {
        "schema": "evidence-sidecar/1",
        "items": {name.replace("__", "::"): told for name, told in items.items()},
    }
    return read_sidecar(json.dumps(document).encode(), where="side.json")


def journal(*entries: dict[str, Any]):
    return read_journal(b"".join(json.dumps({**ENTRY, **entry}).encode() + b"\n" for entry in entries), where="j.jsonl")


def test_an_item_has_the_answers_that_the_witness_saw_and_the_claims_that_it_names(evidence: Evidence) -> None:
    told = sidecar(agent__adds={"claims": ["a.b"], "requests": [1, 2], "class": "scripted"})

    found, notes = attach(bundle(evidence), told, journal({}, {"number": 2}))

    adds, asks = found.records
    assert (adds.claim_ids, len(adds.answers), adds.provenance, notes) == (("a.b",), 2, "scripted", ())
    assert (asks.claim_ids, asks.answers, asks.verdict) == ((), (), "not run")
    assert found.header.expected[0].claim_ids == ("a.b",)


@pytest.mark.parametrize(
    ("claimed", "requests", "shown"),
    [
        pytest.param("live", [1], "scripted", id="live"),
        pytest.param("recorded", [1], "scripted", id="recorded"),
        pytest.param("scripted", [], "none", id="no-witness"),
        pytest.param("live", [], "none", id="live-without-witness"),
        pytest.param("scripted", [3], "none", id="not-answered-by-a-step"),
    ],
)
def test_a_class_never_exceeds_what_the_witness_proves(
    evidence: Evidence, claimed: str, requests: list[int], shown: str
) -> None:
    told = sidecar(agent__adds={"requests": requests, "class": claimed})

    found, notes = attach(bundle(evidence), told, journal({}, {"number": 3, "step": None, "status": 404}))

    assert found.records[0].provenance == shown
    assert notes == (f"agent::adds: claimed {claimed}, the witness shows {shown}, and that counts",)


def test_a_claim_that_asks_for_answers_fails_when_no_witness_saw_them(evidence: Evidence) -> None:
    from lanes.policy import LANES

    told = sidecar(agent__adds={"claims": ["a.b"], "class": "scripted"})
    found, _notes = attach(bundle(evidence), told, {})

    judged = judge(found.records[0], LANES["offline"], evidence.admission(), answers_needed=1, guarded=False)

    assert (judged.status, judged.reason.code) == ("failed", "too-few-answers")


def test_the_journal_of_a_real_play_is_read(evidence: Evidence, tmp_path) -> None:
    import httpx

    path = tmp_path / "requests.jsonl"
    mock = Mock(
        build_script({"version": 1, "steps": [{"reply": "42"}]}, "s"), root="http://x.invalid", journal_path=path
    )
    body = {"model": "m", "messages": [{"role": "user", "content": "6 times 7"}]}
    with httpx.Client(transport=transport(mock)) as client:
        client.post("http://x.invalid/v1/chat/completions", json=body, headers={"authorization": "Bearer none"})
    mock.close()

    found, _ = attach(
        bundle(evidence), sidecar(agent__adds={"requests": [1]}), read_journal(path.read_bytes(), where="j")
    )

    assert [answer["class"] for answer in found.records[0].answers] == ["scripted"]


@pytest.mark.parametrize(
    ("items", "said"),
    [
        pytest.param({"agent__add": {}}, f"item 'agent::add' is not in the JUnit file; {ADDS}?", id="item"),
        pytest.param({"agent__adds": {"requests": [9]}}, "request 9 is not in the journal", id="request"),
        pytest.param({"agent__adds": FIRST, "agent__asks": FIRST}, TWICE, id="twice"),
        pytest.param({"agent__adds": {"requests": [1, 1]}}, TWICE, id="twice-itself"),
        pytest.param({"agent__adds": {"request": [1]}}, "field 'request' is unknown; did you mean 'requests'?", id="f"),
        pytest.param({"agent__adds": {"requests": [True]}}, "'requests' is no list of whole numbers", id="true"),
        pytest.param({"agent__adds": {"class": "real"}}, "'class' is 'real'", id="class"),
        pytest.param({"agent__adds": {"claims": "a.b"}}, "'claims' is no list of texts", id="claims"),
        pytest.param({"agent__adds": 3}, "3 is no object", id="no-object"),
    ],
)  # fmt: skip
def test_a_sidecar_with_a_mistake_is_refused_with_its_place(
    evidence: Evidence, items: dict[str, Any], said: str
) -> None:
    with pytest.raises(UsageError) as caught:
        attach(bundle(evidence), sidecar(**items), journal({}))

    assert caught.value.what == said
    assert caught.value.error_code == "SIDECAR"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        pytest.param(b"{", "is no JSON", id="json"),
        pytest.param(b"[]", "schema is []", id="list"),
        pytest.param(b'{"schema": "evidence-sidecar/2"}', "schema is 'evidence-sidecar/2'", id="newer"),
        pytest.param(HEAD + b'"itmes": {}}', "field 'itmes' is unknown; did you mean 'items'?", id="field"),
        pytest.param(HEAD + b'"items": []}', "'items' is no object, or 'commit' no text", id="items"),
    ],
)  # fmt: skip
def test_a_sidecar_that_is_none_is_refused(data: bytes, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_sidecar(data, where="side.json")

    assert (caught.value.where, caught.value.what) == ("side.json", said)


@pytest.mark.parametrize("line", [b"x", b"3", b"{}", json.dumps({**ENTRY, "number": "1"}).encode()])
def test_a_journal_line_that_is_none_is_named(line: bytes) -> None:
    with pytest.raises(UsageError) as caught:
        read_journal(json.dumps(ENTRY).encode() + b"\n" + line, where="j.jsonl")

    assert caught.value.where == "j.jsonl:2"
