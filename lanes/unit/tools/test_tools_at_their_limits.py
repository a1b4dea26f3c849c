"""Where a tool cannot do what it was asked: what it says then, and that nothing of it stays."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from harness.loop.tools import ToolOutput
from harness.tools import capture, processes, search
from harness.tools.capture import HEAD_BYTES, TAIL_BYTES, Capture
from harness.tools.processes import command_line, own_mark, read_table
from harness.tools.redaction import KeyFilter

Call = Callable[..., Awaitable[ToolOutput]]
Text = Callable[[ToolOutput], str]
LONG = b"x" * (HEAD_BYTES + TAIL_BYTES + 1)
NEEDS_FULL_DEVICE = pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")


async def until(condition: Callable[[], bool], *, limit_s: float = 10) -> None:
    """Wait for something outside of this process, which announces itself to nobody."""

    def wait() -> None:
        end = time.monotonic() + limit_s
        while not condition():
            assert time.monotonic() < end, "it never came"
            time.sleep(0.01)

    await asyncio.to_thread(wait)


def open_descriptors() -> list[str]:
    return sorted(path.name for path in Path("/dev/fd").iterdir())


def remove(folder: Path) -> None:
    folder.rmdir()


# a long output -------------------------------------------------------------------------------------------------------


def note_of(capturing: Capture) -> str:
    _, (note,) = capturing.finish(".outputs/call-1.txt")
    return note


def test_an_output_without_end_fills_no_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture, "MAX_SPILL_BYTES", len(LONG) + 10)
    capturing = Capture(tmp_path / "call-1.txt", KeyFilter(None))
    for _ in range(5):
        capturing.add(LONG)
    assert (
        note_of(capturing)
        == f"output of {5 * len(LONG)} bytes, cut; the whole output was kept up to {len(LONG) + 10} bytes"
    )
    assert (tmp_path / "call-1.txt").stat().st_size == len(LONG)


@NEEDS_FULL_DEVICE
@pytest.mark.parametrize("more", [b"", LONG], ids=["at-its-end", "on-the-way"])
def test_an_output_that_cannot_be_kept_is_shown_and_says_so(more: bytes) -> None:
    capturing = Capture(Path("/dev/full"), KeyFilter(None))
    capturing.add(LONG)
    capturing.add(more)
    expected = f"output of {len(LONG + more)} bytes, cut; the whole output could not be kept: no space left on device"
    assert note_of(capturing) == expected


def test_an_output_whose_folder_cannot_be_made_is_shown_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "outputs").touch()
    capturing = Capture(tmp_path / "outputs" / "call-1.txt", KeyFilter(None))
    capturing.add(LONG)
    assert "could not be kept: " in note_of(capturing)


# arguments -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        pytest.param("read_file", {"path": 5}, "argument path must be a text", id="text"),
        pytest.param(
            "shell", {"command": "true", "timeout_s": True}, "argument timeout_s must be a number", id="number"
        ),
    ],
)
async def test_arguments_of_another_type_are_an_error_also_where_no_schema_was_asked(
    call: Call, text_of_output: Text, name: str, arguments: dict[str, object], said: str
) -> None:
    output = await call(name, arguments)
    assert (output.code, said in text_of_output(output)) == ("INVALID_ARGS", True)


# files ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "more"), [("list_files", {}), ("search_files", {"pattern": "x"})])
async def test_a_folder_that_is_not_there_is_said_to_be_missing(
    call: Call, text_of_output: Text, name: str, more: dict[str, str]
) -> None:
    output = await call(name, {"path": "nowhere", **more})
    assert (output.code, text_of_output(output).partition("\n")[0]) == (
        "PATH_MISSING",
        "Error: nowhere: no such file or folder [PATH_MISSING]",
    )


async def test_a_file_too_large_to_search_is_named_and_the_others_are_searched(
    call: Call, text_of_output: Text, root: Path
) -> None:
    with (root / "huge").open("wb") as file:
        file.truncate(search.MAX_SEARCHED_BYTES + 1)
    (root / "small").write_text("the needle", "utf-8")
    output = await call("search_files", {"pattern": "needle"})
    assert text_of_output(output).splitlines() == [
        f"huge: not searched, the file has {search.MAX_SEARCHED_BYTES + 1} bytes",
        "small:1: the needle",
    ]


# the shell -----------------------------------------------------------------------------------------------------------


async def test_a_shell_that_cannot_start_is_an_error_and_leaves_no_open_pipe(
    call: Call, text_of_output: Text, root: Path
) -> None:
    before = open_descriptors()
    remove(root)
    output = await call("shell", {"command": "true"})
    assert (output.code, "the shell did not start" in text_of_output(output)) == ("SHELL_FAILED", True)
    assert open_descriptors() == before


@pytest.mark.skipif(not Path("/proc").exists(), reason="real-time signals are Linux's")
async def test_a_signal_without_a_name_is_said_by_its_number(call: Call, text_of_output: Text) -> None:
    assert text_of_output(await call("shell", {"command": "kill -36 $$"})).splitlines()[-1] == "[ended by signal 36]"


async def test_a_call_whose_task_is_cancelled_leaves_no_process(call: Call, root: Path) -> None:
    running = asyncio.ensure_future(call("shell", {"command": "touch started; exec sleep 311.5"}))
    await until((root / "started").exists)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await until(lambda: not any("sleep 311.5" in command_line(row.pid) for row in read_table() if row.state != "Z"))


# processes -----------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("ps", path="/bin") is None, reason="this system has no ps")
def test_without_proc_the_table_comes_from_ps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(processes, "_PROC", tmp_path)
    (own,) = [row for row in read_table() if row.pid == os.getpid()]
    assert (own.parent, own.session) == (os.getppid(), os.getpgrp())


def test_without_proc_a_process_has_no_command_line_and_still_a_mark_of_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(processes, "_PROC", tmp_path)
    assert command_line(os.getpid()) == ""
    assert own_mark("place").split("-")[1:] == [str(os.getpid()), "0"]
