"""A session log becomes a script of the mock provider that says again what was answered."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from lanes.cli import main
from lanes.errors import UsageError
from lanes.log_script import run_script, script_of_logs
from mock_provider.script import parse_script

LOGS = Path(__file__).parents[3] / "cassettes" / "session-logs"
STORIES = sorted(folder.name for folder in LOGS.iterdir())


def logs_of(story: str) -> list[Path]:
    return sorted((LOGS / story).glob("session*.jsonl"))


@pytest.mark.parametrize("story", STORIES)
def test_every_committed_session_becomes_a_script_that_is_sound(story: str) -> None:
    script = parse_script(script_of_logs(logs_of(story)), "script.yaml")
    assert sum(len(one.steps()) for one in script.conversations) > 0


def test_steps_say_what_they_were_asked_and_what_was_answered() -> None:
    written = yaml.safe_load(script_of_logs(logs_of("fix-test")))
    first, *_, last = written["steps"]
    assert first == {
        "expect": {"last_user": "The test check.py fails. Please find the mistake and fix it.", "messages": 2},
        "reply": [
            {"text": "First I run the test."},
            {"tool_call": {"name": "shell", "arguments": {"command": "python -B check.py"}, "id": "call_1"}},
        ],
        "usage": {"input": 400, "output": 24},
    }
    assert (len(written["steps"]), last["expect"]["messages"]) == (5, 10)


def test_a_summary_that_may_have_been_of_several_spans_is_named(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in logs_of("compact-fails")[0].read_text(encoding="utf-8").splitlines()]
    first, second = [row["data"]["message"]["content"][0] for row in rows if row["type"] == "tool/result"][:2]
    first["content"], second["content"] = second["content"], first["content"]
    path = tmp_path / "session.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        script_of_logs([path])
    assert caught.value.where == f"{path}, line 30, data.reason"


def test_a_request_that_failed_is_an_error_in_the_script() -> None:
    written = yaml.safe_load(script_of_logs(logs_of("retry-then-success")))
    kinds = [next(iter(part)) for step in written["steps"] for part in step["reply"]]
    assert (kinds.count("error_event") > 0, kinds[-1]) == (True, "text")


def test_the_script_goes_to_a_new_file_or_to_standard_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = str(logs_of("fix-test")[0])
    assert main(["script", log]) == 0
    shown = capsys.readouterr().out
    assert main(["script", log, "--to", str(tmp_path / "s.yaml")]) == 0
    assert ((tmp_path / "s.yaml").read_text(encoding="utf-8"), capsys.readouterr().out) == (shown, "")
    assert main(["script", log, "--to", str(tmp_path / "s.yaml")]) == 2
    assert "the file cannot be written: File exists" in capsys.readouterr().err


def header_of(story: str) -> str:
    return logs_of(story)[0].read_text(encoding="utf-8").splitlines()[0] + "\n"


@pytest.mark.parametrize(
    ("content", "what"),
    [
        pytest.param(None, "cannot be read: No such file or directory", id="missing"),
        pytest.param("", "[USAGE]", id="empty"),
        pytest.param("{}\n", "[USAGE]", id="no-log"),
        pytest.param("\0\xff", "[USAGE]", id="binary"),
        pytest.param(header_of("fix-test"), "no model call is in it", id="no-call"),
    ],
)
def test_a_log_that_is_none_is_told_with_its_name(tmp_path: Path, content: str | None, what: str) -> None:
    path = tmp_path / "session.jsonl"
    if content is not None:
        path.write_text(content, encoding="latin-1")
    with pytest.raises(UsageError) as caught:
        run_script([str(path)])
    assert str(caught.value).startswith(f"{path}: ")
    assert what in str(caught.value)


def test_arguments_that_never_became_json_stay_as_they_were(tmp_path: Path) -> None:
    lines = logs_of("fix-test")[0].read_text(encoding="utf-8").splitlines()
    whole = json.dumps({"command": "python -B check.py"}, separators=(",", ":"))
    assert any(json.dumps(whole)[1:-1] in line for line in lines)
    broken = [line.replace(json.dumps(whole)[1:-1], "{{half") for line in lines]
    path = tmp_path / "session.jsonl"
    path.write_text("\n".join(broken) + "\n", encoding="utf-8")
    written = yaml.safe_load(script_of_logs([path]))
    assert written["steps"][0]["reply"][1]["tool_call"] == {"name": "shell", "raw": "{{{{half", "id": "call_1"}
