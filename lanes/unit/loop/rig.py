"""A whole agent over a scripted model, and the checks every test of the loop ends with.

Room: the loop's own tests.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import anyio

from harness.errors import LogWriteError
from harness.log.events import AssistantChunk, Event, InboxSpliced, RequestConfig, SessionHeader, TurnEnd, TurnReason
from harness.log.fold import fold_messages
from harness.log.invariants import Invariants
from harness.log.json_form import event_from_json, event_to_json
from harness.log.session_log import SessionLog
from harness.loop.agent import Agent, StatusChange
from harness.loop.request import rebuild_request
from harness.loop.tools import Tool, ToolBody, ToolContext, ToolOutput
from harness.model.call import ModelRequest, ToolSchema
from harness.model.messages import Json, Message, MessageId, SessionId, TextBlock, ToolResultBlock, UserSource, text_of
from lanes.unit.loop.scripted_model import Reply, ScriptedModel

ROUTE = RequestConfig("scripted", "model-1")
PATIENCE_S = 20  # only a test that would fail anyway waits that long


class MemoryWriter:
    """A writer whose disk is a number: how much of the log was there at the last flush that worked."""

    def __init__(self, log: SessionLog) -> None:
        self.log = log
        self.durable = 0
        self.flushed_at: list[int] = []
        self.is_broken: Callable[[SessionLog], bool] = lambda log: False
        self.on_flush: Callable[[], object] = lambda: None

    async def flush(self) -> None:
        self.flushed_at.append(len(self.log))
        await asyncio.sleep(0)
        self.on_flush()
        if self.is_broken(self.log):
            raise LogWriteError("the disk is full", where="session.jsonl")
        self.durable = len(self.log)


class Naps:
    """A sleep that ends when the test says so, or at once."""

    def __init__(self) -> None:
        self.delays: list[float] = []
        self.holds = False
        self.asleep = asyncio.Event()
        self.woken = asyncio.Event()
        self.release = asyncio.Event()

    async def __call__(self, delay_s: float) -> None:
        self.delays.append(delay_s)
        self.asleep.set()
        try:
            if self.holds:
                await self.release.wait()
        finally:
            self.woken.set()


class Rig:
    """The agent under test with everything a test wants to look at."""

    def __init__(
        self,
        *replies: Reply,
        tools: Iterable[Tool] = (),
        seed: Sequence[Event] | None = None,
        route: RequestConfig = ROUTE,
        header: SessionHeader | None = None,
        endless: Callable[[ModelRequest], Reply] | None = None,
        **options: Any,
    ) -> None:
        header = header or SessionHeader(SessionId("session-1"), 0)
        clock = itertools.count(1000)
        checker = Invariants()
        if seed is None:
            self.log = SessionLog(header, clock=lambda: next(clock), check=checker)
        else:
            self.log = SessionLog.resumed(header, seed, clock=lambda: next(clock), check=checker)
        self.writer = MemoryWriter(self.log)
        self.naps = Naps()
        self.asked_at: list[int] = []
        self.model = ScriptedModel(replies, self._note_request, endless)
        self.tools = {tool.schema.name: tool for tool in tools}
        numbers = itertools.count(1)
        self.agent = Agent(
            writer=self.writer,
            model=self.model,
            route=route,
            tools=self.tools,
            ids=lambda prefix: f"{prefix}-{len(self.log)}-{next(numbers)}",
            jitter=lambda: 0.5,
            sleep=self.naps,
            **{"check_chunks": True, **options},
        )
        self.statuses: list[StatusChange] = []
        self.agent.observe_status(self.statuses.append)
        self._changed = asyncio.Event()
        self.log.observe(lambda _: self._changed.set())
        self.expected_failures: int | None = 0
        self.may_leave_replies = False

    def _note_request(self, request: ModelRequest) -> None:
        self.asked_at.append(len(self.log))

    async def run(self, *prompts: str) -> None:
        """Send the prompts one after the other in one tick and wait until everything is done."""
        for at, prompt in enumerate(prompts):
            self.agent.followup(message(prompt, f"prompt-{len(self.log)}-{at}"))
        await self.idle()

    async def idle(self) -> None:
        with anyio.fail_after(PATIENCE_S):
            await self.agent.when_idle()

    async def until(self, is_there: Callable[[], bool]) -> None:
        """Wait until the log makes this true."""
        with anyio.fail_after(PATIENCE_S):
            while not is_there():
                self._changed.clear()
                await self._changed.wait()

    async def until_event(self, kind: type[object]) -> None:
        await self.until(lambda: self.log.last(kind) is not None)

    def observe(self, kind: type[object], act: Callable[[], object], *, once: bool = True) -> None:
        """Do something from inside the log's publication of that kind of event."""
        fired: list[bool] = []

        def observer(event: Event) -> None:
            if isinstance(event.payload, kind) and not (once and fired):
                fired.append(True)
                act()

        self.log.observe(observer)

    @property
    def shape(self) -> list[str]:
        """The types in the log; runs of chunks are one, splices say which way they go."""
        return shape(self.log)

    def shape_at(self, length: int) -> str:
        """The last type of the log when it was that long."""
        return shape(self.log[:length])[-1]

    @property
    def reasons(self) -> list[TurnReason]:
        return [event.payload.reason for event in self.log if isinstance(event.payload, TurnEnd)]

    @property
    def outcomes(self) -> list[str]:
        return [reason.kind for reason in self.reasons]

    @property
    def trace(self) -> list[str]:
        return [change.status for change in self.statuses]

    def payloads(self, kind: type[Any]) -> list[Any]:
        return [event.payload for event in self.log if isinstance(event.payload, kind)]

    def results(self) -> list[tuple[str, bool, str | None, str]]:
        """Each tool result as (call id, is error, code, text)."""
        from harness.log.events import ToolResult

        found = []
        for payload in self.payloads(ToolResult):
            block = payload.message.content[0]
            assert isinstance(block, ToolResultBlock)
            said = "".join(part.text for part in block.content if isinstance(part, TextBlock))
            found.append((str(block.tool_call_id), block.is_error, payload.error and payload.error.code, said))
        return found

    def check(self) -> None:
        """What holds after every test of the loop, whatever it was about."""
        assert self.model.problems == []
        assert self.may_leave_replies or not self.model.leftovers, "the script has replies nobody asked for"
        events = tuple(self.log)
        stored = tuple(event_from_json(event_to_json(event)) for event in events)
        assert stored == events
        assert fold_messages(stored) == self.log.messages()
        again = SessionLog(self.log.header, clock=lambda: 0, check=Invariants())
        for event in stored:
            again.restore(event)
        assert again.messages() == self.log.messages()
        rebuilt = [rebuild_request(stored[:length]) for length in self.asked_at]
        assert rebuilt == self.model.requests
        assert self.log.observer_failures == []
        assert self.expected_failures in (None, len(self.agent.failures)), self.agent.failures
        assert self.trace == ["running", "idle"] * (len(self.trace) // 2)
        assert self.agent.status == "idle"


def shape(events: Iterable[Event]) -> list[str]:
    types: list[str] = []
    for event in events:
        if isinstance(event.payload, InboxSpliced):
            types.append("inbox+" if event.payload.inserted else "inbox-")
        elif not (isinstance(event.payload, AssistantChunk) and types and types[-1] == "assistant/chunk"):
            types.append(event.type)
    return types


def message(text: str, message_id: str | None = None) -> Message:
    return Message(MessageId(message_id or text), "user", (TextBlock(text),), UserSource())


def tool(
    name: str,
    body: ToolBody | str = "done",
    *,
    read_only: bool | Callable[[Mapping[str, Json]], bool] = False,
    timeout_s: float | None = None,
    parameters: Mapping[str, Json] | None = None,
) -> Tool:
    """A tool that answers a fixed text, or runs the body."""

    async def answer(arguments: Mapping[str, Json], context: ToolContext) -> ToolOutput:
        assert isinstance(body, str)
        return ToolOutput((TextBlock(body),))

    classify = read_only if callable(read_only) else (lambda arguments: True) if read_only else None
    schema = ToolSchema(name, f"the {name} tool", parameters or {"type": "object"})
    return Tool(schema, answer if isinstance(body, str) else body, classify, timeout_s)


def output(text: str, **facts: Any) -> ToolOutput:
    return ToolOutput((TextBlock(text),), **facts)


def texts(request: ModelRequest) -> list[str]:
    """What a request says, message by message; tool results by their text."""
    said = []
    for item in request.messages:
        results = [block for block in item.content if isinstance(block, ToolResultBlock)]
        parts = results[0].content if results else item.content
        said.append("".join(part.text for part in parts if isinstance(part, TextBlock)) if results else text_of(item))
    return said
