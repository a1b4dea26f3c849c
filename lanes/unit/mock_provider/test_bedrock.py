"""The Bedrock dialect: what it answers, frame by frame, and what it reads."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Mapping

import httpx
import pytest

import mock_provider
from mock_provider.dialects.bedrock_frames import frame
from mock_provider.json_values import Json, JsonObject
from mock_provider.mock import Mock
from mock_provider.replies import error_event, reasoning, script, step, text, tool_call

DATE = {"x-amz-date": "20261130T120000Z"}
SIGNED = {
    **DATE,
    "authorization": "AWS4-HMAC-SHA256 Credential=AKIATEST0001/20261130/us-east-1/bedrock/aws4_request, "
    f"SignedHeaders=host;x-amz-date, Signature={'0' * 64}",
}
MODEL = "/model/anthropic.mock-v1%3A0"
WHOLE, STREAM = f"{MODEL}/converse", f"{MODEL}/converse-stream"
INVOKE, INVOKE_STREAM = f"{MODEL}/invoke", f"{MODEL}/invoke-with-response-stream"
USER: JsonObject = {"role": "user", "content": [{"text": "hi"}]}
ASKED: JsonObject = {"messages": [USER]}
CLAUDE: JsonObject = {
    "anthropic_version": "bedrock-2023-05-31",
    "max_tokens": 9,
    "messages": [{"role": "user", "content": "hi"}],
}
NEVER = script(step("never", optional=True))
TOOLS: JsonObject = {"tools": [{"toolSpec": {"name": "look", "inputSchema": {"json": {"type": "object"}}}}]}


def sent(played: JsonObject | Mock, path: str, body: Json, headers: Mapping[str, str] | None = None) -> httpx.Response:
    """Send one request."""
    with httpx.Client(transport=mock_provider.transport(played), base_url="http://mock.invalid") as client:
        return client.post(path, json=body, headers=SIGNED if headers is None else headers)


def raw_frames(data: bytes) -> list[tuple[dict[str, str], bytes]]:
    """The messages of a binary stream, both checksums of each compared."""
    found = []
    while data:
        total, size, prelude_sum = struct.unpack(">III", data[:12])
        message, data = data[:total], data[total:]
        (message_sum,) = struct.unpack(">I", message[-4:])
        assert (prelude_sum, message_sum) == (zlib.crc32(message[:8]), zlib.crc32(message[:-4]))
        found.append((headers_of(message[12 : 12 + size]), message[12 + size : -4]))
    return found


def frames_of(data: bytes) -> list[tuple[dict[str, str], JsonObject]]:
    """The messages with what they say."""
    return [(headers, json.loads(payload)) for headers, payload in raw_frames(data)]


def headers_of(block: bytes) -> dict[str, str]:
    """The headers of a frame, all of them texts."""
    found = {}
    while block:
        name = block[1 : 1 + block[0]]
        kind, size = struct.unpack(">BH", block[1 + len(name) : 4 + len(name)])
        assert kind == 7
        found[name.decode()] = block[4 + len(name) : 4 + len(name) + size].decode()
        block = block[4 + len(name) + size :]
    return found


def events_of(answer: httpx.Response) -> list[tuple[str, JsonObject]]:
    """The events of a stream by their names."""
    return [
        (headers.get(":event-type") or headers[":exception-type"], payload)
        for headers, payload in frames_of(answer.content)
    ]


def test_a_frame_is_that_of_the_published_format() -> None:
    empty = frame((), b"")
    assert empty.hex() == "000000100000000005c248eb7d98c8ff"  # the smallest message there is
    assert frames_of(frame(((":a", "ü"),), b"{}")) == [({":a": "ü"}, {})]


def test_a_whole_answer_has_the_message_the_reason_and_usage() -> None:
    played = script(
        step(
            reasoning("Hm."), text("Hello "), text("you"), usage={"input": 20, "output": 9, "cached": 4, "reasoning": 3}
        )
    )
    answer = sent(played, WHOLE, ASKED)
    content = answer.json()
    thought = content["output"]["message"]["content"].pop(0)["reasoningContent"]["reasoningText"]
    assert answer.headers["x-amzn-requestid"].startswith("mock-req-")
    assert (thought["text"], thought["signature"].startswith("mock-signature-")) == ("Hm.", True)
    assert content == {
        "output": {"message": {"role": "assistant", "content": [{"text": "Hello you"}]}},
        "stopReason": "end_turn",
        "usage": {
            "inputTokens": 16,
            "outputTokens": 9,
            "totalTokens": 29,
            "cacheReadInputTokens": 4,
            "cacheWriteInputTokens": 0,
        },
        "metrics": {"latencyMs": 1},
    }


def test_a_stream_is_frames_in_the_order_of_the_service() -> None:
    played = script(
        step(
            reasoning("Hm."),
            text("Hello you"),
            tool_call("look", {"x": 1}, id="t1"),
            stream={"split": "words"},
            usage={"input": 3, "output": 2},
        )
    )
    answer = sent(played, STREAM, ASKED)
    events = events_of(answer)
    signature = events[2][1]["delta"]["reasoningContent"].pop("signature")
    assert answer.headers["content-type"] == "application/vnd.amazon.eventstream"
    assert signature.startswith("mock-signature-")
    assert events == [
        ("messageStart", {"role": "assistant"}),
        ("contentBlockDelta", {"delta": {"reasoningContent": {"text": "Hm."}}, "contentBlockIndex": 0}),
        ("contentBlockDelta", {"delta": {"reasoningContent": {}}, "contentBlockIndex": 0}),
        ("contentBlockStop", {"contentBlockIndex": 0}),
        ("contentBlockDelta", {"delta": {"text": "Hello "}, "contentBlockIndex": 1}),
        ("contentBlockDelta", {"delta": {"text": "you"}, "contentBlockIndex": 1}),
        ("contentBlockStop", {"contentBlockIndex": 1}),
        ("contentBlockStart", {"start": {"toolUse": {"toolUseId": "t1", "name": "look"}}, "contentBlockIndex": 2}),
        ("contentBlockDelta", {"delta": {"toolUse": {"input": '{"x":1}'}}, "contentBlockIndex": 2}),
        ("contentBlockStop", {"contentBlockIndex": 2}),
        ("messageStop", {"stopReason": "tool_use"}),
        (
            "metadata",
            {
                "usage": {
                    "inputTokens": 3,
                    "outputTokens": 2,
                    "totalTokens": 5,
                    "cacheReadInputTokens": 0,
                    "cacheWriteInputTokens": 0,
                },
                "metrics": {"latencyMs": 1},
            },
        ),
    ]


def test_calls_have_ids_and_their_input_as_an_object() -> None:
    played = script(step(tool_call("a", {"x": 1}), tool_call("b", {}, id="call-7"), tool_call("c", raw="[1]")))
    content = sent(played, WHOLE, ASKED).json()
    first, *rest = (block["toolUse"] for block in content["output"]["message"]["content"])
    assert first.pop("toolUseId").startswith("mock-call-")
    rest[1].pop("toolUseId")
    assert [first, *rest] == [
        {"name": "a", "input": {"x": 1}},
        {"toolUseId": "call-7", "name": "b", "input": {}},
        {"name": "c", "input": "[1]"},
    ]
    assert content["stopReason"] == "malformed_tool_use"


@pytest.mark.parametrize(
    ("finish", "reason"),
    [
        pytest.param("stop", "end_turn", id="stop"),
        pytest.param("length", "max_tokens", id="length"),
        pytest.param("content_filter", "content_filtered", id="filter"),
        pytest.param({"raw": "guardrail_intervened"}, "guardrail_intervened", id="raw"),
        pytest.param(None, None, id="missing"),
    ],
)
def test_a_finish_is_said_in_the_words_of_the_dialect(finish: Json, reason: str | None) -> None:
    played = script(step("hi", finish=finish))
    assert sent(played, WHOLE, ASKED).json().get("stopReason") == reason
    assert dict(events_of(sent(played, STREAM, ASKED)))["messageStop"].get("stopReason") == reason


@pytest.mark.parametrize(
    ("event", "name"),
    [
        pytest.param(error_event("Down."), "internalServerException", id="usual"),
        pytest.param(error_event("Down.", type="overloaded_error"), "serviceUnavailableException", id="overloaded"),
        pytest.param(error_event("Down.", type="ThrottlingException"), "throttlingException", id="by-name"),
    ],
)
def test_an_error_in_a_stream_is_an_exception_frame(event: JsonObject, name: str) -> None:
    headers, payload = frames_of(sent(script(step(text("a"), event)), STREAM, ASKED).content)[2]
    assert headers == {":exception-type": name, ":content-type": "application/json", ":message-type": "exception"}
    assert payload == {"message": "Down."}


def test_a_malformed_event_is_a_sound_frame_around_a_broken_payload() -> None:
    answer = sent(script(step({"malformed": "{oops"}, {"comment": "unseen"})), STREAM, ASKED)
    assert raw_frames(answer.content)[1] == (
        {":event-type": "contentBlockDelta", ":content-type": "application/json", ":message-type": "event"},
        b"{oops",
    )
    assert b"unseen" not in answer.content


def test_raw_bytes_stand_between_the_frames_as_they_are() -> None:
    played = script(step({"hex": "c0ffee"}, usage="none", stream={"end_marks": 0}))
    content = sent(played, STREAM, ASKED).content
    assert (events_of_start(content), content[-3:]) == ("messageStart", b"\xc0\xff\xee")


def events_of_start(content: bytes) -> str:
    """The name of the first event, whatever follows."""
    return raw_frames(content[: struct.unpack(">I", content[:4])[0]])[0][0][":event-type"]


@pytest.mark.parametrize(("marks", "count"), [pytest.param(0, 0, id="none"), pytest.param(2, 2, id="twice")])
def test_the_end_mark_is_the_event_with_the_reason(marks: int, count: int) -> None:
    events = events_of(sent(script(step("hi", stream={"end_marks": marks})), STREAM, ASKED))
    assert [name for name, _ in events].count("messageStop") == count


def test_usage_that_a_script_leaves_out_is_not_there() -> None:
    played = script(step("hi", usage="none"))
    assert "usage" not in sent(played, WHOLE, ASKED).json()
    assert [name for name, _ in events_of(sent(played, STREAM, ASKED))][-1] == "messageStop"


def test_a_model_is_named_in_the_address_alone() -> None:
    played = script(step("hi", expect={"model": "anthropic.mock-v1:0"}), models=["anthropic.mock-v1:0"])
    assert sent(played, WHOLE, ASKED).status_code == 200
    arn = "arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fmock"
    refused = sent(played, f"/model/{arn}/converse", ASKED)
    assert (refused.status_code, refused.json()["message"]) == (400, "The provided model identifier is invalid.")


def test_a_history_is_read_with_calls_results_and_pictures() -> None:
    history: list[Json] = [
        {"role": "user", "content": [{"text": "weather?"}, {"image": {"format": "png", "source": {"bytes": "aGk="}}}]},
        {
            "role": "assistant",
            "content": [{"toolUse": {"toolUseId": name, "name": f"look-{name}", "input": {}}} for name in "ab"],
        },
        {
            "role": "user",
            "content": [
                {"toolResult": {"toolUseId": "a", "content": [{"text": "rain"}, {"json": {"mm": 3}}]}},
                {"toolResult": {"toolUseId": "b", "content": [{"text": "none"}], "status": "error"}},
            ],
        },
    ]
    expected: JsonObject = {
        "system": "Be brief.",
        "messages": 5,
        "tools": ["look"],
        "tool_result": [
            {"name": "look-a", "equals": 'rain\n{"mm": 3}', "is_error": False},
            {"name": "look-b", "call": "b", "is_error": True},
        ],
    }
    asked: JsonObject = {"system": [{"text": "Be brief."}], "messages": history, "toolConfig": TOOLS}
    assert sent(script(step("ok", expect=expected)), WHOLE, asked).status_code == 200


def test_invoke_speaks_the_format_of_the_model() -> None:
    played = script(step(text("Hello"), usage={"input": 3, "output": 2}, expect={"last_user": "hi"}))
    content = sent(played, INVOKE, CLAUDE).json()
    assert (content["type"], content["content"], content["stop_reason"]) == (
        "message",
        [{"type": "text", "text": "Hello"}],
        "end_turn",
    )
    answer = sent(played, INVOKE_STREAM, CLAUDE)
    frames = frames_of(answer.content)
    chunks = [json.loads(base64.b64decode(payload["bytes"])) for _, payload in frames]
    assert {headers[":event-type"] for headers, _ in frames} == {"chunk"}
    assert answer.headers["x-amzn-bedrock-content-type"] == "application/json"
    assert [chunk["type"] for chunk in chunks] == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert chunks[-1]["amazon-bedrock-invocationMetrics"]["outputTokenCount"] == 2


def test_an_error_in_an_invoke_stream_is_an_exception_frame_too() -> None:
    events = events_of(sent(script(step(text("a"), error_event("Down."))), INVOKE_STREAM, CLAUDE))
    assert ("internalServerException", {"message": "Down."}) in events


def test_titan_embeddings_are_unit_vectors() -> None:
    content = sent(
        NEVER, "/model/amazon.titan-embed-text-v2%3A0/invoke", {"inputText": "rain", "dimensions": 256}
    ).json()
    vector = content["embedding"]
    assert (len(vector), sum(value * value for value in vector), content["inputTextTokenCount"]) == (
        256,
        pytest.approx(1),
        1,
    )
    assert content["embeddingsByType"] == {"float": vector}


def test_tokens_are_counted_for_both_kinds_of_requests() -> None:
    claude = base64.b64encode(json.dumps(CLAUDE).encode()).decode()
    for given in ({"converse": ASKED}, {"invokeModel": {"body": claude}}):
        assert sent(NEVER, f"{MODEL}/count-tokens", {"input": given}).json() == {"inputTokens": 1}


@pytest.mark.parametrize(
    ("headers", "status", "name"),
    [
        pytest.param(SIGNED, 200, None, id="signed"),
        pytest.param({"authorization": "Bearer AKIATEST0001"}, 200, None, id="key"),
        pytest.param({}, 403, "MissingAuthenticationTokenException", id="none"),
        pytest.param({"authorization": "Basic eDp5"}, 403, "MissingAuthenticationTokenException", id="basic"),
        pytest.param(
            {**DATE, "authorization": "AWS4-HMAC-SHA256 Credential=a/b"}, 403, "IncompleteSignatureException", id="half"
        ),
        pytest.param(
            {"authorization": SIGNED["authorization"]}, 403, "IncompleteSignatureException", id="without-date"
        ),
        pytest.param(
            {**DATE, "authorization": SIGNED["authorization"].replace("AKIATEST0001", "AKIAOTHER001")},
            403,
            "UnrecognizedClientException",
            id="other-signer",
        ),
        pytest.param({"authorization": "Bearer other"}, 403, "AccessDeniedException", id="other-key"),
    ],
)
def test_a_signature_must_be_there_and_is_not_verified(headers: dict[str, str], status: int, name: str | None) -> None:
    answer = sent(script(step("hi", optional=True), api_key="AKIATEST0001"), WHOLE, ASKED, headers)
    assert (answer.status_code, answer.headers.get("x-amzn-errortype")) == (status, name)


def test_the_signature_stays_out_of_the_journal_and_the_signer_names_the_conversation() -> None:
    mock = Mock(script(conversations={name: {"steps": [step(f"I am {name}")]} for name in ("one", "two")}))
    headers = {**SIGNED, "authorization": SIGNED["authorization"].replace("AKIATEST0001", "sk-mock-two")}
    answer = sent(mock, WHOLE, ASKED, headers)
    assert answer.json()["output"]["message"]["content"] == [{"text": "I am two"}]
    assert "0" * 64 not in json.dumps(mock.journal[0].to_json())


@pytest.mark.parametrize(
    ("http_error", "name", "words"),
    [
        pytest.param({"status": 429}, "ThrottlingException", "Too many requests", id="429"),
        pytest.param({"status": 503}, "ServiceUnavailableException", "unable to process", id="503"),
        pytest.param({"status": 418}, "ValidationException", "Malformed input request", id="418"),
        pytest.param(
            {"status": 400, "type": "ModelErrorException", "message": "Own."}, "ModelErrorException", "Own.", id="own"
        ),
    ],
)
def test_an_error_status_has_its_exception_in_a_header(http_error: JsonObject, name: str, words: str) -> None:
    answer = sent(script(step(http_error=http_error)), WHOLE, ASKED)
    assert (answer.status_code, answer.headers["x-amzn-errortype"]) == (http_error["status"], name)
    assert words in answer.json()["message"]


@pytest.mark.parametrize(
    ("seconds", "spelled"), [pytest.param(2, "2000", id="whole"), pytest.param(0.5, "500", id="part")]
)
def test_a_time_to_wait_is_said_in_the_header_of_the_service(seconds: float, spelled: str) -> None:
    answer = sent(script(step(http_error={"status": 429, "retry_after": seconds})), WHOLE, ASKED)
    assert answer.headers["x-amz-retry-after"] == spelled


def test_a_request_that_no_step_accepts_is_refused_as_invalid() -> None:
    answer = sent(script(step("x", expect={"last_user": "the sea"}, optional=True)), WHOLE, ASKED)
    assert (answer.status_code, answer.headers["x-amzn-errortype"]) == (400, "ValidationException")
    assert answer.json()["message"].startswith("mock_unmatched: ")


def test_an_unknown_address_and_a_body_that_is_no_json_have_exceptions_of_their_own() -> None:
    lost = sent(NEVER, "/model/m/converse-backwards", ASKED)
    with httpx.Client(transport=mock_provider.transport(NEVER), base_url="http://mock.invalid") as client:
        broken = client.post(WHOLE, content=b"{", headers=SIGNED)
    assert [(answer.status_code, answer.headers["x-amzn-errortype"]) for answer in (lost, broken)] == [
        (404, "UnknownOperationException"),
        (400, "SerializationException"),
    ]
