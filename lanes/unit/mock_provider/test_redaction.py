"""Secrets are found by name and by form, and ordinary words are left alone."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mock_provider.json_reader import Reader
from mock_provider.json_values import Json
from mock_provider.redaction import MARK, Redactor, find_secrets
from mock_provider.secret_names import is_secret_name


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
    "token",
    [
        pytest.param("Bearer abcdef0123456789", id="digit"),
        pytest.param("Bearer abcDEfgHIjklMNOpq", id="capitals"),
        pytest.param("Basic dXNlcjpwYXNz", id="basic"),
        pytest.param("Basic dXNlcjpwYXNz" + "MTIz", id="basic-digit"),
    ],
)
def test_what_looks_like_a_token_is_hidden_wherever_it_stands(token: str) -> None:
    assert Redactor().text(f"he sent {token}, and that was all") == f"he sent {MARK}, and that was all"


@pytest.mark.parametrize("field", ["Authorization: ", "AUTHORIZATION:", '"authorization": "', "'Authorization':'"])
def test_after_the_name_of_its_field_a_bearer_token_may_look_like_a_word(field: str) -> None:
    assert Redactor().text(f"{field}Bearer instruments") == f"{field}{MARK}"


@pytest.mark.parametrize(
    "words",
    [
        "trade in bearer instruments",
        "Bearer token required",
        "Bearer authentication, not basic authentication",
        "the class Bearer AuthenticationMiddleware",
        "Basic Operations of OpenSource",
        "basic input/output",
    ],
)
def test_words_after_the_name_of_a_scheme_are_no_token(words: str) -> None:
    assert Redactor().text(words) == words


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


KEY = "sk-proj-0123456789abcdef"
HEADERS = {"authorization": f"Bearer {KEY}"}
TEXTS = st.sampled_from(
    [
        "a task-list",
        "sk-0123456",
        "\nsk-0123456",
        "basic idea",
        "Basic dXNlcjpwYXNz",
        KEY,
        "ghp_0123456789abcdefgh",
        "x",
    ]
) | st.text(max_size=4)
NAMES = st.sampled_from(["role", "content", "token", "api_key", KEY, "n"])
DOCUMENTS: st.SearchStrategy[Json] = st.recursive(
    TEXTS | st.integers() | st.none() | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)


def names_in(value: Json) -> list[str]:
    if isinstance(value, dict):
        return [*value, *(name for item in value.values() for name in names_in(item))]
    return [name for item in value for name in names_in(item)] if isinstance(value, list) else []


@given(documents=st.lists(DOCUMENTS, min_size=1, max_size=3), is_ascii=st.booleans(), is_long=st.booleans())
def test_what_is_called_clean_has_nothing_to_hide_and_the_rest_a_secret_or_the_name_of_one(
    documents: list[Json], is_ascii: bool, is_long: bool
) -> None:
    reader, secrets = Reader(), find_secrets(HEADERS, "")
    for document in documents:
        whole: Json = {"messages": [{"said": document}], "pad": "x" * (2_000 if is_long else 1)}
        data = json.dumps(whole, ensure_ascii=is_ascii).encode("utf-8", "surrogatepass")
        reading = reader.read(data.replace(b"/", b"\\/"))
        is_clean = secrets.is_clean(reading)
        is_same = find_secrets(HEADERS, "", whole).json(whole) == whole
        named = {is_secret_name(name) for name in names_in(whole)}
        assert (is_clean and not is_same, is_clean or not is_same or True in named) == (False, True)
        if is_clean:
            reader.remember(reading)


def test_a_key_is_found_in_what_was_known_before_as_harmless() -> None:
    reader = Reader()
    body = json.dumps({"messages": [{"content": "the word is hunter2hunter2"}], "pad": "x" * 2_000}).encode()
    assert find_secrets({}, "").is_clean(reader.read(body))
    reader.remember(reader.read(body))
    assert not find_secrets({"x-api-key": "hunter2hunter2"}, "").is_clean(reader.read(body))


@pytest.mark.parametrize(
    "text", ["a task-list", "basic idea", "the bearer of bad news", "ask-me eyJ AKIA", "AIza", "a\\/b"]
)
def test_an_ordinary_text_is_remembered_though_it_looks_like_a_key(text: str) -> None:
    body = json.dumps({"messages": [{"content": text}], "pad": "x" * 2_000}).encode()
    assert find_secrets(HEADERS, "").is_clean(Reader().read(body))
