"""Ollama's published Python client against the mock provider: on loopback, and in the process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

import mock_provider
from lanes.channels import Channels
from mock_provider.json_values import JsonObject
from mock_provider.mock import Mock
from mock_provider.replies import error_event, fault, reasoning, script, step, text, tool_call

if TYPE_CHECKING:
    import ollama

PACKAGES = ("ollama",)
pytestmark = pytest.mark.claim("mock.published-clients")

MODEL = "m"
WORDS = "It rains in Ghent: ü, 雨, 🌧\u2028\x85."
QUESTION = {"role": "user", "content": "weather?"}
PATIENCE_S = 0.3


@dataclass(frozen=True, slots=True)
class Spoken:
    """A script under play, the client for it, and its async twin."""

    mock: Mock
    client: ollama.Client
    async_client: ollama.AsyncClient


Speak = Callable[..., Spoken]


@pytest.fixture(params=["loopback", "httpx"])
def speak(request: pytest.FixtureRequest, channels: Channels) -> Iterator[Speak]:
    """Start playing a script to the client, on each face in turn; options are those of its HTTP library."""
    import ollama

    with ExitStack() as running:

        def start(played: JsonObject, *, is_judged: bool = True, **options: Any) -> Spoken:
            if request.param == "loopback":
                mock = channels.loopback(played, is_judged=is_judged)
            else:
                face = mock_provider.transport(played)
                mock = face.mock
                options["transport"] = face
                if is_judged:
                    running.callback(mock.check_verdict)
            host = mock.base_url("ollama")
            client = running.enter_context(ollama.Client(host, **options))
            return Spoken(mock, client, ollama.AsyncClient(host, **options))

        yield start


def look(city: str) -> str:
    """Tell the weather of a city.

    Args:
        city: its name
    """
    return f"{city}: rain"


def answered(message: ollama.Message) -> list[Mapping[str, Any]]:
    """The results of the calls of a message, as the program sends them back."""
    return [
        {"role": "tool", "tool_name": call.function.name, "content": look(**call.function.arguments)}
        for call in message.tool_calls or []
    ]


def test_answer_comes_whole(speak: Speak) -> None:
    spoken = speak(script(step(text(WORDS), expect={"last_user": "weather?", "options": {"stream": False}})))
    answer = spoken.client.chat(MODEL, [QUESTION], options={"temperature": 0.5})
    assert (answer.message.content, answer.model, answer.done, answer.done_reason) == (WORDS, MODEL, True, "stop")


@pytest.mark.parametrize("split", [{"chars": 3}, {"bytes": 5}], ids=["by-characters", "by-bytes"])
def test_stream_comes_in_pieces(speak: Speak, split: JsonObject) -> None:
    spoken = speak(script(step(text(WORDS), stream={"split": split})))
    lines = list(spoken.client.chat(MODEL, [QUESTION], stream=True))
    assert "".join(line.message.content or "" for line in lines) == WORDS
    assert [line.done for line in lines] == [False] * (len(lines) - 1) + [True]


async def test_stream_comes_in_pieces_to_the_async_client(speak: Speak) -> None:
    spoken = speak(script(step(text(WORDS), stream={"split": {"chars": 3}})))
    async with spoken.async_client as client:
        said = [line.message.content or "" async for line in await client.chat(MODEL, [QUESTION], stream=True)]
    assert ("".join(said), len(said) > 3) == (WORDS, True)


def test_a_prompt_is_answered_by_generate(speak: Speak) -> None:
    spoken = speak(script(step(reasoning("Hm."), text("upon"), expect={"system": "Tell.", "last_user": "Once"})))
    answer = spoken.client.generate(MODEL, "Once", system="Tell.", think=True)
    assert (answer.response, answer.thinking, answer.done_reason) == ("upon", "Hm.", "stop")


def test_tools_are_called_and_answered(speak: Speak) -> None:
    spoken = speak(
        script(
            step(tool_call("look", {"city": "Ghent"}), expect={"tools": ["look"]}),
            step("Take a coat.", expect={"tool_result": {"name": "look", "equals": "Ghent: rain"}, "messages": 3}),
        )
    )
    asked = spoken.client.chat(MODEL, [QUESTION], tools=[look]).message
    answer = spoken.client.chat(MODEL, [QUESTION, asked, *answered(asked)], tools=[look])
    assert answer.message.content == "Take a coat."


@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "stream"])
def test_parallel_tools_are_answered_together(speak: Speak, is_stream: bool) -> None:
    import ollama

    spoken = speak(
        script(
            step(
                text("Let me look. "),
                tool_call("look", {"city": "Ghent"}),
                tool_call("look", {"city": "Rome"}),
                stream={"split": {"chars": 3}},
            ),
            step("Take a coat.", expect={"tool_result": [{"contains": "Ghent"}, {"contains": "Rome"}]}),
        )
    )
    asked: dict[str, Any] = {"model": MODEL, "messages": [QUESTION], "tools": [look]}
    answers = list(spoken.client.chat(**asked, stream=True)) if is_stream else [spoken.client.chat(**asked)]
    said = "".join(answer.message.content or "" for answer in answers)
    calls = [call for answer in answers for call in answer.message.tool_calls or []]
    message = ollama.Message(role="assistant", content=said, tool_calls=calls)
    assert (said, [call.function.arguments["city"] for call in calls]) == ("Let me look. ", ["Ghent", "Rome"])
    answer = spoken.client.chat(MODEL, [QUESTION, message, *answered(message)], tools=[look])
    assert answer.message.content == "Take a coat."


@pytest.mark.parametrize(
    "form",
    [
        pytest.param("json", id="json"),
        pytest.param({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}, id="schema"),
    ],
)
def test_structured_output_is_asked_for_by_format(speak: Speak, form: Any) -> None:
    spoken = speak(script(step('{"city": "Ghent"}', expect={"options": {"format": form}})))
    assert spoken.client.chat(MODEL, [QUESTION], format=form).message.content == '{"city": "Ghent"}'


@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "stream"])
def test_reasoning_is_told_from_the_answer(speak: Speak, is_stream: bool) -> None:
    spoken = speak(script(step(reasoning("Look first."), text(WORDS), stream={"split": {"chars": 4}})))
    asked: dict[str, Any] = {"model": MODEL, "messages": [QUESTION], "think": "high"}
    answers = list(spoken.client.chat(**asked, stream=True)) if is_stream else [spoken.client.chat(**asked)]
    assert "".join(answer.message.thinking or "" for answer in answers) == "Look first."
    assert "".join(answer.message.content or "" for answer in answers) == WORDS


@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "stream"])
def test_usage_stands_in_the_last_line(speak: Speak, is_stream: bool) -> None:
    spoken = speak(script(step("hi", usage={"input": 210, "output": 31, "cached": 128, "reasoning": 12})))
    asked: dict[str, Any] = {"model": MODEL, "messages": [QUESTION]}
    answers = list(spoken.client.chat(**asked, stream=True)) if is_stream else [spoken.client.chat(**asked)]
    assert (answers[-1].prompt_eval_count, answers[-1].eval_count) == (210, 31)
    assert (answers[-1].total_duration or 0) > (answers[-1].eval_duration or 0) > 0


def test_embeddings_are_vectors_one_a_text(speak: Speak) -> None:
    spoken = speak(script(step("never", optional=True)))
    made = spoken.client.embed("e", ["rain in Ghent", "sun in Rome"], dimensions=8)
    assert ([len(vector) for vector in made.embeddings], made.prompt_eval_count) == ([8, 8], 6)
    assert sum(value * value for value in made.embeddings[0]) == pytest.approx(1)
    older = spoken.client.embeddings("e", "rain in Ghent").embedding
    assert list(older) == list(spoken.client.embed("e", "rain in Ghent").embeddings[0])


def test_models_are_listed_loaded_and_shown(speak: Speak) -> None:
    spoken = speak(script(step("never", optional=True), models=["m", "n"]))
    assert [model.model for model in spoken.client.list().models] == ["m:latest", "n:latest"]
    assert [model.name for model in spoken.client.ps().models] == ["m:latest", "n:latest"]
    shown = spoken.client.show("n")
    assert "tools" in (shown.capabilities or [])
    assert shown.details is not None


@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("status", [400, 404, 429, 500, 503])
def test_errors_are_the_clients_own_with_status_and_words(speak: Speak, status: int, is_stream: bool) -> None:
    import ollama

    spoken = speak(script(step(http_error={"status": status, "message": "told so"})))
    with pytest.raises(ollama.ResponseError) as caught:
        list(spoken.client.chat(MODEL, [QUESTION], stream=is_stream))
    assert (caught.value.status_code, caught.value.error) == (status, "told so")


def test_errors_in_a_stream_come_after_the_text_before_them(speak: Speak) -> None:
    import ollama

    spoken = speak(script(step(text("It rains"), error_event("The model broke down."))))
    lines = iter(spoken.client.chat(MODEL, [QUESTION], stream=True))
    assert next(lines).message.content == "It rains"
    with pytest.raises(ollama.ResponseError, match="The model broke down"):
        next(lines)


@pytest.mark.parametrize("kind", ["cut", "reset"])
def test_errors_of_the_connection_come_after_the_text_before_them(speak: Speak, kind: str) -> None:
    import httpx

    spoken = speak(script(step(text("It rains"), fault(kind))))
    lines = iter(spoken.client.chat(MODEL, [QUESTION], stream=True))
    assert next(lines).message.content == "It rains"
    with pytest.raises((httpx.RemoteProtocolError, httpx.ReadError)):
        next(lines)


def test_errors_of_an_unscripted_request_show_the_difference_and_are_not_retried(speak: Speak) -> None:
    import ollama

    spoken = speak(script(step("hi", expect={"last_user": "the sea"})), is_judged=False)
    with pytest.raises(ollama.ResponseError, match=r"mock_unmatched: (.|\n)*the sea"):
        spoken.client.chat(MODEL, [QUESTION])
    assert (len(spoken.mock.journal), spoken.mock.verify().ok) == (1, False)


def test_errors_of_a_malformed_history_name_the_rule(speak: Speak) -> None:
    import ollama

    spoken = speak(script(step("never")), is_judged=False)
    with pytest.raises(ollama.ResponseError, match="a tool message for 'look' must follow"):
        spoken.client.chat(MODEL, [QUESTION, {"role": "tool", "tool_name": "look", "content": "x"}])
    assert spoken.mock.journal[0].rule == "orphan_tool_result"


def test_errors_of_an_unknown_model_say_that_it_is_not_there(speak: Speak) -> None:
    import ollama

    spoken = speak(script(step("never"), models=["other"]), is_judged=False)
    with pytest.raises(ollama.ResponseError, match="model 'm' not found") as caught:
        spoken.client.chat(MODEL, [QUESTION])
    assert caught.value.status_code == 404


def test_retries_are_none_of_the_clients_own(speak: Speak) -> None:
    import ollama

    spoken = speak(script({"http_error": "overloaded"}, step("then")))
    with pytest.raises(ollama.ResponseError):
        spoken.client.chat(MODEL, [QUESTION])
    assert spoken.client.chat(MODEL, [QUESTION]).message.content == "then"


def test_timeouts_are_those_of_the_library(speak: Speak) -> None:
    import httpx

    spoken = speak(script(step(fault="stall")), timeout=PATIENCE_S)
    with pytest.raises(httpx.ReadTimeout):
        spoken.client.chat(MODEL, [QUESTION])


def test_timeouts_in_a_stream_come_after_the_text_before_them(speak: Speak) -> None:
    import httpx

    spoken = speak(script(step(text("It rains"), fault("stall"))), timeout=PATIENCE_S)
    lines = iter(spoken.client.chat(MODEL, [QUESTION], stream=True))
    assert next(lines).message.content == "It rains"
    with pytest.raises(httpx.ReadTimeout):
        next(lines)


def test_keys_tell_conversations_apart(speak: Speak) -> None:
    named = {name: {"steps": [step(f"I am {name}")]} for name in ("one", "two")}
    headers = {"Authorization": "Bearer sk-mock-two"}
    spoken = speak(script(conversations=named), is_judged=False, headers=headers)
    assert spoken.client.chat(MODEL, [QUESTION]).message.content == "I am two"


def test_a_program_runs_wrapped(run_wrapped: Callable[[JsonObject, str], str]) -> None:
    program = f"import ollama\nprint(ollama.chat('m', [{QUESTION!r}]).message.content)\n"
    assert run_wrapped(script(step("Five Lanes.")), program) == "Five Lanes.\n"
