"""The key: whether it can be used, and that no text ever shows it."""

from __future__ import annotations

import base64

import pytest

from harness.model.chunks import Failure
from harness.provider.credential import MAX_MESSAGE_CHARS, REDACTED, Credential
from harness.provider.endpoint import parse_endpoint

KEY = 'sk-canary/+="1'
REMOTE, LOCAL = parse_endpoint("https://api.deepseek.com"), parse_endpoint("http://127.0.0.1:8")


@pytest.mark.parametrize(
    ("api_key", "remote", "local"),
    [
        pytest.param(None, "MISSING_CREDENTIAL", None, id="none"),
        pytest.param("  ", "MISSING_CREDENTIAL", None, id="blank"),
        pytest.param("sk-1", None, None, id="usable"),
        pytest.param("sk-1\n", None, None, id="white-space-around"),
        pytest.param("sk 1", "INVALID_CREDENTIAL", "INVALID_CREDENTIAL", id="white-space-inside"),
        pytest.param("sk-é", "INVALID_CREDENTIAL", "INVALID_CREDENTIAL", id="outside-ascii"),
        pytest.param("sk-\r\nx: y", "INVALID_CREDENTIAL", "INVALID_CREDENTIAL", id="line-end"),
        pytest.param("sk-\ud800", "INVALID_CREDENTIAL", "INVALID_CREDENTIAL", id="lone-surrogate"),
    ],
)
def test_a_key_that_cannot_be_sent_is_named_before_any_request(
    api_key: str | None, remote: str | None, local: str | None
) -> None:
    problems = [Credential(api_key).problem(endpoint) for endpoint in (REMOTE, LOCAL)]
    assert [problem and problem.code for problem in problems] == [remote, local]


@pytest.mark.parametrize(
    "form",
    [
        KEY,
        "sk-canary%2F%2B%3D%221",
        'sk-canary/+=\\"1',
        base64.b64encode(KEY.encode()).decode(),
        base64.urlsafe_b64encode(KEY.encode()).decode().rstrip("="),
    ],
    ids=["plain", "in-a-url", "in-json", "base64", "base64-for-urls"],
)
def test_S12_the_key_is_taken_out_of_a_text_in_every_form(form: str) -> None:
    assert Credential(KEY).redact(f"Bearer {form}, again {form}") == f"Bearer {REDACTED}, again {REDACTED}"


def test_S12_a_message_is_shortened_only_after_the_key_is_out() -> None:
    around = "x" * (MAX_MESSAGE_CHARS - 5)
    cleaned = Credential(KEY).clean(Failure(around + KEY, "SERVER"))
    assert (cleaned.message, len(cleaned.message)) == (around + "[red…", MAX_MESSAGE_CHARS)


def test_S12_a_request_id_that_holds_the_key_is_dropped() -> None:
    failure = Failure("m", "SERVER", 500, 1, f"req-{KEY}")
    assert Credential(KEY).clean(failure) == Failure("m", "SERVER", 500, 1)


def test_S12_printing_the_credential_shows_no_key() -> None:
    assert (repr(Credential(KEY)), repr(Credential(None))) == (f"Credential({REDACTED})", "Credential(none)")


def test_without_a_key_nothing_is_changed() -> None:
    assert Credential(None).redact("a text") == "a text"
