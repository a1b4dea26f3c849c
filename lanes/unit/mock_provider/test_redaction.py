"""Secrets are found by name and by form, and ordinary words are left alone."""

from __future__ import annotations

import pytest

from mock_provider.json_values import Json
from mock_provider.redaction import MARK, Redactor, find_secrets, is_secret_name


@pytest.mark.parametrize(
    "name",
    ["api_key", "X-Api-Key", "Authorization", "proxy-authorization", "Set-Cookie", "X-Company-Token", "clientSecret"],
)
def test_a_name_of_a_secret_is_known(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["max_tokens", "prompt_tokens", "key", "tokens", "model", "secretary"])
def test_an_ordinary_name_is_not_one(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("use sk-proj-0123456789 now", f"use {MARK} now", id="sk"),
        pytest.param("Authorization: Bearer abcdefgh", f"Authorization: {MARK}", id="bearer"),
        pytest.param("a risk-free task", "a risk-free task", id="no-key"),
        pytest.param("basic idea", "basic idea", id="short-word"),
    ],
)
def test_keys_are_hidden_by_their_form(text: str, shown: str) -> None:
    assert Redactor().text(text) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        pytest.param({"token": "abcdefgh", "n": 1}, {"token": MARK, "n": 1}, id="by-name"),
        pytest.param(
            {"properties": {"token": {"type": "string"}}}, {"properties": {"token": {"type": "string"}}}, id="schema"
        ),
        pytest.param({"password": ["abcdefgh"], "said": "abcdefgh"}, {"password": [MARK], "said": MARK}, id="list"),
        pytest.param({"max_tokens": 5}, {"max_tokens": 5}, id="count"),
    ],
)
def test_a_document_loses_its_secrets_everywhere(value: Json, shown: Json) -> None:
    assert find_secrets({}, "", value).json(value) == shown


def test_a_header_that_is_not_known_as_harmless_is_hidden() -> None:
    headers = {"content-type": "application/json", "x-team": "red", "x-stainless-lang": "python"}
    assert find_secrets(headers, "", None).headers(headers) == {**headers, "x-team": MARK}


def test_a_short_placeholder_key_does_not_wreck_the_text() -> None:
    secrets = find_secrets({"authorization": "Bearer x"}, "", None)
    assert secrets.text("x marks the spot") == "x marks the spot"
