"""Answers that are given at once are those of the ordinary way, to the byte and to the journal."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mock_provider.exchange import Exchange
from mock_provider.framing import Framing, spell_head
from mock_provider.json_values import Json, JsonObject
from mock_provider.mock import Mock
from mock_provider.replies import any_order, conversation, cut_off, script, step, text, tool_call
from mock_provider.script import ScriptLike

CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"
KEY = {"authorization": "Bearer sk-test-0001", "anthropic-version": "2023-06-01"}
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


def ask(
    mock: Mock, document: JsonObject, name: str, framing: Framing, *, is_at_once: bool, path: str = CHAT
) -> list[bytes]:
    """What the server writes, and for the ordinary way what it would."""
    data = json.dumps(document).encode()
    headers = {**KEY, "content-length": str(len(data)), **({"x-mock-conversation": name} if name else {})}
    caller = mock.recognize("POST", path, headers)
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


def turn(at: int, said: str) -> list[JsonObject]:
    """One turn of an agent, as either dialect has it once it is spelled for it."""
    call: JsonObject = {"id": f"call_{at}", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
    return [
        {"role": "user", "content": f"{said} {at}: " + "look at the file and mend it. " * 20},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"call_{at}", "content": f"line {at} \u00fc\n" * 60},
    ]


def as_blocks(message: JsonObject) -> JsonObject:
    if message.get("role") == "tool":
        result: JsonObject = {
            "type": "tool_result",
            "tool_use_id": message["tool_call_id"],
            "content": message["content"],
        }
        return {"role": "user", "content": [result]}
    if "tool_calls" not in message:
        return message
    used: JsonObject = {"type": "tool_use", "id": str(message["tool_calls"])[9:15], "name": "f", "input": {"a": 1}}
    return {"role": "assistant", "content": [used]}


def agent(path: str, turns: int, last: Sequence[JsonObject], said: str = "Step", **more: Json) -> JsonObject:
    """A request of an agent, long enough that its history is looked at in parts."""
    messages: list[Json] = [one for at in range(turns) for one in turn(at, said)]
    messages += last
    if path == MESSAGES:
        messages = [as_blocks(one) for one in messages if isinstance(one, dict)]
        return {"max_tokens": 9, "system": "work with care", "model": "m", "messages": messages, **more}
    tool: JsonObject = {"type": "function", "function": {"name": "f", "description": "what it is for " * 20}}
    return {"model": "m", "messages": messages, "tools": [tool], **more}


LAST: Mapping[str, Sequence[JsonObject]] = {
    "question": [{"role": "user", "content": "and now"}],
    "another": [{"role": "user", "content": "and then the next one, please"}],
    "answered": [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": "y"},
        {"role": "user", "content": "z"},
    ],
    "system": [{"role": "system", "content": "be kind"}, {"role": "user", "content": "z"}],
    "parts": [{"role": "user", "content": [{"type": "text", "text": "a part"}]}],
    "orphan": [{"role": "tool", "tool_call_id": "call_none", "content": "nothing"}],
    "unanswered": turn(99, "Step")[:2],
    "twice": [*turn(98, "Step"), turn(98, "Step")[2]],
    "trailing-space": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "and "}],
    "empty": [{"role": "user", "content": ""}],
    "no-content": [{"role": "user"}],
    "no-message": [{}],
    "role": [{"role": "nobody", "content": "x"}],
    "secret": [{"role": "user", "content": "it is sk-0123456789abcdef"}],
    "secret-name": [{"role": "user", "content": "x", "api_key": "correct-horse"}],
    "deep": [{"role": "user", "content": "x", "extra": json.loads("[" * 130 + "]" * 130)}],
}
MORE: Sequence[JsonObject] = (
    {},
    {"stream": True},
    {"response_format": {"type": "json_object"}},
    {"model": "n"},
    {"x": 1},
)
HISTORY = st.tuples(
    st.integers(4, 6),
    st.sampled_from(sorted(LAST)),
    st.sampled_from(["Step", "Step", "Other"]),
    st.sampled_from([{}, *MORE]),
)


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
@pytest.mark.parametrize("named", ["forever", "used-up", "conditions", "models", "other-dialect"])
@settings(max_examples=25)
@given(asked=st.lists(HISTORY, min_size=3, max_size=9))
def test_an_agent_that_goes_on_is_answered_at_once_as_in_the_ordinary_way(
    named: str, path: str, asked: list[tuple[int, str, str, JsonObject]]
) -> None:
    at_once, ordinary = Mock(SCRIPTS[named]), Mock(SCRIPTS[named])
    for turns, last, said, more in asked:
        document = agent(path, turns, LAST[last], said, **more)
        assert ask(at_once, document, "", Framing(), is_at_once=True, path=path) == ask(
            ordinary, document, "", Framing(), is_at_once=False, path=path
        )
    assert story(at_once) == story(ordinary)
