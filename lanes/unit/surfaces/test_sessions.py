"""The command that lists, shows and salvages stored sessions."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.cli import main
from harness.log.events import (
    AssistantMessage,
    InboxSpliced,
    RemovedItem,
    SessionHeader,
    StepEnd,
    StepStart,
    ToolCall,
    ToolErrorInfo,
    ToolResult,
    TurnEnd,
    TurnReason,
    TurnStart,
    UserMessage,
)
from harness.log.session_log import SessionLog
from harness.log.store import SessionStore
from harness.log.writer import SessionWriter
from harness.model.messages import (
    CallId,
    Message,
    MessageId,
    ModelSource,
    SessionId,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    ToolSource,
    UserSource,
)

ONE = SessionId("one")


def turn(log: SessionLog, number: int, ask: str = "look around", say: str = "there is a file") -> None:
    """A turn with an answer, a failed call and its result."""
    prompt = Message(MessageId(f"m{number}"), "user", (TextBlock(ask),), UserSource())
    call = ToolCallBlock(CallId(f"c{number}"), "read_file", '{"path":"a.txt"}')
    answer = Message(MessageId(f"a{number}"), "assistant", (TextBlock(say), call), ModelSource("p", "m"))
    block = ToolResultBlock(call.id, (TextBlock("no such file"),), is_error=True)
    result = Message(MessageId(f"r{number}"), "user", (block,), ToolSource(call.id))
    log.append(InboxSpliced("next-turn", 0, inserted=(prompt,)))
    log.append(TurnStart(number))
    log.append(InboxSpliced("next-turn", 0, removed=(RemovedItem(prompt.id, "claimed", number),)))
    log.append(StepStart(number, 1))
    log.append(UserMessage(prompt))
    log.append(AssistantMessage(number, 1, answer))
    started = log.append(ToolCall(number, 1, call.id, call.name, call.arguments))
    log.append(ToolResult(number, 1, result, ToolErrorInfo("ToolError", "NO_FILE")), source_event_seqs=(started.seq,))
    log.append(StepEnd(number, 1))
    log.append(TurnEnd(number, TurnReason("completed")))


class Shelf:
    """A session root with stored sessions, and the command run on it."""

    def __init__(self, root: Path, capfd: pytest.CaptureFixture[str]) -> None:
        self.root = root
        self._capfd = capfd
        self.store = SessionStore(root, clock=lambda: 1_700_000_000_000)

    def keep(self, session_id: SessionId = ONE, *, turns: int = 2, created_at: int = 0, **texts: str) -> Path:
        """Store a session of whole turns."""

        async def write() -> Path:
            writer = await self.store.create(SessionHeader(session_id, created_at, cwd="/home/me/project"))
            for number in range(1, turns + 1):
                turn(writer.log, number, **texts)
            await writer.close()
            return writer.path

        return asyncio.run(write())

    def spoil(self, path: Path, line: int) -> bytes:
        """Put something that does not read into the place of that line, counted from 1; gives the file's bytes."""
        lines = path.read_bytes().splitlines(keepends=True)
        lines[line - 1] = b"\x00garbage\n"
        path.write_bytes(b"".join(lines))
        return path.read_bytes()

    def run(self, *arguments: str) -> tuple[int, str, str]:
        code = main(["sessions", *arguments, "--session-root", str(self.root)])
        out, err = self._capfd.readouterr()
        assert "Traceback" not in err
        return code, out, err

    def json(self, *arguments: str) -> tuple[int, list[dict[str, Any]]]:
        code, out, err = self.run(*arguments, "--json")
        assert err == ""
        return code, [json.loads(line) for line in out.splitlines()]


@pytest.fixture
def shelf(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Shelf:
    return Shelf(tmp_path / "sessions", capfd)


def test_a_list_shows_each_session_with_its_time_and_folder_oldest_first(shelf: Shelf) -> None:
    shelf.keep(SessionId("b"), created_at=1_000)
    shelf.keep(SessionId("a"), created_at=1_700_000_000_000)
    assert shelf.run("list") == (
        0,
        "1970-01-01 00:00:01  b  /home/me/project\n2023-11-14 22:13:20  a  /home/me/project\n",
        "",
    )


def test_a_list_of_an_empty_root_is_empty(shelf: Shelf) -> None:
    assert shelf.run("list") == (0, "", "")


def test_a_file_that_cannot_be_read_stands_in_the_list_with_its_reason_and_hides_no_other(shelf: Shelf) -> None:
    path, other = shelf.keep(), shelf.keep(SessionId("two"))
    newer = shelf.keep(SessionId("three"))
    shelf.spoil(path, 1)
    newer.write_bytes(newer.read_bytes().replace(b'"version":0', b'"version":7', 1))
    code, records = shelf.json("list")
    found = [(record["type"], record["path"]) for record in records]
    problems = [record["problem"].rpartition(" ")[2] for record in records if record["type"] == "problem"]
    assert (code, found) == (1, [("session", str(other)), ("problem", str(path)), ("problem", str(newer))])
    assert problems == ["[LOG_DAMAGED]", "[LOG_UNSUPPORTED]"]
    code, out, err = shelf.run("list")
    assert (code, err, [line.split(":")[0] for line in out.splitlines()[1:]]) == (1, "", ["cannot be read"] * 2)


def test_a_session_is_shown_with_its_state_and_its_conversation_a_line_each(shelf: Shelf) -> None:
    path = shelf.keep(turns=1)
    shown = (
        "session  one\n"
        f"file     {path}\n"
        "folder   /home/me/project\n"
        "created  1970-01-01 00:00:00\n"
        "holds    10 events in 1 turn; last turn completed\n"
        "\n"
        "user: look around\n"
        "assistant: there is a file\n"
        '  read_file {"path":"a.txt"}\n'
        "    failed: no such file\n"
    )
    assert shelf.run("show", "one") == (0, shown, "")


def test_a_session_without_a_turn_is_shown_as_that(shelf: Shelf) -> None:
    async def write() -> None:
        writer = await shelf.store.create(SessionHeader(ONE, 2**53 - 1))
        waiting = Message(MessageId("m"), "user", (TextBlock("later"),), UserSource())
        writer.log.append(InboxSpliced("next-turn", 0, inserted=(waiting,)))
        await writer.close()

    asyncio.run(write())
    lines = shelf.run("show", "one")[1].splitlines()
    assert lines[2:] == [
        f"created  {2**53 - 1} ms",
        "holds    1 event in 0 turns; no turn yet",
        "waiting  1 message",
        "",
    ]


def test_what_a_model_wrote_reaches_a_terminal_without_its_control_characters_and_cut(shelf: Shelf) -> None:
    shelf.keep(turns=1, ask="\x1b[31mred\x07", say="long " * 100)
    lines = shelf.run("show", "one")[1].splitlines()
    assert (lines[6], lines[7].endswith("…"), len(lines[7]) < 200) == ("user: [31mred", True, True)


def test_json_shows_the_session_and_then_each_event(shelf: Shelf) -> None:
    path = shelf.keep(turns=1)
    code, (head, *events) = shelf.json("show", "one")
    stored = [json.loads(line) for line in path.read_text("utf-8").splitlines()[1:]]
    assert (code, [record["event"] for record in events]) == (0, stored)
    assert head == {
        "type": "session",
        "sessionId": "one",
        "createdAt": 0,
        "path": str(path),
        "cwd": "/home/me/project",
        "live": False,
        "events": 10,
        "state": "last turn completed",
    }


def test_a_torn_tail_is_shown_as_damage_and_left_in_the_file(shelf: Shelf) -> None:
    path = shelf.keep()
    torn = path.read_bytes() + b'{"type":"turn/sta'
    path.write_bytes(torn)
    code, out, _ = shelf.run("show", "one")
    assert (code, "damage   the last record is torn" in out, path.read_bytes()) == (0, True, torn)


async def _at_work(shelf: Shelf) -> SessionWriter:
    writer = await shelf.store.create(SessionHeader(ONE, 0))
    turn(writer.log, 1)
    writer.log.append(TurnStart(2))
    await writer.flush()
    return writer


def test_a_session_in_use_is_shown_as_that_and_not_salvaged(shelf: Shelf) -> None:
    async def play() -> tuple[tuple[int, str, str], tuple[int, str, str]]:
        writer = await _at_work(shelf)
        try:
            shown = await asyncio.to_thread(shelf.run, "show", "one")
            return shown, await asyncio.to_thread(shelf.run, "salvage", "one")
        finally:
            await writer.close()

    shown, salvaged = asyncio.run(play())
    assert (shown[0], "in use by a program" in shown[1]) == (0, True)
    assert (salvaged[0], salvaged[1], "[LOG_BUSY]" in salvaged[2]) == (1, "", True)


def test_damaged_history_is_refused_with_the_command_that_saves_it(shelf: Shelf) -> None:
    shelf.spoil(shelf.keep(), 4)
    code, out, err = shelf.run("show", "one")
    assert (code, out) == (1, "")
    assert "[LOG_DAMAGED]" in err
    assert "harness sessions salvage ID" in err


def test_salvage_makes_a_session_of_what_stands_before_the_damage_and_leaves_the_file_alone(shelf: Shelf) -> None:
    path = shelf.keep(turns=3)
    spoiled = shelf.spoil(path, 25)
    code, out, err = shelf.run("salvage", "one", "--as", "saved")
    assert (code, err, path.read_bytes()) == (0, "", spoiled)
    assert out.splitlines()[0] == "saved holds what reads of one: 26 events"
    assert "left behind: line 25 does not read" in out
    saved = shelf.store.inspect(SessionId("saved"))
    ended = [event.payload.reason.kind for event in saved.events if isinstance(event.payload, TurnEnd)]
    assert (ended, saved.damage) == (["completed", "completed", "interrupted"], None)


def test_a_salvaged_session_can_be_gone_on_with_and_names_where_it_came_from(shelf: Shelf) -> None:
    shelf.spoil(shelf.keep(), 15)
    code, (record,) = shelf.json("salvage", "one")

    async def resume() -> SessionLog:
        writer = await shelf.store.resume(SessionId(record["sessionId"]))
        turn(writer.log, 3)
        await writer.close()
        return writer.log

    log = asyncio.run(resume())
    assert (code, record["type"], record["from"], log.header.parent_session) == (0, "salvaged", "one", "one")
    assert "line 15 does not read" in record["damage"]


def test_salvage_of_a_sound_session_copies_all_of_it(shelf: Shelf) -> None:
    shelf.keep(turns=1)
    code, out, _ = shelf.run("salvage", "one", "--as", "copy")
    assert (code, out.splitlines()[:2]) == (0, ["copy holds what reads of one: 11 events", "  left behind: nothing"])


def test_salvage_into_an_id_that_is_taken_changes_nothing(shelf: Shelf) -> None:
    path, other = shelf.keep(), shelf.keep(SessionId("two"))
    before = (path.read_bytes(), other.read_bytes())
    code, _, err = shelf.run("salvage", "one", "--as", "two")
    assert (code, "[SESSION_ALREADY_EXISTS]" in err, (path.read_bytes(), other.read_bytes())) == (1, True, before)


@pytest.mark.parametrize("action", ["show", "salvage"])
@pytest.mark.parametrize(
    ("put", "problem"),
    [
        (os.mkfifo, "it is a pipe, a socket or a device"),
        (os.mkdir, "it is a folder"),
        (lambda path: path.symlink_to("nowhere"), "it is a link to something that is not there"),
    ],
    ids=["pipe", "folder", "dead_link"],
)
def test_P14_what_is_no_file_is_refused_by_name_with_a_way_to_mend_it(
    shelf: Shelf, action: str, put: Callable[[Path], None], problem: str
) -> None:
    path = shelf.keep()
    path.unlink()
    put(path)
    code, out, err = shelf.run(action, ONE)
    assert (code, out) == (1, "")
    assert f"{path}: the log cannot be read: {problem} [LOG_READ_FAILED]" in err
    assert "fix: " in err
    code, out, _ = shelf.run("list")
    assert (code, out) == (1, f"cannot be read: {path}: {problem}\n")


@pytest.mark.parametrize("action", ["show", "salvage"])
def test_a_session_that_is_not_there_is_said_to_be_so(shelf: Shelf, action: str) -> None:
    code, out, err = shelf.run(action, "nobody")
    assert (code, out, "[SESSION_NOT_FOUND]" in err) == (1, "", True)


@pytest.mark.parametrize(
    "arguments",
    [
        [], ["lst"], ["show"], ["show", ""], ["salvage"], ["salvage", "one", "--as", ""], ["list", "one"],
        ["show", "one", "--as", "two"], ["list", "--jsn"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_mistake_is_a_usage_error_with_a_hint(shelf: Shelf, arguments: list[str]) -> None:
    code, out, err = shelf.run(*arguments)
    assert (code, out, "[USAGE]" in err, shelf.root.exists()) == (2, "", True, False)


def test_a_near_miss_is_suggested(shelf: Shelf) -> None:
    assert "did you mean 'list'?" in shelf.run("lst")[2]


def test_help_fits_a_screen_and_shows_an_example(shelf: Shelf) -> None:
    code, out, err = shelf.run("--help")
    lines = out.splitlines()
    assert (code, err, len(lines) <= 24, max(map(len, lines)) <= 80, "example:" in lines) == (0, "", True, True, True)
