"""One life of a session that is to be killed: real turns with tools, a scripted model, a word for every promise.

Room: `lanes.crash` forks it, tests start `python -m lanes.crash_child LIFE`. It knows the product, and judges nothing.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from harness.assemble import Assembled, assemble
from harness.errors import SessionNotFoundError
from harness.log.disk import Disk
from harness.log.events import TurnEnd
from harness.log.store import SessionStore
from harness.loop.tools import Tool, ToolContext, ToolOutput
from harness.model.call import ToolSchema
from harness.model.messages import Json, Message, MessageId, SessionId, TextBlock, UserSource
from harness.settings import Flags, from_environment

SESSION = SessionId("crash")
LEDGER = "ledger"

Say = Callable[[str, object], None]

# What the model does for a job, step by step; each name is a call, and after the last step it answers with text.
_STORIES: tuple[tuple[tuple[str, ...], ...], ...] = (
    (),
    (("note",),),
    (("look", "look", "note"),),
    (("note",), ("look", "note")),
    (("note", "note"),),
)
_BREAKS_OFF = 4  # the story whose first answer ends in the middle of a call, so that it is asked for again
_PIECE_CHARACTERS = 12


@dataclass(frozen=True, slots=True)
class Life:
    """How one child lives and dies.

    Shape: die_at is the number of the disk call it kills itself at, 0 for none; how is when: before the call, half
    its bytes written, or after it. hang_at is the promise after which it waits to be killed, empty for none.
    """

    folder: str
    number: int
    jobs: int
    die_at: int = 0
    how: str = "before"
    hang_at: str = ""


def sessions_of(folder: Path) -> Path:
    """Where the session of that folder is stored."""
    return folder / "sessions"


def workspace_of(folder: Path) -> Path:
    """Where its tools work."""
    return folder / "work"


class DyingDisk(Disk):
    """A disk that counts its calls and kills the process at one of them, as a kill from outside would.

    Shape: trace has a letter for each call so far: w for a write, c for any other.
    """

    def __init__(self, die_at: int, how: str) -> None:
        self.trace = ""
        self._die_at = die_at
        self._how = how

    def write(self, fd: int, data: bytes | memoryview) -> int:
        """Write, or die with half of it written."""
        self._begin("w")
        if self._dies("half"):
            super().write(fd, data[: len(data) // 2])
            _die()
        written = super().write(fd, data)
        self._end()
        return written

    def sync(self, fd: int) -> None:
        """Sync, or die."""
        self._begin("c")
        super().sync(fd)
        self._end()

    def truncate(self, fd: int, size: int) -> None:
        """Cut, or die."""
        self._begin("c")
        super().truncate(fd, size)
        self._end()

    def link(self, source: Path, target: Path) -> None:
        """Link, or die."""
        self._begin("c")
        super().link(source, target)
        self._end()

    def _begin(self, letter: str) -> None:
        self.trace += letter
        if self._dies("before"):
            _die()

    def _end(self) -> None:
        if self._dies("after"):
            _die()

    def _dies(self, how: str) -> bool:
        return len(self.trace) == self._die_at and self._how == how


def places_in(trace: str) -> tuple[tuple[int, str], ...]:
    """Every place where a life with that trace of disk calls can be made to die."""
    ways = {"w": ("before", "half", "after"), "c": ("before", "after")}
    return tuple((at, how) for at, letter in enumerate(trace, start=1) for how in ways[letter])


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class ScriptedTransport(httpx.AsyncBaseTransport):
    """The model: what it answers depends on the request and on nothing else, but for one answer that breaks off."""

    def __init__(self, say: Say, hang_at: str) -> None:
        self._say = say
        self._hang_at = hang_at
        self._broken: set[str] = set()
        self._told: set[str] = set()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Say which results came back and what was asked, then answer."""
        messages = json.loads(await request.aread())["messages"]
        job, step = _place(messages)
        answered = [message for message in messages if message["role"] == "tool"]
        came_back = {m["tool_call_id"] for m in answered if m["content"] == result_text(m["tool_call_id"])}
        for call_id in sorted(came_back - self._told):
            self._say("result", call_id)
        self._told |= came_back
        self._say("asked", job)
        if self._hang_at == "asked":
            await asyncio.Event().wait()
        headers = {"content-type": "text/event-stream"}
        return httpx.Response(200, headers=headers, content=self._pieces(job, step))

    async def _pieces(self, job: str, step: int) -> AsyncIterator[bytes]:
        number = story_of(job)
        story = _STORIES[number]
        breaks = number == _BREAKS_OFF and job not in self._broken
        self._broken.add(job)
        deltas = _call_deltas(job, step, story[step]) if step < len(story) else _text_deltas(f"{job} is done")
        for at, delta in enumerate(deltas):
            if breaks and at == 2:
                return
            yield _event({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
            await asyncio.sleep(0)
        reason = "tool_calls" if step < len(story) else "stop"
        yield _event({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}) + b"data: [DONE]\n\n"


def job_name(life: int, number: int) -> str:
    """The text and the id of the message that gives a job."""
    return f"job-{life}-{number}"


def story_of(job: str) -> int:
    """Which story the model tells for that job."""
    _, life, number = job.split("-")
    return (int(life) + int(number)) % len(_STORIES)


def result_text(call_id: str) -> str:
    """What the body of a call answers once it wrote its line."""
    return f"ledger: {call_id}"


def _place(messages: Sequence[Mapping[str, Any]]) -> tuple[str, int]:
    """The last job of the request, and how many answers it had so far."""
    step = 0
    for message in reversed(messages):
        if message["role"] == "user":
            return message["content"], step
        step += message["role"] == "assistant"
    raise AssertionError("a request without a job")


def _call_deltas(job: str, step: int, names: Sequence[str]) -> list[Json]:
    deltas: list[Json] = []
    for at, name in enumerate(names):
        first: dict[str, Json] = {"index": at, "id": f"{job}-{step}-{at}", "type": "function"}
        deltas.append({"tool_calls": [{**first, "function": {"name": name, "arguments": ""}}]})
        deltas.extend({"tool_calls": [{"index": at, "function": {"arguments": text}}]} for text in ("{", "}"))
    return deltas


def _text_deltas(text: str) -> list[Json]:
    return [{"content": text[at : at + _PIECE_CHARACTERS]} for at in range(0, len(text), _PIECE_CHARACTERS)]


def _event(value: Json) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def _ledger_tools(folder: Path, say: Say, hang_at: str) -> dict[str, Tool]:
    """Two tools, one exclusive and one that runs beside others; the body of a call adds its line to the ledger."""
    path = workspace_of(folder) / LEDGER

    async def run(arguments: Mapping[str, Json], context: ToolContext) -> ToolOutput:
        say("call", context.call_id)
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(fd, f"{context.call_id}\n".encode())
        finally:
            os.close(fd)
        if hang_at == "call":
            await asyncio.Event().wait()
        await asyncio.sleep(0)
        return ToolOutput((TextBlock(result_text(context.call_id)),))

    def build(name: str, *, reads: bool) -> Tool:
        schema = ToolSchema(name, "Add a line to the ledger.", {"type": "object", "properties": {}})
        return Tool(schema, run, is_read_only=(lambda _: True) if reads else None)

    return {"note": build("note", reads=False), "look": build("look", reads=True)}


async def live(life: Life, say: Say) -> None:
    """Begin the session or go on with it, do the jobs, and close; every promise is said the moment it is made."""
    folder = Path(life.folder)
    flags = Flags(
        provider="openai",
        model="scripted",
        base_url="http://127.0.0.1:9/v1",  # never connected to: the transport answers
        session_root=str(sessions_of(folder)),
        cwd=str(workspace_of(folder)),
        retry_base_ms=1,
        delegation_depth=0,
    )
    settings = from_environment({}, flags)
    disk = DyingDisk(life.die_at, life.how)
    numbers = iter(range(1, 1 << 30))

    async def setup(_held: AsyncExitStack) -> Mapping[str, Tool]:
        return _ledger_tools(folder, say, life.hang_at)

    assembled = await assemble(
        settings,
        transport=ScriptedTransport(say, life.hang_at),
        resume=_stored(settings.session_root),
        ids=lambda prefix: SESSION if prefix == "session" else f"{prefix}-{life.number}-{next(numbers)}",
        setup=setup,
        disk=disk,
    )
    await _work(assembled, life, say)
    await assembled.close()
    say("closed", disk.trace)


async def _work(assembled: Assembled, life: Life, say: Say) -> None:
    agent = assembled.agent

    def tell_idle(change: Any) -> None:
        ended = agent.log.last(TurnEnd)
        if change.status == "idle" and ended is not None and isinstance(ended.payload, TurnEnd):
            say("idle", ended.payload.turn)

    agent.observe_status(tell_idle)
    for number in range(life.jobs):
        names = [job_name(life.number, 2 * number)]
        agent.followup(_message(names[0]))
        if number % 3 == 1:
            names.append(job_name(life.number, 2 * number + 1))
            agent.steer(_message(names[1]))
        await assembled.writer.flush()
        for name in names:
            say("receipt", name)
        if number % 2:
            await agent.when_idle()
    await agent.when_idle()


def _message(name: str) -> Message:
    return Message(MessageId(name), "user", (TextBlock(name),), UserSource())


def _stored(root: Path) -> SessionId | None:
    try:
        SessionStore(root, clock=lambda: 0).find(SESSION)
    except SessionNotFoundError:
        return None
    return SESSION


def say_on(fd: int) -> Say:
    """Say promises on that descriptor, a line each; a pipe takes a line whole or not at all."""

    def say(kind: str, value: object) -> None:
        os.write(fd, f"{kind} {value}\n".encode())

    return say


def main(arguments: Sequence[str]) -> int:
    """Live the life described by a JSON object; promises go to standard output."""
    asyncio.run(live(Life(**json.loads(arguments[0])), say_on(sys.stdout.fileno())))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
