"""A request that differs in its words alone is read as if nobody knew the earlier one."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mock_provider
from mock_provider.deciding import Decider
from mock_provider.journal import Entry
from mock_provider.json_values import Json, JsonObject
from mock_provider.mock import Mock
from mock_provider.replies import script, step
from mock_provider.wordings import cut_body

HEADERS = {"host": "mock", "authorization": "Bearer sk-of-a-test", "content-type": "application/json"}
SAID: JsonObject = {"role": "user", "content": "start"}


def question(words: Json, **more: Json) -> JsonObject:
    return {"model": "m", "messages": [SAID, {"role": "user", "content": words}], **more}


def ask(mock: Mock, document: Json, spaces: tuple[str, str] = (",", ":")) -> tuple[bytes, Entry]:
    data = json.dumps(document, separators=spaces).encode()
    caller = mock.recognize("POST", "/v1/chat/completions", {**HEADERS, "content-length": str(len(data))})
    exchange = mock.answer(caller, data)
    assert exchange.entry is not None
    return exchange.plan.whole or b"", exchange.entry


def shown(entry: Entry) -> JsonObject:
    return {**entry.to_json(), "number": 0}


def played(**more: Json) -> Mock:
    return Mock(script(step("{{request.messages[-1].content}}", repeat="forever", **more)))


WORDS = st.text(max_size=8) | st.sampled_from(
    [
        "",
        " ",
        "json",
        "ü",
        "\\",
        '"',
        "\x7f",
        '"content":"x',
        "\n",
    ]
)
MORE: st.SearchStrategy[JsonObject] = st.fixed_dictionaries(
    {},
    optional={
        "response_format": st.just({"type": "json_object"}),
        "temperature": st.integers(0, 3),
        "unknown": st.just("content"),
        "metadata": st.just({"content": "same"}),
        "tools": st.just([{"type": "function", "function": {"name": "f"}}]),
    },
)


@given(asked=st.lists(st.tuples(WORDS, MORE), min_size=1, max_size=6), is_spaced=st.booleans())
def test_requests_one_after_the_other_are_read_as_each_would_be_first(
    asked: list[tuple[str, JsonObject]], is_spaced: bool
) -> None:
    spaces = (", ", ": ") if is_spaced else (",", ":")
    together = played()
    for words, more in asked:
        document = question(words, **more)
        (one, entry), (other, expected) = ask(together, document, spaces), ask(played(), document, spaces)
        assert shown(entry) == shown(expected)
        names = [data.partition(b'"object"')[2] for data in (one, other)]  # behind the id, which counts requests
        assert names[0] == names[1]


def test_new_words_around_which_nothing_changed_are_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    mock = played()
    first, _ = ask(mock, question("one"))
    monkeypatch.setattr(Decider, "check", None)
    second, entry = ask(mock, question("and another"))
    assert (b'"one"' in first, b'"and another"' in second) == (True, True)
    assert entry.body == question("and another")
    assert entry.headers["content-length"] == str(len(json.dumps(question("and another"), separators=(",", ":"))))


@pytest.mark.parametrize("words", ["my key is sk-0123456789", "it is sk-of-a-test", "Bearer 0123456789abc"])
def test_a_secret_among_new_words_is_hidden(words: str) -> None:
    mock = played()
    for _ in range(2):
        ask(mock, question("nothing to hide"))
        _, entry = ask(mock, question(words))
        assert "[redacted]" in str(entry.body)
        assert words.split()[-1] not in str(entry.body)


@pytest.mark.parametrize(
    ("document", "rule"),
    [
        pytest.param(question("", response_format={"type": "json_object"}), "json_word_missing", id="json-word"),
        pytest.param(question("four words are said"), "context_overflow", id="context"),
    ],
)
def test_a_rule_that_looks_at_the_words_looks_at_all_of_them(document: JsonObject, rule: str) -> None:
    models: Json = [{"name": "m", "context_tokens": 4}] if rule == "context_overflow" else []
    mock = Mock(mock_provider.build_script({**script(step("hi", repeat="forever")), "models": models or ["m"]}))
    _, first = ask(mock, {**document, "messages": [{"role": "user", "content": "json"}]})
    _, second = ask(mock, {**document, "messages": [{"role": "user", "content": "a longer text than that"}]})
    assert (first.rule, second.rule) == (None, rule)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"content":"a\\"b"}', id="escape"),
        pytest.param('{"content":"ü"}'.encode(), id="not-ascii"),
        pytest.param(b'{"content":""}', id="empty"),
        pytest.param(b'{"content":"\x01"}', id="control"),
        pytest.param(b'{"content":["a"]}', id="list"),
        pytest.param(b'{"content":', id="open"),
        pytest.param(b'{"content":"abc', id="open-text"),
        pytest.param(b'{"text":"a"}', id="no-content"),
    ],
)
def test_a_text_that_is_not_plain_is_not_cut_out(body: bytes) -> None:
    assert cut_body(body) is None


def test_a_plain_text_is_cut_out() -> None:
    assert cut_body(b'{"content": "first", "x": {"content": "second"}, "y": 1}') == (
        b'{"content": "first", "x": {"content": "',
        b"second",
        b'"}, "y": 1}',
    )
