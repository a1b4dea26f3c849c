"""The published OpenAI client, strict about every field, speaks Responses with the mock provider on each face."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import openai
import pytest
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFailedEvent,
    ResponseIncompleteEvent,
    ResponseInputItemParam,
    ToolParam,
)
from pydantic import BaseModel

from mock_provider.json_values import JsonObject
from mock_provider.replies import error_event, reasoning, refusal, script, step, text, tool_call
from mock_provider.script import ScriptLike

if TYPE_CHECKING:
    from lanes.unit.mock_provider.conftest import Spoken

Speak = Callable[[ScriptLike], "Spoken"]
TOOLS: list[ToolParam] = [
    {
        "type": "function",
        "name": "read_file",
        "description": "Read a file.",
        "strict": True,
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string"}},
            "required": ["path"],
            "additionalProperties": False,
        },
    },
    {"type": "custom", "name": "code", "format": {"type": "grammar", "syntax": "regex", "definition": ".*"}},
]
ROUND = step(
    reasoning("look first"),
    text("Let me look."),
    tool_call("read_file", {"path": "ü.md"}),
    tool_call("code", raw="print(1)"),
    usage={"input": 20, "output": 9, "cached": 8, "reasoning": 2},
    stream={"split": {"chars": 3}},
)


def sent_back(response: Response) -> list[ResponseInputItemParam]:
    """The output as the next request's input, each call answered."""
    items: list[ResponseInputItemParam] = []
    for item in response.output:
        items.append(item.model_dump(exclude_unset=True, exclude={"parsed_arguments"}))  # type: ignore[arg-type] # of the same form
    for item in response.output:
        if item.type == "function_call":
            items.append({"type": "function_call_output", "call_id": item.call_id, "output": "lanes"})
        elif item.type == "custom_tool_call":
            items.append({"type": "custom_tool_call_output", "call_id": item.call_id, "output": "1"})
    return items


def test_a_whole_tool_round_trip_is_understood_field_by_field(speak: Speak) -> None:
    end = step("Five Lanes.", expect={"messages": 4, "tool_result": [{"name": "read_file", "contains": "lanes"}]})
    said = speak(script(ROUND, end))
    first = said.client.responses.create(model="m", input="What is in ü.md?", tools=TOOLS, store=False)
    history: list[ResponseInputItemParam] = [{"role": "user", "content": "What is in ü.md?"}, *sent_back(first)]
    second = said.client.responses.create(model="m", input=history, tools=TOOLS, store=False)
    assert [item.type for item in first.output] == ["reasoning", "message", "function_call", "custom_tool_call"]
    assert first.usage is not None
    assert (first.usage.input_tokens_details.cached_tokens, first.usage.output_tokens_details.reasoning_tokens) == (
        8,
        2,
    )
    assert (first.output_text, second.output_text) == ("Let me look.", "Five Lanes.")
    assert said.mock.verify().ok


def test_a_streamed_answer_adds_up_to_its_last_event(speak: Speak) -> None:
    said = speak(script(ROUND))
    pieces: dict[str, str] = {}
    with said.client.responses.stream(model="m", input="x", tools=TOOLS) as stream:
        for number, event in enumerate(stream):
            assert event.sequence_number == number
            if event.type.endswith(".delta"):
                pieces[event.type] = pieces.get(event.type, "") + str(getattr(event, "delta", ""))
        final = stream.get_final_response()
    assert pieces == {
        "response.reasoning_summary_text.delta": "look first",
        "response.output_text.delta": "Let me look.",
        "response.function_call_arguments.delta": '{"path":"ü.md"}',
        "response.custom_tool_call_input.delta": "print(1)",
    }
    assert final.output_text == "Let me look."
    call = next(item for item in final.output if item.type == "function_call")
    assert json.loads(call.arguments) == {"path": "ü.md"}


def test_a_response_is_continued_by_its_id(speak: Speak) -> None:
    expect: JsonObject = {"messages": 4, "last_user": "go", "tool_result": {"name": "read_file", "contains": "lanes"}}
    end = step("done", expect=expect)
    said = speak(script(step(reasoning("hm"), tool_call("read_file", {"path": "a"})), end, step("more")))
    first = said.client.responses.create(model="m", input="go", instructions="be brief", tools=TOOLS)
    results = [item for item in sent_back(first) if item.get("type") == "function_call_output"]
    second = said.client.responses.create(
        model="m", input=results, instructions="be brief", previous_response_id=first.id, tools=TOOLS
    )
    with said.client.responses.stream(model="m", input="and?", previous_response_id=second.id) as stream:
        third = stream.get_final_response()
    assert (third.output_text, third.previous_response_id) == ("more", second.id)
    assert said.mock.verify().ok


class Weather(BaseModel):
    """A form for structured answers."""

    city: str
    degrees: int


def test_structured_answers_are_parsed_by_the_client(speak: Speak) -> None:
    said = speak(script(step('{"city": "Bern", "degrees": 7}'), step(refusal("I cannot."))))
    parsed = said.client.responses.parse(model="m", input="x", text_format=Weather)
    declined = said.client.responses.parse(model="m", input="x", text_format=Weather)
    assert parsed.output_parsed == Weather(city="Bern", degrees=7)
    message = declined.output[0]
    assert message.type == "message"
    assert [(part.type, getattr(part, "refusal", "")) for part in message.content] == [("refusal", "I cannot.")]


@pytest.mark.parametrize(
    ("played", "kind", "status"),
    [
        pytest.param(step("hi"), ResponseCompletedEvent, "completed", id="completed"),
        pytest.param(step("hi", finish="length"), ResponseIncompleteEvent, "incomplete", id="incomplete"),
        pytest.param(step("hi", error_event("boom")), ResponseFailedEvent, "failed", id="failed"),
    ],
)
def test_each_way_to_end_is_an_event_of_its_own(speak: Speak, played: dict[str, str], kind: type, status: str) -> None:
    said = speak(script(played))
    last = list(said.client.responses.create(model="m", input="x", stream=True))[-1]
    assert isinstance(last, kind)
    assert getattr(getattr(last, "response", None), "status", None) == status


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_the_input_of_a_response_is_listed(speak: Speak, order: Literal["asc", "desc"]) -> None:
    said = speak(script(step("one"), step("two")))
    first = said.client.responses.create(model="m", input=[{"role": "user", "content": "a"}])
    second = said.client.responses.create(model="m", input="b", previous_response_id=first.id)
    listed = said.client.responses.input_items.list(second.id, order=order, limit=1)
    texts = [item.content[0].text for item in listed if item.type == "message"]  # type: ignore[union-attr] # texts by construction
    assert texts == (["a", "one", "b"] if order == "asc" else ["b", "one", "a"])


def test_a_response_is_looked_up_and_deleted(speak: Speak) -> None:
    said = speak(script(step("hi")))
    made = said.client.responses.create(model="m", input="x")
    assert said.client.responses.retrieve(made.id) == made
    said.client.responses.delete(made.id)
    with pytest.raises(openai.NotFoundError, match=f"Response with id '{made.id}' not found"):
        said.client.responses.retrieve(made.id)


def test_a_response_in_the_background_is_taken_in_first_and_finished_when_looked_at(speak: Speak) -> None:
    said = speak(script(step("hi")))
    made = said.client.responses.create(model="m", input="x", background=True)
    seen = said.client.responses.retrieve(made.id)
    cancelled = said.client.responses.cancel(made.id)
    assert (made.status, made.output) == ("queued", [])
    assert (seen.status, seen.output_text, cancelled.status) == ("completed", "hi", "completed")


def test_a_response_in_the_background_is_cancelled_before_it_is_finished(speak: Speak) -> None:
    said = speak(script(step("hi")))
    made = said.client.responses.create(model="m", input="x", background=True)
    cancelled = said.client.responses.cancel(made.id)
    assert (cancelled.status, cancelled.output) == ("cancelled", [])
    assert said.client.responses.retrieve(made.id).status == "cancelled"


def test_a_stream_in_the_background_says_that_it_is_queued(speak: Speak) -> None:
    said = speak(script(step("hi")))
    kinds = [event.type for event in said.client.responses.create(model="m", input="x", background=True, stream=True)]
    assert kinds[:3] == ["response.created", "response.queued", "response.in_progress"]


def test_tokens_are_counted_without_a_step(speak: Speak) -> None:
    said = speak(script(step("hi", optional=True)))
    counted = said.client.responses.input_tokens.count(model="m", input="sixteen bytes...")
    assert (counted.input_tokens, said.mock.verify().ok) == (4, True)


def test_a_request_of_no_step_is_not_retried(speak: Speak) -> None:
    said = speak(script(step("hi", expect={"last_user": "hello"})))
    patient = said.client.with_options(max_retries=3)
    with pytest.raises(openai.BadRequestError) as caught:
        patient.responses.create(model="m", input="good bye")
    assert (caught.value.code, len(said.mock.journal), said.mock.verify().ok) == ("mock_unmatched", 1, False)


def test_a_rate_limit_is_retried_after_the_time_it_names(speak: Speak) -> None:
    said = speak(script(step(http_error={"status": 429, "retry_after_ms": 1}), step("then")))
    answer = said.client.with_options(max_retries=1).responses.create(model="m", input="x")
    assert (answer.output_text, len(said.mock.journal)) == ("then", 2)


def test_models_are_listed(speak: Speak) -> None:
    said = speak(script(step("x", optional=True), models=["a", "org/b"]))
    assert [model.id for model in said.client.models.list()] == ["a", "org/b"]
    assert said.client.models.retrieve("org/b").owned_by == "mock-provider"
