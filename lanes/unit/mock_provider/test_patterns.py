"""An answer that is filled in is the answer that would be rendered, to the byte."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import httpx
import pytest

import mock_provider
from mock_provider.json_values import Json
from mock_provider.patterns import Patterns, is_plain_step
from mock_provider.replies import conversation, fault, gate, reasoning, script, step, text, tool_call
from mock_provider.script import ScriptLike

if TYPE_CHECKING:
    from lanes.unit.mock_provider.conftest import Play

Start = Callable[[ScriptLike], "Play"]
STEPS: dict[str, Mapping[str, Json]] = {
    "text": step(text("100 % of hi")),
    "reasoning": step(reasoning("well"), text("hi"), usage={"reasoning": 3}),
    "calls": step(tool_call("f", {"a": "ü"}), tool_call("f", {"b": "%s"}), tool_call("g", id="call_own")),
    "usage": step(text("hi"), usage={"input": 7, "cached": 3}),
    "cached": step(text("hi"), usage={"cached": 2}),
    "lookalike": step(text("7310000000005 of 7310000000000"), usage={"output": 5}),
    "no-usage": step(text("hi"), usage="none"),
    "finish": step(text("hi"), finish="length", model="other"),
}
MORE: dict[str, dict[str, Json]] = {
    "plain": {},
    "n": {"n": 2},
    "logprobs": {"logprobs": True, "top_logprobs": 1},
    "tools": {"tools": [{"type": "function", "function": {"name": "f"}}]},
    "custom": {"tools": [{"type": "custom", "custom": {"name": "f"}}]},
}


def answers(played: ScriptLike, path: str, more: Mapping[str, Json]) -> list[bytes]:
    face = mock_provider.transport(played)
    headers = {"authorization": "Bearer x", "anthropic-version": "2023-06-01"}
    with httpx.Client(transport=face, base_url=face.mock.root, headers=headers) as client:
        return [
            client.post(
                path,
                json={"model": model, "max_tokens": 9, "messages": [{"role": "user", "content": words}], **more},
            ).content
            for model, words in (("m", "x"), ("m", "x"), ("m", "a longer question"), ("n", "x"), ("m", "long" * 500))
        ]


@pytest.mark.parametrize("said", STEPS.values(), ids=STEPS)
@pytest.mark.parametrize("more", MORE.values(), ids=MORE)
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
def test_a_filled_answer_is_the_rendered_one(
    monkeypatch: pytest.MonkeyPatch, said: Mapping[str, Json], more: Mapping[str, Json], path: str
) -> None:
    more = {} if path == "/v1/messages" else more
    played = script({**said, "repeat": "forever"})
    filled = answers(played, path, more)
    monkeypatch.setattr(Patterns, "fill", lambda *_: None)
    assert answers(played, path, more) == filled
    assert len(set(filled)) == len(filled)


@pytest.mark.parametrize("flavour", ["deepseek", "openrouter", "vllm"])
def test_a_filled_answer_of_a_flavour_is_the_rendered_one(monkeypatch: pytest.MonkeyPatch, flavour: str) -> None:
    played = script(step(text("hi"), usage={"cached": 1}, repeat="forever"), flavour=flavour)
    filled = answers(played, "/v1/chat/completions", {})
    monkeypatch.setattr(Patterns, "fill", lambda *_: None)
    assert answers(played, "/v1/chat/completions", {}) == filled


def test_an_answer_that_differs_in_the_count_of_the_input_alone_is_rendered_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rendered: list[object] = []
    render = Patterns._render

    def noted(*given: object) -> object:
        rendered.append(given)
        return render(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(Patterns, "_render", noted)
    said = answers(script(step("hi", repeat="forever")), "/v1/chat/completions", {})
    assert (len(rendered), len(set(said))) == (2, len(said))  # one for each model


def streamed(played: ScriptLike, path: str, more: Mapping[str, Json]) -> list[tuple[list[bytes], Mapping[str, Json]]]:
    """Writes and the journal's view of streams, all but one of them asked for alike."""
    face = mock_provider.transport(played)
    headers = {"authorization": "Bearer x", "anthropic-version": "2023-06-01"}
    found: list[tuple[list[bytes], Mapping[str, Json]]] = []
    with httpx.Client(transport=face, base_url=face.mock.root, headers=headers) as client:
        for words in ("x", "x", "longer " * 9, "x"):
            asked = {"model": "m", "max_tokens": 9, "stream": True, "messages": [{"role": "user", "content": words}]}
            with client.stream("POST", path, json={**asked, **more}) as response:
                writes = [*response.iter_raw()]
            found.append((writes, {**face.mock.journal[-1].to_json(), "head": [*map(str, response.headers.items())]}))
    return found


@pytest.mark.parametrize(
    "said",
    [
        *STEPS.values(),
        step(text("one two three four"), stream={"split": {"words": 1}}),
        step(text("one two three four"), stream={"split": {"bytes": 3}}),
        step(text("one two three four"), stream={"split": {"chars": 2}, "events_per_write": 3}),
        step(text("hi"), stream={"end_marks": 0}),
    ],
    ids=[*STEPS, "words", "bytes", "joined", "no-end"],
)
@pytest.mark.parametrize("more", [*MORE.values(), {"stream_options": {"include_usage": True}}], ids=[*MORE, "counts"])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
def test_a_stream_sent_again_is_the_one_that_would_be_written(
    monkeypatch: pytest.MonkeyPatch, said: Mapping[str, Json], more: Mapping[str, Json], path: str
) -> None:
    played = script({**said, "repeat": "forever"})
    more = {} if path == "/v1/messages" else more
    again = streamed(played, path, more)
    monkeypatch.setattr(Patterns, "stream", lambda *_: None)
    assert streamed(played, path, more) == again


def test_a_stream_is_written_once_for_all_that_ask_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[object] = []
    learn = Patterns.learn_stream

    def noted(*given: object) -> object:
        written.append(given)
        return learn(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(Patterns, "learn_stream", noted)
    streamed(script(step("hi", repeat="forever")), "/v1/chat/completions", {})
    assert len(written) == 1


def test_a_stream_that_broke_off_is_not_kept() -> None:
    face = mock_provider.transport(
        script(step(text("one two three"), stream={"split": {"words": 1}}, repeat="forever"))
    )
    asked = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "x"}]}
    with httpx.Client(transport=face, base_url=face.mock.root, headers={"authorization": "Bearer x"}) as client:
        for _ in range(2):
            with client.stream("POST", "/v1/chat/completions", json=asked) as response:
                next(response.iter_raw())
        whole = client.post("/v1/chat/completions", json=asked).text
    assert (whole.count("data: "), whole.count('"content":"')) == (6, 4)


def test_a_client_that_sends_a_filled_call_sends_a_filled_call_back_is_known_as_continuing(play: Start) -> None:
    talk = conversation(step(tool_call("f", {"a": 1})), step("done"))
    run = play(script(conversations={"a": {**talk, "parallel": 2}, "b": {**talk, "when": {"user_contains": "b"}}}))
    for _ in range(2):
        call = run.ask("x").json()["choices"][0]["message"]
        assert (
            run.say("x", call, {"role": "tool", "tool_call_id": call["tool_calls"][0]["id"], "content": "1"}) == "done"
        )
    assert [entry.client for entry in run.mock.journal.entries] == ["#1", "#1", "#2", "#2"]


@pytest.mark.parametrize(
    "special",
    [
        pytest.param(step("{{request.model}}"), id="copied"),
        pytest.param(step(tool_call("f", {"a": "{{request.model}}"})), id="copied-argument"),
        pytest.param(step("hi", gate="g"), id="gate"),
        pytest.param(step(text("hi"), gate("g")), id="gate-in-the-text"),
        pytest.param(step(text("hi"), fault("cut")), id="fault"),
        pytest.param(step("hi", stream={"first_ms": 5}), id="wait"),
        pytest.param(step(http_error={"status": 429}), id="error"),
    ],
)
def test_a_step_that_does_more_than_answer_is_rendered_each_time(special: Mapping[str, Json]) -> None:
    first = mock_provider.build_script(script(special)).conversations[0].steps()[0]
    assert not is_plain_step(first)


def test_a_step_with_anything_new_set_is_rendered_each_time() -> None:
    plain = mock_provider.build_script(script(step("hi"))).conversations[0].steps()[0]
    known = {"number", "expect", "parts", "finish", "usage", "repeat", "is_optional", "model", "mark", "stream"}
    others = [field.name for field in dataclasses.fields(plain) if field.name not in known]
    assert is_plain_step(plain)
    assert [name for name in others if is_plain_step(dataclasses.replace(plain, **{name: object()}))] == []  # type: ignore[arg-type]


def test_answers_of_one_script_are_remembered_in_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mock_provider.patterns.MAX_PATTERNS", 2)
    played = script(step("hi", repeat="forever"))
    assert len(set(answers(played, "/v1/chat/completions", {}))) == 5
