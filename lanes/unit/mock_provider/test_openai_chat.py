"""Chat answers, whole and streamed, field by field."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from mock_provider.json_values import Json, JsonObject
from mock_provider.replies import comment, error_event, malformed, reasoning, refusal, script, step, text, tool_call
from mock_provider.script import ScriptLike

if TYPE_CHECKING:
    from lanes.unit.mock_provider.conftest import Play

Start = Callable[[ScriptLike], "Play"]


def chunks(run: Play, **more: Json) -> list[JsonObject]:
    """Ask for a stream; the chunks without what is the same in all."""
    lines = run.ask("x", stream=True, **more).content.decode("utf-8").split("\n\n")
    assert lines[-2:] == ["data: [DONE]", ""]
    found: list[JsonObject] = [json.loads(line.removeprefix("data: ")) for line in lines[:-2]]
    for chunk in found:
        assert chunk["object"] == "chat.completion.chunk"
        assert str(chunk["id"]).startswith("mock-chatcmpl-")
    return found


def deltas(found: list[JsonObject]) -> list[tuple[JsonObject, str | None]]:
    return [(choice["delta"], choice["finish_reason"]) for chunk in found for choice in chunk["choices"]]  # type: ignore[misc, union-attr, index] # JSON by construction


def test_a_whole_answer_has_every_field(play: Start) -> None:
    run = play(script(step("hi", usage={"input": 5, "output": 2, "cached": 3}), model="m-small"))
    answer = run.ask("x")
    content = answer.json()
    identity = content.pop("id")
    assert identity.startswith("mock-chatcmpl-")
    assert answer.headers["x-mock-provider"] == "scripted"
    assert content == {
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "m-small",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "hi", "refusal": None, "annotations": []},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": 5,
            "completion_tokens": 2,
            "total_tokens": 7,
            "prompt_tokens_details": {"cached_tokens": 3, "audio_tokens": 0},
            "completion_tokens_details": {
                "reasoning_tokens": 0,
                "audio_tokens": 0,
                "accepted_prediction_tokens": 0,
                "rejected_prediction_tokens": 0,
            },
        },
        "system_fingerprint": "fp_mock",
    }


def test_tool_calls_have_ids_of_their_own_unless_given(play: Start) -> None:
    run = play(script(step(tool_call("f", {"a": 1}), tool_call("g", id="call_7"), tool_call("h", raw="{oops"))))
    choice = run.ask("x").json()["choices"][0]
    calls = choice["message"]["tool_calls"]
    assert (choice["finish_reason"], choice["message"]["content"]) == ("tool_calls", None)
    assert [call["function"] for call in calls] == [
        {"name": "f", "arguments": '{"a":1}'},
        {"name": "g", "arguments": "{}"},
        {"name": "h", "arguments": "{oops"},
    ]
    assert [call["id"].startswith("mock-call-") for call in calls] == [True, False, True]
    assert calls[0]["id"] != calls[2]["id"]


def test_a_stream_gives_the_role_the_pieces_the_finish_and_the_usage(play: Start) -> None:
    run = play(script(step(text("one two"), usage={"input": 1, "output": 2}, stream={"split": "words"})))
    found = chunks(run, stream_options={"include_usage": True})
    assert deltas(found) == [
        ({"role": "assistant", "content": ""}, None),
        ({"content": "one "}, None),
        ({"content": "two"}, None),
        ({}, "stop"),
    ]
    assert [chunk["usage"] for chunk in found[:-1]] == [None] * 4
    assert (found[-1]["choices"], found[-1]["usage"]["total_tokens"]) == ([], 3)  # type: ignore[call-overload, index] # JSON by construction


def test_a_stream_without_the_option_has_no_usage(play: Start) -> None:
    run = play(script(step("hi")))
    assert ["usage" in chunk for chunk in chunks(run)] == [False, False, False]


def test_streamed_tool_calls_open_with_id_and_name_and_end_with_their_arguments(play: Start) -> None:
    run = play(script(step(tool_call("f", {"a": 1}, id="c1"), tool_call("g", id="c2"), stream={"split": {"chars": 4}})))
    assert deltas(chunks(run))[1:] == [
        (
            {"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": ""}}]},
            None,
        ),
        ({"tool_calls": [{"index": 0, "function": {"arguments": '{"a"'}}]}, None),
        ({"tool_calls": [{"index": 0, "function": {"arguments": ":1}"}}]}, None),
        (
            {"tool_calls": [{"index": 1, "id": "c2", "type": "function", "function": {"name": "g", "arguments": ""}}]},
            None,
        ),
        ({"tool_calls": [{"index": 1, "function": {"arguments": "{}"}}]}, None),
        ({}, "tool_calls"),
    ]


def test_a_call_may_leave_its_id_out_and_share_an_index(play: Start) -> None:
    run = play(script(step(tool_call("f", id=None), tool_call("g", id="", index=0))))
    opening = [delta["tool_calls"][0] for delta, _ in deltas(chunks(run)) if "tool_calls" in delta]  # type: ignore[index, call-overload] # JSON by construction
    assert [(call["index"], call.get("id")) for call in opening] == [(0, None), (0, None), (0, ""), (0, None)]  # type: ignore[union-attr, index, call-overload] # JSON by construction


def test_reasoning_comes_before_the_text_in_its_own_field(play: Start) -> None:
    run = play(script(step(reasoning("hm"), text("hi")), step(reasoning("hm"), text("hi")), flavour="deepseek"))
    whole = run.ask("x").json()["choices"][0]["message"]
    assert whole == {"role": "assistant", "content": "hi", "reasoning_content": "hm"}
    assert [delta for delta, _ in deltas(chunks(run))[1:3]] == [{"reasoning_content": "hm"}, {"content": "hi"}]


def test_the_deepseek_flavour_counts_cache_hits_and_misses(play: Start) -> None:
    run = play(script(step("hi", usage={"input": 10, "output": 4, "cached": 6, "reasoning": 1}), flavour="deepseek"))
    assert run.ask("x").json()["usage"] == {
        "prompt_tokens": 10,
        "completion_tokens": 4,
        "total_tokens": 14,
        "prompt_tokens_details": {"cached_tokens": 6},
        "completion_tokens_details": {"reasoning_tokens": 1},
        "prompt_cache_hit_tokens": 6,
        "prompt_cache_miss_tokens": 4,
    }


def test_a_refusal_has_its_own_field(play: Start) -> None:
    run = play(script(step(refusal("no"))))
    message = run.ask("x").json()["choices"][0]["message"]
    assert (message["content"], message["refusal"]) == (None, "no")


@pytest.mark.parametrize(
    ("finish", "expected"),
    [
        pytest.param("length", "length", id="length"),
        pytest.param("content_filter", "content_filter", id="filter"),
        pytest.param({"raw": "weird"}, "weird", id="unknown"),
        pytest.param(None, None, id="left-out"),
    ],
)
def test_the_finish_reason_is_the_scripts(play: Start, finish: Json, expected: str | None) -> None:
    run = play(script(step("hi", finish=finish), step("hi", finish=finish)))
    assert run.ask("x").json()["choices"][0]["finish_reason"] == expected
    last = [reason for _, reason in deltas(chunks(run))][-1]
    assert last == expected


def test_broken_events_stand_where_the_script_puts_them(play: Start) -> None:
    run = play(
        script(
            step(
                comment("keep-alive"),
                malformed('{"id": 1,'),
                {"hex": "ff0a"},
                error_event("boom", code="x"),
                stream={"end_marks": 2},
            )
        )
    )
    data = run.ask("x", stream=True).content
    assert data.split(b"\n\n", 1)[1] == (
        b': keep-alive\n\ndata: {"id": 1,\n\n\xff\ndata: '
        b'{"error":{"message":"boom","type":"server_error","param":null,"code":"x"}}\n\n'
        + data[data.index(b'data: {"id":"mock', 10) : data.index(b"data: [DONE]")]
        + b"data: [DONE]\n\ndata: [DONE]\n\n"
    )


def test_usage_may_be_absent(play: Start) -> None:
    run = play(script(step("hi", usage="none"), step("hi", usage="none")))
    assert "usage" not in run.ask("x").json()
    assert [chunk["usage"] for chunk in chunks(run, stream_options={"include_usage": True})] == [None] * 3


def test_tokens_are_counted_by_a_local_rule(play: Start) -> None:
    run = play(script(step("eight by")))
    usage = run.ask("sixteen bytes...").json()["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (4, 2)


def test_an_empty_reply_is_an_empty_completion(play: Start) -> None:
    run = play(script({"reply": []}, {"reply": []}))
    assert run.say("x") == ""
    assert deltas(chunks(run)) == [({"role": "assistant", "content": ""}, None), ({}, "stop")]


def test_several_choices_are_given_when_asked_for(play: Start) -> None:
    run = play(script(step("hi"), step("hi")))
    assert [choice["index"] for choice in run.ask("x", n=2).json()["choices"]] == [0, 1]
    assert [delta for delta, _ in deltas(chunks(run, n=2))] == [
        {"role": "assistant", "content": ""},
        {"content": "hi"},
        {},
    ] * 2


@pytest.mark.parametrize(
    ("error", "status", "code", "headers"),
    [
        pytest.param({"status": 429, "retry_after": 2}, 429, "rate_limit_exceeded", {"retry-after": "2"}, id="429"),
        pytest.param(
            {"status": 429, "retry_after_ms": 50}, 429, "rate_limit_exceeded", {"retry-after-ms": "50"}, id="ms"
        ),
        pytest.param({"status": 429, "code": "insufficient_quota"}, 429, "insufficient_quota", {}, id="quota"),
        pytest.param(
            {"status": 400, "code": "context_length_exceeded"}, 400, "context_length_exceeded", {}, id="overflow"
        ),
        pytest.param(
            {"status": 503, "headers": {"x-ratelimit-remaining-requests": 0}},
            503,
            None,
            {"x-ratelimit-remaining-requests": "0"},
            id="503",
        ),
        pytest.param({"status": 529, "message": "busy with {{request.model}}"}, 529, None, {}, id="529"),
    ],
)
def test_an_error_status_has_the_providers_form(
    play: Start, error: JsonObject, status: int, code: str | None, headers: dict[str, str]
) -> None:
    run = play(script(step(http_error=error)))
    answer = run.ask("x")
    content = answer.json()["error"]
    assert (answer.status_code, content["code"], set(content)) == (status, code, {"message", "type", "param", "code"})
    assert {name: answer.headers[name] for name in headers} == headers
    assert content["message"] == error.get("message", content["message"]).replace("{{request.model}}", "m")  # type: ignore[union-attr] # a text


def test_an_error_may_be_a_page_of_a_gateway(play: Start) -> None:
    run = play(script(step(http_error={"status": 502, "body": "<html>bad gateway</html>"})))
    answer = run.ask("x")
    assert (answer.status_code, answer.headers["content-type"], answer.text) == (
        502,
        "text/html",
        "<html>bad gateway</html>",
    )


@pytest.mark.parametrize("path", ["/v1/models", "/models"])
def test_models_are_listed_under_versioned_and_root_paths(play: Start, path: str) -> None:
    run = play(script(step("x", optional=True), models=["a", "b"]))
    answer = run.client.get(f"http://mock.invalid{path}", headers={"authorization": "Bearer x"}).json()
    assert [card["id"] for card in answer["data"]] == ["a", "b"]
    one = run.client.get(f"http://mock.invalid{path}/a", headers={"authorization": "Bearer x"}).json()
    assert one == {"id": "a", "object": "model", "created": 1_700_000_000, "owned_by": "mock-provider"}
    assert run.mock.verify().ok


def test_a_lone_surrogate_and_the_first_plane_reach_the_client_whole(play: Start) -> None:
    run = play(script(step("\ud83d half"), step("whole \U0001f600")))
    assert [run.say("x"), run.say("x")] == ["\ud83d half", "whole \U0001f600"]
