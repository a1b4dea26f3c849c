"""The command as a process of its own: arguments, streams, signals, and what is left when it is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lanes.unit.surfaces.hangups import hear_hangups
from lanes.unit.surfaces.scripted import Reply, Script, say, served, use

ROOT = Path(__file__).parents[3]


class Command:
    """Starts `python -m harness` in a folder of its own, with nothing of this environment's settings."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work = folder / "work"
        self.work.mkdir()
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("HARNESS_", "OPENAI_"))},
            "HOME": str(folder),
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
            "HARNESS_SESSION_ROOT": str(folder / "sessions"),
            "HARNESS_RETRY_BASE_MS": "0",
        }

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
        given: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        given["preexec_fn"] = hear_hangups
        return subprocess.Popen(
            [sys.executable, "-m", "harness", *arguments],
            cwd=self.work,
            env=self.environment,
            **{**given, **options},
        )

    def run(self, *arguments: str, **options: Any) -> tuple[int, str, str]:
        text = options.pop("input", None)
        if text is not None:
            options["stdin"] = subprocess.PIPE
        process = self.start(*arguments, **options)
        out, err = process.communicate(None if text is None else text.encode(), timeout=60)
        return process.returncode, (out or b"").decode(), (err or b"").decode()

    @contextmanager
    def scripted(self, *replies: Reply) -> Iterator[Script]:
        script = Script(list(replies))
        with served(script) as base_url:
            self.environment["HARNESS_BASE_URL"] = base_url
            yield script

    def log(self) -> list[dict[str, Any]]:
        path = next((self.folder / "sessions").rglob("session.jsonl"))
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]

    def has_sessions(self) -> bool:
        return any((self.folder / "sessions").rglob("session.jsonl"))


@pytest.fixture
def command(tmp_path: Path) -> Command:
    return Command(tmp_path)


def until(condition: Callable[[], bool], limit_s: float = 20) -> bool:
    end = time.monotonic() + limit_s
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["run"], id="no-task"),
        pytest.param(["run", "  \n "], id="blank-task"),
        pytest.param(["run", "--modle", "x", "task"], id="unknown-option"),
        pytest.param(["run", "--timeout", "soon", "task"], id="not-a-number"),
        pytest.param(["run", "--timeout", "nan", "task"], id="not-finite"),
        pytest.param(["run", "--max-steps", "0", "task"], id="out-of-range"),
        pytest.param(["run", "--cwd", "missing", "task"], id="no-folder"),
        pytest.param(["run", "--provider", "opnai", "task"], id="unknown-provider"),
        pytest.param(["run", "--base-url", "ftp://x", "task"], id="base-url"),
        pytest.param(["run", "task", "-"], id="words-and-dash"),
        pytest.param(["rum", "task"], id="unknown-command"),
        pytest.param(["run", "--cwd", "~nobody-has-this-name", "task"], id="nobody's-home"),
        pytest.param(["run", "--session-root", "~nobody-has-this-name/x", "task"], id="nobody's-session-root"),
        pytest.param(["run", "--mcp", "~nobody-has-this-name/x.json", "task"], id="nobody's-servers"),
        pytest.param(["run", "--cwd", "x" * 5000, "task"], id="too-long-a-folder"),
        pytest.param(["run", "--", " "], id="blank-behind-dashes"),
        pytest.param(["sdk", "--base-url", "ftp://x"], id="sdk-base-url"),
        pytest.param(["acp", "--base-url", "ftp://x"], id="acp-base-url"),
        pytest.param(["sdk", "--mcp", "missing.json"], id="sdk-servers"),
        pytest.param(["acp", "--mcp", "missing.json"], id="acp-servers"),
        pytest.param(["sdk", "--model", "\udcff"], id="sdk-no-text"),
        pytest.param(["acp", "--model", "\udcff"], id="acp-no-text"),
        pytest.param(["--profile", "sdl"], id="unknown-profile"),
        pytest.param(["--profile"], id="no-profile"),
        pytest.param([], id="nothing"),
    ],
)
def test_HL08_a_mistake_exits_2_and_starts_nothing(arguments: list[str], command: Command) -> None:
    with command.scripted(say("never")) as script:
        code, out, err = command.run(*arguments)
    assert (code, out, script.requests, command.has_sessions()) == (2, "", [], False)
    assert err.startswith(("harness", "usage: "))
    assert "Traceback" not in err


def test_near_misses_are_suggested(command: Command) -> None:
    errors = [
        command.run(*arguments)[2]
        for arguments in (["rum"], ["run", "--modle", "x"], ["run", "--provider", "opnai", "x"])
    ]
    hints = ["did you mean 'run'?", "did you mean '--model'?", "did you mean 'openai'?"]
    assert [hint in error for hint, error in zip(hints, errors, strict=True)] == [True, True, True]


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["run", "task", "-h"]], ids=" ".join)
def test_help_goes_to_standard_output_fits_a_screen_and_shows_an_example(
    arguments: list[str], command: Command
) -> None:
    code, out, err = command.run(*arguments)
    lines = out.splitlines()
    assert (code, err, len(lines) <= 24, max(map(len, lines)) <= 80, "example:" in lines) == (0, "", True, True, True)


def test_help_names_every_option(command: Command) -> None:
    from harness.cli import _run_parser

    out = command.run("run", "--help")[1]
    options = [name for action in _run_parser()._actions for name in action.option_strings]
    assert [name for name in options if name not in out] == []


def test_a_missing_key_is_a_usage_error_that_names_the_variable(command: Command) -> None:
    code, out, err = command.run("run", "--provider", "deepseek", "task")
    assert (code, out, command.has_sessions()) == (2, "", False)
    assert err.startswith("harness: DEEPSEEK_API_KEY: no key for api.deepseek.com:443 [USAGE]\n")


def test_HL09_words_are_joined_by_one_blank_and_keep_their_own(command: Command) -> None:
    with command.scripted(say("done")) as script:
        code, out, _ = command.run("run", "a  b", "--model", "m", " c", "--", "-d")
    assert (code, out, script.requests[0]["messages"][-1]["content"]) == (0, "done\n", "a  b  c -d")


@pytest.mark.parametrize(
    ("arguments", "task"),
    [
        (["--", "-d"], "-d"),
        (["--", "--json", "-"], "--json -"),
        (["--", "-"], "-"),
        (["a", "--", "b", "--", "c"], "a b -- c"),
    ],
    ids=["option", "options", "dash", "second-dashes"],
)
def test_HL09_no_word_behind_two_dashes_is_an_option_or_stands_for_a_pipe(
    arguments: list[str], task: str, command: Command
) -> None:
    with command.scripted(say("done")) as script:
        code, out, err = command.run("run", *arguments, input="from the pipe")
    assert (code, out, err, script.requests[0]["messages"][-1]["content"]) == (0, "done\n", "", task)


def test_published_clients_may_name_patches_before_the_profile(command: Command) -> None:
    with command.scripted(say("done")):
        assert command.run("--patch", "a", "--profile", "headless", "--patch", "b", "task") == (0, "done\n", "")


@pytest.mark.parametrize("more", [[], ["--session-root", "relative"]], ids=["cwd", "session-root"])
def test_HL08_a_folder_that_is_gone_is_told_in_a_persons_words(more: list[str], command: Command) -> None:
    gone = command.work / "gone"
    gone.mkdir()
    inner = [sys.executable, "-m", "harness", "run", *more, "task"]
    ended = subprocess.run(
        ["/bin/sh", "-c", 'rmdir "$PWD" && exec "$@"', "sh", *inner],
        cwd=gone, env={**command.environment, "HARNESS_BASE_URL": "http://127.0.0.1:9/v1"}, stdin=subprocess.DEVNULL,
        capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    where = "--session-root" if more else "--cwd"
    line = f"harness: {where}: the folder this was started in is gone [USAGE]"
    assert (ended.returncode, ended.stdout, ended.stderr.decode().splitlines()[0]) == (2, b"", line)


@pytest.mark.parametrize("arguments", [["run"], ["run", "-"]], ids=["piped", "dash"])
def test_a_task_is_read_from_a_pipe(arguments: list[str], command: Command) -> None:
    with command.scripted(say("done")) as script:
        code, out, err = command.run(*arguments, input="\ufeffline one\n\nline three €\n\n")
    assert (code, out, err, script.requests[0]["messages"][-1]["content"]) == (
        0,
        "done\n",
        "",
        "line one\n\nline three €",
    )


def test_a_task_in_words_leaves_the_pipe_alone(command: Command) -> None:
    with command.scripted(use("shell", {"command": "cat"}), say("done")) as script:
        code, out, _ = command.run("run", "task", input="not for the shell either")
    assert (code, out, script.requests[0]["messages"][-1]["content"]) == (0, "done\n", "task")
    assert "not for" not in json.dumps(script.requests[1])


def test_standard_input_that_is_no_text_is_a_usage_error(command: Command) -> None:
    process = command.start("run", stdin=subprocess.PIPE)
    out, err = process.communicate(b"ab\xff", timeout=60)
    assert (process.returncode, out) == (2, b"")
    assert err.startswith(b"harness: standard input: not UTF-8 at byte 2 [USAGE]")


def test_a_terminal_is_never_read(command: Command) -> None:
    import pty

    master, slave = pty.openpty()
    try:
        code, out, err = command.run("run", stdin=slave)
    finally:
        os.close(master)
        os.close(slave)
    assert (code, out) == (2, "")
    assert err.startswith("harness run: no task [USAGE]")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)])
def test_HL10_HL11_a_signal_in_a_turn_closes_it_in_the_log_and_never_exits_0(
    number: signal.Signals, code: int, command: Command
) -> None:
    with command.scripted(say("partial", hold=1)) as script:
        process = command.start("run", "task")
        assert script.held.wait(20)
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
    reason = command.log()[-1]["data"]["reason"]
    assert (process.returncode, out, err.decode()) == (code, b"\n", f"harness: {number.name}; the turn ended aborted\n")
    assert reason == {"kind": "aborted", "reason": {"kind": "user"}}


def test_HL11_a_second_signal_ends_at_once_and_leaves_no_process(command: Command) -> None:
    slow = "trap '' TERM; echo $$ > pid; while :; do sleep 0.05; done"
    with command.scripted(use("shell", {"command": slow})):
        process = command.start("run", "task")
        pid_file = command.work / "pid"
        assert until(lambda: pid_file.exists() and pid_file.read_text(encoding="utf-8").strip() != "")
        pid = int(pid_file.read_text(encoding="utf-8"))
        process.send_signal(signal.SIGINT)
        assert until(lambda: _is_marked_cancelled(process.pid))
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
    assert (process.returncode, until(lambda: not is_alive(pid))) == (130, True)


def _is_marked_cancelled(pid: int) -> bool:
    """Whether the process took its first signal: none is pending any more."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    pending = [line.split()[1] for line in status.splitlines() if line.startswith(("SigPnd", "ShdPnd"))]
    return all(int(mask, 16) == 0 for mask in pending)


@pytest.mark.parametrize("as_json", [[], ["--json"]], ids=["text", "json"])
def test_HL17_a_reader_that_is_gone_costs_one_line_and_exit_1(as_json: list[str], command: Command) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with command.scripted(say("done")):
        code, _, err = command.run("run", *as_json, "task", stdout=writer)
    os.close(writer)
    assert (code, err) == (1, "harness: standard output cannot be written, broken pipe\n")


def test_HL17_an_output_that_was_closed_from_the_start_is_not_taken_by_a_file(command: Command) -> None:
    with command.scripted(say("done")):
        code, _, err = command.run("run", "task", stdout=None, preexec_fn=lambda: os.close(1))
    assert (code, err, command.log()[-1]["type"]) == (1, "harness: standard output is closed\n", "turn/end")


def test_a_full_disk_behind_the_output_is_no_traceback(command: Command) -> None:
    with command.scripted(say("done")), Path("/dev/full").open("wb") as full:
        code, _, err = command.run("run", "task", stdout=full)
    assert (code, err) == (1, "harness: standard output cannot be written, no space left on device\n")


def test_the_last_text_reaches_a_file_whole(command: Command) -> None:
    text = "é€😀" * 20_000
    with command.scripted(say(text)):
        code, out, _ = command.run("run", "task")
    assert (code, out == f"{text}\n") == (0, True)


def test_case_B16_half_a_character_in_the_answer_ends_nothing(command: Command) -> None:
    with command.scripted(say("a\ud83db")):
        code, out, err = command.run("run", "task")
    assert (code, out, err) == (0, "a\\ud83db\n", "")


@pytest.mark.parametrize(
    ("arguments", "where"),
    [(["x\udcffy"], "TASK"), (["--model", "\udcff", "task"], "--model"), (["--resume", "\udcff", "t"], "--resume")],
)
def test_bytes_that_are_no_text_are_refused_before_anything_starts(
    arguments: list[str], where: str, command: Command
) -> None:
    with command.scripted(say("never")) as script:
        code, out, err = command.run("run", *arguments)
    assert (code, out, script.requests, command.has_sessions()) == (2, "", [], False)
    assert err.startswith(f"harness run: {where}: not UTF-8")


def test_no_key_reaches_a_shell_command(command: Command) -> None:
    command.environment |= {"OPENAI_API_KEY": "sk-canary-0f3", "MY_TOKEN": "t", "ALIAS": "sk-canary-0f3", "PLAIN": "p"}
    with command.scripted(use("shell", {"command": "env; cat /proc/$PPID/cmdline"}), say("done")) as script:
        command.run("run", "task")
    result = script.requests[1]["messages"][-1]["content"]
    assert ("PLAIN=p" in result, "sk-canary-0f3" in result, "MY_TOKEN" in result) == (True, False, False)
    assert b"sk-canary-0f3" not in b"".join(path.read_bytes() for path in command.folder.rglob("*") if path.is_file())


def test_a_process_killed_in_a_tool_call_is_resumed_and_runs_no_tool_twice(command: Command) -> None:
    slow = use("shell", {"command": "echo run >> runs; echo $$ > pid; exec sleep 43.301"})
    with command.scripted(slow, say("went on")) as script:
        process = command.start("run", "--json", "task")
        assert until(lambda: (command.work / "pid").exists() and (command.work / "pid").stat().st_size > 0)
        process.kill()
        process.communicate(timeout=20)
        header = command.log()[0]
        left = int((command.work / "pid").read_text(encoding="utf-8"))
        was_left = is_alive(left)
        code, out, err = command.run("run", "--resume", header["id"], "go on")
    roles = [message["role"] for message in script.requests[1]["messages"]]
    assert (code, out, err, was_left, is_alive(left)) == (0, "went on\n", "", True, False)
    assert (command.work / "runs").read_text(encoding="utf-8") == "run\n"
    assert roles == ["system", "user", "assistant", "tool", "user"]
    assert [event["seq"] for event in command.log()[1:]] == list(range(len(command.log()) - 1))


def test_a_print_of_a_stranger_never_mixes_into_the_answer(command: Command) -> None:
    (command.folder / "startup").mkdir()
    (command.folder / "startup" / "loud.py").write_text(
        "import os, sys, harness.surfaces.headless as h\n"
        "old = h.assemble\n"
        "print('import')\n"
        "def main():\n"
        "    from harness.cli import main\n"
        "    class Loud:\n"
        "        pass\n"
        "    original = h._Headless._work\n"
        "    async def work(self, assembled):\n"
        "        print('print'); os.write(1, b'write\\n'); os.system('echo child')\n"
        "        sys.__stdout__.write('dunder\\n'); sys.__stdout__.flush()\n"
        "        return await original(self, assembled)\n"
        "    h._Headless._work = work\n"
        "    return main(sys.argv[1:])\n"
        "sys.exit(main())\n",
        encoding="utf-8",
    )
    with command.scripted(say("done")):
        process = subprocess.run(
            [sys.executable, command.folder / "startup" / "loud.py", "run", "task"],
            cwd=command.work,
            env=command.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    assert process.stdout == b"import\ndone\n"
    assert sorted(process.stderr.split()) == [b"child", b"dunder", b"print", b"write"]
