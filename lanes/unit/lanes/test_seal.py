"""The seal on the live channel: what was put in the place of another thing, and what a TLS connection really showed."""

from __future__ import annotations

import ssl
from collections.abc import Callable

import httpcore
import httpx
import pytest
import respx

from lanes.errors import GuardError
from lanes.providers import load_providers
from lanes.seal import replaced_parts, tls_facts
from lanes.sealed import SealedTransport
from lanes.unit.lanes.authority import Authority, make_authority

OPENAI = next(provider for provider in load_providers() if provider.name == "openai")
URL = "https://api.openai.com/v1/chat/completions"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return make_authority(tmp_path_factory.mktemp("authority"), "ours")


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return make_authority(tmp_path_factory.mktemp("authority"), "theirs")


def shake_hands(client: ssl.SSLContext, server: Authority, host: str) -> ssl.SSLObject:
    """The client's end of a connection in memory, after its handshake."""
    settings = server.server_context()
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    one = client.wrap_bio(back, there, server_hostname=host)
    two = settings.wrap_bio(there, back, server_side=True)
    left = [one, two]
    for _ in range(10):
        for end in list(left):
            try:
                end.do_handshake()
                left.remove(end)
            except ssl.SSLWantReadError:
                continue
        if not left:
            return one
    raise AssertionError("the handshake came to no end")


def test_a_verified_connection_shows_version_name_chain_and_the_store_it_believes(authority: Authority) -> None:
    context = authority.context()

    facts = tls_facts(shake_hands(context, authority, "api.acme.example"), context, "api.acme.example")

    assert facts is not None
    assert {name: facts[name] for name in ("version", "issuer", "name_verified", "chain_verified", "trust_store")} == {
        "version": "TLSv1.3",
        "issuer": "commonName=authority ours",
        "name_verified": True,
        "chain_verified": True,
        "trust_store": authority.digest,
    }


@pytest.mark.parametrize(
    ("host", "verified"),
    [
        pytest.param("API.acme.example", True, id="in-capitals"),
        pytest.param("any.wild.example", True, id="star"),
        pytest.param("10.0.0.5", True, id="address"),
        pytest.param("a.b.wild.example", False, id="star-for-two-labels"),
        pytest.param("wild.example", False, id="star-for-none"),
        pytest.param("api.acme.example.net", False, id="longer"),
        pytest.param("10.0.0.6", False, id="another-address"),
    ],
)
def test_the_name_is_that_of_the_certificate_and_not_the_one_that_was_asked_for(
    authority: Authority, host: str, verified: bool
) -> None:
    context = authority.context()
    facts = tls_facts(shake_hands(context, authority, "api.acme.example"), context, host)

    assert facts is not None
    assert facts["name_verified"] is verified


def test_live_16_verification_that_was_off_and_is_on_again_shows_no_verified_chain(
    authority: Authority, other: Authority
) -> None:
    context = authority.context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    connection = shake_hands(context, other, "api.acme.example")
    during = tls_facts(connection, context, "api.acme.example")
    context.verify_mode, context.check_hostname = ssl.CERT_REQUIRED, True

    after = tls_facts(connection, context, "api.acme.example")

    assert during is not None
    assert after is not None
    assert (during["name_verified"], during["chain_verified"], after["chain_verified"]) == (False, False, False)


def test_live_15_an_authority_that_is_smuggled_in_changes_the_digest_of_the_store(
    authority: Authority, other: Authority
) -> None:
    context = authority.context()
    context.load_verify_locations(other.certificate)

    facts = tls_facts(shake_hands(context, other, "api.acme.example"), context, "api.acme.example")

    assert facts is not None
    assert facts["trust_store"] != authority.digest


class LookAlike(ssl.SSLObject):
    """A subclass says what it likes."""


def borrowed(authority: Authority, other: Authority, context: ssl.SSLContext) -> object:
    """A genuine connection to somebody else that is given our context afterwards."""
    connection = shake_hands(other.context(), other, "api.acme.example")
    connection.context = context
    return connection


def test_a_connection_of_somebody_else_has_no_chain_to_an_authority_of_ours(
    authority: Authority, other: Authority
) -> None:
    context = authority.context()

    facts = tls_facts(borrowed(authority, other, context), context, "api.acme.example")

    assert facts is not None
    assert facts["chain_verified"] is False


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda ours, theirs: None, id="no-TLS"),
        pytest.param(
            lambda ours, theirs: shake_hands(theirs.context(), theirs, "api.acme.example"), id="other-context"
        ),
        pytest.param(lambda ours, theirs: object.__new__(LookAlike), id="subclass"),
        pytest.param(lambda ours, theirs: object.__new__(ssl.SSLObject), id="hollow"),
    ],
)
def test_what_is_no_connection_of_this_context_shows_no_tls(
    authority: Authority, other: Authority, make: Callable[[Authority, Authority], object]
) -> None:
    assert tls_facts(make(authority, other), authority.context(), "api.acme.example") is None


async def canned(*_arguments: object) -> httpx.Response:
    raise AssertionError("a canned answer was asked for")


def replace_inner(transport: SealedTransport) -> None:
    transport._inner = httpx.MockTransport(lambda request: httpx.Response(200))


def shadow_method(transport: SealedTransport) -> None:
    transport._inner.handle_async_request = canned  # type: ignore[method-assign]


def replace_pool(transport: SealedTransport) -> None:
    transport._inner._pool = httpcore.AsyncConnectionPool()


def shadow_pool(transport: SealedTransport) -> None:
    transport._inner._pool.handle_async_request = canned


def replace_context(transport: SealedTransport) -> None:
    transport._inner._pool._ssl_context = ssl.create_default_context()


def replace_network(transport: SealedTransport) -> None:
    transport._inner._pool._network_backend = httpcore.AsyncMockBackend([])


@pytest.mark.parametrize(
    ("act", "named"),
    [
        (replace_inner, "the transport inside the channel"),
        (shadow_method, "the handle_async_request of the transport"),
        (replace_pool, "the connections of the transport"),
        (shadow_pool, "the handle_async_request of the connections"),
        (replace_context, "the TLS context of the connections"),
        (replace_network, "the network of the connections"),
    ],
    ids=["transport", "its-method", "its-connections", "their-method", "their-context", "their-network"],
)
async def test_a_channel_that_was_opened_sends_nothing_and_says_so_in_the_record(
    act: Callable[[SealedTransport], None], named: str
) -> None:
    transport = SealedTransport(OPENAI)
    act(transport)

    with pytest.raises(GuardError) as caught:
        await transport.handle_async_request(httpx.Request("POST", URL, json={}))

    assert (caught.value.error_code, transport.notes) == ("CHANNEL_OPENED", ())
    assert named in transport.proof_facts()["recorders"]


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (httpx.AsyncHTTPTransport, "handle_async_request"),
        (httpcore.AsyncConnectionPool, "handle_async_request"),
        (httpcore.AsyncHTTP11Connection, "handle_async_request"),
        (ssl.SSLObject, "do_handshake"),
    ],
    ids=lambda part: part if isinstance(part, str) else part.__name__,
)
async def test_a_patched_part_of_the_way_is_found(owner: type, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    transport = SealedTransport(OPENAI)
    monkeypatch.setattr(owner, name, canned)

    with pytest.raises(GuardError, match=f"{owner.__name__}.{name} is not what it was"):
        await transport.handle_async_request(httpx.Request("POST", URL, json={}))


async def test_a_recorder_that_patches_the_way_is_found() -> None:
    transport = SealedTransport(OPENAI)
    with respx.mock(assert_all_called=False) as router:
        route = router.post(URL).respond(json={})
        with pytest.raises(GuardError, match="is not what it was"):
            await transport.handle_async_request(httpx.Request("POST", URL, json={}))

    assert (route.called, replaced_parts()) == (False, ())


@pytest.mark.parametrize("name", ["proof_facts", "model_facts", "notes", "handle_async_request", "_check_seal"])
def test_what_a_channel_says_and_does_cannot_be_set(name: str) -> None:
    with pytest.raises(AttributeError, match="not for others to set"):
        setattr(SealedTransport(OPENAI), name, lambda *arguments: {})


def test_an_untouched_channel_has_nothing_in_the_way_of_it() -> None:
    transport = SealedTransport(OPENAI)

    assert transport._find_breaks(transport._inner) == ()
