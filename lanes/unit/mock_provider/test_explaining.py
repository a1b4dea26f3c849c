"""`mock-provider explain`: the step that takes a request, and the differences of the others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mock_provider.cli import main
from mock_provider.errors import UsageError
from mock_provider.explaining import explain, explanation_json, explanation_text, read_request
from mock_provider.json_values import Json, JsonObject
from mock_provider.script import parse_script
from mock_provider.steps import Script

SCRIPT = """\
version: 1
conversations:
  main:
    when: {user_contains: README}
    steps:
      - expect: {last_user: README, tools: [read_file]}
        reply: one
      - expect: {tool_result: lanes}
        reply: two
  other:
    when: {user_contains: weather}
    steps:
      - reply: three
"""


def script(text: str = SCRIPT) -> Script:
    return parse_script(text, "play.yaml")


def chat(words: str, **more: Json) -> JsonObject:
    return {"model": "m", "messages": [{"role": "user", "content": words}], **more}


def told(request: JsonObject, text: str = SCRIPT, dialect: str | None = None) -> str:
    played = script(text)
    return explanation_text(explain(played, read_request(json.dumps(request), "request.json", played, dialect)))


def test_a_request_that_fits_is_told_its_step() -> None:
    tools: list[Json] = [{"type": "function", "function": {"name": "read_file"}}]
    assert told(chat("What is in README?", tools=tools)) == (
        "POST /v1/chat/completions: openai_chat, model m, 1 message, tools read_file; "
        'last user "What is in README?"\n'
        "conversation \"main\": its 'when' fits\n"
        "  step 1 (line 6): fits\n"
        "  step 2 (line 8): does not fit\n"
        '    tool_result: expected a text containing "lanes", found none\n'
        "conversation \"other\": its 'when' does not fit\n"
        '    when.user_contains: expected a text containing "weather", found "What is in README?"\n'
        "  step 1 (line 13): fits\n"
        'would take: conversation "main", step 1\n'
    )


def test_a_request_that_does_not_fit_is_told_as_it_would_be_refused() -> None:
    lines = told(chat("What is in README?")).splitlines()
    assert 'would be refused: play.yaml, conversation "main": request 1 does not fit step 1 [SCRIPT_MISMATCH]' in lines
    assert "    tools: expected [read_file] among them, found [], without read_file" in lines


def test_a_request_that_the_provider_refuses_names_its_words() -> None:
    assert told({"model": "m", "messages": []}).endswith(
        "would be refused: Invalid 'messages': empty array. Expected an array with minimum length 1, "
        "but got an empty array instead.\n"
    )


def test_an_unknown_address_is_told() -> None:
    assert "POST /v1/none is no address of this provider" in told({"path": "/v1/none", "body": {}})


def test_an_answer_without_a_step_is_told() -> None:
    request: JsonObject = {"path": "/v1/embeddings", "body": {"model": "m", "input": "x"}}
    assert told(request) == "POST /v1/embeddings\nanswered without a step\n"


@pytest.mark.parametrize(
    ("body", "dialect"),
    [
        pytest.param(chat("weather"), "openai_chat", id="chat"),
        pytest.param({"model": "m", "input": "weather"}, "openai_responses", id="responses"),
        pytest.param(chat("weather", max_tokens=9, system="s"), "anthropic_messages", id="messages"),
        pytest.param({"contents": [{"role": "user", "parts": [{"text": "weather"}]}]}, "gemini", id="gemini"),
        pytest.param(
            {
                "messages": [{"role": "user", "content": [{"text": "weather"}]}],
                "inferenceConfig": {"maxTokens": 9},
            },
            "bedrock",
            id="bedrock",
        ),
    ],
)
def test_the_dialect_of_a_bare_body_is_guessed(body: JsonObject, dialect: str) -> None:
    played = script()
    found = explain(played, read_request(json.dumps(body), "request.json", played, None))
    assert (found.dialect, found.ok, found.conversation, found.step) == (dialect, True, "other", 1)


def test_the_dialect_of_a_bare_body_can_be_said() -> None:
    assert told(chat("weather"), dialect="ollama").startswith("POST /api/chat: ollama, model m, 1 message, streaming")


def test_a_line_of_the_journal_is_a_request() -> None:
    line: JsonObject = {
        "number": 3,
        "method": "POST",
        "path": "/c/other/v1/messages",
        "headers": {"x-api-key": "[redacted]", "anthropic-version": "2023-06-01"},
        "body": chat("anything", max_tokens=9),
    }
    assert told(line).endswith('would take: conversation "other", step 1\n')


def test_a_key_of_the_script_is_put_in_where_the_journal_hid_it() -> None:
    line: JsonObject = {"path": "/v1/chat/completions", "headers": {"authorization": "[redacted]"}, "body": chat("x")}
    assert told(line, "version: 1\napi_key: sk-real-000001\nsteps: [{reply: hi}]\n").endswith("would take: step 1\n")


def test_what_is_shown_of_a_request_holds_no_secret() -> None:
    assert "sk-proj-abcdef0123" not in told(chat("weather sk-proj-abcdef0123", api_key="canary-0001"))
    assert "canary-0001" not in told(chat("my key is canary-0001", api_key="canary-0001"))


def test_the_form_for_programs_holds_the_differences() -> None:
    played = script()
    found = explanation_json(explain(played, read_request(json.dumps(chat("weather")), "r", played, None)))
    listed = found["conversations"]
    assert isinstance(listed, list)
    assert listed[0] == {
        "name": "main",
        "fits": False,
        "differences": [
            {"field": "user_contains", "expected": 'a text containing "README"', "found": '"weather"'},
        ],
        "steps": [
            {
                "step": 1,
                "line": 6,
                "fits": False,
                "differences": [
                    {"field": "last_user", "expected": 'a text containing "README"', "found": '"weather"'},
                    {
                        "field": "tools",
                        "expected": "[read_file] among them",
                        "found": "[], without read_file",
                    },
                ],
            },
            {
                "step": 2,
                "line": 8,
                "fits": False,
                "differences": [
                    {"field": "tool_result", "expected": 'a text containing "lanes"', "found": "none"},
                ],
            },
        ],
    }


@pytest.mark.parametrize(
    ("text", "what"),
    [
        pytest.param("{", "not JSON", id="no-json"),
        pytest.param("[]", "not a mapping", id="list"),
    ],
)
def test_a_file_that_is_no_request_is_told(text: str, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        read_request(text, "request.json", script(), None)


def test_an_unknown_dialect_is_told_with_its_near_miss() -> None:
    with pytest.raises(UsageError, match="did you mean 'ollama'"):
        read_request("{}", "request.json", script(), "olama")


@pytest.mark.parametrize(
    ("words", "code"), [pytest.param("weather", 0, id="taken"), pytest.param("else", 3, id="refused")]
)
def test_the_command_says_by_its_exit_code_whether_a_step_takes_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: str, code: int
) -> None:
    played, request = tmp_path / "play.yaml", tmp_path / "request.json"
    played.write_text(SCRIPT, encoding="utf-8")
    request.write_text(json.dumps(chat(words)), encoding="utf-8")
    assert main(["explain", str(played), str(request)]) == code
    text = capsys.readouterr().out
    assert main(["explain", "--format", "json", str(played), str(request)]) == code
    assert (json.loads(capsys.readouterr().out)["ok"], "conversation" in text) == (code == 0, True)


def test_a_missing_request_is_a_mistake_of_the_person(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    played = tmp_path / "play.yaml"
    played.write_text(SCRIPT, encoding="utf-8")
    assert main(["explain", str(played), str(tmp_path / "none.json")]) == 2
    assert "none.json: cannot be read: No such file or directory [USAGE]" in capsys.readouterr().err


def test_new_writes_a_script_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.yaml"
    assert main(["new", str(path)]) == 0
    assert main(["check", str(path)]) == 0
    assert "mock-provider run mine.yaml" in path.read_text(encoding="utf-8")
    capsys.readouterr()
    assert main(["new", str(path)]) == 2
    assert "the file is there already [USAGE]" in capsys.readouterr().err
    assert main(["new", str(tmp_path / "no" / "folder.yaml")]) == 2
    assert "the file cannot be written" in capsys.readouterr().err


def test_new_without_a_file_writes_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new"]) == 0
    assert capsys.readouterr().out.startswith("# yaml-language-server")
