"""The published OpenAI client against the mock provider on loopback: streams, tools, errors and their retries."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import openai
import pytest
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam

import mock_provider
from lanes.channels import Channels
from mock_provider.mock import Mock
from mock_provider.replies import error_event, fault, reasoning, script, step, text, tool_call

TOOLS: list[ChatCompletionToolParam] = [
    {
        "type": "function",
        "function": {
            "name": "read_file",
            "description": "Read a file.",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
        },
    }
]
SYSTEM: ChatCompletionMessageParam = {"role": "system", "content": "Use the tools."}
QUESTION: ChatCompletionMessageParam = {"role": "user", "content": "What is in README.md?"}
# A child in another folder finds the package also where it is not installed; what the lane put first stays first.
PATH_OF_CHILDREN = os.pathsep.join(
    (*filter(None, [os.environ.get("PYTHONPATH")]), str(Path(mock_provider.__file__).parents[1]))
)
PROGRAM = """
import sys
import openai

tools = [{"type": "function", "function": {"name": "read_file", "parameters": {"type": "object", "properties": {}}}}]
messages = [{"role": "user", "content": "What is in README.md?"}]
with openai.OpenAI() as client:
    with client.chat.completions.stream(model="m", messages=messages, tools=tools) as stream:
        message = stream.get_final_completion().choices[0].message
    messages.append(message.model_dump(include={"role", "content", "tool_calls"}))
    messages.append({"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "Five Lanes"})
    if sys.argv[1:] != ["half"]:
        print(client.chat.completions.create(model="m", messages=messages, tools=tools).choices[0].message.content)
"""


@pytest.fixture
def client_of() -> Callable[[Mock], openai.OpenAI]:
    """A client for a served script; its certificates are never needed, its retries wait for nothing."""

    def make(mock: Mock) -> openai.OpenAI:
        return openai.OpenAI(api_key="sk-mock", base_url=mock.base_url("openai_chat"), max_retries=2)

    return make


def test_a_streamed_tool_round_trip_is_understood_field_by_field(
    channels: Channels, client_of: Callable[[Mock], openai.OpenAI]
) -> None:
    mock = channels.loopback(
        script(
            step(
                text("Let me look."),
                tool_call("read_file", {"path": "README.md"}),
                tool_call("read_file", {"path": "ü.md"}),
                expect={"tools": ["read_file"], "messages": 2, "stream": True},
                usage={"input": 20, "output": 9, "cached": 8},
                stream={"split": {"chars": 3}},
            ),
            step("Five Lanes.", expect={"tool_result": [{"contains": "lanes"}, {"contains": "umlaut"}]}),
        )
    )
    with client_of(mock) as client:
        with client.chat.completions.stream(
            model="m", messages=[SYSTEM, QUESTION], tools=TOOLS, stream_options={"include_usage": True}
        ) as stream:
            said = "".join(event.delta for event in stream if event.type == "content.delta")
            final = stream.get_final_completion()
        message = final.choices[0].message
        calls = message.tool_calls or []
        results: list[ChatCompletionMessageParam] = [
            {"role": "tool", "tool_call_id": call.id, "content": words}
            for call, words in zip(calls, ("lanes", "umlaut"), strict=True)
        ]
        history: list[ChatCompletionMessageParam] = [
            SYSTEM,
            QUESTION,
            {
                "role": "assistant",
                "content": message.content,
                "tool_calls": [
                    {
                        "id": call.id,
                        "type": "function",
                        "function": {"name": call.function.name, "arguments": call.function.arguments},
                    }
                    for call in calls
                ],
            },
            *results,
        ]
        answer = client.chat.completions.create(model="m", messages=history, tools=TOOLS)
    assert (said, final.choices[0].finish_reason) == ("Let me look.", "tool_calls")
    assert [json.loads(call.function.arguments) for call in calls] == [{"path": "README.md"}, {"path": "ü.md"}]
    assert final.usage is not None
    assert (final.usage.prompt_tokens, final.usage.completion_tokens) == (20, 9)
    assert answer.choices[0].message.content == "Five Lanes."
    assert [entry.end for entry in mock.journal.entries] == ["complete", "complete"]


def test_an_unmatched_request_is_not_retried(channels: Channels, client_of: Callable[[Mock], openai.OpenAI]) -> None:
    mock = channels.loopback(script(step("hi", expect={"last_user": "hello"})), is_judged=False)
    with client_of(mock) as client, pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model="m", messages=[QUESTION])
    assert (caught.value.code, len(mock.journal), mock.verify().ok) == ("mock_unmatched", 1, False)


def test_a_rate_limit_is_retried_after_the_time_it_names(
    channels: Channels, client_of: Callable[[Mock], openai.OpenAI]
) -> None:
    mock = channels.loopback(script(step(http_error={"status": 429, "retry_after_ms": 1}), step("then")))
    with client_of(mock) as client:
        answer = client.chat.completions.create(model="m", messages=[QUESTION])
    assert (answer.choices[0].message.content, len(mock.journal)) == ("then", 2)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        pytest.param(401, openai.AuthenticationError, id="401"),
        pytest.param(403, openai.PermissionDeniedError, id="403"),
        pytest.param(404, openai.NotFoundError, id="404"),
        pytest.param(422, openai.UnprocessableEntityError, id="422"),
    ],
)
def test_an_error_status_raises_the_clients_own_error(
    channels: Channels, client_of: Callable[[Mock], openai.OpenAI], status: int, error: type[openai.APIStatusError]
) -> None:
    mock = channels.loopback(script(step(http_error={"status": status, "message": "told so"})))
    with client_of(mock) as client, pytest.raises(error, match="told so"):
        client.chat.completions.create(model="m", messages=[QUESTION])


@pytest.mark.parametrize(
    ("part", "error"),
    [
        pytest.param(error_event("overloaded", code="server_overloaded"), openai.APIError, id="error-event"),
        pytest.param({"malformed": "{broken"}, json.JSONDecodeError, id="malformed"),
    ],
)
def test_a_broken_stream_raises_after_the_pieces_before_it(
    channels: Channels,
    client_of: Callable[[Mock], openai.OpenAI],
    part: dict[str, str],
    error: type[Exception],
) -> None:
    mock = channels.loopback(script(step(text("one"), dict(part))))
    said = ""
    with client_of(mock) as client:
        stream = client.chat.completions.create(model="m", messages=[QUESTION], stream=True)
        chunks = iter(stream)
        said += next(chunks).choices[0].delta.content or ""
        said += next(chunks).choices[0].delta.content or ""
        with pytest.raises(error):
            next(chunks)
    assert said == "one"


def test_a_reset_in_the_stream_reaches_the_client(
    channels: Channels, client_of: Callable[[Mock], openai.OpenAI]
) -> None:
    mock = channels.loopback(script(step(text("one"), fault("reset"))))
    with client_of(mock) as client:
        chunks = iter(client.chat.completions.create(model="m", messages=[QUESTION], stream=True))
        assert [next(chunks).choices[0].delta.content for _ in range(2)] == ["", "one"]
        with pytest.raises(openai.APIConnectionError):
            next(chunks)


def test_reasoning_and_cache_counts_are_there_for_who_looks(
    channels: Channels, client_of: Callable[[Mock], openai.OpenAI]
) -> None:
    played = script(step(reasoning("hm"), text("hi"), usage={"input": 9, "cached": 4}), flavour="deepseek")
    mock = channels.loopback(played)
    with client_of(mock) as client:
        answer = client.chat.completions.create(model="m", messages=[QUESTION])
    extra = (answer.choices[0].message.model_extra or {}, (answer.usage.model_extra if answer.usage else {}) or {})
    assert (extra[0]["reasoning_content"], extra[1]["prompt_cache_hit_tokens"]) == ("hm", 4)


def test_an_agents_malformed_history_gets_the_providers_refusal(
    channels: Channels, client_of: Callable[[Mock], openai.OpenAI]
) -> None:
    mock = channels.loopback(script(step("never")), is_judged=False)
    orphan: ChatCompletionMessageParam = {"role": "tool", "tool_call_id": "call_1", "content": "x"}
    with client_of(mock) as client, pytest.raises(openai.BadRequestError, match="preceeding message with 'tool_calls'"):
        client.chat.completions.create(model="m", messages=[QUESTION, orphan])
    assert mock.journal[0].rule == "orphan_tool_result"


def test_models_are_listed(channels: Channels, client_of: Callable[[Mock], openai.OpenAI]) -> None:
    mock = channels.loopback(script(step("x", optional=True), models=["a", "b"]))
    with client_of(mock) as client:
        assert [model.id for model in client.models.list()] == ["a", "b"]
        assert client.models.retrieve("b").owned_by == "mock-provider"


@pytest.mark.claim("mock.wrapped-command")
@pytest.mark.parametrize(
    ("arguments", "code", "verdict"),
    [
        pytest.param([], 0, "as scripted: steps used 2, left over 0", id="whole"),
        pytest.param(["half"], 3, "not as scripted: steps used 1, left over 1", id="half"),
    ],
)
def test_a_program_of_the_published_client_runs_wrapped(
    tmp_path: Path, arguments: list[str], code: int, verdict: str
) -> None:
    played = {
        "version": 1,
        "steps": [
            {
                "reply": [{"tool_call": {"name": "read_file", "arguments": {"path": "README.md"}}}],
                "stream": {"split": {"chars": 2}},
            },
            {"expect": {"tool_result": {"name": "read_file", "contains": "Five"}}, "reply": "About lanes."},
        ],
    }
    (tmp_path / "script.json").write_text(json.dumps(played), encoding="utf-8")
    (tmp_path / "client.py").write_text(PROGRAM, encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, "-m", "mock_provider", "run", "script.json", "--", sys.executable, "client.py", *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
        env={**os.environ, "PYTHONPATH": PATH_OF_CHILDREN},
    )
    assert (ended.returncode, ended.stdout) == (code, "About lanes.\n" if code == 0 else "")
    assert f"script.json: {verdict}" in ended.stderr
