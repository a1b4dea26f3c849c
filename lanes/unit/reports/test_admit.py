"""Admission: each rule of the live column, broken one at a time."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import pytest

from lanes.record import Attempt, Json, JsonObject, Record, Subject
from reports.admit import Admission, LiveProof, ProviderRow, Refusal, admit

if TYPE_CHECKING:
    from lanes.unit.reports.conftest import Evidence

Change = Callable[[Record], Record]


def with_facts(**facts: Json) -> Change:
    return lambda record: replace(record, live_proof={**(record.live_proof or {}), **facts})


def without_fact(name: str) -> Change:
    return lambda record: replace(
        record, live_proof={key: value for key, value in (record.live_proof or {}).items() if key != name}
    )


def with_answer(**facts: Json) -> Change:
    return lambda record: replace(record, answers=({**record.answers[0], **facts},))


def with_wire(**facts: Json) -> Change:
    def change(record: Record) -> Record:
        wire = cast("JsonObject", record.answers[0]["wire"])
        return with_answer(wire={**wire, **facts})(record)

    return change


def with_tls(**facts: Json) -> Change:
    def change(record: Record) -> Record:
        tls = cast("JsonObject", (record.live_proof or {})["tls"])
        return with_facts(tls={**tls, **facts})(record)

    return change


def with_endpoint(**facts: Json) -> Change:
    def change(record: Record) -> Record:
        model = record.model or {}
        endpoint = {**cast("JsonObject", model["endpoint"]), **facts}
        return replace(record, model={**model, "endpoint": endpoint})

    return change


def outcome(found: LiveProof | Refusal) -> tuple[str, str]:
    return ("", "") if isinstance(found, LiveProof) else (found.rule, found.code)


def test_a_record_with_every_fact_becomes_a_proof(evidence: Evidence) -> None:
    record = evidence.live_record()

    proof = admit(record, evidence.admission())

    assert isinstance(proof, LiveProof)
    assert (proof.record_id, proof.kind, proof.provider, proof.model, proof.host, proof.observed_at, proof.flags) == (
        record.record_id,
        "hosted",
        "acme",
        "m-large-0221",
        "api.acme.example",
        "2031-03-04T02:00:00Z",
        (),
    )


BROKEN = [
    pytest.param(lambda r: replace(r, lane="offline"), "A1", "lane", id="other-lane"),
    pytest.param(lambda r: replace(r, subject=Subject("other")), "A1", "subject", id="other-subject"),
    pytest.param(
        lambda r: replace(r, subject=replace(r.subject, loop_digest="x")), "A1", "loop-mismatch", id="other-loop"
    ),
    pytest.param(lambda r: replace(r, answers=()), "A2", "no-call", id="edge18-no-answer"),
    pytest.param(lambda r: replace(r, min_answers=2), "A2", "no-call", id="too-few-answers"),
    pytest.param(with_endpoint(host="127.0.0.1", port=8080, scheme="http"), "A3", "host", id="loopback-endpoint"),
    pytest.param(with_endpoint(host="api.acme.example.evil.example"), "A3", "host", id="host-with-the-prefix"),
    pytest.param(with_endpoint(scheme="http"), "A3", "host", id="plain-http"),
    pytest.param(with_endpoint(port=8443), "A3", "host", id="other-port"),
    pytest.param(with_endpoint(path="/v2/chat"), "A3", "host", id="other-path"),
    pytest.param(
        with_wire(endpoint={"scheme": "https", "host": "elsewhere.example", "port": 443}),
        "A3",
        "host",
        id="one-answer-elsewhere",
    ),
    pytest.param(lambda r: replace(r, model={"provider": "acme"}), "A3", "host", id="no-endpoint"),
    pytest.param(
        lambda r: replace(r, model={**(r.model or {}), "provider": "nobody"}), "A3", "host", id="unknown-provider"
    ),
    pytest.param(lambda r: replace(r, model=None), "A3", "host", id="no-model"),
    pytest.param(with_facts(override_variables=["OPENAI_BASE_URL"]), "A3", "override", id="edge13-override"),
    pytest.param(without_fact("override_variables"), "A3", "override", id="override-not-told"),
    pytest.param(with_facts(peer_ip="127.0.0.1"), "A4", "peer", id="edge14-loopback-peer"),
    pytest.param(with_facts(peer_ip="10.1.2.3"), "A4", "peer", id="edge14-private-peer"),
    pytest.param(with_facts(peer_ip="169.254.1.1"), "A4", "peer", id="link-local-peer"),
    pytest.param(with_facts(peer_ip="::1"), "A4", "peer", id="ipv6-loopback-peer"),
    pytest.param(with_facts(peer_ip="::ffff:127.0.0.1"), "A4", "peer", id="loopback-inside-ipv6"),
    pytest.param(with_facts(peer_ip="fd00::1"), "A4", "peer", id="unique-local-peer"),
    pytest.param(with_facts(peer_ip="a host"), "A4", "peer", id="peer-is-no-address"),
    pytest.param(without_fact("peer_ip"), "A4", "peer", id="peer-not-told"),
    pytest.param(with_wire(peer_ip="127.0.0.1"), "A4", "peer", id="one-answer-from-loopback"),
    pytest.param(with_facts(tls=None), "A5", "tls", id="no-tls"),
    pytest.param(with_tls(name_verified=False), "A5", "tls", id="edge16-name-not-verified"),
    pytest.param(with_tls(chain_verified=False), "A5", "tls", id="chain-not-verified"),
    pytest.param(with_tls(name_verified="yes"), "A5", "tls", id="verified-in-words"),
    pytest.param(with_tls(version="SSLv3"), "A5", "tls", id="old-protocol"),
    pytest.param(with_tls(trust_store="sha256:mine"), "A5", "trust", id="edge15-other-authority"),
    pytest.param(
        with_wire(tls={"version": "TLSv1.3", "name_verified": False}), "A5", "tls", id="one-answer-unverified"
    ),
    pytest.param(with_facts(recorders=["vcr"]), "A6", "recorder", id="edge17-recorder"),
    pytest.param(without_fact("recorders"), "A6", "recorder", id="recorder-not-told"),
    pytest.param(with_facts(proxy_used=True), "A6", "proxy", id="proxy"),
    pytest.param(without_fact("proxy_used"), "A6", "proxy", id="proxy-not-told"),
    pytest.param(with_answer(wire={}), "A7", "wire", id="no-wire-stream"),
    pytest.param(with_wire(stream=False), "A7", "wire", id="wire-without-stream"),
    pytest.param(with_answer(channel="loopback"), "A7", "wire", id="other-channel"),
    pytest.param(with_answer(**{"class": "scripted"}), "A7", "wire", id="scripted-answer"),
    pytest.param(with_answer(provider_id=None), "A8", "id-missing", id="no-id"),
    pytest.param(with_answer(provider_id="mock-1"), "A8", "id-missing", id="id-of-another-form"),
    pytest.param(with_facts(date_skew_ms=360_000), "A9", "date", id="edge21-six-minutes"),
    pytest.param(with_facts(date_skew_ms=-360_000), "A9", "date", id="edge21-six-minutes-behind"),
    pytest.param(without_fact("date_skew_ms"), "A9", "date", id="date-not-told"),
    pytest.param(with_facts(date_skew_ms=True), "A9", "date", id="true-is-no-skew"),
    pytest.param(with_answer(usage=None), "A10", "usage", id="no-usage"),
    pytest.param(with_answer(usage={"prompt_tokens": 0, "completion_tokens": 0}), "A10", "usage", id="usage-zero"),
    pytest.param(lambda r: replace(r, needs_nonce=True), "A11", "nonce", id="no-nonce"),
    pytest.param(with_facts(root_conversations=2), "A12", "hidden-retry", id="edge39-hidden-retry"),
    pytest.param(without_fact("root_conversations"), "A12", "hidden-retry", id="conversations-not-told"),
]


@pytest.mark.parametrize(("change", "rule", "code"), BROKEN)
def test_a_record_that_breaks_one_rule_is_refused_by_that_rule(
    evidence: Evidence, change: Change, rule: str, code: str
) -> None:
    assert outcome(admit(change(evidence.live_record()), evidence.admission())) == (rule, code)


KEPT = [
    pytest.param(with_facts(date_skew_ms=240_000), id="edge21-four-minutes"),
    pytest.param(with_facts(peer_ip="2606:4700::6810:1"), id="ipv6-peer"),
    pytest.param(lambda r: with_answer(status=401, usage=None)(r), id="edge25-an-error-answer-needs-no-usage"),
    pytest.param(lambda r: with_answer(finished=False, usage=None)(r), id="edge22-a-cut-stream-needs-no-usage"),
    pytest.param(
        lambda r: replace(with_facts(root_conversations=2)(r), attempts=(Attempt(1, "failed"), Attempt(2, "passed"))),
        id="one-conversation-an-attempt",
    ),
    pytest.param(
        lambda r: replace(with_facts(root_conversations=3)(r), conversations=3), id="conversations-as-declared"
    ),
    pytest.param(
        lambda r: replace(with_facts(nonce={"challenge": "sha256:aa", "verified": True})(r), needs_nonce=True),
        id="nonce-verified",
    ),
    pytest.param(
        lambda r: replace(r, verdict="failed", attempts=(Attempt(1, "failed"),), min_answers=4, needs_nonce=True),
        id="a-failure-needs-neither-all-answers-nor-the-nonce",
    ),
]


@pytest.mark.parametrize("change", KEPT)
def test_a_record_within_the_rules_is_admitted(evidence: Evidence, change: Change) -> None:
    assert outcome(admit(change(evidence.live_record()), evidence.admission())) == ("", "")


def test_edge19_an_id_that_was_seen_before_voids_the_record(evidence: Evidence) -> None:
    admission = evidence.admission(used_ids=frozenset({"resp-1"}))

    assert [outcome(admit(evidence.live_record(n), admission)) for n in (1, 2)] == [("A8", "id-reuse"), ("", "")]


def test_the_same_id_twice_in_one_record_voids_it(evidence: Evidence) -> None:
    record = evidence.live_record()

    assert outcome(admit(replace(record, answers=record.answers * 2), evidence.admission())) == ("A8", "id-reuse")


def test_edge20_a_provider_without_ids_is_accepted_if_the_table_says_so_and_the_proof_says_so(
    evidence: Evidence,
) -> None:
    row = replace(evidence.providers["acme"], issues_id=False)

    proof = admit(with_answer(provider_id=None)(evidence.live_record()), evidence.admission(providers={"acme": row}))

    assert isinstance(proof, LiveProof)
    assert proof.notes == ("acme issues no response id",)


def test_an_unlocked_trust_store_admits_nothing(evidence: Evidence) -> None:
    assert outcome(admit(evidence.live_record(), evidence.admission(trust_store=""))) == ("A5", "trust")


def test_an_authority_of_its_own_is_for_a_private_endpoint_alone(evidence: Evidence) -> None:
    acme = replace(evidence.providers["acme"], trust_store="sha256:mine")
    record = with_wire(tls=None)(with_tls(trust_store="sha256:mine")(evidence.live_record()))
    record = with_wire(tls=cast("JsonObject", (record.live_proof or {})["tls"]))(record)

    found = [admit(record, evidence.admission(providers={"acme": row})) for row in (acme, replace(acme, private=True))]

    assert [outcome(each) for each in found] == [("A5", "trust"), ("", "")]


TUNNELLED = with_facts(proxy_used=True, tunnel="proxy.corp.example", peer_ip="10.0.0.9")


def test_a_named_tunnel_is_accepted_and_shown(evidence: Evidence) -> None:
    row = replace(evidence.providers["acme"], tunnel="proxy.corp.example")

    found = [
        admit(TUNNELLED(evidence.live_record()), evidence.admission(providers={"acme": each}))
        for each in (row, evidence.providers["acme"])
    ]

    assert ([outcome(each) for each in found], cast("LiveProof", found[0]).notes) == (
        [("", ""), ("A4", "peer")],
        ("through the tunnel proxy.corp.example",),
    )


def test_soft_doubts_are_shown_and_void_nothing(evidence: Evidence) -> None:
    row = replace(evidence.providers["acme"], model_family="n-")
    change = with_facts(ttfb_ms=3, cache_headers=["age"])
    record = with_answer(answer_digest="sha256:seen")(change(evidence.live_record()))
    earlier = frozenset({"sha256:seen"})

    proof = admit(record, evidence.admission(providers={"acme": row}, earlier_answers=earlier))

    assert isinstance(proof, LiveProof)
    assert proof.flags == (
        "first byte after 3 ms",
        "reported model m-large-0221 is not of the family n-",
        "the response carried cache headers",
        "an answer is equal to one of an earlier run",
    )


def test_a_local_model_has_rules_of_its_own(evidence: Evidence) -> None:
    proof = admit(evidence.local_record(), evidence.admission())

    assert isinstance(proof, LiveProof)
    assert (proof.kind, proof.host, proof.model) == ("local", "this machine", "small")


def with_local(**facts: Json) -> Change:
    return lambda record: with_facts(local={**cast("Mapping[str, Json]", (record.live_proof or {})["local"]), **facts})(
        record
    )


@pytest.mark.parametrize(
    ("change", "rule", "code"),
    [
        pytest.param(with_local(port=9999), "A3 local", "peer", id="another-port"),
        pytest.param(with_endpoint(host="api.acme.example"), "A3 local", "peer", id="not-this-machine"),
        pytest.param(with_facts(peer_ip="104.18.2.1"), "A3 local", "peer", id="peer-elsewhere"),
        pytest.param(with_local(model_digest="sha256:short"), "A3 local", "local", id="no-model-digest"),
        pytest.param(with_local(model_digest="sha256:" + "b" * 64), "A3 local", "local", id="other-weights"),
        pytest.param(with_local(server=" "), "A3 local", "local", id="no-server"),
        pytest.param(without_fact("local"), "A3 local", "local", id="no-local-facts"),
        pytest.param(with_facts(override_variables=["OPENAI_BASE_URL"]), "A3 local", "override", id="override"),
        pytest.param(with_facts(recorders=["vcr"]), "A6", "recorder", id="recorder"),
        pytest.param(with_wire(stream=None), "A7", "wire", id="wire"),
        pytest.param(with_answer(usage={}), "A10", "usage", id="usage"),
        pytest.param(lambda r: replace(r, needs_nonce=True), "A11", "nonce", id="nonce"),
        pytest.param(with_facts(root_conversations=9), "A12", "hidden-retry", id="hidden-retry"),
    ],
)
def test_a_local_model_is_refused_where_its_rules_break(
    evidence: Evidence, change: Change, rule: str, code: str
) -> None:
    assert outcome(admit(change(evidence.local_record()), evidence.admission())) == (rule, code)


def test_a_loopback_model_without_a_local_row_is_no_proof(evidence: Evidence) -> None:
    admission = Admission(
        evidence.subject, {"local": ProviderRow("local", hosts=("api.acme.example",))}, evidence.trust
    )

    assert outcome(admit(evidence.local_record(), admission)) == ("A3", "host")


def test_S2_a_proof_cannot_be_built_copied_stored_changed_or_inherited(evidence: Evidence) -> None:
    proof = admit(evidence.live_record(), evidence.admission())
    assert isinstance(proof, LiveProof)

    with pytest.raises(TypeError, match="and from nowhere else"):
        LiveProof(object(), dict.fromkeys(LiveProof.__slots__, ""))
    with pytest.raises(TypeError, match="neither copied nor stored"):
        copy.copy(proof)
    with pytest.raises(TypeError, match="neither copied nor stored"):
        pickle.dumps(proof)
    with pytest.raises(AttributeError, match="does not change"):
        proof.kind = "local"
    with pytest.raises(AttributeError, match="does not change"):
        del proof.kind
    with pytest.raises(TypeError, match="no subclasses"):
        type("Forged", (LiveProof,), {})


@pytest.mark.parametrize("junk", [None, 0, True, "", "x", [], [1], {}, {"a": 1}, -1.5])
@pytest.mark.parametrize(
    "name",
    [
        "peer_ip",
        "tls",
        "proxy_used",
        "override_variables",
        "recorders",
        "provider_ids",
        "date_skew_ms",
        "nonce",
        "root_conversations",
        "tunnel",
    ],
)
def test_junk_in_a_fact_refuses_or_admits_and_never_raises(evidence: Evidence, name: str, junk: Json) -> None:
    found = admit(with_facts(**{name: junk})(evidence.live_record()), evidence.admission())

    assert isinstance(found, LiveProof | Refusal)
