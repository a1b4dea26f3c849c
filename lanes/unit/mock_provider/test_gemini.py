"""The Gemini dialect: what it answers, field by field, and what it reads."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping

import httpx
import pytest

import mock_provider
from mock_provider.json_values import Json, JsonObject
from mock_provider.mock import Mock
from mock_provider.replies import error_event, reasoning, script, step, text, tool_call

KEY = {"x-goog-api-key": "AIza-test-0001"}
MODEL = "/v1beta/models/gemini-2.5-flash"
WHOLE, STREAM, EVENTS = (
    f"{MODEL}:generateContent",
    f"{MODEL}:streamGenerateContent",
    f"{MODEL}:streamGenerateContent?alt=sse",
)
ASKED: JsonObject = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
NEVER = script(step("never", optional=True))


def sent(
    played: JsonObject | Mock, path: str, body: Json = None, headers: Mapping[str, str] | None = None
) -> httpx.Response:
    """Send one request: a POST if there is a body."""
    with httpx.Client(transport=mock_provider.transport(played), base_url="http://mock.invalid") as client:
        shown = KEY if headers is None else headers
        return client.get(path, headers=shown) if body is None else client.post(path, json=body, headers=shown)


def events_of(answer: httpx.Response) -> list[JsonObject]:
    """The chunks of a stream of events."""
    return [json.loads(event.removeprefix(b"data: ")) for event in answer.content.split(b"\r\n\r\n") if event]


def test_a_whole_answer_has_candidate_usage_version_and_id() -> None:
    played = script(step(text("Hello "), text("you"), usage={"input": 20, "output": 9, "cached": 4, "reasoning": 3}))
    answer = sent(played, WHOLE, ASKED)
    content = answer.json()
    assert answer.headers["x-mock-provider"] == "scripted"
    assert content.pop("responseId").startswith("mock-resp-")
    assert content == {
        "candidates": [
            {"content": {"parts": [{"text": "Hello you"}], "role": "model"}, "finishReason": "STOP", "index": 0}
        ],
        "usageMetadata": {
            "promptTokenCount": 20,
            "candidatesTokenCount": 6,
            "totalTokenCount": 29,
            "cachedContentTokenCount": 4,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 20}],
            "cacheTokensDetails": [{"modality": "TEXT", "tokenCount": 4}],
            "thoughtsTokenCount": 3,
        },
        "modelVersion": "gemini-2.5-flash",
    }


def test_a_stream_of_events_has_a_response_a_piece_and_the_reason_in_the_last() -> None:
    played = script(step("Hello you", stream={"split": "words"}, usage={"input": 3, "output": 2}))
    answer = sent(played, EVENTS, ASKED)
    chunks = events_of(answer)
    said = [
        (chunk["candidates"][0]["content"]["parts"], chunk["candidates"][0].get("finishReason")) for chunk in chunks
    ]
    assert answer.headers["content-type"] == "text/event-stream"
    assert said == [([{"text": "Hello "}], None), ([{"text": "you"}], None), ([{"text": ""}], "STOP")]
    assert [chunk["usageMetadata"]["totalTokenCount"] for chunk in chunks] == [3, 3, 5]
    assert len({chunk["responseId"] for chunk in chunks}) == 1


def test_without_alt_the_same_chunks_are_the_elements_of_one_array() -> None:
    played = script(step("Hello you", stream={"split": "words"}))
    array, events = sent(played, STREAM, ASKED), sent(played, EVENTS, ASKED)
    assert array.headers["content-type"] == "application/json; charset=UTF-8"
    assert array.json() == events_of(events)


@pytest.mark.parametrize(("marks", "end"), [pytest.param(0, b"}", id="none"), pytest.param(2, b"}]]", id="twice")])
def test_the_end_mark_of_an_array_is_its_bracket(marks: int, end: bytes) -> None:
    answer = sent(script(step("hi", stream={"end_marks": marks})), STREAM, ASKED)
    assert (answer.content[:2], answer.content.endswith(end)) == (b"[{", True)


def test_calls_come_whole_and_end_with_stop() -> None:
    played = script(
        step(text("Look."), tool_call("a", {"x": 1}), tool_call("b", {}, id="call-7"), tool_call("c", {}, id=None))
    )
    whole = sent(played, WHOLE, ASKED).json()["candidates"][0]
    first, *rest = whole["content"]["parts"][1:]
    assert whole["finishReason"] == "STOP"
    assert first["functionCall"].pop("id").startswith("mock-call-")
    assert [first, *rest] == [
        {"functionCall": {"name": "a", "args": {"x": 1}}},
        {"functionCall": {"id": "call-7", "name": "b", "args": {}}},
        {"functionCall": {"name": "c", "args": {}}},
    ]
    chunks = events_of(sent(played, EVENTS, ASKED))
    assert [
        part for chunk in chunks for part in chunk["candidates"][0]["content"]["parts"] if "functionCall" in part
    ] == (sent(played, WHOLE, ASKED).json()["candidates"][0]["content"]["parts"][1:])


@pytest.mark.parametrize("raw", [pytest.param('{"x": ', id="cut"), pytest.param("[1]", id="array")])
def test_arguments_that_are_no_object_end_a_candidate_as_malformed(raw: str) -> None:
    played = script(step(tool_call("a", raw=raw)))
    whole = sent(played, WHOLE, ASKED).json()["candidates"][0]
    last = events_of(sent(played, EVENTS, ASKED))[-1]["candidates"][0]
    assert whole["content"] == {"role": "model"}
    for candidate in (whole, last):
        assert candidate["finishReason"] == "MALFORMED_FUNCTION_CALL"
        assert candidate["finishMessage"] == f"Malformed function call: a({raw})"


def test_thinking_is_a_thought_part_and_its_signature_stands_at_the_first_call() -> None:
    played = script(step(reasoning("Look first."), tool_call("a", {}), tool_call("b", {})))
    thought, first, second = sent(played, WHOLE, ASKED).json()["candidates"][0]["content"]["parts"]
    assert thought == {"text": "Look first.", "thought": True}
    assert base64.b64decode(first["thoughtSignature"]).startswith(b"mock-thought-signature-")
    assert "thoughtSignature" not in second


def test_without_a_call_the_signature_stands_at_the_last_text() -> None:
    played = script(step(reasoning("Look."), text("Rain."), stream={"split": {"chars": 3}}))
    whole = sent(played, WHOLE, ASKED).json()["candidates"][0]["content"]["parts"]
    last = events_of(sent(played, EVENTS, ASKED))[-1]["candidates"][0]["content"]["parts"]
    assert [set(part) for part in whole] == [{"text", "thought"}, {"text", "thoughtSignature"}]
    assert last == [{"text": "", "thoughtSignature": whole[1]["thoughtSignature"]}]


@pytest.mark.parametrize(
    ("finish", "reason"),
    [
        pytest.param("stop", "STOP", id="stop"),
        pytest.param("length", "MAX_TOKENS", id="length"),
        pytest.param({"raw": "RECITATION"}, "RECITATION", id="raw"),
        pytest.param(None, None, id="missing"),
    ],
)
def test_a_finish_is_said_in_the_words_of_the_dialect(finish: Json, reason: str | None) -> None:
    played = script(step("hi", finish=finish))
    whole = sent(played, WHOLE, ASKED).json()["candidates"][0]
    last = events_of(sent(played, EVENTS, ASKED))[-1]["candidates"][0]
    assert (whole.get("finishReason"), last.get("finishReason")) == (reason, reason)


def test_a_filtered_answer_is_cut_off_with_its_rating() -> None:
    candidate = sent(script(step("How to", finish="content_filter")), WHOLE, ASKED).json()["candidates"][0]
    assert candidate["finishReason"] == "SAFETY"
    assert candidate["content"]["parts"] == [{"text": "How to"}]
    assert candidate["safetyRatings"][0]["blocked"] is True


@pytest.mark.parametrize("path", [pytest.param(WHOLE, id="whole"), pytest.param(EVENTS, id="stream")])
def test_a_filter_before_any_word_blocks_the_prompt(path: str) -> None:
    played = script(step(reply=[], finish="content_filter", usage={"input": 4, "output": 0}))
    answer = sent(played, path, ASKED)
    content = answer.json() if path == WHOLE else events_of(answer)[0]
    assert content["promptFeedback"]["blockReason"] == "SAFETY"
    assert "candidates" not in content
    assert content["usageMetadata"]["totalTokenCount"] == 4


def test_several_candidates_are_the_same_answer_by_index() -> None:
    asked = {**ASKED, "generationConfig": {"candidateCount": 2}}
    candidates = sent(script(step("hi")), WHOLE, asked).json()["candidates"]
    assert [candidate.pop("index") for candidate in candidates] == [0, 1]
    assert candidates[0] == candidates[1]


def test_what_a_script_breaks_is_broken_in_the_frame_of_the_request() -> None:
    played = script(
        step(text("a"), {"malformed": "{oops"}, {"hex": "ff"}, {"comment": "still here"}, error_event("Down."))
    )
    events, array = sent(played, EVENTS, ASKED).content, sent(played, STREAM, ASKED).content
    assert b"data: {oops\r\n\r\n\xff: still here\r\n\r\ndata: " in events
    assert b',\r\n{oops\xff,\r\n{"error":' in array
    assert b'{"error":{"code":500,"message":"Down.","status":"INTERNAL"}}' in events


def test_usage_that_a_script_leaves_out_is_not_there() -> None:
    assert "usageMetadata" not in sent(script(step("hi", usage="none")), WHOLE, ASKED).json()


def test_both_spellings_of_names_and_one_value_for_a_list_are_read() -> None:
    asked: JsonObject = {
        "system_instruction": {"parts": {"text": "Be brief."}},
        "contents": {"parts": {"text": "hi"}},
        "tools": {"function_declarations": [{"name": "look"}]},
        "generation_config": {"max_output_tokens": "9"},
    }
    played = script(step("ok", expect={"system": "Be brief.", "last_user": "hi", "tools": {"exactly": ["look"]}}))
    assert sent(played, WHOLE, asked).status_code == 200


def test_a_conversation_is_known_again_with_and_without_the_ids_of_its_calls() -> None:
    conversations = {
        name: {"when": {"user_contains": name}, "steps": [step(tool_call("look", {"at": name})), step(f"done {name}")]}
        for name in ("east", "west")
    }
    mock = Mock(script(conversations=conversations))
    for name in ("east", "west"):
        question: JsonObject = {"role": "user", "parts": [{"text": name}]}
        reply = sent(mock, WHOLE, {"contents": [question]}).json()["candidates"][0]["content"]
        for part in reply["parts"]:
            part["functionCall"].pop("id")
        response: JsonObject = {"functionResponse": {"name": "look", "response": {"result": "seen"}}}
        history: list[Json] = [question, reply, {"role": "user", "parts": [response]}]
        # What the client says now holds neither name: only the history tells where it belongs.
        answer = sent(mock, WHOLE, {"contents": history}).json()
        assert answer["candidates"][0]["content"]["parts"] == [{"text": f"done {name}"}]
    assert mock.verify().ok


def test_a_streamed_turn_sent_back_chunk_by_chunk_is_the_same_message() -> None:
    conversations = {
        name: {
            "when": {"user_contains": name},
            "steps": [step(f"Hello {name}", stream={"split": "words"}), step("done")],
        }
        for name in ("east", "west")
    }
    mock = Mock(script(conversations=conversations))
    for name in ("east", "west"):
        question: JsonObject = {"role": "user", "parts": [{"text": name}]}
        chunks = events_of(sent(mock, EVENTS, {"contents": [question]}))
        said = [chunk["candidates"][0]["content"] for chunk in chunks]
        assert len(said) == 3
        answer = sent(mock, WHOLE, {"contents": [question, *said, {"role": "user", "parts": [{"text": "and?"}]}]})
        assert answer.json()["candidates"][0]["content"]["parts"] == [{"text": "done"}]
    assert mock.verify().ok


@pytest.mark.parametrize(
    ("response", "text_of_it", "is_error"),
    [
        pytest.param({"result": "rain"}, "rain", False, id="result"),
        pytest.param({"output": {"sky": "grey"}}, '{"sky": "grey"}', False, id="output"),
        pytest.param({"error": "no such city"}, "no such city", True, id="error"),
        pytest.param({"sky": "grey"}, '{"sky": "grey"}', False, id="own"),
    ],
)
def test_a_function_response_is_read_as_a_tool_result(response: JsonObject, text_of_it: str, is_error: bool) -> None:
    history: list[Json] = [
        {"role": "user", "parts": [{"text": "weather?"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": response}}]},
    ]
    expected: JsonObject = {"tool_result": {"name": "look", "equals": text_of_it, "is_error": is_error}, "messages": 3}
    assert sent(script(step("ok", expect=expected)), WHOLE, {"contents": history}).status_code == 200


def test_tokens_are_counted_for_contents_and_for_a_whole_request() -> None:
    counted = [sent(NEVER, f"{MODEL}:countTokens", body).json() for body in (ASKED, {"generateContentRequest": ASKED})]
    assert counted == [{"totalTokens": 1, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 1}]}] * 2


def test_embeddings_are_unit_vectors_alone_and_in_batches() -> None:
    content: JsonObject = {"parts": [{"text": "rain in Ghent"}]}
    one = sent(NEVER, "/v1/models/e:embedContent", {"content": content, "outputDimensionality": 8}).json()
    request: JsonObject = {"model": "models/e", "content": content, "outputDimensionality": 8}
    many = sent(NEVER, "/v1/models/e:batchEmbedContents", {"requests": [request, request]}).json()
    values = one["embedding"]["values"]
    assert (len(values), sum(value * value for value in values)) == (8, pytest.approx(1))
    assert many == {"embeddings": [{"values": values}, {"values": values}]}


def test_models_are_listed_page_by_page_and_shown() -> None:
    played = script(step("never", optional=True), models=["a", "b", "c"])
    first = sent(played, "/v1beta/models?pageSize=2").json()
    second = sent(played, f"/v1beta/models?pageSize=2&pageToken={first['nextPageToken']}").json()
    assert [[model["name"] for model in page["models"]] for page in (first, second)] == [
        ["models/a", "models/b"],
        ["models/c"],
    ]
    assert "nextPageToken" not in second
    assert sent(played, "/v1/models/b").json()["supportedGenerationMethods"][0] == "generateContent"
    assert sent(played, "/v1/models/z").json()["error"]["status"] == "NOT_FOUND"


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        pytest.param(WHOLE, KEY, id="header"),
        pytest.param(f"{WHOLE}?key=AIza-test-0001", {}, id="query"),
        pytest.param(WHOLE, {"authorization": "Bearer AIza-test-0001"}, id="bearer"),
    ],
)
def test_a_key_may_stand_in_three_places(path: str, headers: dict[str, str]) -> None:
    played = script(step("in"), api_key="AIza-test-0001")
    mock = Mock(played)
    assert sent(mock, path, ASKED, headers).status_code == 200
    assert "AIza-test-0001" not in json.dumps(mock.journal[0].to_json())


@pytest.mark.parametrize(
    ("headers", "status", "name", "reason"),
    [
        pytest.param({}, 403, "PERMISSION_DENIED", None, id="none"),
        pytest.param({"x-goog-api-key": "other"}, 400, "INVALID_ARGUMENT", "API_KEY_INVALID", id="wrong"),
    ],
)
def test_a_wrong_key_is_refused_in_the_form_of_the_provider(
    headers: dict[str, str], status: int, name: str, reason: str | None
) -> None:
    answer = sent(script(step("never", optional=True), api_key="right-key"), WHOLE, ASKED, headers)
    error = answer.json()["error"]
    details = error.get("details", [{}])
    assert (answer.status_code, error["code"], error["status"], details[0].get("reason")) == (
        status,
        status,
        name,
        reason,
    )


def test_a_request_that_no_step_accepts_is_refused_with_the_difference() -> None:
    answer = sent(script(step("x", expect={"last_user": "the sea"}, optional=True)), WHOLE, ASKED)
    error = answer.json()["error"]
    assert (answer.status_code, error["status"], error["details"][0]["reason"]) == (
        400,
        "INVALID_ARGUMENT",
        "mock_unmatched",
    )
    assert "the sea" in error["message"]


def test_a_time_to_wait_is_said_in_header_and_details() -> None:
    answer = sent(script(step(http_error={"status": 429, "retry_after": 2})), WHOLE, ASKED)
    error = answer.json()["error"]
    assert (answer.headers["retry-after"], error["status"]) == ("2", "RESOURCE_EXHAUSTED")
    assert error["details"] == [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "2s"}]


@pytest.mark.parametrize("prefix", ["/v1beta", "/v1", "/v1alpha", ""])
def test_versioned_and_root_paths_are_alike(prefix: str) -> None:
    assert sent(script(step("hi")), f"{prefix}/models/m:generateContent", ASKED).status_code == 200


def test_an_address_that_several_dialects_have_is_told_by_the_headers() -> None:
    played = script(step("never", optional=True), models=["m"])
    assert "models" in sent(played, "/v1/models").json()
    assert "data" in sent(played, "/v1/models", headers={"authorization": "Bearer x"}).json()


def test_an_unknown_address_is_refused_in_the_form_of_the_dialect() -> None:
    answer = sent(NEVER, "/v1beta/cachedContents", ASKED)
    assert (answer.status_code, answer.json()["error"]["status"]) == (404, "NOT_FOUND")


def test_a_body_that_is_no_json_is_refused_in_the_words_of_the_provider() -> None:
    with httpx.Client(transport=mock_provider.transport(NEVER), base_url="http://mock.invalid") as client:
        answer = client.post(WHOLE, content=b"{", headers=KEY)
    assert answer.json()["error"]["message"].startswith("Invalid JSON payload received.")
