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
            for model, words in (("m", "x"), ("m", "x"), ("m", "a longer question"), ("n", "x"))
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


def test_a_client_that_sends_a_filled_call_back_is_known_as_continuing(play: Start) -> None:
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
    assert len(set(answers(played, "/v1/chat/completions", {}))) == 4
