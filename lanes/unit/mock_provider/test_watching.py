"""A script that changes under play: new conversations on the new one, old ones on theirs, broken edits on neither."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

import mock_provider
from mock_provider.errors import UsageError
from mock_provider.json_values import Json, JsonObject
from mock_provider.mock import Mock
from mock_provider.replies import conversation, gate, script, step, text, tool_call
from mock_provider.request_log import RequestLog
from mock_provider.script import load_script
from mock_provider.succession import MAX_EARLIER
from mock_provider.watching import Watch

# Children find the packages where nothing is installed; what the lane put first stays first.
PATH_OF_CHILDREN = os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), str(Path(__file__).parents[3])])
HEADERS = {"authorization": "Bearer x"}


def turns(*words: str) -> list[Json]:
    """Messages by turns: user, assistant, user…"""
    return [{"role": "assistant" if at % 2 else "user", "content": word} for at, word in enumerate(words)]


def say(mock: Mock, *words: str, **headers: str) -> str:
    """Send a history; gives the answer's text, or the code of the error."""
    with httpx.Client(transport=mock_provider.transport(mock), base_url=mock.base_url()) as client:
        body: JsonObject = {"model": "m", "messages": turns(*words)}
        told = client.post("/chat/completions", json=body, headers={**HEADERS, **headers}).json()
        return str(told["error"]["code"] if "error" in told else told["choices"][0]["message"]["content"])


def test_a_conversation_that_has_begun_is_finished_on_its_own_script() -> None:
    mock = Mock(script(step("old one"), step("old two")), may_change=True)
    begun = say(mock, "a")
    mock.replace(script(step("new one"), step("new two")))
    fresh = say(mock, "b")
    assert (begun, fresh) == ("old one", "new one")
    assert (say(mock, "a", "old one", "go on"), say(mock, "b", "new one", "go on")) == ("old two", "new two")
    assert (mock.verify().ok, [entry.number for entry in mock.journal.entries]) == (True, [1, 2, 3, 4])


def test_named_conversations_change_with_the_script_once_they_are_over() -> None:
    def of(word: str) -> JsonObject:
        return script(conversations={"a": conversation(step(f"{word} one"), step(f"{word} two"))})

    mock = Mock(of("old"), may_change=True)
    name = {"x-mock-conversation": "a"}
    said = [say(mock, "x", **name)]
    mock.replace(of("new"))
    said += [say(mock, "x", "old one", "y", **name), say(mock, "x", **name), say(mock, "x", "new one", "y", **name)]
    assert said == ["old one", "old two", "new one", "new two"]


def test_a_round_with_a_tool_goes_on_after_a_change() -> None:
    mock = Mock(script(step(tool_call("f", {})), step("old end")), may_change=True)
    with httpx.Client(transport=mock_provider.transport(mock), base_url=mock.base_url(), headers=HEADERS) as client:
        first = client.post("/chat/completions", json={"model": "m", "messages": turns("x")}).json()
        message = first["choices"][0]["message"]
        mock.replace(script(step("new")))
        result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "r"}
        second = client.post(
            "/chat/completions", json={"model": "m", "messages": [*turns("x"), message, result]}
        ).json()
    assert second["choices"][0]["message"]["content"] == "old end"


def test_what_went_wrong_on_an_earlier_script_stays_in_the_verdict() -> None:
    mock = Mock(script(step("old one"), step("old two")), may_change=True)
    say(mock, "a")
    mock.replace(script(step("new")))
    say(mock, "b")
    assert mock.verify().left == ("script: step 2 was never taken",)


def test_what_nobody_began_on_an_earlier_script_is_not_missed() -> None:
    mock = Mock(script(step("old")), may_change=True)
    mock.replace(script(step("new")))
    say(mock, "b")
    assert mock.verify().ok


def test_only_so_many_scripts_are_remembered() -> None:
    mock = Mock(script(step("0 one"), step("0 two")), may_change=True)
    say(mock, "a")
    for number in range(1, MAX_EARLIER + 2):
        mock.replace(script(step(f"{number} one", optional=True), step(f"{number} two", optional=True)))
    assert say(mock, "a", "0 one", "go on") == f"{MAX_EARLIER + 1} one"
    assert mock.verify().left == ("script: step 2 was never taken",)


def test_models_and_keys_are_those_of_the_present_script() -> None:
    mock = Mock(script(step("old", repeat="forever")), may_change=True)
    assert say(mock, "a") == "old"
    mock.replace(script(step("new"), models=["other"]))
    assert say(mock, "a") == "model_not_found"
    mock.replace(script(step("new"), api_key="sk-real-000001"))
    assert say(mock, "a") == "invalid_api_key"


def test_gates_of_both_scripts_can_be_opened() -> None:
    mock = Mock(script(step(gate("old"), text("a"))), may_change=True)
    mock.replace(script(step(gate("new"), text("b"))))
    assert [one.name for one in mock.gates()] == ["new"]


def test_a_reset_forgets_the_earlier_scripts() -> None:
    mock = Mock(script(step("old one"), step("old two")), may_change=True)
    say(mock, "a")
    mock.replace(script(step("new one")))
    mock.reset()
    assert (say(mock, "a", "old one", "go on"), mock.verify().ok) == ("new one", True)


def test_a_play_that_was_not_made_to_change_does_not() -> None:
    with pytest.raises(UsageError, match="this play keeps its script"):
        Mock(script(step("hi"))).replace(script(step("ho")))


class Edited:
    """A script file under watch, and what was said about it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: list[str] = []
        self.write("hi")
        self.mock = Mock(load_script(path), may_change=True)
        self.watch = Watch(path, load_script, self.mock.replace, RequestLog("text", self.lines.append))

    def write(self, reply: str) -> None:
        self.path.write_text(f"version: 1\nsteps:\n  - {{reply: {reply}}}\n", encoding="utf-8")


@pytest.fixture
def edited(tmp_path: Path) -> Edited:
    return Edited(tmp_path / "play.yaml")


def test_a_good_edit_is_played_from_now_on(edited: Edited) -> None:
    assert edited.watch.look() is False
    edited.write("hello there")
    assert (edited.watch.look(), say(edited.mock, "x"), edited.watch.look()) == (True, "hello there", False)
    assert edited.lines == [f"mock-provider: {edited.path} changed and is played from now on\n"]


def test_a_broken_edit_keeps_the_last_good_script_and_says_why(edited: Edited) -> None:
    edited.write("[{txt: 3}]")
    assert (edited.watch.look(), say(edited.mock, "x")) == (False, "hi")
    said = "".join(edited.lines)
    assert "play.yaml changed and has 1 problem; the last good script is kept" in said
    assert "play.yaml:3:15, steps[0].reply[0]: unknown key 'txt'; did you mean 'text'? [SCRIPT_KEY]" in said


def test_a_mended_edit_is_played(edited: Edited) -> None:
    edited.write("[")
    edited.watch.look()
    edited.write("mended again")
    assert (edited.watch.look(), say(edited.mock, "x")) == (True, "mended again")


def test_a_file_that_is_gone_keeps_the_last_good_script(edited: Edited) -> None:
    edited.path.unlink()
    assert (edited.watch.look(), say(edited.mock, "x")) == (False, "hi")
    assert "cannot be read: No such file or directory" in "".join(edited.lines)
    edited.write("back again")
    assert edited.watch.look() is True


def save(path: Path, text: str) -> None:
    """Change a file at once, so that nobody sees half of it."""
    beside = path.with_suffix(".new")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)


def test_the_command_reads_a_changed_file_again(tmp_path: Path) -> None:
    path = tmp_path / "play.yaml"
    path.write_text("version: 1\nsteps: [{reply: before, repeat: forever}]\n", encoding="utf-8")
    with subprocess.Popen(
        [sys.executable, "-m", "mock_provider", "serve", str(path), "--plain", "--watch", "--log", "json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": PATH_OF_CHILDREN},
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        url = json.loads(process.stdout.readline())["base_urls"]["openai_chat"]
        body: JsonObject = {"model": "m", "messages": turns("x")}
        first = httpx.post(f"{url}/chat/completions", json=body, headers=HEADERS).json()
        request = json.loads(process.stderr.readline())
        save(path, "version: 1\nsteps: [{rply: x}]\n")
        kept = json.loads(process.stderr.readline())
        save(path, "version: 1\nsteps: [{reply: after}]\n")
        later = [json.loads(process.stderr.readline())]
        while later[-1]["event"] != "script_loaded":
            later.append(json.loads(process.stderr.readline()))
        second = httpx.post(f"{url}/chat/completions", json=body, headers=HEADERS).json()
        process.terminate()
        process.communicate(timeout=30)
    said = [answer["choices"][0]["message"]["content"] for answer in (first, second)]
    assert (said, process.returncode) == (["before", "after"], 0)
    assert [line["event"] for line in (request, kept, *later)] == [
        "request",
        "script_kept",
        "script_problems",
        "script_loaded",
    ]
    assert (request["status"], "body" in request, "did you mean 'reply'" in later[0]["text"]) == (200, False, True)
