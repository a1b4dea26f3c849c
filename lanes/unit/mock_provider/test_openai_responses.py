"""Responses, whole and streamed, field by field on the wire."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import httpx
import pytest

from mock_provider.json_values import Json, JsonObject
from mock_provider.replies import (
    comment,
    error_event,
    fault,
    gate,
    malformed,
    reasoning,
    refusal,
    script,
    step,
    text,
    tool_call,
)
from mock_provider.script import ScriptLike

if TYPE_CHECKING:
    from lanes.unit.mock_provider.conftest import Play

Start = Callable[[ScriptLike], "Play"]
AUTHORIZED = {"authorization": "Bearer sk-test-0001"}
CUSTOM: JsonObject = {"type": "custom", "name": "code"}


def ask(run: Play, what: Json = "x", **more: Json) -> httpx.Response:
    return run.client.post("/responses", json={"model": "m", "input": what, **more}, headers=AUTHORIZED)


def events(run: Play, **more: Json) -> list[JsonObject]:
    """The events of a streamed answer; each is numbered, and named twice the same."""
    found: list[JsonObject] = []
    for block in ask(run, stream=True, **more).content.decode("utf-8").split("\n\n"):
        if block:
            name, _, data = block.partition("\n")
            found.append(json.loads(data.removeprefix("data: ")))
            assert name == f"event: {found[-1]['type']}"
    assert [event["sequence_number"] for event in found] == list(range(len(found)))
    return found


def brief(found: list[JsonObject]) -> list[tuple[str, Json]]:
    """What each event is and what it adds."""
    return [(str(event["type"]).removeprefix("response."), event.get("delta")) for event in found]


def test_a_whole_answer_has_every_field(play: Start) -> None:
    run = play(script(step("hi", usage={"input": 5, "output": 2, "cached": 3, "reasoning": 1}), model="m-small"))
    answer = ask(run)
    content = answer.json()
    digits = content.pop("id").removeprefix("resp_mock_")
    assert len(digits) == 24
    assert answer.headers["x-mock-provider"] == "scripted"
    assert content == {
        "object": "response",
        "created_at": 1_700_000_000,
        "status": "completed",
        "background": False,
        "completed_at": 1_700_000_000,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "max_output_tokens": None,
        "max_tool_calls": None,
        "model": "m-small",
        "output": [
            {
                "id": f"msg_mock_{digits}_0",
                "type": "message",
                "status": "completed",
                "content": [{"type": "output_text", "annotations": [], "logprobs": [], "text": "hi"}],
                "role": "assistant",
            }
        ],
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "prompt_cache_key": None,
        "reasoning": {"effort": None, "summary": None},
        "safety_identifier": None,
        "service_tier": "default",
        "store": True,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}, "verbosity": "medium"},
        "tool_choice": "auto",
        "tools": [],
        "top_logprobs": 0,
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": {
            "input_tokens": 5,
            "input_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 0},
            "output_tokens": 2,
            "output_tokens_details": {"reasoning_tokens": 1},
            "total_tokens": 7,
        },
        "user": None,
        "metadata": {},
    }


def test_the_answer_repeats_what_the_request_asked_for(play: Start) -> None:
    run = play(script(step("hi")))
    tool: JsonObject = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}
    asked: JsonObject = {
        "instructions": "be brief",
        "max_output_tokens": 99,
        "metadata": {"team": "red"},
        "parallel_tool_calls": False,
        "reasoning": {"effort": "low"},
        "store": False,
        "temperature": 0,
        "text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}}},
        "tool_choice": "required",
        "tools": [tool],
        "user": "u",
    }
    content = ask(run, **asked).json()
    completed: JsonObject = {
        "reasoning": {"effort": "low", "summary": None},
        "text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}}, "verbosity": "medium"},
        "tools": [{"description": None, "strict": True, **tool}],
    }
    assert {name: content[name] for name in asked} == {**asked, **completed}


def test_a_stream_opens_gives_the_pieces_and_ends_with_the_whole_answer(play: Start) -> None:
    played = step("one two", usage={"input": 1, "output": 2}, stream={"split": "words"})
    run = play(script(played, played))
    found = events(run)
    assert brief(found) == [
        ("created", None),
        ("in_progress", None),
        ("output_item.added", None),
        ("content_part.added", None),
        ("output_text.delta", "one "),
        ("output_text.delta", "two"),
        ("output_text.done", None),
        ("content_part.done", None),
        ("output_item.done", None),
        ("completed", None),
    ]
    opening, closing = found[0]["response"], found[-1]["response"]
    assert isinstance(opening, dict)
    assert isinstance(closing, dict)
    assert (opening["status"], opening["output"], opening["usage"]) == ("in_progress", [], None)
    assert found[1]["response"] == opening
    again = ask(run).json()
    same = [name for name in closing if name not in ("id", "output")]
    assert {name: closing[name] for name in same} == {name: again[name] for name in same}
    assert found[4] == {
        "type": "response.output_text.delta",
        "sequence_number": 4,
        "item_id": closing["output"][0]["id"],  # type: ignore[index, call-overload] # JSON by construction
        "output_index": 0,
        "content_index": 0,
        "delta": "one ",
        "logprobs": [],
    }


def test_calls_stream_their_arguments_and_free_text_goes_to_custom_tools(play: Start) -> None:
    played = step(
        tool_call("f", {"a": 1}, id="call_1"), tool_call("code", raw="print(1)"), stream={"split": {"chars": 4}}
    )
    run = play(script(played, played))
    found = events(run, tools=[CUSTOM])
    assert brief(found)[2:-1] == [
        ("output_item.added", None),
        ("function_call_arguments.delta", '{"a"'),
        ("function_call_arguments.delta", ":1}"),
        ("function_call_arguments.done", None),
        ("output_item.done", None),
        ("output_item.added", None),
        ("custom_tool_call_input.delta", "prin"),
        ("custom_tool_call_input.delta", "t(1)"),
        ("custom_tool_call_input.done", None),
        ("output_item.done", None),
    ]
    whole = ask(run, tools=[CUSTOM]).json()["output"]
    assert [(item["type"], item.get("arguments", item.get("input")), item["name"]) for item in whole] == [
        ("function_call", '{"a":1}', "f"),
        ("custom_tool_call", "print(1)", "code"),
    ]
    assert (whole[0]["call_id"], whole[1]["call_id"][:10]) == ("call_1", "mock-call-")


def test_reasoning_is_an_item_with_a_summary_and_a_seal(play: Start) -> None:
    run = play(script(step(reasoning("hm"), text("hi")), step(reasoning("hm"), text("hi"))))
    item = ask(run).json()["output"][0]
    assert (item["type"], item["summary"]) == ("reasoning", [{"type": "summary_text", "text": "hm"}])
    found = events(run)
    assert brief(found)[2:8] == [
        ("output_item.added", None),
        ("reasoning_summary_part.added", None),
        ("reasoning_summary_text.delta", "hm"),
        ("reasoning_summary_text.done", None),
        ("reasoning_summary_part.done", None),
        ("output_item.done", None),
    ]
    seals = [event["item"].get("encrypted_content") for event in (found[2], found[7])]  # type: ignore[union-attr] # JSON by construction
    assert seals == ["", item["encrypted_content"]]


def test_the_open_flavour_gives_reasoning_in_plain_text(play: Start) -> None:
    run = play(script(step(reasoning("hm"), text("hi")), step(reasoning("hm"), text("hi")), flavour="vllm"))
    item = ask(run).json()["output"][0]
    assert (item["summary"], item["content"], item["encrypted_content"]) == (
        [],
        [{"type": "reasoning_text", "text": "hm"}],
        None,
    )
    assert brief(events(run))[3:7] == [
        ("content_part.added", None),
        ("reasoning_text.delta", "hm"),
        ("reasoning_text.done", None),
        ("content_part.done", None),
    ]


def test_a_refusal_has_a_part_and_events_of_its_own(play: Start) -> None:
    run = play(script(step(text("well"), refusal("no")), step(text("well"), refusal("no"))))
    assert ask(run).json()["output"][0]["content"] == [
        {"type": "output_text", "annotations": [], "logprobs": [], "text": "well"},
        {"type": "refusal", "refusal": "no"},
    ]
    found = events(run)
    assert brief(found)[7:11] == [
        ("content_part.added", None),
        ("refusal.delta", "no"),
        ("refusal.done", None),
        ("content_part.done", None),
    ]
    assert [event["content_index"] for event in found[7:11]] == [1] * 4


@pytest.mark.parametrize(
    ("finish", "status", "reason"),
    [
        pytest.param("stop", "completed", None, id="stop"),
        pytest.param("length", "incomplete", "max_output_tokens", id="length"),
        pytest.param("content_filter", "incomplete", "content_filter", id="filter"),
        pytest.param({"raw": "weird"}, "incomplete", "weird", id="unknown-reason"),
        pytest.param({"raw": "cancelled"}, "cancelled", None, id="another-status"),
    ],
)
def test_the_finish_is_a_status_and_a_reason(play: Start, finish: Json, status: str, reason: str | None) -> None:
    run = play(script(step("hi", finish=finish), step("hi", finish=finish)))
    whole = ask(run).json()
    assert (whole["status"], whole["incomplete_details"]) == (status, {"reason": reason} if reason else None)
    assert whole["output"][0]["status"] == ("incomplete" if status == "incomplete" else "completed")
    last = events(run)[-1]
    assert (last["type"], last["response"]["status"]) == (f"response.{status}", status)  # type: ignore[index, call-overload] # JSON by construction


def test_a_finish_left_out_leaves_the_end_out(play: Start) -> None:
    run = play(script(step("hi", finish=None), step("hi", finish=None)))
    assert "status" not in ask(run).json()
    assert events(run)[-1]["type"] == "response.output_item.done"


@pytest.mark.parametrize("marks", [0, 2])
def test_the_last_event_comes_as_often_as_the_script_says(play: Start, marks: int) -> None:
    run = play(script(step("hi", stream={"end_marks": marks})))
    assert [event["type"] for event in events(run)].count("response.completed") == marks


def test_an_error_inside_a_stream_is_followed_by_the_failed_response(play: Start) -> None:
    played = step(text("one"), error_event("boom", code="rate_limit_exceeded"))
    run = play(script(played, played))
    found = events(run)
    at = [event["type"] for event in found].index("error")
    assert found[at] == {
        "type": "error",
        "sequence_number": at,
        "code": "rate_limit_exceeded",
        "message": "boom",
        "param": None,
    }
    whole = ask(run).json()
    error = {"code": "rate_limit_exceeded", "message": "boom"}
    assert (whole["status"], whole["error"]) == ("failed", error)
    assert (found[-1]["type"], found[-1]["response"]["error"]) == ("response.failed", error)  # type: ignore[index, call-overload] # JSON by construction


def test_broken_events_and_comments_stand_where_the_script_puts_them(play: Start) -> None:
    run = play(script(step(text("a"), comment("still here"), malformed("{broken"), {"hex": "ff0a"}, fault("end"))))
    data = ask(run, stream=True).content
    tail = b": still here\n\nevent: response.output_text.delta\ndata: {broken\n\n\xff\n"
    assert data.endswith(tail)


def test_a_malformed_part_takes_the_place_of_a_whole_answer(play: Start) -> None:
    run = play(script(step(text("a"), malformed("{broken")), step({"hex": "00ff"})))
    assert [ask(run).content, ask(run).content] == [b"{broken", b"\x00\xff"]


def test_a_gate_holds_the_pieces_behind_it(play: Start) -> None:
    run = play(script(step(text("a"), gate("half"), text("b"))))
    run.mock.gate("half").open()
    assert [delta for _, delta in brief(events(run)) if delta] == ["a", "b"]
    assert run.mock.journal[0].gates_passed == ("half",)


def test_probabilities_are_there_when_asked_for(play: Start) -> None:
    run = play(script(step("hello"), step("hello")))
    more: JsonObject = {"include": ["message.output_text.logprobs"], "top_logprobs": 2}
    tokens = ask(run, **more).json()["output"][0]["content"][0]["logprobs"]
    assert [token["token"] for token in tokens] == ["hell", "o"]
    assert [[other["token"] for other in token["top_logprobs"]] for token in tokens] == [
        ["hell", "hell~1"],
        ["o", "o~1"],
    ]
    delta = next(event for event in events(run, **more) if event["type"] == "response.output_text.delta")
    assert delta["logprobs"] == tokens


def test_usage_may_be_absent_and_is_else_counted_by_a_local_rule(play: Start) -> None:
    run = play(script(step("hi", usage="none"), step("eight by")))
    assert ask(run).json()["usage"] is None
    usage = ask(run, "sixteen bytes...").json()["usage"]
    assert (usage["input_tokens"], usage["output_tokens"]) == (4, 2)


def test_an_empty_reply_has_no_items_and_an_empty_text_is_one(play: Start) -> None:
    run = play(script({"reply": []}, step("")))
    assert [len(ask(run).json()["output"]), len(ask(run).json()["output"])] == [0, 1]


def test_neighbouring_items_of_the_model_are_one_message(play: Start) -> None:
    run = play(script(step("done", expect={"messages": 4, "tool_result": {"name": "f", "contains": "4"}})))
    sent: list[Json] = [
        {"role": "developer", "content": "be brief"},
        {"role": "user", "content": [{"type": "input_text", "text": "2 + 2?"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Let me see."}]},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "4"}]},
    ]
    assert ask(run, sent).json()["status"] == "completed"
    assert run.mock.verify().ok


def test_a_history_sent_back_is_known_as_a_continuation(play: Start) -> None:
    answer: JsonObject = {"steps": [step(reasoning("hm"), text("A "), tool_call("f", id="c1")), step("end")]}
    run = play(script(conversations={"a": {"when": {"user_contains": "go"}, "parallel": 2, **answer}}))
    first = ask(run, "go").json()
    other = ask(run, "go on").json()
    result: JsonObject = {"type": "function_call_output", "call_id": "c1", "output": "r"}
    for what, said in (("go on", other), ("go", first)):
        history = [{"role": "user", "content": what}, *said["output"], result]
        assert ask(run, history).json()["output"][0]["content"][0]["text"] == "end"
    assert [entry.client for entry in run.mock.journal.entries] == ["#1", "#2", "#2", "#1"]


def test_models_have_the_words_of_this_endpoint(play: Start) -> None:
    run = play(script(step("x", optional=True), models=["a"]))
    answer = ask(run)
    assert (answer.status_code, answer.json()["error"]) == (
        400,
        {
            "message": "The requested model 'm' does not exist.",
            "type": "invalid_request_error",
            "param": "model",
            "code": "model_not_found",
        },
    )


def test_extra_fields_are_journalled_or_refused_as_the_script_says(play: Start) -> None:
    run = play(script(step("hi")))
    ask(run, novelty=1)
    assert run.mock.journal[0].extra_fields == ("novelty",)
    strict = play(script(step("hi"), strict_fields=True))
    assert ask(strict, novelty=1).json()["error"]["code"] == "unknown_parameter"


def test_same_script_and_requests_give_the_same_bytes(play: Start) -> None:
    played = script(step(reasoning("a"), tool_call("f"), stream={"split": {"chars": 1}}))
    assert len({ask(play(played), stream=True).content for _ in range(3)}) == 1


@pytest.mark.parametrize("path", ["/v1/responses", "/responses", "/openai/v1/responses", "/c/main/v1/responses"])
def test_every_spelling_of_the_address_is_served(play: Start, path: str) -> None:
    run = play(script(conversations={"main": {"steps": [step("hi")]}}))
    body = {"model": "m", "input": "x"}
    assert run.client.post(f"http://mock.invalid{path}", json=body, headers=AUTHORIZED).status_code == 200
