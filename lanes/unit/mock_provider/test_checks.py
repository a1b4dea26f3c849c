"""What a test may claim about the requests that came, and how a claim that fails reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from mock_provider.errors import UsageError, VerdictError
from mock_provider.json_values import Json, JsonObject
from mock_provider.replies import script, step
from mock_provider.script import ScriptLike

if TYPE_CHECKING:
    from lanes.unit.mock_provider.conftest import Play

Start = Callable[[ScriptLike], "Play"]
TOOL: JsonObject = {"type": "function", "function": {"name": "read_file"}}


@pytest.fixture
def asked(play: Start) -> Play:
    """A play of two requests."""
    run = play(script(step("one"), step("two")))
    run.ask("look at README", tools=[TOOL], temperature=0)
    run.ask("and now write", headers={"authorization": "Bearer canary-key-0001"})
    return run


def test_a_request_is_claimed_in_the_words_of_a_script(asked: Play) -> None:
    first = asked.mock.check_request(0, last_user="README", tools=["read_file"], options={"temperature": 0})
    last = asked.mock.check_request(last_user={"equals": "and now write"}, messages=1, absent=["tools"])
    assert (first.number, last.number) == (1, 2)


def test_a_claim_that_fails_says_what_was_expected_and_found_and_shows_the_journal(asked: Play) -> None:
    with pytest.raises(VerdictError) as caught:
        asked.mock.check_request(1, last_user="README", tools=["read_file"])
    assert str(caught.value) == (
        "request 2 is not as the test expects [JOURNAL]\n"
        '  last_user: expected a text containing "README", found "and now write"\n'
        "  tools: expected [read_file] among them, found [], without read_file\n"
        "journal:\n"
        "  #1 POST /v1/chat/completions → 200 single step 1, complete\n"
        "  #2 POST /v1/chat/completions → 200 single step 2, complete"
    )


def test_the_number_of_requests_is_claimed(asked: Play) -> None:
    assert [entry.number for entry in asked.mock.check_requests(2)] == [1, 2]
    with pytest.raises(VerdictError, match=r"expected 1 request, 2 came \[JOURNAL\]"):
        asked.mock.check_requests(1)


@pytest.mark.parametrize("at", [2, -3])
def test_a_request_that_never_came_is_told(asked: Play, at: int) -> None:
    with pytest.raises(VerdictError, match=f"request {at} was asked for, 2 came"):
        asked.mock.check_request(at)


@pytest.mark.parametrize(
    ("conditions", "what"),
    [
        pytest.param({"lastuser": "x"}, "unknown key 'lastuser'; did you mean 'last_user'?", id="key"),
        pytest.param({"messages": "two"}, 'found the text "two"', id="type"),
    ],
)
def test_conditions_that_cannot_be_read_are_the_tests_mistake(asked: Play, conditions: JsonObject, what: str) -> None:
    with pytest.raises(UsageError) as caught:
        asked.mock.check_request(0, **conditions)
    assert what in str(caught.value)


def test_a_request_that_the_provider_refused_cannot_be_compared(play: Start) -> None:
    run = play(script(step("hi", optional=True)))
    empty: list[Json] = []
    run.client.post("/chat/completions", json={"model": "m", "messages": empty}, headers={"authorization": "Bearer x"})
    with pytest.raises(VerdictError, match="request 1 cannot be compared: Invalid 'messages': empty array"):
        run.mock.check_request(0)


def test_a_play_with_a_key_of_its_own_is_judged_all_the_same(play: Start) -> None:
    run = play(script(step("hi"), api_key="sk-real-000001"))
    run.ask("x", headers={"authorization": "Bearer sk-real-000001"})
    assert run.mock.check_request(0, last_user="x").number == 1
