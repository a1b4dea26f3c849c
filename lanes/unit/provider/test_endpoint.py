"""Base URLs: what is taken, what is refused, and which hosts a run may talk to."""

from __future__ import annotations

import pytest

from harness.errors import UsageError
from harness.provider.endpoint import Endpoint, check_allowed, parse_endpoint


@pytest.mark.parametrize(
    ("base_url", "expected", "url"),
    [
        pytest.param(
            "https://api.deepseek.com",
            Endpoint("https", "api.deepseek.com", 443, ""),
            "https://api.deepseek.com/chat",
            id="bare",
        ),
        pytest.param(
            " https://API.OpenAI.com:443/v1/ ",
            Endpoint("https", "api.openai.com", 443, "/v1"),
            "https://api.openai.com/v1/chat",
            id="case-port-and-slash",
        ),
        pytest.param(
            "http://127.0.0.1:8080/c/main/v1",
            Endpoint("http", "127.0.0.1", 8080, "/c/main/v1"),
            "http://127.0.0.1:8080/c/main/v1/chat",
            id="loopback",
        ),
        pytest.param("http://[::1]:8/v1", Endpoint("http", "::1", 8, "/v1"), "http://[::1]:8/v1/chat", id="ipv6"),
        pytest.param(
            "http://localhost", Endpoint("http", "localhost", 80, ""), "http://localhost/chat", id="localhost"
        ),
    ],
)
def test_a_base_url_is_taken_apart_and_built_again(base_url: str, expected: Endpoint, url: str) -> None:
    endpoint = parse_endpoint(base_url)
    assert (endpoint, endpoint.url("/chat")) == (expected, url)


@pytest.mark.parametrize(
    "base_url",
    [
        "",
        "api.deepseek.com",
        "ftp://host",
        "file:///etc/passwd",
        "https://",
        "https://host?x=1",
        "https://host?",
        "https://host/#f",
        "https://user:hunter2@host",
        "https://hunter2@host",
        "https://host:0",
        "https://host:99999",
        "https://host:port",
        "https://ho st",
        "https://host\\@evil",
        "https://[::1",
        "https://[fe80::1%25eth0]",
        "https://[host]",
        "https://höst.example",
        "https://host/a b",
        "https://host/../x",
        "https://-host",
        "https://host\r\nx: y",
        "https://ho\nst",
        "https://host/\x7f",
    ],
)
def test_a_base_url_that_can_be_misread_is_refused_without_repeating_secrets(base_url: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_endpoint(base_url)
    assert (caught.value.error_code, "hunter2" in str(caught.value)) == ("BASE_URL", False)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("[::1]", True),
        ("localhost.example", False),
        ("10.0.0.1", False),
        ("0.0.0.0", False),
        ("api.deepseek.com", False),
        ("127.1", False),
    ],
)
def test_loopback_is_told_by_the_spelling(host: str, expected: bool) -> None:
    assert parse_endpoint(f"http://{host}:1").is_loopback is expected


@pytest.mark.parametrize(
    ("base_url", "allowed"),
    [
        pytest.param("https://api.deepseek.com/v1", None, id="no-rule"),
        pytest.param("https://api.deepseek.com/v1", {"API.deepseek.com"}, id="host"),
        pytest.param("https://api.deepseek.com/v1", {"api.deepseek.com:443"}, id="host-and-port"),
        pytest.param("http://[::1]:8", {"::1"}, id="ipv6"),
        pytest.param("http://[::1]:8", {"[::1]"}, id="ipv6-in-brackets"),
        pytest.param("http://[::1]:8", {"[::1]:8"}, id="ipv6-and-port"),
        pytest.param("http://127.0.0.1:8", {" 127.0.0.1 ", "localhost"}, id="white-space"),
    ],
)
def test_D1_an_allowed_host_passes(base_url: str, allowed: set[str] | None) -> None:
    check_allowed(parse_endpoint(base_url), allowed)


@pytest.mark.parametrize(
    ("base_url", "allowed"),
    [
        pytest.param("https://api.deepseek.com", set(), id="nothing-is-allowed"),
        pytest.param("https://api.deepseek.com", {"127.0.0.1"}, id="another-host"),
        pytest.param("https://api.deepseek.com", {"deepseek.com"}, id="parent-domain"),
        pytest.param("https://evil.api.deepseek.com", {"api.deepseek.com"}, id="subdomain"),
        pytest.param("https://api.deepseek.com.", {"api.deepseek.com"}, id="trailing-dot"),
        pytest.param("https://api.deepseek.com:8443", {"api.deepseek.com:443"}, id="another-port"),
        pytest.param("http://localhost:8", {"127.0.0.1"}, id="another-name-of-the-same"),
        pytest.param("http://127.1:8", {"127.0.0.1"}, id="another-spelling-of-the-same"),
        pytest.param("https://api.deepseek.com", {"*"}, id="no-wildcards"),
    ],
)
def test_D1_every_other_host_is_refused(base_url: str, allowed: set[str]) -> None:
    with pytest.raises(UsageError) as caught:
        check_allowed(parse_endpoint(base_url), allowed)
    assert caught.value.error_code == "ENDPOINT_REFUSED"


def test_D1_the_refusal_says_where_what_and_what_was_expected() -> None:
    with pytest.raises(UsageError) as caught:
        check_allowed(parse_endpoint("https://api.deepseek.com/v1"), {"localhost", "127.0.0.1"})
    assert str(caught.value) == (
        "HARNESS_ALLOWED_HOSTS: the model endpoint api.deepseek.com:443 is not allowed in this run [ENDPOINT_REFUSED]\n"
        "  expected: one of 127.0.0.1, localhost\n"
        "  fix: point the base URL at an allowed host, or run where this host is allowed"
    )
