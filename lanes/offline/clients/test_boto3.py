"""The published AWS client for Python against the mock provider on loopback: Converse, InvokeModel, their streams."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest

from lanes.channels import Channels
from mock_provider.json_values import JsonObject
from mock_provider.mock import Mock
from mock_provider.replies import error_event, fault, reasoning, script, step, text, tool_call

PACKAGES = ("boto3",)
pytestmark = pytest.mark.claim("mock.published-clients")

MODEL = "anthropic.claude-sonnet-4-20250514-v1:0"
WORDS = "It rains in Ghent: ü, 雨, 🌧\u2028."
QUESTION: JsonObject = {"role": "user", "content": [{"text": "weather?"}]}
SCHEMA: JsonObject = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = {"tools": [{"toolSpec": {"name": "look", "description": "Weather.", "inputSchema": {"json": SCHEMA}}}]}
CLAUDE: JsonObject = {
    "anthropic_version": "bedrock-2023-05-31",
    "max_tokens": 99,
    "system": "Be brief.",
    "messages": [{"role": "user", "content": "weather?"}],
}
PATIENCE_S = 0.3


@dataclass(frozen=True, slots=True)
class Spoken:
    """A script under play and the client for it."""

    mock: Mock
    client: Any  # the client's methods are made from its service model at run time
    running: ExitStack

    def events(self) -> Iterator[Any]:
        """Begin a stream, which ends with the test."""
        stream = self.client.converse_stream(modelId=MODEL, messages=[QUESTION])["stream"]
        self.running.callback(stream.close)
        return iter(stream)


Speak = Callable[..., Spoken]


@pytest.fixture
def speak(channels: Channels) -> Iterator[Speak]:
    """Start playing a script to the client; options are those of its configuration."""
    import boto3
    from botocore.config import Config

    with ExitStack() as running:

        def start(played: JsonObject, *, is_judged: bool = True, key: str = "sk-mock", **options: Any) -> Spoken:
            mock = channels.loopback(played, is_judged=is_judged)
            client = boto3.Session().client(
                "bedrock-runtime",
                endpoint_url=mock.base_url("bedrock"),
                region_name="us-east-1",
                aws_access_key_id=key,
                aws_secret_access_key="none",
                config=Config(**({"retries": {"total_max_attempts": 1}} | options)),
            )
            running.callback(client.close)
            return Spoken(mock, client, running)

        yield start


def message_of(events: Iterable[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Put a message together from the events of its stream. Shape: (message, reason and usage)."""
    blocks: dict[int, dict[str, Any]] = {}
    end: dict[str, Any] = {}
    for event in events:
        if "contentBlockStart" in event:
            start = event["contentBlockStart"]
            blocks[start["contentBlockIndex"]] = {"toolUse": {**start["start"]["toolUse"], "input": ""}}
        elif "contentBlockDelta" in event:
            delta, index = event["contentBlockDelta"]["delta"], event["contentBlockDelta"]["contentBlockIndex"]
            if "toolUse" in delta:
                blocks[index]["toolUse"]["input"] += delta["toolUse"]["input"]
            elif "reasoningContent" in delta:
                thought = blocks.setdefault(index, {"reasoningContent": {"reasoningText": {}}})
                inside = thought["reasoningContent"]["reasoningText"]
                for name, piece in delta["reasoningContent"].items():
                    inside[name] = inside.get(name, "") + piece
            else:
                block = blocks.setdefault(index, {"text": ""})
                block["text"] += delta["text"]
        elif "contentBlockStop" in event:
            block = blocks[event["contentBlockStop"]["contentBlockIndex"]]
            if "toolUse" in block:
                block["toolUse"]["input"] = json.loads(block["toolUse"]["input"])
        elif "messageStop" in event:
            end |= event["messageStop"]
        elif "metadata" in event:
            end |= event["metadata"]
    return {"role": "assistant", "content": [blocks[index] for index in sorted(blocks)]}, end


def converse(
    spoken: Spoken, *messages: Any, is_stream: bool = False, **more: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Send a conversation. Shape: (message, reason and usage)."""
    asked: dict[str, Any] = {"modelId": MODEL, "messages": list(messages) or [QUESTION], **more}
    if is_stream:
        return message_of(spoken.client.converse_stream(**asked)["stream"])
    answer = spoken.client.converse(**asked)
    return answer["output"]["message"], answer


def test_answer_comes_whole(speak: Speak) -> None:
    spoken = speak(script(step(text(WORDS), expect={"system": "Be brief.", "last_user": "weather?", "model": MODEL})))
    message, answer = converse(spoken, system=[{"text": "Be brief."}], inferenceConfig={"maxTokens": 99})
    assert (message["content"], answer["stopReason"]) == ([{"text": WORDS}], "end_turn")
    assert answer["ResponseMetadata"]["RequestId"].startswith("mock-req-")
    assert spoken.mock.journal[0].path.endswith("-v1%3A0/converse")


@pytest.mark.parametrize("split", [{"chars": 3}, {"bytes": 7}], ids=["by-characters", "by-bytes"])
def test_stream_comes_in_pieces(speak: Speak, split: JsonObject) -> None:
    spoken = speak(script(step(text(WORDS), expect={"stream": True}, stream={"split": split})))
    message, end = converse(spoken, is_stream=True)
    assert (message["content"], end["stopReason"]) == ([{"text": WORDS}], "end_turn")


@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "stream"])
def test_tools_are_called_and_answered(speak: Speak, is_stream: bool) -> None:
    spoken = speak(
        script(
            step(reasoning("Look first."), tool_call("look", {"city": "Ghent"}), expect={"tools": ["look"]}),
            step("Take a coat.", expect={"tool_result": {"name": "look", "equals": "Ghent: rain"}, "messages": 3}),
        )
    )
    message, end = converse(spoken, is_stream=is_stream, toolConfig=TOOLS)
    use = message["content"][-1]["toolUse"]
    assert (use["name"], use["input"], end["stopReason"]) == ("look", {"city": "Ghent"}, "tool_use")
    result = {"toolResult": {"toolUseId": use["toolUseId"], "content": [{"text": "Ghent: rain"}]}}
    answer, _ = converse(spoken, QUESTION, message, {"role": "user", "content": [result]}, toolConfig=TOOLS)
    assert answer["content"] == [{"text": "Take a coat."}]


@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "stream"])
def test_parallel_tools_are_answered_together(speak: Speak, is_stream: bool) -> None:
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
    message, _ = converse(spoken, is_stream=is_stream, toolConfig=TOOLS)
    uses = [block["toolUse"] for block in message["content"] if "toolUse" in block]
    results = [
        {"toolResult": {"toolUseId": use["toolUseId"], "content": [{"json": {use["input"]["city"]: "rain"}}]}}
        for use in uses
    ]
    answer, _ = converse(spoken, QUESTION, message, {"role": "user", "content": results}, toolConfig=TOOLS)
    assert (message["content"][0], answer["content"]) == ({"text": "Let me look. "}, [{"text": "Take a coat."}])


def test_structured_output_is_asked_for_by_schema(speak: Speak) -> None:
    form = {"type": "json_schema", "structure": {"jsonSchema": {"name": "weather", "schema": json.dumps(SCHEMA)}}}
    spoken = speak(
        script(step('{"city": "Ghent"}', expect={"json_path": {"outputConfig.textFormat.type": "json_schema"}}))
    )
    message, _ = converse(spoken, outputConfig={"textFormat": form})
    assert json.loads(message["content"][0]["text"]) == {"city": "Ghent"}


@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "stream"])
def test_reasoning_is_a_block_with_its_signature(speak: Speak, is_stream: bool) -> None:
    spoken = speak(script(step(reasoning("Look first."), text(WORDS), stream={"split": {"chars": 4}}), step("go on")))
    message, _ = converse(spoken, is_stream=is_stream)
    thought, said = message["content"]
    assert (thought["reasoningContent"]["reasoningText"]["text"], said["text"]) == ("Look first.", WORDS)
    assert thought["reasoningContent"]["reasoningText"]["signature"].startswith("mock-signature-")
    assert converse(spoken, QUESTION, message, QUESTION)[0]["content"] == [{"text": "go on"}]


@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "stream"])
def test_usage_counts_the_cache_apart(speak: Speak, is_stream: bool) -> None:
    spoken = speak(script(step("hi", usage={"input": 210, "output": 31, "cached": 128, "reasoning": 12})))
    _, end = converse(spoken, is_stream=is_stream)
    assert end["usage"] == {
        "inputTokens": 82,
        "outputTokens": 31,
        "totalTokens": 241,
        "cacheReadInputTokens": 128,
        "cacheWriteInputTokens": 0,
    }
    assert end["metrics"] == {"latencyMs": 1}


def test_tokens_are_counted(speak: Speak) -> None:
    spoken = speak(script(step("never", optional=True)))
    counted = spoken.client.count_tokens(modelId=MODEL, input={"converse": {"messages": [QUESTION]}})
    assert counted["inputTokens"] == 2


def test_invoke_speaks_the_format_of_the_model(speak: Speak) -> None:
    played = step(
        text(WORDS), expect={"system": "Be brief."}, usage={"input": 9, "output": 5}, stream={"split": {"chars": 4}}
    )
    spoken = speak(script(played, played))
    answer = spoken.client.invoke_model(modelId=MODEL, body=json.dumps(CLAUDE))
    assert json.loads(answer["body"].read())["content"] == [{"type": "text", "text": WORDS}]
    streamed = spoken.client.invoke_model_with_response_stream(modelId=MODEL, body=json.dumps(CLAUDE))
    events = [json.loads(event["chunk"]["bytes"]) for event in streamed["body"]]
    said = [event["delta"]["text"] for event in events if event["type"] == "content_block_delta"]
    assert (streamed["contentType"], "".join(said), len(said) > 3) == ("application/json", WORDS, True)
    assert events[-1]["amazon-bedrock-invocationMetrics"]["outputTokenCount"] == 5


def test_embeddings_are_vectors(speak: Speak) -> None:
    spoken = speak(script(step("never", optional=True)))
    body = json.dumps({"inputText": "rain in Ghent", "dimensions": 256, "normalize": True})
    answer = spoken.client.invoke_model(modelId="amazon.titan-embed-text-v2:0", body=body)
    made = json.loads(answer["body"].read())
    assert (len(made["embedding"]), made["inputTextTokenCount"]) == (256, 4)
    assert sum(value * value for value in made["embedding"]) == pytest.approx(1)


@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(
    ("status", "name"),
    [
        pytest.param(400, "ValidationException", id="400"),
        pytest.param(403, "AccessDeniedException", id="403"),
        pytest.param(404, "ResourceNotFoundException", id="404"),
        pytest.param(408, "ModelTimeoutException", id="408"),
        pytest.param(424, "ModelErrorException", id="424"),
        pytest.param(429, "ThrottlingException", id="429"),
        pytest.param(500, "InternalServerException", id="500"),
        pytest.param(503, "ServiceUnavailableException", id="503"),
    ],
)
def test_errors_are_the_exceptions_of_the_service(speak: Speak, status: int, name: str, is_stream: bool) -> None:
    spoken = speak(script(step(http_error={"status": status, "message": "told so"})))
    with pytest.raises(getattr(spoken.client.exceptions, name), match="told so") as caught:
        converse(spoken, is_stream=is_stream)
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == status


def test_errors_in_a_stream_come_after_the_text_before_them(speak: Speak) -> None:
    from botocore.exceptions import EventStreamError

    spoken = speak(
        script(step(text("It rains"), error_event("The model broke down.", type="ModelStreamErrorException")))
    )
    events = spoken.events()
    assert [list(next(events)) for _ in range(2)] == [["messageStart"], ["contentBlockDelta"]]
    with pytest.raises(EventStreamError, match="The model broke down") as caught:
        next(events)
    assert caught.value.response["Error"]["Code"] == "modelStreamErrorException"


@pytest.mark.parametrize("kind", ["cut", "reset"])
def test_errors_of_the_connection_come_after_the_text_before_them(speak: Speak, kind: str) -> None:
    from botocore.exceptions import ResponseStreamingError
    from urllib3.exceptions import HTTPError

    spoken = speak(script(step(text("It rains"), fault(kind))))
    events = spoken.events()
    assert [list(next(events)) for _ in range(2)] == [["messageStart"], ["contentBlockDelta"]]
    with pytest.raises((ResponseStreamingError, HTTPError)):
        next(events)


def test_errors_in_a_frame_are_found_by_its_checksum(speak: Speak) -> None:
    from botocore.eventstream import ChecksumMismatch

    spoken = speak(script(step({"hex": "0000001000000000deadbeef7d98c8ff"})))
    events = spoken.events()
    next(events)
    with pytest.raises(ChecksumMismatch):
        next(events)


def test_errors_of_an_unscripted_request_show_the_difference_and_are_not_retried(speak: Speak) -> None:
    played = script(step("hi", expect={"last_user": "the sea"}))
    spoken = speak(played, is_judged=False, retries={"mode": "standard"})
    with pytest.raises(spoken.client.exceptions.ValidationException, match=r"mock_unmatched: (.|\n)*the sea"):
        converse(spoken)
    assert (len(spoken.mock.journal), spoken.mock.verify().ok) == (1, False)


def test_errors_of_a_malformed_history_are_the_services_refusal(speak: Speak) -> None:
    spoken = speak(script(step("never")), is_judged=False)
    orphan = {"toolResult": {"toolUseId": "t1", "content": [{"text": "x"}]}}
    with pytest.raises(spoken.client.exceptions.ValidationException, match="exceeds the number of toolUse blocks"):
        converse(spoken, {"role": "user", "content": [orphan]}, toolConfig=TOOLS)
    assert spoken.mock.journal[0].rule == "orphan_tool_result"


@pytest.mark.parametrize("cause", ["rate_limit", "server_error", "overloaded"])
def test_retries_happen_and_the_last_answer_counts(speak: Speak, cause: str, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("botocore.endpoint.time.sleep", waits.append)
    spoken = speak(script({"http_error": cause}, step("then")), retries={"mode": "standard", "total_max_attempts": 2})
    message, answer = converse(spoken)
    assert (message["content"], answer["ResponseMetadata"]["RetryAttempts"]) == ([{"text": "then"}], 1)
    assert (len(spoken.mock.journal), len(waits)) == (2, 1)


def test_retries_wait_as_long_as_the_service_says(speak: Speak, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("botocore.endpoint.time.sleep", waits.append)
    played = script(step(http_error={"status": 429, "retry_after": 4}), step("then"))
    spoken = speak(played, retries={"mode": "standard", "total_max_attempts": 2})
    converse(spoken)
    assert waits == [pytest.approx(4, abs=1)]


def test_timeouts_are_the_clients_own(speak: Speak) -> None:
    from botocore.exceptions import ReadTimeoutError

    spoken = speak(script(step(fault="stall")), read_timeout=PATIENCE_S)
    with pytest.raises(ReadTimeoutError):
        converse(spoken)


def test_timeouts_in_a_stream_come_after_the_text_before_them(speak: Speak) -> None:
    from urllib3.exceptions import ReadTimeoutError

    spoken = speak(script(step(text("It rains"), fault("stall"))), read_timeout=PATIENCE_S)
    events = spoken.events()
    assert [list(next(events)) for _ in range(2)] == [["messageStart"], ["contentBlockDelta"]]
    with pytest.raises(ReadTimeoutError):
        next(events)


def test_keys_tell_conversations_apart(speak: Speak) -> None:
    named = {name: {"steps": [step(f"I am {name}")]} for name in ("one", "two")}
    spoken = speak(script(conversations=named), is_judged=False, key="sk-mock-two")
    assert converse(spoken)[0]["content"] == [{"text": "I am two"}]


def test_a_program_runs_wrapped(run_wrapped: Callable[[JsonObject, str], str]) -> None:
    program = (
        "import boto3\n"
        "client = boto3.client('bedrock-runtime', region_name='us-east-1')\n"
        f"answer = client.converse(modelId='m', messages=[{QUESTION!r}])\n"
        "print(answer['output']['message']['content'][0]['text'])\n"
    )
    assert run_wrapped(script(step("Five Lanes.")), program) == "Five Lanes.\n"
