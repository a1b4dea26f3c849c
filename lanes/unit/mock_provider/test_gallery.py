"""The scripts of the gallery are played, and the page shows them as they are."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from mock_provider.json_values import Json, JsonObject
from mock_provider.script import load_script

if TYPE_CHECKING:
    from lanes.unit.mock_provider.conftest import Play

Start = Callable[..., "Play"]
DOCS = Path(__file__).parents[3] / "docs"
GALLERY = DOCS / "mock-scripts"
SCRIPTS = sorted(GALLERY.glob("*.yaml"))
READ_FILE: JsonObject = {
    "type": "function",
    "function": {"name": "read_file", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}},
}


def calls_of(answer: httpx.Response) -> list[JsonObject]:
    found: list[JsonObject] = answer.json()["choices"][0]["message"]["tool_calls"]
    return found


def round_of(answer: httpx.Response, *results: str) -> list[JsonObject]:
    """The messages that follow an answer with calls: the calls, and their results."""
    calls: list[Json] = list(calls_of(answer))
    messages: list[JsonObject] = [{"role": "assistant", "content": None, "tool_calls": calls}]
    for call, result in zip(calls_of(answer), results, strict=True):
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
    return messages


def system(words: str) -> JsonObject:
    return {"role": "system", "content": words}


def play_one_answer(run: Play) -> list[object]:
    return [run.say("What is the capital of France?")]


def play_tool_round(run: Play) -> list[object]:
    first = run.ask("What is in README?", tools=[READ_FILE])
    return [run.say("What is in README?", *round_of(first, "# Five Lanes"), tools=[READ_FILE])]


def play_parallel_tools(run: Play) -> list[object]:
    first = run.ask("Read both.", tools=[READ_FILE])
    return [run.say("Read both.", *round_of(first, "N", "S"), tools=[READ_FILE])]


def play_several_agents(run: Play) -> list[object]:
    said: list[object] = []
    for turn in ("one", "two"):
        for client in ("", "a", "b", "c"):
            headers = {"x-mock-conversation": f"worker@{client}"} if client else {}
            said.append(run.say(system("You work" if client else "You plan"), turn, headers=headers))
    return said


def play_background_title(run: Play) -> list[object]:
    title = system("Please write a title")
    return [run.say(title, "weather"), run.say("weather"), run.say(title, "weather")]


def play_rate_limit_then_success(run: Play) -> list[object]:
    return [run.ask("x").status_code, run.ask("x").status_code, run.say("x")]


def play_broken_stream(run: Play) -> list[object]:
    found: list[object] = []
    for _ in range(4):
        try:
            answer = run.ask("x", stream=True).text
        except httpx.RemoteProtocolError:
            found.append("cut")
        else:
            found.append(("error" in answer.replace('"error":null', ""), 'finish_reason":"stop' in answer))
    return found


def play_slow_and_gated(run: Play) -> list[object]:
    run.mock.gate("go-on").open()
    return ["many" in run.ask("x", stream=True).text, run.say("x")]


def play_structured_output(run: Play) -> list[object]:
    schema: JsonObject = {
        "type": "object",
        "properties": {"city": {"type": "string"}, "degrees": {"type": "integer"}},
        "required": ["city", "degrees"],
        "additionalProperties": False,
    }
    wanted: JsonObject = {"type": "json_schema", "json_schema": {"name": "weather", "strict": True, "schema": schema}}
    first = json.loads(run.say("x", response_format=wanted))
    return [first, run.ask("x", response_format=wanted).json()["choices"][0]["message"]["refusal"]]


def play_reasoning_and_usage(run: Play) -> list[object]:
    first, second = run.ask("x").json(), run.ask("x").json()
    return [
        first["choices"][0]["message"]["reasoning_content"],
        first["usage"]["prompt_cache_hit_tokens"],
        second["choices"][0]["finish_reason"],
    ]


def play_copied_words(run: Play) -> list[object]:
    return [run.say("please: 2 plus 3"), run.say("no sum")]


def play_stress(run: Play) -> list[object]:
    """A client that tries three times."""
    said: list[object] = []
    while len(said) < 3:
        try:
            answer = run.ask("x")
        except httpx.ReadError:
            continue
        if answer.status_code == 200:
            said.append(answer.json()["choices"][0]["message"]["content"])
    return said


PLAYS: dict[str, tuple[Callable[[Play], list[object]], list[object], bool]] = {
    "one-answer": (play_one_answer, ["Paris."], True),
    "tool-round": (play_tool_round, ["It is about lanes."], True),
    "parallel-tools": (play_parallel_tools, ["Both are read."], True),
    "several-agents": (
        play_several_agents,
        ["First read, then write.", "Reading.", "Reading.", "Reading.", "Done.", "Written.", "Written.", "Written."],
        True,
    ),
    "background-title": (play_background_title, ["Weather", "Sunny.", "Weather"], True),
    "rate-limit-then-success": (play_rate_limit_then_success, [429, 503, "At last."], True),
    "broken-stream": (play_broken_stream, ["cut", (True, True), (False, False), (False, True)], True),
    "slow-and-gated": (play_slow_and_gated, [True, "Before the gate, and after it."], True),
    "structured-output": (play_structured_output, [{"city": "Paris", "degrees": 21}, "I cannot say that."], True),
    "reasoning-and-usage": (play_reasoning_and_usage, ["Six times seven.", 1024, "length"], True),
    "copied-words": (
        play_copied_words,
        ["You asked for 2 and 3, with model m.", "mock_unmatched"],
        False,  # the second question has no sum, so it is unmatched
    ),
    "stress": (play_stress, ["one", "two", "three"], True),
}


@pytest.mark.parametrize("path", SCRIPTS, ids=[path.stem for path in SCRIPTS])
def test_a_script_of_the_gallery_is_played_as_the_page_says(play: Start, path: Path) -> None:
    client_plays, expected, is_good = PLAYS[path.stem]
    run = play(load_script(path), virtual_time=True)
    assert (client_plays(run), run.mock.verify().ok) == (expected, is_good)


def test_the_page_shows_every_script_as_it_is() -> None:
    page = (DOCS / "mock-scripts.md").read_text(encoding="utf-8")
    shown = dict(re.findall(r"`([a-z-]+)\.yaml`\n\n```yaml\n(.*?)\n```", page, re.DOTALL))
    assert shown == {path.stem: path.read_text(encoding="utf-8").rstrip() for path in SCRIPTS}


def test_the_gallery_has_the_ten_commonest_needs() -> None:
    assert len(SCRIPTS) >= 10
