"""An answer that stands is given without deciding anew, for as long as its client stands at its step, and no longer."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from mock_provider.deciding import Decider
from mock_provider.filled import Filled
from mock_provider.framing import Framing
from mock_provider.json_values import Json, JsonObject
from mock_provider.mock import Mock
from mock_provider.replies import script, step

CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"
KEY = {"authorization": "Bearer sk-test-0001", "anthropic-version": "2023-06-01"}
FOREVER = script(step("hi", repeat="forever"))
QUESTION: JsonObject = {"role": "user", "content": "and now"}
ANOTHER: JsonObject = {"role": "user", "content": "and then the next one, please"}
NOBODY: JsonObject = {"role": "nobody"}
ORPHANS: dict[str, JsonObject] = {
    CHAT: {"role": "tool", "tool_call_id": "call_none", "content": "nothing"},
    MESSAGES: {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "none", "content": "nothing"}]},
}


def body(words: str = "x", **more: Json) -> JsonObject:
    return {"model": "m", "messages": [{"role": "user", "content": words}], **more}


def ask(mock: Mock, document: JsonObject, path: str = CHAT) -> bytes:
    """What the server writes at once, or the body of what it would."""
    data = json.dumps(document).encode()
    caller = mock.recognize("POST", path, {**KEY, "content-length": str(len(data))})
    answer = mock.answer_at_once(caller, data, Framing())
    return answer if isinstance(answer, bytes) else answer.plan.whole or b""


def say(mock: Mock, words: str) -> bytes:
    return ask(mock, body(words))


def agent(path: str, *last: JsonObject) -> JsonObject:
    """A request of an agent, long enough that its history is looked at in parts."""
    history: Sequence[JsonObject] = [
        {"role": role, "content": f"{role} {at}: " + "look at the file and mend it. " * 20}
        for at in range(5)
        for role in ("user", "assistant")
    ]
    return {"max_tokens": 9, "model": "m", "messages": [*history, *last], "metadata": {"behind": "the list"}}


def test_nothing_is_decided_for_an_answer_that_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    mock = Mock(FOREVER)
    for _ in range(2):
        say(mock, "the same")
    monkeypatch.setattr(Decider, "decide", None)
    assert [b'"hi"' in say(mock, words) for words in ("the same", "the same", "others", "and others")] == [True] * 4


def test_other_words_are_held_against_the_conditions_of_the_step() -> None:
    mock = Mock(script(step("hi", expect={"last_user": "yes"}, repeat="forever")))
    assert [b'"hi"' in say(mock, words) for words in ("yes", "yes", "no", "yes", "no")] == [
        True,
        True,
        False,
        True,
        False,
    ]


def test_a_step_that_is_used_up_gives_way_to_the_next() -> None:
    mock = Mock(script(step("one", repeat=2), step("two", repeat=2)))
    answers = [say(mock, "same") for _ in range(5)]
    assert [
        next((word for word in (b'"one"', b'"two"', b"SCRIPT_EXHAUSTED") if word in one), b"") for one in answers
    ] == [
        b'"one"',
        b'"one"',
        b'"two"',
        b'"two"',
        b"SCRIPT_EXHAUSTED",
    ]


def test_after_a_reset_the_first_answer_has_the_id_of_the_first() -> None:
    mock = Mock(FOREVER)
    before = [say(mock, "same") for _ in range(4)]
    mock.reset()
    assert [say(mock, "same") for _ in range(4)] == before
    assert len(set(before)) == len(before)


def test_the_journal_is_bounded_for_answers_that_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mock_provider.journal.MAX_ENTRIES", 3)
    mock = Mock(FOREVER)
    for at in range(5):
        say(mock, f"number {at}")
    last = mock.journal[-1]
    assert ([entry.number for entry in mock.journal.entries], mock.journal.dropped) == ([3, 4, 5], 2)
    assert (mock.journal.numbered(5) is last, mock.journal.numbered(2)) == (True, None)
    assert mock.journal._bodies.size_bytes == 3 * len(json.dumps(body("number 0")))


def test_bodies_of_answers_that_stand_are_dropped_before_their_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    mock = Mock(FOREVER)
    monkeypatch.setattr("mock_provider.journal.MAX_BODY_BYTES", 2 * len(json.dumps(body("number 0"))))
    say(mock, "number 0")
    seen = mock.journal[0]
    for at in range(1, 4):
        say(mock, f"number {at}")
    assert mock.journal.bodies() == (None, None, body("number 2"), body("number 3"))
    assert (seen.body, seen.headers["content-length"]) == (None, str(len(json.dumps(body("number 0")))))


def test_the_digest_of_an_answer_that_stands_is_worked_out_when_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worked_out: list[Filled] = []
    digest = Filled.digest

    def watched(filled: Filled) -> bytes:
        worked_out.append(filled)
        return digest(filled)

    monkeypatch.setattr(Filled, "digest", watched)
    mock = Mock(FOREVER)
    for _ in range(3):
        say(mock, "same")
    assert worked_out == []
    assert len({entry.reply_digest for entry in mock.journal.entries}) == len(worked_out) == 3


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
def test_of_an_agent_that_goes_on_nothing_is_checked_but_what_is_new(
    monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    mock = Mock(FOREVER)
    for last in (QUESTION, ANOTHER, QUESTION):
        ask(mock, agent(path, last), path)
    monkeypatch.setattr(Decider, "check", None)
    document = agent(path, {"role": "user", "content": "something new"})
    assert b'"hi"' in ask(mock, document, path)
    assert mock.journal[-1].body == document


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
def test_a_rule_that_a_later_message_breaks_is_seen_in_a_known_history(path: str) -> None:
    mock = Mock(FOREVER)
    for last in (QUESTION, ANOTHER, ORPHANS[path], QUESTION, NOBODY):
        ask(mock, agent(path, last), path)
    assert [entry.status for entry in mock.journal.entries] == [200, 200, 400, 200, 400]
