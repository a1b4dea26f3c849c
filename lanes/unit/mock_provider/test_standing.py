"""An answer that stands is the answer that the ordinary way gives, to the byte and to the journal."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mock_provider.deciding import Decider
from mock_provider.exchange import Exchange
from mock_provider.filled import Filled
from mock_provider.framing import Framing, spell_head
from mock_provider.json_values import Json, JsonObject
from mock_provider.mock import Mock
from mock_provider.replies import any_order, conversation, cut_off, script, step, text, tool_call
from mock_provider.script import ScriptLike

KEY = {"authorization": "Bearer sk-test-0001"}
SCRIPTS: Mapping[str, ScriptLike] = {
    "forever": script(step(text("hi"), repeat="forever")),
    "used-up": script(step(text("one"), repeat=3), step(text("two"), usage={"cached": 4}), step("last", repeat=2)),
    "conditions": script(
        step("first", expect={"last_user": "a"}, repeat=4), step("then", expect={"model": "m"}, repeat="forever")
    ),
    "pattern": script(step("first", expect={"last_user": {"regex": "^a+$"}}, repeat="forever")),
    "calls": script(step(tool_call("f", {"a": 1}), tool_call("g", {}), repeat="forever")),
    "usage": script(step("hi", usage={"input": 3}, repeat="forever")),
    "fault": script(step(text("one"), repeat=2), step(text("two"), cut_off(), repeat="forever")),
    "copied": script(step("{{request.model}}", repeat="forever")),
    "group": script(any_order(step("a", expect={"last_user": "a"}), step("b", repeat=4))),
    "named": script(conversations={"one": conversation(step("hi", repeat="forever"))}),
    "several": script(
        conversations={
            "one": conversation(step("hi", repeat="forever")),
            "two": conversation(step("ho", repeat="forever"), when={"user_contains": "b"}),
        }
    ),
    "other-dialect": script(step("hi", repeat="forever"), dialect="anthropic_messages"),
    "models": script(step("hi", repeat="forever"), models=["m", "n"]),
    "flavour": script(step("hi", usage={"cached": 1}, repeat="forever"), flavour="deepseek"),
}
FRAMINGS = (Framing(), Framing(is_last=True), Framing(has_chunks=False, is_last=True))


def body(words: str = "x", **more: Json) -> JsonObject:
    return {"model": "m", "messages": [{"role": "user", "content": words}], **more}


BODIES: Sequence[JsonObject] = (
    body(),
    body("a"),
    body("b"),
    body("a longer question than that"),
    body("my key is sk-0123456789abcdef"),
    body("a", model="n"),
    body("a", n=2),
    body("a", unknown_field=1),
    body("a", stream=True),
    body("a", tools=[{"type": "function", "function": {"name": "f"}}]),
    body("a", messages=[]),
    body("long " * 2_000),
    body("a", messages=[{"role": "system", "content": "be kind"}, {"role": "user", "content": "a"}]),
)
NAMES = ("", "one", "one@other", "two", "nobody")
Asked = tuple[JsonObject, str, Framing]
ASKED = st.tuples(st.sampled_from(BODIES), st.sampled_from(NAMES), st.sampled_from(FRAMINGS))


def ask(mock: Mock, document: JsonObject, name: str, framing: Framing, *, is_at_once: bool) -> list[bytes]:
    """What the server writes, and for the ordinary way what it would."""
    data = json.dumps(document).encode()
    headers = {**KEY, "content-length": str(len(data)), **({"x-mock-conversation": name} if name else {})}
    caller = mock.recognize("POST", "/v1/chat/completions", headers)
    answer = mock.answer_at_once(caller, data, framing) if is_at_once else mock.answer(caller, data)
    return [answer] if isinstance(answer, bytes) else written(answer, framing)


def written(exchange: Exchange, framing: Framing) -> list[bytes]:
    plan = exchange.plan
    if plan.whole is not None and plan.head is not None:
        exchange.sent_whole(plan.whole)
        return [spell_head(plan.head, framing) + plan.whole]
    said = [repr(action).encode() for action, _ in plan]
    exchange.finish("complete")
    return said


def story(mock: Mock) -> tuple[list[JsonObject], str, str]:
    """All that can be known of a play."""
    verdict = mock.verify()
    counted = mock.metrics.text(verdict, mock.gates(), arrived=mock.arrived, dropped=mock.journal.dropped)
    return [entry.to_json() for entry in mock.journal.entries], str(verdict), counted


@pytest.mark.parametrize("played", SCRIPTS.values(), ids=SCRIPTS)
@settings(max_examples=25)
@given(asked=st.lists(ASKED, min_size=2, max_size=12))
def test_requests_are_answered_at_once_as_they_are_in_the_ordinary_way(played: ScriptLike, asked: list[Asked]) -> None:
    at_once, ordinary = Mock(played), Mock(played)
    for document, name, framing in asked:
        assert ask(at_once, document, name, framing, is_at_once=True) == ask(
            ordinary, document, name, framing, is_at_once=False
        )
    assert story(at_once) == story(ordinary)


def say(mock: Mock, words: str, **more: Json) -> bytes:
    return ask(mock, body(words, **more), "", Framing(), is_at_once=True)[0]


def test_nothing_is_decided_for_an_answer_that_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    mock = Mock(SCRIPTS["forever"])
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
    mock = Mock(SCRIPTS["forever"])
    before = [say(mock, "same") for _ in range(4)]
    mock.reset()
    assert [say(mock, "same") for _ in range(4)] == before
    assert len(set(before)) == len(before)


def test_the_journal_is_bounded_for_answers_that_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mock_provider.journal.MAX_ENTRIES", 3)
    mock = Mock(SCRIPTS["forever"])
    for at in range(5):
        say(mock, f"number {at}")
    last = mock.journal[-1]
    assert ([entry.number for entry in mock.journal.entries], mock.journal.dropped) == ([3, 4, 5], 2)
    assert (mock.journal.numbered(5) is last, mock.journal.numbered(2)) == (True, None)
    assert mock.journal._bodies.size_bytes == 3 * len(json.dumps(body("number 0")))


def test_bodies_of_answers_that_stand_are_dropped_before_their_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    mock = Mock(SCRIPTS["forever"])
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
    mock = Mock(SCRIPTS["forever"])
    for _ in range(3):
        say(mock, "same")
    assert worked_out == []
    assert len({entry.reply_digest for entry in mock.journal.entries}) == len(worked_out) == 3
