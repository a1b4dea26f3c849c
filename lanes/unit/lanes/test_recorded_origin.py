"""What a recorded answer has to show before it counts as one of a model, and why it does not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lanes.normalize import Json
from lanes.recorded_origin import compose_proof, origin_problem, proof_digest

NOTE: dict[str, Json] = {
    "status": 200,
    "finished": True,
    "usage": {"prompt_tokens": 9, "completion_tokens": 2},
    "provider_id": None,
    "reported_model": "m-tiny",
    "answer_digest": "sha256:" + "b" * 64,
    "wire": {"stream": True, "peer_scope": "loopback", "tls": None, "endpoint": {"port": 4711}},
}
FACTS: dict[str, Json] = {
    "override_variables": [],
    "local": {"port": 4711, "model_digest": "sha256:" + "a" * 64, "server": "stand-in 1.0", "sampling": {"seed": 1}},
}
TLS: dict[str, Json] = {"name_verified": True, "chain_verified": True}


def local_proof() -> dict[str, Json]:
    return compose_proof(NOTE, FACTS)


def hosted_proof() -> dict[str, Json]:
    wire: Json = {"stream": True, "peer_scope": "global", "tls": TLS, "date_skew_ms": 12}
    return compose_proof({**NOTE, "wire": wire}, {"override_variables": []})


def origin(proof: dict[str, Json], **changes: Json) -> dict[str, Json]:
    host = "loopback" if "local" in proof else "api.acme.example"
    found: dict[str, Json] = {"class": "live", "recorded_at": "2031-03-04T02:00:00Z", "host": host}
    return {**found, "live_proof": proof, "live_proof_digest": proof_digest(proof), **changes}


def test_a_proof_holds_no_port_and_no_address() -> None:
    assert "4711" not in str(local_proof())
    assert local_proof()["local"] == {
        "model_digest": "sha256:" + "a" * 64,
        "server": "stand-in 1.0",
        "sampling": {"seed": 1},
    }


@pytest.mark.parametrize("proof", [local_proof, hosted_proof], ids=["local", "hosted"])
def test_an_answer_of_a_model_is_one(proof: Callable[[], dict[str, Json]]) -> None:
    assert origin_problem(origin(proof())) == ""


def test_an_answer_through_a_tunnel_shows_another_address_and_still_needs_its_certificate() -> None:
    through = hosted_proof() | {"peer_scope": "private", "tunnel": "proxy.corp.example:3128"}

    assert [origin_problem(origin(each)) for each in (through, through | {"tls": None})] == [
        "",
        "the certificate of its host was not verified",
    ]


def test_an_error_answer_needs_no_tokens() -> None:
    assert origin_problem(origin(local_proof() | {"status": 401, "usage": None, "finished": False})) == ""


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        pytest.param({"live_proof": None}, "holds no live proof", id="no-proof"),
        pytest.param({"live_proof_digest": "sha256:" + "0" * 64}, "proof was altered", id="another-digest"),
        pytest.param({"recorded_at": None}, "when it was recorded", id="no-date"),
        pytest.param({"recorded_at": "yesterday"}, "when it was recorded", id="no-moment"),
        pytest.param({"host": "api.acme.example"}, "not come from this machine", id="local-with-a-host"),
    ],
)
def test_an_origin_that_lacks_something_says_what(changes: dict[str, Json], words: str) -> None:
    assert words in origin_problem(origin(local_proof(), **changes))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        pytest.param({"stream": False}, "over a connection", id="canned"),
        pytest.param({"override_variables": ["OPENAI_BASE_URL"]}, "override variables", id="override"),
        pytest.param({"finished": False}, "to its end", id="cut"),
        pytest.param({"usage": None}, "no tokens", id="no-usage"),
        pytest.param({"usage": {"prompt_tokens": 0}}, "no tokens", id="usage-zero"),
        pytest.param({"usage": {"prompt_tokens": True}}, "no tokens", id="usage-no-number"),
        pytest.param({"peer_scope": "global"}, "from this machine", id="peer-elsewhere"),
        pytest.param({"local": {"server": "s 1"}}, "which weights", id="no-weights"),
        pytest.param({"local": {"model_digest": "sha256:short", "server": "s 1"}}, "which weights", id="no-digest"),
        pytest.param({"local": {"model_digest": "sha256:" + "a" * 64}}, "which server", id="no-server"),
        pytest.param({"local": None}, "which weights", id="no-local-facts"),
    ],
)
def test_a_local_proof_that_breaks_a_rule_says_which(changes: dict[str, Json], words: str) -> None:
    assert words in origin_problem(origin(local_proof() | changes))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        pytest.param({"peer_scope": "loopback"}, "public address", id="loopback-peer"),
        pytest.param({"peer_scope": None}, "public address", id="no-peer"),
        pytest.param({"tls": None}, "not verified", id="no-tls"),
        pytest.param({"tls": {**TLS, "name_verified": False}}, "not verified", id="another-name"),
        pytest.param({"tls": {**TLS, "chain_verified": False}}, "not verified", id="another-chain"),
    ],
)
def test_a_hosted_proof_that_breaks_a_rule_says_which(changes: dict[str, Json], words: str) -> None:
    assert words in origin_problem(origin(hosted_proof() | changes))
