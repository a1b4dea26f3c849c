"""Clients that still call by `functions` are answered in their form, and checked in the provider's words."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import pytest

from mock_provider.json_values import Json, JsonObject
from mock_provider.replies import conversation, script, step, text, tool_call
from mock_provider.script import ScriptLike

if TYPE_CHECKING:
    from lanes.unit.mock_provider.conftest import Play, Spoken

Start = Callable[[ScriptLike], "Play"]
OFFERED: Json = [{"name": "look", "description": "Look.", "parameters": {"type": "object", "properties": {}}}]
CALLED: JsonObject = {
    "role": "assistant",
    "content": None,
    "function_call": {"name": "look", "arguments": '{"at":"ü"}'},
}
RESULT: JsonObject = {"role": "function", "name": "look", "content": "a house"}


def test_a_call_is_answered_in_the_form_in_which_it_was_offered(play: Start) -> None:
    run = play(script(step(tool_call("look", {"at": "ü"}), repeat="forever")))
    for _ in range(2):
        choice = run.ask("x", functions=OFFERED).json()["choices"][0]
        assert choice["finish_reason"] == "function_call"
        assert choice["message"] == {**CALLED, "refusal": None, "annotations": []}
    newer = run.ask("x", functions=OFFERED, tools=[{"type": "function", "function": {"name": "look"}}]).json()
    assert newer["choices"][0]["finish_reason"] == "tool_calls"


def test_a_streamed_call_opens_with_its_name(play: Start) -> None:
    run = play(script(step(tool_call("look", {"at": "ü"}), stream={"split": {"chars": 4}}, repeat="forever")))
    for _ in range(2):
        lines = run.ask("x", functions=OFFERED, stream=True).text.split("\n\n")
        choices = [json.loads(line[6:])["choices"][0] for line in lines if line.startswith("data: {")]
        deltas = [choice["delta"]["function_call"] for choice in choices if "function_call" in choice["delta"]]
        assert (deltas[0], "".join(delta["arguments"] for delta in deltas)) == (
            {"name": "look", "arguments": ""},
            '{"at":"ü"}',
        )
        assert choices[-1]["finish_reason"] == "function_call"


def test_a_text_is_answered_as_ever(play: Start) -> None:
    run = play(script(step("hi")))
    assert run.ask("x", functions=OFFERED).json()["choices"][0]["finish_reason"] == "stop"


def test_a_round_of_the_older_form_is_known_by_its_history(play: Start) -> None:
    talk = conversation(
        step(tool_call("look", {"at": "ü"})), step(expect={"tool_result": {"name": "look"}}, reply="done")
    )
    run = play(script(conversations={"a": talk, "b": {**talk, "when": {"user_contains": "b"}}}))
    for name in ("x", "b"):
        run.ask(name, functions=OFFERED)
        assert run.say(name, CALLED, RESULT, functions=OFFERED) == "done"
    assert [entry.conversation for entry in run.mock.journal] == ["a", "a", "b", "b"]


def test_conditions_see_functions_calls_and_results(play: Start) -> None:
    wanted = {"tools": ["look"], "tool_result": {"contains": "house", "name": "look"}, "messages": 3}
    run = play(script(step("ok", expect=wanted)))
    assert run.say("x", CALLED, RESULT, functions=OFFERED) == "ok"


@pytest.mark.parametrize(
    ("sent", "rule"),
    [
        pytest.param({"functions": []}, "empty_array", id="none"),
        pytest.param({"functions": {}}, "wrong_type", id="no-list"),
        pytest.param({"functions": [1]}, "wrong_type", id="no-object"),
        pytest.param({"functions": [{}]}, "missing_field", id="no-name"),
        pytest.param({"functions": [{"name": "a b"}]}, "name_pattern", id="name"),
        pytest.param({"functions": [{"name": "f", "parameters": {"type": "x"}}]}, "bad_tool_schema", id="schema"),
        pytest.param({"function_call": "auto"}, "function_call_without_functions", id="nothing-to-call"),
        pytest.param({"functions": OFFERED, "function_call": {"name": "g"}}, "function_call_not_offered", id="other"),
        pytest.param({"functions": OFFERED, "function_call": 1}, "wrong_type", id="choice"),
        pytest.param({"messages": [{**CALLED, "function_call": {"name": "f"}}]}, "missing_field", id="no-arguments"),
        pytest.param({"messages": [{**CALLED, "function_call": "f"}]}, "wrong_type", id="no-call"),
        pytest.param({"messages": [{"role": "function", "content": "x"}]}, "missing_field", id="result-without-name"),
    ],
)
def test_what_is_wrong_with_functions_is_refused(play: Start, sent: Mapping[str, Json], rule: str) -> None:
    run = play(script(step("hi")))
    answer = run.client.post(
        "/chat/completions",
        json={"model": "m", "messages": [{"role": "user", "content": "x"}], **sent},
        headers={"authorization": "Bearer x"},
    )
    assert (answer.status_code, run.mock.journal[-1].rule) == (400, rule)


@pytest.mark.parametrize("choice", ["none", "auto", {"name": "look"}])
def test_a_choice_among_functions_is_taken(play: Start, choice: Json) -> None:
    run = play(script(step("hi")))
    assert run.say("x", functions=OFFERED, function_call=choice) == "hi"


def test_the_published_client_takes_the_older_form(speak: Callable[[ScriptLike], Spoken]) -> None:
    spoken = speak(script(step(text("I look."), tool_call("look", {"at": 1}))))
    answer = spoken.client.chat.completions.create(
        model="m",
        messages=[{"role": "user", "content": "x"}],
        functions=[{"name": "look", "parameters": {"type": "object", "properties": {}}}],
    )
    called = answer.choices[0].message.function_call
    assert called is not None
    assert (called.name, called.arguments, answer.choices[0].finish_reason) == ("look", '{"at":1}', "function_call")
