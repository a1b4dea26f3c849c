"""Run a shell command in the workspace, and let nothing of it outlive the conversation.

Room: shipped comes in. Each command is a session of its own with empty input; its output arrives through one pipe.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import shutil
import signal
from collections.abc import Mapping

from harness.loop.redaction import Secrets
from harness.loop.tools import Tool, ToolContext, ToolOutput
from harness.model.call import ToolSchema
from harness.model.messages import CallId, JsonObject
from harness.tools.answers import Arguments, error_answer, number_argument, text_answer, text_argument
from harness.tools.capture import Capture
from harness.tools.plain_text import printable
from harness.tools.processes import (
    MARK,
    Process,
    command_line,
    end_all,
    find_members,
    mark_of,
    own_mark,
    read_table,
    signal_now,
)
from harness.tools.redaction import KeyFilter
from harness.tools.workspace import ToolError, Workspace

END_GRACE_S = 1.0  # between asking a command to end and killing it; build tools clean up in far less
MAX_TIMEOUT_S = 3600
_LAST_ROUNDS = 5  # a killed process may have forked just before; there is no time for more
_READ_BYTES = 1 << 16  # what a Linux pipe holds
_FINISHED_READS = 64  # after the command ended: its own output is at most one pipe full; the rest is somebody else's


class Shell:
    """The shell of one conversation. What commands leave in the background lives until close().

    Shape: run is the tool's body; close ends what is left, says what it was, and may be called twice.
    """

    def __init__(
        self, workspace: Workspace, *, timeout_s: float, environment: Mapping[str, str], secrets: Secrets | None = None
    ) -> None:
        self._workspace = workspace
        self._timeout_s = timeout_s
        self._secrets = secrets
        self._mark = own_mark(str(workspace.spill_dir))
        self._outer_marks = environment.get(MARK, "")
        self._environment = {**environment, "PWD": str(workspace.root)}
        self._program = shutil.which("bash", path=environment.get("PATH")) or "/bin/sh"
        self._calls = 0
        self._sessions: set[int] = set()
        self._left_pipes: set[int] = set()

    async def run(self, arguments: Arguments, context: ToolContext) -> ToolOutput:
        """Run one command until it ends, its time is over or it is cancelled."""
        try:
            command = text_argument(arguments, "command")
            limit_s = number_argument(arguments, "timeout_s", self._timeout_s)
            return await self._run(command, limit_s, context)
        except ToolError as error:
            return error_answer(str(error), error.error_code)

    async def _run(self, command: str, limit_s: float, context: ToolContext) -> ToolOutput:
        spill = self._workspace.spill_dir / f"{_file_name(context.call_id)}.txt"
        capture = Capture(spill, KeyFilter(self._secrets))
        self._calls += 1
        mark = f"{self._mark}-{self._calls}"
        reader, process = await self._start(command, mark)
        loop = asyncio.get_running_loop()
        loop.add_reader(reader, _take, loop, reader, capture)
        session = frozenset({process.pid})
        waits = {asyncio.ensure_future(process.wait()), asyncio.ensure_future(context.cancel.wait())}
        ending = ""
        try:
            await asyncio.wait(waits, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
            if process.returncode is None:
                ending = "cancelled" if context.cancel.cancelled else "timed-out"
                await end_all(session, mark, grace_s=END_GRACE_S)
                await process.wait()
        except BaseException:
            signal_now(session, mark, signal.SIGKILL)
            raise
        finally:
            for wait in waits:
                wait.cancel()
            loop.remove_reader(reader)
            self._leave(reader, capture)
        if await asyncio.to_thread(lambda: find_members(read_table(), session, mark)):
            self._sessions.add(process.pid)
        text, notes = capture.finish(self._workspace.shown(spill))
        return _answer(text, notes, process.returncode, ending, limit_s)

    async def _start(self, command: str, mark: str) -> tuple[int, asyncio.subprocess.Process]:
        reader, writer = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                self._program,
                "-c",
                command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=writer,
                stderr=writer,
                cwd=self._workspace.root,
                env={**self._environment, MARK: f"{self._outer_marks} {mark}".strip()},
                start_new_session=True,
            )
        except OSError as error:
            os.close(reader)
            raise ToolError(
                f"the shell did not start, {(error.strerror or 'failed').lower()}", code="SHELL_FAILED"
            ) from None
        except ValueError:  # a NUL, or half a character that no argument list can hold
            os.close(reader)
            raise ToolError("the command holds a character no command can hold", code="INVALID_ARGS") from None
        finally:
            os.close(writer)
        os.set_blocking(reader, False)
        return reader, process

    def _leave(self, reader: int, capture: Capture) -> None:
        """Take what the ended command wrote; a pipe that others still hold is emptied from now on, unread."""
        for _ in range(_FINISHED_READS):
            try:
                data = os.read(reader, _READ_BYTES)
            except BlockingIOError:
                break
            if not data:
                os.close(reader)
                return
            capture.add(data)
        loop = asyncio.get_running_loop()
        self._left_pipes.add(reader)
        loop.add_reader(reader, self._discard, loop, reader)

    def _discard(self, loop: asyncio.AbstractEventLoop, reader: int) -> None:
        if not _read(reader):
            loop.remove_reader(reader)
            self._left_pipes.discard(reader)
            os.close(reader)

    def end_now(self) -> None:
        """Kill everything at once, running commands too; for a process that is about to end."""
        for _ in range(_LAST_ROUNDS if self._calls else 0):
            if not signal_now(frozenset(self._sessions), self._mark, signal.SIGKILL):
                return

    async def end_leftovers(self) -> None:
        """End what an earlier process left running for this place when it was killed; for before the first command."""
        place = mark_of(str(self._workspace.spill_dir))
        if await asyncio.to_thread(lambda: find_members(read_table(), frozenset(), place)):
            await end_all(frozenset(), place, grace_s=END_GRACE_S)

    async def close(self) -> tuple[str, ...]:
        """End what commands left in the background; gives the command lines of what had to be ended."""
        sessions = frozenset(self._sessions)
        self._sessions.clear()
        members: tuple[Process, ...] = ()
        if self._calls:
            members = await asyncio.to_thread(lambda: find_members(read_table(), sessions, self._mark))
        names = tuple(sorted(printable(command_line(member.pid)) for member in members))
        if members:
            await end_all(sessions, self._mark, grace_s=END_GRACE_S)
        loop = asyncio.get_running_loop()
        for reader in self._left_pipes:
            loop.remove_reader(reader)
            os.close(reader)
        self._left_pipes.clear()
        return tuple(name for name in names if name)


def build_shell_tool(shell: Shell) -> Tool:
    """The tool `shell`. It is never read-only: nobody can tell what a command changes."""
    return Tool(
        schema=ToolSchema(
            name="shell",
            description=(
                "Run a shell command in the workspace folder. Standard input is empty; standard output and standard "
                "error come back together. A command past its time limit is ended with everything it started."
            ),
            parameters={
                "type": "object",
                "properties": {
                    "command": {"type": "string", "description": "the command line"},
                    "timeout_s": {
                        "type": "number",
                        "minimum": 0.01,
                        "maximum": MAX_TIMEOUT_S,
                        "description": "time limit in seconds",
                    },
                },
                "required": ["command"],
                "additionalProperties": False,
            },
        ),
        run=shell.run,
    )


def _read(reader: int) -> bytes | None:
    """The next bytes; empty at the end, None when nothing is there now."""
    try:
        return os.read(reader, _READ_BYTES)
    except BlockingIOError:
        return None


def _take(loop: asyncio.AbstractEventLoop, reader: int, capture: Capture) -> None:
    data = _read(reader)
    if data:
        capture.add(data)
    elif data == b"":
        loop.remove_reader(reader)


def _file_name(call_id: CallId) -> str:
    """A file name for a call: the id itself when it is a plain word, else a plain form with a digest."""
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", call_id):
        return call_id
    digest = hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{re.sub(r'[^A-Za-z0-9_-]', '_', call_id)[:60]}-{digest}"


def _answer(text: str, notes: tuple[str, ...], returncode: int | None, ending: str, limit_s: float) -> ToolOutput:
    """The result of an ended command. A failing command is an answer; only a cut one is an error."""
    meta: JsonObject = {
        "exit_code": returncode if returncode is not None and returncode >= 0 and not ending else None,
        "timed_out": ending == "timed-out",
        "cancelled": ending == "cancelled",
    }
    if returncode and not ending:
        notes = (*notes, f"exit code {returncode}" if returncode > 0 else f"ended by {_signal_name(-returncode)}")
    if ending:
        reason = f"the time limit of {limit_s:g} s was reached" if ending == "timed-out" else "the call was cancelled"
        shown = f"\noutput until then:\n{text}" if text else "\nno output until then"
        body = _with_notes(f"{reason}; the command and what it started were ended{shown}", notes)
        return error_answer(body, "TOOL_TIMEOUT" if ending == "timed-out" else "ABORTED", meta=meta)
    return text_answer(_with_notes(text or "[no output]", notes), meta=meta)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"  # real-time signals have no name


def _with_notes(text: str, notes: tuple[str, ...]) -> str:
    if not notes:
        return text
    end = "" if text.endswith("\n") else "\n"
    return text + end + "\n".join(f"[{note}]" for note in notes)
