"""The Ollama dialect: what it answers, line by line, and what it reads."""

from __future__ import annotations

import json
from collections.abc import Mapping

import httpx
import pytest

import mock_provider
from mock_provider.dialects.ollama_output import moment
from mock_provider.json_values import Json, JsonObject
from mock_provider.mock import Mock
from mock_provider.replies import error_event, reasoning, script, step, text, tool_call
from mock_provider.script_check import MAX_CREATED

USER: JsonObject = {"role": "user", "content": "hi"}
TIME = "2023-11-14T22:13:20Z"
NEVER = script(step("never", optional=True))


def sent(
    played: JsonObject | Mock, path: str, body: Json = None, headers: Mapping[str, str] | None = None
) -> httpx.Response:
    """Send one request: a POST if there is a body."""
    with httpx.Client(transport=mock_provider.transport(played), base_url="http://mock.invalid") as client:
        return client.get(path, headers=headers) if body is None else client.post(path, json=body, headers=headers)


def chat(*messages: Json, **more: Json) -> JsonObject:
    """A chat request that is not streamed."""
    return {"model": "m", "messages": list(messages) or [USER], "stream": False, **more}


def lines_of(answer: httpx.Response) -> list[JsonObject]:
    """The lines of a stream."""
    return [json.loads(line) for line in answer.content.split(b"\n") if line]


def test_a_whole_answer_has_the_message_the_reason_and_counts() -> None:
    played = script(step(reasoning("Hm."), text("Hello "), text("you"), usage={"input": 20, "output": 9}))
    assert sent(played, "/api/chat", chat()).json() == {
        "model": "m",
        "created_at": TIME,
        "message": {"role": "assistant", "content": "Hello you", "thinking": "Hm."},
        "done": True,
        "done_reason": "stop",
        "total_duration": 111000000,
        "load_duration": 1000000,
        "prompt_eval_count": 20,
        "prompt_eval_duration": 20000000,
        "eval_count": 9,
        "eval_duration": 90000000,
    }


def test_it_streams_unless_told_not_to_and_counts_in_the_last_line() -> None:
    played = script(
        step(reasoning("Hm."), text("Hello you"), stream={"split": "words"}, usage={"input": 0, "output": 0})
    )
    answer = sent(played, "/api/chat", {"model": "m", "messages": [USER]})
    lines = lines_of(answer)
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert lines[:-1] == [
        {"model": "m", "created_at": TIME, "message": {"role": "assistant", **said}, "done": False}
        for said in ({"content": "", "thinking": "Hm."}, {"content": "Hello "}, {"content": "you"})
    ]
    assert (lines[-1]["done"], lines[-1]["done_reason"], lines[-1]["message"]["content"]) == (True, "stop", "")
    assert (lines[-1]["prompt_eval_count"], lines[-1]["eval_count"]) == (1, 1)  # a zero would be taken for nothing


def test_the_marks_at_which_clients_cut_lines_are_escaped() -> None:
    played = script(step("a\u2028b\u2029c\x85d\ne"))
    answer = sent(played, "/api/chat", chat(stream=True))
    assert answer.text.splitlines() == answer.text.split("\n")[:-1]
    assert lines_of(answer)[0]["message"]["content"] == "a\u2028b\u2029c\x85d\ne"


def test_calls_come_whole_with_their_arguments_as_an_object() -> None:
    played = script(
        step(text("Look."), tool_call("a", {"x": 1}), tool_call("b", {}, id="call-7"), tool_call("c", {}, id=None))
    )
    message = sent(played, "/api/chat", chat()).json()["message"]
    first, *rest = message["tool_calls"]
    assert message["content"] == "Look."
    assert first.pop("id").startswith("mock-call-")
    assert [first, *rest] == [
        {"function": {"index": 0, "name": "a", "arguments": {"x": 1}}},
        {"id": "call-7", "function": {"index": 1, "name": "b", "arguments": {}}},
        {"function": {"index": 2, "name": "c", "arguments": {}}},
    ]
    streamed = [line["message"].get("tool_calls") for line in lines_of(sent(played, "/api/chat", chat(stream=True)))]
    whole = sent(played, "/api/chat", chat()).json()["message"]["tool_calls"]
    assert streamed == [None, [whole[0]], [whole[1]], [whole[2]], None]


def test_arguments_that_are_no_object_stay_the_text_that_the_model_wrote() -> None:
    played = script(step(tool_call("a", raw='{"x": ')))
    message = sent(played, "/api/chat", chat()).json()["message"]
    assert message == {"role": "assistant", "content": '{"name": "a", "arguments": {"x": }'}
    assert lines_of(sent(played, "/api/chat", chat(stream=True)))[0]["message"] == message


@pytest.mark.parametrize(
    ("finish", "reason"),
    [
        pytest.param("stop", "stop", id="stop"),
        pytest.param("length", "length", id="length"),
        pytest.param("content_filter", "stop", id="no-word-for-it"),
        pytest.param({"raw": "load"}, "load", id="raw"),
        pytest.param(None, None, id="missing"),
    ],
)
def test_a_finish_is_said_in_the_words_of_the_dialect(finish: Json, reason: str | None) -> None:
    played = script(step("hi", finish=finish))
    assert sent(played, "/api/chat", chat()).json().get("done_reason") == reason
    assert lines_of(sent(played, "/api/chat", chat(stream=True)))[-1].get("done_reason") == reason


def test_what_a_script_breaks_is_a_line_of_its_own() -> None:
    played = script(
        step(text("a"), {"malformed": "{oops"}, {"hex": "ff0a"}, {"comment": "unseen"}, error_event("Down."))
    )
    content = sent(played, "/api/chat", chat(stream=True)).content
    assert b'"done":false}\n{oops\n\xff\n{"error":"Down."}\n{"model"' in content


@pytest.mark.parametrize(("marks", "count"), [pytest.param(0, 0, id="none"), pytest.param(2, 2, id="twice")])
def test_the_end_mark_is_the_line_that_is_done(marks: int, count: int) -> None:
    answer = sent(script(step("hi", stream={"end_marks": marks})), "/api/chat", chat(stream=True))
    assert sum(line["done"] is True for line in lines_of(answer)) == count


def test_generate_answers_a_prompt() -> None:
    asked: JsonObject = {"model": "m", "prompt": "Once", "system": "Tell.", "suffix": "end", "stream": False}
    played = script(
        step(reasoning("Hm."), text("upon"), expect={"system": "Tell.", "last_user": {"equals": "Once\nend"}})
    )
    content = sent(played, "/api/generate", asked).json()
    assert (content["response"], content["thinking"], content["context"]) == ("upon", "Hm.", [1, 2, 3])
    assert "message" not in content
    streamed = lines_of(sent(script(step("upon")), "/api/generate", {"model": "m", "prompt": "Once", "raw": True}))
    assert [line["response"] for line in streamed] == ["upon", ""]
    assert "context" not in streamed[-1]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        pytest.param("/api/chat", {"message": {"role": "assistant", "content": ""}}, id="chat"),
        pytest.param("/api/generate", {"response": ""}, id="generate"),
    ],
)
@pytest.mark.parametrize(
    ("more", "reason"),
    [
        pytest.param({}, "load", id="load"),
        pytest.param({"keep_alive": 0}, "unload", id="unload"),
        pytest.param({"keep_alive": "5m"}, "load", id="kept"),
    ],
)
def test_a_request_that_says_nothing_loads_or_unloads_and_takes_no_step(
    path: str, said: JsonObject, more: JsonObject, reason: str
) -> None:
    mock = Mock(NEVER)
    content = sent(mock, path, {"model": "m", **more}).json()
    assert content == {"model": "m", "created_at": TIME, **said, "done": True, "done_reason": reason}
    assert mock.verify().ok


def test_a_history_is_read_with_calls_results_and_pictures() -> None:
    history: list[Json] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "weather?", "images": ["aGk="]},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"function": {"name": name, "arguments": {}}} for name in ("rain", "wind")],
        },
        {"role": "tool", "tool_name": "wind", "content": "strong"},
        {"role": "tool", "content": "much"},
    ]
    expected: JsonObject = {
        "system": "Be brief.",
        "messages": 5,
        "tool_result": [{"name": "wind", "equals": "strong"}, {"name": "rain", "equals": "much"}],
    }
    assert sent(script(step("ok", expect=expected)), "/api/chat", chat(*history)).status_code == 200


def test_a_conversation_is_known_again_without_the_ids_of_its_calls() -> None:
    conversations = {
        name: {"when": {"user_contains": name}, "steps": [step(tool_call("look", {"at": name})), step(f"done {name}")]}
        for name in ("east", "west")
    }
    mock = Mock(script(conversations=conversations))
    for name in ("east", "west"):
        question: JsonObject = {"role": "user", "content": name}
        reply = sent(mock, "/api/chat", chat(question)).json()["message"]
        for call in reply["tool_calls"]:
            call.pop("id")
        answer = sent(mock, "/api/chat", chat(question, reply, {"role": "tool", "content": "seen"}))
        assert answer.json()["message"]["content"] == f"done {name}"
    assert mock.verify().ok


def test_embeddings_are_unit_vectors_in_both_forms() -> None:
    many = sent(NEVER, "/api/embed", {"model": "e", "input": ["rain", "sun"], "dimensions": 8}).json()
    one = sent(NEVER, "/api/embed", {"model": "e", "input": "rain"}).json()
    old = sent(NEVER, "/api/embeddings", {"model": "e", "prompt": "rain"}).json()
    assert [len(vector) for vector in many["embeddings"]] == [8, 8]
    assert sum(value * value for value in many["embeddings"][0]) == pytest.approx(1)
    assert (old, many["prompt_eval_count"]) == ({"embedding": one["embeddings"][0]}, 2)
    assert sent(NEVER, "/api/embed", {"model": "e", "input": []}).json() == {"model": "e", "embeddings": []}


def test_models_are_listed_loaded_and_shown_with_their_tag() -> None:
    played = script(step("never", optional=True), models=["small", "large:8b"])
    tags = sent(played, "/api/tags").json()["models"]
    assert [model["name"] for model in tags] == ["small:latest", "large:8b"]
    assert [model["model"] for model in sent(played, "/api/ps").json()["models"]] == ["small:latest", "large:8b"]
    assert set(tags[0]) == {"name", "model", "modified_at", "size", "digest", "details"}
    shown = sent(played, "/api/show", {"model": "small"}).json()
    assert {"tools", "thinking", "embedding"} <= set(shown["capabilities"])
    assert sent(played, "/api/show", {"model": "none"}).json() == {"error": "model 'none' not found"}
    assert sent(played, "/api/version").json()["version"].count(".") == 2


def test_a_model_may_be_named_with_and_without_its_tag() -> None:
    played = script(step("hi", repeat="forever"), models=["small"])
    assert [sent(played, "/api/chat", chat(model=name)).status_code for name in ("small", "small:latest", "tall")] == [
        200,
        200,
        404,
    ]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        pytest.param({"authorization": "Bearer right-key"}, 200, id="right"),
        pytest.param({"authorization": "Bearer other"}, 401, id="wrong"),
        pytest.param({}, 401, id="none"),
    ],
)
def test_a_key_is_asked_for_only_where_the_script_has_one(headers: dict[str, str], status: int) -> None:
    assert sent(script(step("hi")), "/api/chat", chat(), {}).status_code == 200
    answer = sent(script(step("hi", optional=True), api_key="right-key"), "/api/chat", chat(), headers)
    assert answer.status_code == status
    assert status == 200 or answer.json() == {"error": "unauthorized"}


def test_a_request_that_no_step_accepts_is_refused_in_one_text() -> None:
    answer = sent(script(step("x", expect={"last_user": "the sea"}, optional=True)), "/api/chat", chat())
    assert answer.status_code == 400
    assert list(answer.json()) == ["error"]
    assert answer.json()["error"].startswith("mock_unmatched: ")
    assert "the sea" in answer.json()["error"]


@pytest.mark.parametrize(
    ("http_error", "words"),
    [
        pytest.param({"status": 503}, "server busy", id="usual"),
        pytest.param({"status": 500, "message": "told so"}, "told so", id="own"),
        pytest.param({"status": 400, "code": "context_length_exceeded"}, "exceeds the context length", id="code"),
    ],
)
def test_an_error_status_is_a_plain_text(http_error: JsonObject, words: str) -> None:
    answer = sent(script(step(http_error=http_error)), "/api/chat", chat())
    assert (answer.status_code, words in answer.json()["error"]) == (http_error["status"], True)


@pytest.mark.parametrize(
    ("content", "words"),
    [pytest.param(b"", "missing request body", id="empty"), pytest.param(b"{", "invalid character", id="no-json")],
)
def test_a_body_that_is_no_json_is_refused_in_the_words_of_the_server(content: bytes, words: str) -> None:
    with httpx.Client(transport=mock_provider.transport(NEVER), base_url="http://mock.invalid") as client:
        answer = client.post("/api/chat", content=content)
    assert (answer.status_code, words in answer.json()["error"]) == (400, True)


def test_an_unknown_address_is_refused_in_the_form_of_the_dialect() -> None:
    answer = sent(NEVER, "/api/pull", {"model": "m"})
    assert (answer.status_code, list(answer.json())) == (404, ["error"])


def test_the_latest_time_that_a_script_may_say_can_be_spelled() -> None:
    assert moment(MAX_CREATED) == "6325-04-08T15:04:32Z"
