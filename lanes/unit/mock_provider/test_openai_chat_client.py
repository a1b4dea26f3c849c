"""The published OpenAI client, strict about every field, speaks chat completions with the mock on each face."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import openai
import pytest
from openai.types.chat import ChatCompletionFunctionToolParam, ChatCompletionMessageParam
from pydantic import BaseModel

from mock_provider.json_values import JsonObject
from mock_provider.replies import refusal, script, step, text, tool_call
from mock_provider.script import ScriptLike

if TYPE_CHECKING:
    from lanes.unit.mock_provider.conftest import Spoken

Speak = Callable[[ScriptLike], "Spoken"]
ASKED: list[ChatCompletionMessageParam] = [{"role": "user", "content": "x"}]
TOOL: ChatCompletionFunctionToolParam = {
    "type": "function",
    "function": {
        "name": "f",
        "strict": True,
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "integer"}},
            "required": ["a"],
            "additionalProperties": False,
        },
    },
}


def test_several_choices_are_whole_in_themselves(speak: Speak) -> None:
    said = speak(script(step("hi"), step("hi", stream={"split": {"chars": 1}})))
    whole = said.client.chat.completions.create(model="m", messages=ASKED, n=3)
    streamed: dict[int, str] = {}
    for chunk in said.client.chat.completions.create(model="m", messages=ASKED, n=3, stream=True):
        for choice in chunk.choices:
            streamed[choice.index] = streamed.get(choice.index, "") + (choice.delta.content or "")
    assert {choice.index: choice.message.content for choice in whole.choices} == {0: "hi", 1: "hi", 2: "hi"}
    assert streamed == {0: "hi", 1: "hi", 2: "hi"}


def test_probabilities_have_their_form_whole_and_streamed(speak: Speak) -> None:
    said = speak(script(step("hello"), step("hello"), step(refusal("no"))))
    asked: JsonObject = {"logprobs": True, "top_logprobs": 2}
    whole = said.client.chat.completions.create(model="m", messages=ASKED, **asked).choices[0]  # type: ignore[call-overload] # any options
    chunks = said.client.chat.completions.create(model="m", messages=ASKED, stream=True, **asked)  # type: ignore[call-overload] # any options
    streamed = [
        token
        for chunk in chunks
        for choice in chunk.choices
        for token in getattr(choice.logprobs, "content", None) or ()
    ]
    declined = said.client.chat.completions.create(model="m", messages=ASKED, **asked).choices[0]  # type: ignore[call-overload] # any options
    assert [token.token for token in whole.logprobs.content] == ["hell", "o"]
    assert [len(token.top_logprobs) for token in whole.logprobs.content] == [2, 2]
    assert streamed == whole.logprobs.content
    assert (declined.logprobs.content, [token.token for token in declined.logprobs.refusal]) == (None, ["no"])


class Weather(BaseModel):
    """A form for structured answers."""

    city: str


def test_structured_answers_and_refusals_are_parsed_by_the_client(speak: Speak) -> None:
    said = speak(script(step('{"city": "Bern"}'), step(refusal("I cannot."))))
    parsed = said.client.chat.completions.parse(model="m", messages=ASKED, response_format=Weather)
    declined = said.client.chat.completions.parse(model="m", messages=ASKED, response_format=Weather)
    assert parsed.choices[0].message.parsed == Weather(city="Bern")
    assert (declined.choices[0].message.parsed, declined.choices[0].message.refusal) == (None, "I cannot.")


def test_parallel_calls_are_answered_in_any_order(speak: Speak) -> None:
    calls = step(tool_call("f", {"a": 1}), tool_call("f", {"a": 2}), stream={"split": {"chars": 2}})
    said = speak(script(calls, step("done", expect={"tool_result": [{"contains": "1"}, {"contains": "2"}]})))
    with said.client.chat.completions.stream(
        model="m", messages=ASKED, tools=[TOOL], parallel_tool_calls=True
    ) as stream:
        message = stream.get_final_completion().choices[0].message
    made = message.tool_calls or []
    results: list[ChatCompletionMessageParam] = [
        {"role": "tool", "tool_call_id": call.id, "content": str(json.loads(call.function.arguments)["a"])}
        for call in reversed(made)
    ]
    answered: ChatCompletionMessageParam = {
        "role": "assistant",
        "tool_calls": [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.function.name, "arguments": call.function.arguments},
            }
            for call in made
        ],
    }
    final = said.client.chat.completions.create(model="m", messages=[*ASKED, answered, *results], tools=[TOOL])
    assert (len(made), final.choices[0].message.content) == (2, "done")


def test_custom_tools_get_free_text(speak: Speak) -> None:
    said = speak(script(step(tool_call("code", raw="print(1)"))))
    whole = said.client.chat.completions.create(
        model="m", messages=ASKED, tools=[{"type": "custom", "custom": {"name": "code"}}]
    )
    calls = whole.choices[0].message.tool_calls or []
    assert [(call.type, getattr(call, "custom", None) and call.custom.input) for call in calls] == [  # type: ignore[union-attr] # of this type
        ("custom", "print(1)")
    ]


def test_counts_come_last_and_only_when_asked_for(speak: Speak) -> None:
    said = speak(script(step("hi", usage={"input": 5, "output": 2}), step("hi")))
    asked = said.client.chat.completions.create(
        model="m", messages=ASKED, stream=True, stream_options={"include_usage": True}
    )
    counts = [chunk.usage.total_tokens if chunk.usage else None for chunk in asked]
    unasked = said.client.chat.completions.create(model="m", messages=ASKED, stream=True)
    assert counts == [None, None, None, 7]
    assert [chunk.usage for chunk in unasked] == [None, None, None]


@pytest.mark.parametrize(
    ("options", "rule", "words"),
    [
        pytest.param({"top_logprobs": 2}, "top_logprobs_without_logprobs", "only allowed when 'logprobs'", id="top"),
        pytest.param(
            {"parallel_tool_calls": False}, "parallel_tool_calls_without_tools", "when 'tools' are", id="parallel"
        ),
        pytest.param({"response_format": {"type": "json_object"}}, "json_word_missing", "the word 'json'", id="json"),
        pytest.param(
            {"response_format": {"type": "json_schema", "json_schema": {"name": "a b", "schema": {}}}},
            "name_pattern",
            "does not match pattern",
            id="schema-name",
        ),
        pytest.param(
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "n", "strict": True, "schema": {"type": "object", "properties": {}}},
                }
            },
            "bad_response_schema",
            "'additionalProperties' is required to be supplied and to be false",
            id="open-schema",
        ),
        pytest.param(
            {
                "tools": [
                    {
                        "type": "function",
                        "function": {
                            "name": "f",
                            "strict": True,
                            "parameters": {
                                "type": "object",
                                "properties": {"a": {"type": "integer"}},
                                "additionalProperties": False,
                            },
                        },
                    }
                ]
            },
            "bad_tool_schema",
            "Missing 'a'",
            id="strict-tool",
        ),
    ],
)
def test_options_that_the_provider_refuses(speak: Speak, options: JsonObject, rule: str, words: str) -> None:
    said = speak(script(step(text("never"))))
    with pytest.raises(openai.BadRequestError, match=words):
        said.client.chat.completions.create(model="m", messages=ASKED, **options)  # type: ignore[call-overload] # any options
    assert said.mock.journal[0].rule == rule
