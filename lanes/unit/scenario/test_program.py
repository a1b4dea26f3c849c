"""Starting programs: exit codes as a shell shows them, and signals sent at a moment that was seen."""

import json
import signal
import sys
from pathlib import Path

import pytest

from lanes.errors import ScenarioError
from lanes.program import Finished, Program, ShownText, check_finished, console_command, run_command, stop_when
from lanes.scenario import Run

ENVIRONMENT = {"PATH": "/usr/bin:/bin"}


def _python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def _chunk(text: str) -> str:
    return json.dumps(
        {"type": "session_event", "event": {"type": "assistant/chunk", "data": {"chunk": {"text": text}}}}
    )


def test_standard_output_error_and_exit_code_are_kept_apart(tmp_path: Path) -> None:
    code = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"

    assert run_command(_python(code), ENVIRONMENT, tmp_path) == Finished(3, "out\n", "err\n")


def test_the_input_of_a_started_program_is_empty(tmp_path: Path) -> None:
    assert run_command(_python("import sys; print(repr(sys.stdin.read()))"), ENVIRONMENT, tmp_path).stdout == "''\n"


SAYS_AND_WAITS = """
import os, signal
def stop(number, frame):
    os.write(1, b"stopped\\n")
    os._exit(130)
signal.signal(signal.SIGINT, stop)
os.write(1, b"one\\n")
os.write(1, b"two\\n")
signal.pause()
"""


def test_a_signal_is_sent_once_the_moment_was_seen(tmp_path: Path) -> None:
    done = stop_when(_python(SAYS_AND_WAITS), ENVIRONMENT, tmp_path, lambda line: line == "two\n", signal.SIGINT)

    assert done == Finished(130, "one\ntwo\nstopped\n", "")


def test_a_killed_program_has_the_exit_code_of_a_shell(tmp_path: Path) -> None:
    seen: list[str] = []
    done = stop_when(
        _python(SAYS_AND_WAITS),
        ENVIRONMENT,
        tmp_path,
        lambda line: line == "two\n",
        signal.SIGKILL,
        before_signal=lambda: seen.append("before"),
    )

    assert (done.exit, seen) == (137, ["before"])


def test_a_program_that_ends_before_its_moment_is_named(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="ended before the moment"):
        stop_when(_python("print('one')"), ENVIRONMENT, tmp_path, lambda line: False, signal.SIGINT)


def test_shown_text_is_put_together_from_pieces_and_from_nothing_else() -> None:
    shown = ShownText("one, two")
    lines = ["not json", '{"type":"session"}', json.dumps({"event": {"type": "user/message"}}), _chunk("one, t")]

    assert [shown.has_come(line) for line in [*lines, _chunk("wo")]] == [False, False, False, False, True]


@pytest.mark.parametrize(
    ("finished", "problems"),
    [
        pytest.param(Finished(0, "hi\n", "all well"), [], id="as-told"),
        pytest.param(Finished(1, "hi\n", "all well"), ["exit code 1, expected 0; stderr: 'all well'"], id="exit"),
        pytest.param(Finished(0, "hi", "all well"), ["stdout is 'hi', expected 'hi\\n'"], id="stdout"),
        pytest.param(Finished(0, "hi\n", ""), ["stderr '' does not contain 'well'"], id="stderr"),
        pytest.param(
            Finished(0, "hi\n", "well\nTraceback"), ["stderr shows a traceback: 'well\\nTraceback'"], id="traceback"
        ),
    ],
)
def test_an_end_is_compared_with_the_story(finished: Finished, problems: list[str]) -> None:
    assert check_finished(Run("task", stdout="hi\n", stderr=("well",)), finished) == problems


def test_the_arguments_name_every_choice_and_the_session_to_go_on_with(tmp_path: Path) -> None:
    folder = tmp_path / "sessions" / "project" / "id"
    folder.mkdir(parents=True)
    (folder / "session.jsonl").write_text('{"type":"session","id":"session-7"}\n', encoding="utf-8")
    program = Program(tmp_path / "w", tmp_path / "sessions", "http://127.0.0.1:1/v1")

    assert program.arguments(Run("go on", resume=True, flags=("--json",))) == [
        *("run", "--base-url", "http://127.0.0.1:1/v1", "--provider", "openai", "--model", "m-small"),
        *("--session-root", str(tmp_path / "sessions"), "--cwd", str(tmp_path / "w")),
        *("--json", "--resume", "session-7", "go on"),
    ]


def test_the_console_command_beside_the_interpreter_is_used_and_the_module_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    without = console_command("mock-provider")
    (tmp_path / "mock-provider").touch()

    assert without == [str(tmp_path / "python"), "-m", "mock_provider"]
    assert console_command("mock-provider") == [str(tmp_path / "mock-provider")]
