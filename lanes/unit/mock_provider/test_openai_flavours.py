"""Services that speak the chat format in a way of their own: fields, counts, streams, addresses, error bodies."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import openai
import pytest

from mock_provider.json_values import Json, JsonObject
from mock_provider.replies import error_event, reasoning, script, step, text
from mock_provider.script import ScriptLike

if TYPE_CHECKING:
    from lanes.unit.mock_provider.conftest import Play, Spoken

Start = Callable[[ScriptLike], "Play"]
Speak = Callable[[ScriptLike], "Spoken"]
COUNTS: JsonObject = {"input": 10, "output": 4, "cached": 6, "reasoning": 1}
DEPLOYMENT = "/openai/deployments/d1"


def served(flavour: str, *steps: JsonObject) -> JsonObject:
    return script(*(steps or (step(reasoning("hm"), text("hi"), usage=COUNTS),)), flavour=flavour)


def lines(run: Play) -> list[str]:
    return run.ask("x", stream=True).content.decode("utf-8").split("\n\n")


def chunks(run: Play) -> list[JsonObject]:
    found = [line.removeprefix("data: ") for line in lines(run) if line.startswith("data: {")]
    return [json.loads(data) for data in found]


def test_openrouter_says_who_answered_how_it_thought_and_what_it_cost(play: Start) -> None:
    content = play(served("openrouter")).ask("x").json()
    choice = content["choices"][0]
    assert content["provider"] == "mock-provider"
    assert (choice["finish_reason"], choice["native_finish_reason"]) == ("stop", "stop")
    assert choice["message"] == {
        "role": "assistant",
        "content": "hi",
        "reasoning": "hm",
        "reasoning_details": [{"type": "reasoning.text", "text": "hm", "format": "unknown", "index": 0}],
        "refusal": None,
    }
    assert (content["usage"]["cost"], content["usage"]["prompt_tokens_details"]["cached_tokens"]) == (0, 6)


def test_openrouter_streams_a_comment_first_and_counts_unasked(play: Start) -> None:
    run = play(served("openrouter", step("hi"), step("hi")))
    assert lines(run)[0] == ": OPENROUTER PROCESSING"
    last = chunks(run)[-1]
    assert (last["usage"]["total_tokens"], len(last["choices"])) == (2, 1)  # type: ignore[index, call-overload, arg-type] # JSON by construction


def test_openrouter_ends_a_broken_stream_with_a_finish_of_its_own(play: Start) -> None:
    run = play(served("openrouter", step(text("a"), error_event("gone", code="server_error"))))
    broken = next(chunk for chunk in chunks(run) if "error" in chunk)
    assert broken["error"] == {"code": "server_error", "message": "gone"}
    assert broken["choices"][0]["finish_reason"] == "error"  # type: ignore[index, call-overload] # JSON by construction


def test_vllm_names_every_field_and_thinks_in_two(play: Start) -> None:
    content = play(served("vllm")).ask("x").json()
    choice = content["choices"][0]
    assert choice["message"] == {
        "role": "assistant",
        "content": "hi",
        "reasoning": "hm",
        "reasoning_content": "hm",
        "refusal": None,
        "annotations": None,
        "audio": None,
        "function_call": None,
        "tool_calls": [],
    }
    assert (choice["stop_reason"], content["prompt_logprobs"], content["kv_transfer_params"]) == (None, None, None)


def test_azure_says_what_its_filters_found(play: Start) -> None:
    run = play(served("azure", step("hi"), step("hi")))
    content = run.ask("x").json()
    harmless = {"filtered": False, "severity": "safe"}
    assert content["choices"][0]["content_filter_results"]["hate"] == harmless
    assert content["prompt_filter_results"][0]["content_filter_results"]["violence"] == harmless
    opening, *rest = chunks(run)
    assert (opening["choices"], opening["id"], rest[0]["choices"][0]["content_filter_results"]) == ([], "", {})  # type: ignore[index, call-overload] # JSON by construction


@pytest.mark.parametrize(
    ("flavour", "error"),
    [
        pytest.param(
            "openai",
            {"message": "slow", "type": "requests", "param": None, "code": "rate_limit_exceeded"},
            id="openai",
        ),
        pytest.param(
            "openrouter",
            {
                "message": "slow",
                "code": 429,
                "metadata": {"provider_name": "mock-provider", "raw": "rate_limit_exceeded"},
            },
            id="openrouter",
        ),
        pytest.param("vllm", {"message": "slow", "type": "RateLimitError", "param": None, "code": 429}, id="vllm"),
        pytest.param("azure", {"code": "429", "message": "slow"}, id="azure"),
    ],
)
def test_each_service_has_its_error_body(play: Start, flavour: str, error: JsonObject) -> None:
    run = play(served(flavour, step(http_error={"status": 429, "message": "slow"})))
    assert run.ask("x").json() == {"error": error}


@pytest.mark.parametrize("flavour", ["openai", "deepseek", "openrouter", "vllm", "azure"])
def test_a_request_of_no_step_has_our_code_in_every_service(play: Start, flavour: str) -> None:
    run = play(served(flavour, step("hi", expect={"last_user": "hello"})))
    answer = run.ask("bye")
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "mock_unmatched")


@pytest.mark.parametrize(
    ("flavour", "body"),
    [
        pytest.param("vllm", {"error": "Unauthorized"}, id="vllm"),
        pytest.param("azure", "Access denied due to invalid subscription key or wrong API endpoint.", id="azure"),
    ],
)
def test_keys_are_refused_in_the_services_form(play: Start, flavour: str, body: Json) -> None:
    run = play({**served(flavour, step("never")), "api_key": "sk-right-0001"})
    answer = run.ask("x")
    assert answer.status_code == 401
    assert answer.json() == body or str(body) in answer.json()["error"]["message"]


def test_the_azure_client_asks_a_deployment(play: Start) -> None:
    run = play(served("azure", step("hi", expect={"model": "d1"}), step("hi", stream={"split": {"chars": 1}})))
    with openai.AzureOpenAI(  # type: ignore[call-overload] # the client takes both libraries, its types name one
        api_key="sk-test-0001",
        azure_endpoint=run.mock.base_url("azure"),
        api_version="2024-10-21",
        http_client=run.client,
        max_retries=0,
    ) as client:
        whole = client.chat.completions.create(model="d1", messages=[{"role": "user", "content": "x"}])
        streamed = client.chat.completions.create(model="d1", messages=[{"role": "user", "content": "x"}], stream=True)
        said = "".join(chunk.choices[0].delta.content or "" for chunk in streamed if chunk.choices)
        vectors = client.embeddings.create(model="d1", input="x", dimensions=4)
    assert (whole.model, whole.choices[0].message.content, said, vectors.model) == ("d1", "hi", "hi", "d1")


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        pytest.param(f"{DEPLOYMENT}/chat/completions", 404, "404", id="no-api-version"),
        pytest.param(f"{DEPLOYMENT}/chat/completions?api-version=1", 404, "DeploymentNotFound", id="unknown"),
        pytest.param("/openai/deployments/d2/chat/completions?api-version=1", 200, None, id="known"),
    ],
)
def test_a_deployment_is_asked_with_an_api_version(play: Start, path: str, status: int, code: str | None) -> None:
    run = play({**served("azure", step("hi", optional=True)), "models": ["d2"]})
    body: JsonObject = {"messages": [{"role": "user", "content": "x"}]}
    answer = run.client.post(f"http://mock.invalid{path}", json=body, headers={"api-key": "k-1"})
    assert (answer.status_code, answer.json().get("error", {}).get("code")) == (status, code)


def test_a_filtered_prompt_has_the_inner_error_of_azure(play: Start) -> None:
    run = play(served("azure", step(http_error={"status": 400, "code": "content_filter"})))
    error = run.ask("x").json()["error"]
    assert (error["code"], error["innererror"]["code"]) == ("content_filter", "ResponsibleAIPolicyViolation")


@pytest.mark.parametrize("path", ["/api/v1", "/openai/v1", "/v1", ""])
def test_the_services_addresses_are_served(play: Start, path: str) -> None:
    run = play(script(step("hi")))
    body: JsonObject = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
    headers = {"authorization": "Bearer sk-test-0001"}
    answer = run.client.post(f"http://mock.invalid{path}/chat/completions", json=body, headers=headers)
    assert answer.status_code == 200
