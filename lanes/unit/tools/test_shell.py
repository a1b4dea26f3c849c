"""The shell ends what it must end, waits for nothing else, and gives text for any bytes."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.loop.tools import ToolOutput
from harness.tools.processes import command_line, read_table
from harness.tools.shipped import ShippedTools

CASES = Path(__file__).parents[2] / "cases" / "tools"
B44 = json.loads((CASES / "B44-commands.json").read_text(encoding="utf-8"))
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")


class Table:
    """The processes that run in the workspace of this test, as the system sees them."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def running(self, text: str) -> list[str]:
        """Their command lines that hold a text."""
        found = []
        for row in read_table():
            try:
                is_here = Path(f"/proc/{row.pid}/cwd").readlink() == self._root
            except OSError:
                continue
            if is_here and text in command_line(row.pid):
                found.append(command_line(row.pid))
        return sorted(found)

    async def gone(self, text: str) -> list[str]:
        """What is left one second later at most; empty as soon as nothing is."""
        await until(lambda: not self.running(text), limit_s=1)
        return self.running(text)


async def until(condition: Callable[[], bool], *, limit_s: float = 10) -> None:
    """Wait for something outside of this process, which announces itself to nobody."""

    def wait() -> None:
        end = time.monotonic() + limit_s
        while not condition() and time.monotonic() < end:
            time.sleep(0.01)

    await asyncio.to_thread(wait)


def modes(*paths: Path) -> list[str]:
    return [oct(path.stat().st_mode & 0o777) for path in paths]


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def put_file_at(path: Path) -> None:
    path.touch()


@pytest.fixture
def table(root: Path) -> Table:
    return Table(root.resolve())


@pytest.mark.parametrize("run", B44["runs"], ids=lambda run: re.sub(r"\W+", "-", run["command"]))
async def test_case_B44_every_command_returns_in_time_and_leaves_nothing_it_must_not(
    run: dict[str, Any],
    table: Table,
    call: Any,
    shipped: ShippedTools,
    new_cancel: Any,
    text_of_output: Callable[[ToolOutput], str],
) -> None:
    expected = run["expected"]
    cancel = new_cancel()
    if "cancel_after_s" in run:
        asyncio.get_running_loop().call_later(run["cancel_after_s"], cancel.cancel)
    started = time.monotonic()
    output = await call("shell", {"command": run["command"], "timeout_s": run["limit_s"]}, cancel=cancel)
    took_s = time.monotonic() - started
    limit_s = expected["returns_within_s"]
    text = text_of_output(output)
    assert output.meta is not None
    wrong = {
        "late": took_s > (run["limit_s"] + B44["grace_s"] if isinstance(limit_s, str) else limit_s),
        "text": expected.get("text", text) != text,
        "text_contains": expected.get("text_contains", "") not in text,
        "exit": expected.get("exit", output.meta["exit_code"]) != output.meta["exit_code"],
        "timed_out": expected.get("timed_out", output.meta["timed_out"]) != output.meta["timed_out"],
        "cancelled": expected.get("cancelled", False) != output.meta["cancelled"],
    }
    assert [name for name, is_wrong in wrong.items() if is_wrong] == []
    sleepers = re.findall(r"31\.\d+", run["command"])
    may_live_on = isinstance(expected.get("left_running"), str)
    left = [
        line for length in sleepers for line in (table.running(length) if may_live_on else await table.gone(length))
    ]
    assert (left != []) == may_live_on
    ended = await shipped.close()
    assert [line for line in ended if "sleep" in line] == left
    assert [line for length in sleepers for line in table.running(length)] == []


async def test_case_B45_bytes_that_are_not_text_become_a_result_that_says_so(
    call: Any, root: Path, text_of_output: Callable[[ToolOutput], str]
) -> None:
    shutil.copy(CASES / "B45-bytes.bin", root)
    case = json.loads((CASES / "B45-binary.json").read_text(encoding="utf-8"))
    arguments = {
        "shell": ("shell", "command"),
        "read file": ("read_file", "path"),
        "search in files": ("search_files", "pattern"),
    }
    texts = []
    for run in case["runs"]:
        tool, name = arguments[run["tool"]]
        output = await call(tool, {name: run["input"]})
        text = text_of_output(output)
        assert (output.is_error, CONTROL.findall(text)) == (False, [])
        text.encode("utf-8")
        texts.append(text)
    cat, both, read, search = texts
    note = "[the output is not plain text: bytes that are not text are shown as \\xNN]"
    head, tail = cat.split("\n", 1)[0], cat.split("\n")[-2]
    assert (head, tail.endswith("tail"), cat.endswith(note)) == ("head", True, True)
    assert both == f"a\\x00b\\xffc\nerr\\xfe\n{note}"
    assert read == "B45-bytes.bin is a binary file of 50 bytes; its content is not shown"
    assert search == "B45-bytes.bin: holds the text; a binary file of 50 bytes, not shown"


async def test_a_descendant_that_left_the_session_is_ended_with_its_timed_out_command(call: Any, table: Table) -> None:
    output = await call("shell", {"command": "setsid sleep 41.101 & sleep 41.102", "timeout_s": 0.3})
    assert (output.code, table.running("41.10")) == ("TOOL_TIMEOUT", [])


async def test_a_child_without_any_mark_is_found_by_its_parents(call: Any, table: Table) -> None:
    output = await call("shell", {"command": "env -i setsid sleep 41.111 & wait", "timeout_s": 0.3})
    assert (output.code, table.running("41.111")) == ("TOOL_TIMEOUT", [])


async def test_a_timed_out_command_leaves_the_background_of_earlier_calls_alone(
    call: Any, shipped: ShippedTools, table: Table
) -> None:
    await call("shell", {"command": "sleep 41.121 & sleep 41.122 >/dev/null 2>&1 &"})
    await call("shell", {"command": "sleep 41.123", "timeout_s": 0.2})
    before = table.running("sleep 41.12")
    ended = await shipped.close()
    assert (before, ended, table.running("41.12")) == (
        ["sleep 41.121", "sleep 41.122"],
        ("sleep 41.121", "sleep 41.122"),
        [],
    )


async def test_a_background_job_that_keeps_writing_neither_blocks_nor_dies_of_a_closed_pipe(
    call: Any, root: Path
) -> None:
    command = "(for n in $(seq 40); do printf '%010000d' 0; done; echo done > finished) & echo started"
    output = await call("shell", {"command": command})
    assert output.meta["exit_code"] == 0
    await until(lambda: (root / "finished").exists())
    assert (root / "finished").read_text(encoding="utf-8") == "done\n"


async def test_a_failing_command_is_an_answer_and_not_an_error(
    call: Any, text_of_output: Callable[[ToolOutput], str]
) -> None:
    output = await call("shell", {"command": "echo out; echo err >&2; exit 3"})
    assert (output.is_error, text_of_output(output)) == (False, "out\nerr\n[exit code 3]")


async def test_a_command_ended_by_a_signal_names_it(call: Any, text_of_output: Callable[[ToolOutput], str]) -> None:
    output = await call("shell", {"command": "kill -9 $$"})
    assert (output.meta["exit_code"], text_of_output(output)) == (None, "[no output]\n[ended by SIGKILL]")


async def test_long_output_is_cut_in_the_middle_and_kept_whole_under_the_call_id(
    call: Any, spill: Path, text_of_output: Callable[[ToolOutput], str]
) -> None:
    output = await call("shell", {"command": "seq 1 20000"}, call_id="call-7")
    whole = "".join(f"{n}\n" for n in range(1, 20001))
    text = text_of_output(output)
    head, note, tail = text.partition("\n[... 78894 bytes left out ...]\n")
    body, _, last = tail.rpartition("[")
    assert (whole.startswith(head), bool(note), whole.endswith(body)) == (True, True, True)
    assert last == "output of 108894 bytes, cut; all of it is in @output/call-7.txt]"
    assert (spill / "call-7.txt").read_text(encoding="utf-8") == whole
    assert modes(spill / "call-7.txt", spill) == ["0o600", "0o700"]
    part = await call("read_file", {"path": "@output/call-7.txt", "offset": 19999})
    assert text_of_output(part) == "19999\n20000\n[lines 19999 to 20000 of 20000]"


async def test_a_call_id_that_is_no_file_name_spills_inside_the_spill_folder(call: Any, spill: Path) -> None:
    await call("shell", {"command": "seq 1 20000"}, call_id="../../out\0side")
    assert [re.sub(r"[0-9a-f]{12}", "DIGEST", name) for name in names_in(spill)] == ["______out_side-DIGEST.txt"]


async def test_output_that_cannot_be_kept_is_said(
    call: Any, spill: Path, text_of_output: Callable[[ToolOutput], str]
) -> None:
    put_file_at(spill)
    output = await call("shell", {"command": "seq 1 20000"})
    assert text_of_output(output).endswith("cut; the whole output could not be kept: file exists]")


async def test_a_flood_of_output_is_ended_by_the_time_limit_with_bounded_memory(call: Any) -> None:
    output = await call("shell", {"command": "yes", "timeout_s": 0.3})
    assert (output.code, len(output.content[0].text) < 40_000) == ("TOOL_TIMEOUT", True)


async def test_a_command_sees_its_given_environment_and_nothing_else(
    call: Any, text_of_output: Callable[[ToolOutput], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    output = await call("shell", {"command": "env | cut -d= -f1 | grep -v -e '^_$' -e SHLVL -e OLDPWD | sort"})
    assert text_of_output(output) == "HARNESS_SHELL\nPATH\nPWD\n"


@pytest.mark.parametrize("command", ["echo \0", "echo \ud800"], ids=["nul", "lone-surrogate"])
async def test_a_command_no_system_can_take_is_refused(command: str, call: Any) -> None:
    output = await call("shell", {"command": command})
    assert (output.is_error, output.code) == (True, "INVALID_ARGS")


async def test_two_runs_of_the_same_commands_give_equal_results(call: Any) -> None:
    async def once() -> list[ToolOutput]:
        return [
            await call("shell", {"command": "sleep 41.131 & echo a; exit 2"}),
            await call("shell", {"command": "setsid sleep 41.132 & echo b"}),
            await call("shell", {"command": "echo c; sleep 41.133", "timeout_s": 0.1}),
        ]

    assert await once() == await once()


async def test_a_cancelled_task_kills_its_command_at_once(call: Any, table: Table) -> None:
    task = asyncio.ensure_future(call("shell", {"command": "trap '' TERM; sleep 41.141"}))
    await until(lambda: table.running("sleep 41.141") != [])
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await table.gone("41.141") == []
