"""Google's published Python client against the mock provider: on loopback, and in the process with both libraries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
    from google import genai
    from google.genai import types

PACKAGES = ("google.genai",)
pytestmark = [
    pytest.mark.claim("mock.published-clients"),
    # Beside aiohttp, which other clients bring, its async client goes through that library and against its advice.
    pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning"),
]

MODEL = "gemini-3-pro-preview"
WORDS = "It rains in Ghent: ü, 雨, 🌧\u2028."
USAGE: JsonObject = {"input": 210, "output": 31, "cached": 128, "reasoning": 12}
PATIENCE_MS = 300


@dataclass(frozen=True, slots=True)
class Spoken:
    """A script under play and the client for it."""

    mock: Mock
    client: genai.Client


Speak = Callable[..., Spoken]


@pytest.fixture(params=["loopback", "httpx", "httpx2"])
def speak(request: pytest.FixtureRequest, channels: Channels) -> Iterator[Speak]:
    """Start playing a script to the client, on each face in turn; options are those of its HTTP."""
    from google import genai
    from google.genai import types

    with ExitStack() as running:

        def start(played: JsonObject, *, is_judged: bool = True, key: str = "sk-mock", **options: object) -> Spoken:
            if request.param == "loopback":
                mock = channels.loopback(played, is_judged=is_judged)
            else:
                face = mock_provider.transport(played, library=request.param)
                mock = face.mock
                options |= {"client_args": {"transport": face}, "async_client_args": {"transport": face}}
                if is_judged:
                    running.callback(mock.check_verdict)
            http = types.HttpOptions.model_validate({"base_url": mock.base_url("gemini"), **options})
            client = genai.Client(api_key=key, http_options=http)
            running.callback(client.close)
            return Spoken(mock, client)

        yield start


def look(city: str) -> str:
    """Tell the weather of a city."""
    return f"{city}: rain"


def tools() -> types.GenerateContentConfig:
    """A configuration with one function that the program calls itself."""
    from google.genai import types

    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    declared = types.FunctionDeclaration(name="look", description="Weather.", parameters_json_schema=schema)
    off = types.AutomaticFunctionCallingConfig(disable=True)
    return types.GenerateContentConfig(
        tools=[types.Tool(function_declarations=[declared])], automatic_function_calling=off
    )


def test_answer_comes_whole(speak: Speak) -> None:
    spoken = speak(script(step(text(WORDS), expect={"system": "Be brief.", "last_user": "weather?"})))
    answer = spoken.client.models.generate_content(
        model=MODEL, contents="weather?", config={"system_instruction": "Be brief.", "temperature": 0.5}
    )
    assert (answer.text, answer.model_version, str(answer.response_id)[:5]) == (WORDS, MODEL, "mock-")
    assert [str(one.finish_reason) for one in answer.candidates or []] == ["FinishReason.STOP"]
    assert spoken.mock.journal[0].path == f"/v1/models/{MODEL}:generateContent"


@pytest.mark.parametrize("split", [{"chars": 3}, {"bytes": 5}], ids=["by-characters", "by-bytes"])
def test_stream_comes_in_pieces(speak: Speak, split: JsonObject) -> None:
    spoken = speak(script(step(text(WORDS), expect={"stream": True}, stream={"split": split})))
    chunks = list(spoken.client.models.generate_content_stream(model=MODEL, contents="weather?"))
    assert "".join(chunk.text or "" for chunk in chunks) == WORDS
    assert str((chunks[-1].candidates or [])[0].finish_reason) == "FinishReason.STOP"


async def test_stream_comes_in_pieces_to_the_async_client(speak: Speak) -> None:
    spoken = speak(script(step(text(WORDS), stream={"split": {"chars": 3}})))
    said = [
        chunk.text or ""
        async for chunk in await spoken.client.aio.models.generate_content_stream(model=MODEL, contents="?")
    ]
    await spoken.client.aio.aclose()
    assert ("".join(said), len(said) > 3) == (WORDS, True)


def test_tools_are_called_and_answered_in_a_chat(speak: Speak) -> None:
    from google.genai import types

    spoken = speak(
        script(
            step(reasoning("Look first."), tool_call("look", {"city": "Ghent"}), expect={"tools": ["look"]}),
            step("Take a coat.", expect={"tool_result": {"name": "look", "equals": "Ghent: rain"}, "messages": 3}),
        )
    )
    chat = spoken.client.chats.create(model=MODEL, config=tools())
    asked = chat.send_message("weather?")
    calls = asked.function_calls or []
    assert [(call.name, call.args) for call in calls] == [("look", {"city": "Ghent"})]
    result = types.Part.from_function_response(name="look", response={"result": "Ghent: rain"})
    # This model refuses a history without its signature: that the answer comes shows that the client gave it back.
    assert chat.send_message(result).text == "Take a coat."


def test_tools_that_are_functions_are_called_by_the_client_itself(speak: Speak) -> None:
    spoken = speak(
        script(
            step(tool_call("look", {"city": "Ghent"})),
            step("Take a coat.", expect={"tool_result": {"equals": "Ghent: rain"}}),
        )
    )
    answer = spoken.client.models.generate_content(model=MODEL, contents="weather?", config={"tools": [look]})
    assert answer.text == "Take a coat."


@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "stream"])
def test_parallel_tools_are_answered_together(speak: Speak, is_stream: bool) -> None:
    from google.genai import types

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
    chat = spoken.client.chats.create(model=MODEL, config=tools())
    answers = list(chat.send_message_stream("?")) if is_stream else [chat.send_message("?")]
    calls = [call for answer in answers for call in answer.function_calls or []]
    assert [call.args for call in calls] == [{"city": "Ghent"}, {"city": "Rome"}]
    assert len({call.id for call in calls}) == 2
    results = [
        types.Part.from_function_response(name="look", response={"result": look((call.args or {})["city"])})
        for call in calls
    ]
    assert chat.send_message(results).text == "Take a coat."


def test_structured_output_is_parsed(speak: Speak) -> None:
    from pydantic import BaseModel

    class Weather(BaseModel):
        city: str
        degrees: int

    expected = {"json_path": {"generationConfig.responseMimeType": "application/json"}}
    spoken = speak(script(step('{"city": "Ghent", "degrees": 7}', expect=expected)))
    answer = spoken.client.models.generate_content(
        model=MODEL,
        contents="weather?",
        config={"response_mime_type": "application/json", "response_schema": Weather},
    )
    assert answer.parsed == Weather(city="Ghent", degrees=7)


@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "stream"])
def test_reasoning_is_told_from_the_answer(speak: Speak, is_stream: bool) -> None:
    spoken = speak(script(step(reasoning("Look first."), text(WORDS), stream={"split": {"chars": 4}})))
    asked: dict[str, Any] = {"model": MODEL, "contents": "?", "config": {"thinking_config": {"include_thoughts": True}}}
    models = spoken.client.models
    answers = list(models.generate_content_stream(**asked)) if is_stream else [models.generate_content(**asked)]
    parts = [
        part for answer in answers for part in ((answer.candidates or [])[0].content or types_content()).parts or []
    ]
    assert "".join(part.text or "" for part in parts if part.thought) == "Look first."
    assert "".join(part.text or "" for part in parts if not part.thought) == WORDS
    assert parts[-1].thought_signature is not None


def types_content() -> types.Content:
    """A content with nothing in it."""
    from google.genai import types

    return types.Content()


@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "stream"])
def test_usage_counts_the_cache_and_the_thoughts(speak: Speak, is_stream: bool) -> None:
    spoken = speak(script(step("hi", usage=USAGE)))
    models, asked = spoken.client.models, {"model": MODEL, "contents": "?"}
    answers = list(models.generate_content_stream(**asked)) if is_stream else [models.generate_content(**asked)]
    usage = answers[-1].usage_metadata
    assert usage is not None
    counts = (usage.prompt_token_count, usage.candidates_token_count, usage.thoughts_token_count)
    assert (*counts, usage.cached_content_token_count, usage.total_token_count) == (210, 19, 12, 128, 241)


def test_tokens_are_counted_and_models_listed(speak: Speak) -> None:
    spoken = speak(script(step("never", optional=True), models=["m", "n"]))
    assert spoken.client.models.count_tokens(model="m", contents="weather?").total_tokens == 2
    assert [model.name for model in spoken.client.models.list(config={"page_size": 1})] == ["models/m", "models/n"]
    assert spoken.client.models.get(model="n").input_token_limit == 1048576


def test_embeddings_are_vectors_one_a_text(speak: Speak) -> None:
    spoken = speak(script(step("never", optional=True)))
    made = spoken.client.models.embed_content(
        model="gemini-embedding-001", contents=["rain in Ghent", "sun in Rome"], config={"output_dimensionality": 8}
    )
    vectors = [one.values or [] for one in made.embeddings or []]
    assert [len(vector) for vector in vectors] == [8, 8]
    assert sum(value * value for value in vectors[0]) == pytest.approx(1)


def test_a_blocked_prompt_has_feedback_and_no_candidate(speak: Speak) -> None:
    spoken = speak(script(step(reply=[], finish="content_filter")))
    answer = spoken.client.models.generate_content(model=MODEL, contents="?")
    assert answer.prompt_feedback is not None
    assert (answer.candidates, str(answer.prompt_feedback.block_reason)) == (None, "BlockedReason.SAFETY")


@pytest.mark.parametrize(
    ("status", "name", "is_client"),
    [
        pytest.param(400, "INVALID_ARGUMENT", True, id="400"),
        pytest.param(403, "PERMISSION_DENIED", True, id="403"),
        pytest.param(404, "NOT_FOUND", True, id="404"),
        pytest.param(429, "RESOURCE_EXHAUSTED", True, id="429"),
        pytest.param(500, "INTERNAL", False, id="500"),
        pytest.param(503, "UNAVAILABLE", False, id="503"),
    ],
)
def test_errors_are_the_clients_own_with_status_and_words(
    speak: Speak, status: int, name: str, is_client: bool
) -> None:
    from google.genai import errors

    spoken = speak(script(step(http_error={"status": status, "message": "told so"})))
    with pytest.raises(errors.ClientError if is_client else errors.ServerError) as caught:
        spoken.client.models.generate_content(model=MODEL, contents="?")
    assert (caught.value.code, caught.value.status, caught.value.message) == (status, name, "told so")


def test_errors_in_a_stream_come_after_the_text_before_them(speak: Speak) -> None:
    from google.genai import errors

    spoken = speak(script(step(text("It rains"), error_event("The model broke down.", type="UNAVAILABLE"))))
    chunks = iter(spoken.client.models.generate_content_stream(model=MODEL, contents="?"))
    assert next(chunks).text == "It rains"
    with pytest.raises(errors.ServerError, match="The model broke down") as caught:
        next(chunks)
    assert (caught.value.code, caught.value.status) == (503, "UNAVAILABLE")


@pytest.mark.parametrize("kind", ["cut", "reset"])
def test_errors_of_the_connection_come_after_the_text_before_them(speak: Speak, kind: str) -> None:
    import httpx
    import httpx2

    spoken = speak(script(step(text("It rains"), fault(kind))))
    chunks = iter(spoken.client.models.generate_content_stream(model=MODEL, contents="?"))
    assert next(chunks).text == "It rains"
    with pytest.raises((httpx.TransportError, httpx2.TransportError)):
        next(chunks)


def test_errors_of_an_unscripted_request_show_the_difference_and_are_not_retried(speak: Speak) -> None:
    from google.genai import errors

    spoken = speak(script(step("hi", expect={"last_user": "the sea"})), is_judged=False, retry_options={"attempts": 3})
    with pytest.raises(errors.ClientError, match="the sea"):
        spoken.client.models.generate_content(model=MODEL, contents="?")
    assert (len(spoken.mock.journal), spoken.mock.verify().ok) == (1, False)


def test_errors_of_a_malformed_history_are_the_providers_refusal(speak: Speak) -> None:
    from google.genai import errors, types

    spoken = speak(script(step("never")), is_judged=False)
    orphan = types.Part.from_function_response(name="look", response={"result": "x"})
    with pytest.raises(errors.ClientError, match="immediately after a function call turn"):
        spoken.client.models.generate_content(model=MODEL, contents=[types.Content(role="user", parts=[orphan])])
    assert spoken.mock.journal[0].rule == "orphan_tool_result"


@pytest.mark.parametrize("http_error", ["rate_limit", "server_error", "overloaded"])
def test_retries_happen_where_the_client_is_told_to(speak: Speak, http_error: str) -> None:
    options = {"attempts": 2, "initial_delay": 0.0, "jitter": 0.0}
    spoken = speak(script({"http_error": http_error}, step("then")), retry_options=options)
    assert spoken.client.models.generate_content(model=MODEL, contents="?").text == "then"
    assert len(spoken.mock.journal) == 2


def test_timeouts_are_the_clients_own(speak: Speak) -> None:
    import httpx
    import httpx2

    spoken = speak(script(step(fault="stall")), timeout=PATIENCE_MS)
    with pytest.raises((httpx.ReadTimeout, httpx2.ReadTimeout)):
        spoken.client.models.generate_content(model=MODEL, contents="?")


def test_timeouts_in_a_stream_come_after_the_text_before_them(speak: Speak) -> None:
    import httpx
    import httpx2

    spoken = speak(script(step(text("It rains"), fault("stall"))), timeout=PATIENCE_MS)
    chunks = iter(spoken.client.models.generate_content_stream(model=MODEL, contents="?"))
    assert next(chunks).text == "It rains"
    with pytest.raises((httpx.ReadTimeout, httpx2.ReadTimeout)):
        next(chunks)


def test_keys_tell_conversations_apart(speak: Speak) -> None:
    named = {name: {"steps": [step(f"I am {name}")]} for name in ("one", "two")}
    spoken = speak(script(conversations=named), is_judged=False, key="sk-mock-two")
    assert spoken.client.models.generate_content(model=MODEL, contents="?").text == "I am two"


def test_a_program_runs_wrapped(run_wrapped: Callable[[JsonObject, str], str]) -> None:
    program = (
        "from google import genai\n"
        "client = genai.Client()\n"
        "print(client.models.generate_content(model='m', contents='?').text)\n"
    )
    assert run_wrapped(script(step("Five Lanes.")), program) == "Five Lanes.\n"
