"""One agent over a real store, a scripted model and tools, on an event loop that repeats exactly, across its lives.

Room: the test of the whole agent. A life ends by closing or by a crash; the next one starts from what is on disk.
"""

from __future__ import annotations

import asyncio
import itertools
import shutil
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from harness.errors import LogWriteError
from harness.log.events import Cause, Event, RequestConfig, SessionHeader, ToolCall
from harness.log.fold import fold_messages
from harness.log.inbox import fold_inbox
from harness.log.invariants import Invariants, check_invariants
from harness.log.load import encode_events
from harness.log.store import SessionStore
from harness.log.writer import SessionWriter
from harness.loop.agent import Agent, StatusChange
from harness.loop.decide import Enter
from harness.loop.hooks import Hooks, StepProposal
from harness.loop.request import rebuild_request
from harness.loop.tools import ToolContext, ToolOutput
from harness.model.call import ModelRequest
from harness.model.messages import Json, MessageId, SessionId
from lanes.unit.loop.agent_reference import STEP, TURN, Reference
from lanes.unit.loop.repeatable import AtOnce, FillingDisk, HeldTimer, RepeatableLoop
from lanes.unit.loop.reply_kinds import reply_of
from lanes.unit.loop.request_checks import check_each_call_has_one_result
from lanes.unit.loop.rig import message, output, tool
from lanes.unit.loop.scripted_model import Reply, ScriptedModel

MAX_STEPS = 3
PATIENCE_S = 20  # only a run that hangs waits that long
SESSION = SessionId("whole")
USER = Cause("user")

Result = TypeVar("Result")


class WholeAgent:
    """The agent under test, the reference beside it, and everything a life leaves to the next one.

    Shape: each operation returns once the reference agrees with what it did. Raises: AssertionError where it does not.
    """

    def __init__(self, root: Path) -> None:
        self.loop = RepeatableLoop()
        self.disk = FillingDisk()
        self.script: list[str] = []
        self.sent: list[str] = []
        self.ran: list[str] = []
        self.requests: list[tuple[int, ModelRequest]] = []  # with the length of the log when it was asked
        self._root = root
        self._roots = itertools.count()
        self._numbers = itertools.count(1)
        self._ranks: dict[str, int] = {}
        self._broken: list[AssertionError] = []
        self._begin(self._root / str(next(self._roots)), exists=False)

    @property
    def is_running(self) -> bool:
        return self.agent.status == "running"

    @property
    def is_durable(self) -> bool:
        return self.writer.durable_seq == len(self.log) - 1

    @property
    def has_lived(self) -> bool:
        """Whether this life has asked the model for anything."""
        return len(self.requests) > self._requests_before

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run something on the loop, and look for what went wrong meanwhile."""
        result = self.loop.run_until_complete(asyncio.wait_for(work, PATIENCE_S))
        self.look()
        return result

    def look(self) -> None:
        """Raise what the reference found while events were logged, and compare the queues."""
        if self._broken:
            raise self._broken[0]
        self.reference.check_settled()
        inbox = self.agent.inbox
        assert [str(item.id) for item in inbox.next_step] == self.reference.queues[STEP]
        assert [str(item.id) for item in inbox.next_turn] == self.reference.queues[TURN]
        assert inbox.quiet == self.reference.quiet

    def send(self, verb: str) -> None:
        """followup, steer or inject a new message."""

        def send() -> None:
            name = self._name()
            target = TURN if verb == "followup" or (verb == "steer" and self.reference.cancelled) else STEP
            self.reference.expect(self.reference.insertion(target, name, wakes=verb != "inject"))
            self.sent.append(name)
            getattr(self.agent, verb)(message(name))
            if verb != "inject":
                self.reference.parked.clear()

        self._act(send)

    def cancel(self, *, keep: bool) -> None:
        def cancel() -> None:
            reference = self.reference
            turn = reference.turn if reference.turn_open and not reference.cancelled else None
            cleared = () if keep else reference.clearing()
            self._note_cancel("user")
            reference.expect(*cleared)
            outcome = self.agent.cancel(USER, keep_inbox=keep)
            if keep:
                reference.parked = reference.waiting
            ids = [message_id for splice in cleared for message_id, _ in splice.removed]
            assert (outcome.turn, list(outcome.discarded)) == (turn, ids)

        self._act(cancel)

    def drop(self, message_id: str) -> None:
        """Take one message back."""

        def drop() -> None:
            splice = self.reference.removal(message_id, fate="canceled")
            self.reference.expect(*([splice] if splice else []))
            assert self.agent.cancel_message(MessageId(message_id)) == (splice is not None)

        self._act(drop)

    def replace(self, message_id: str) -> None:
        """Put another message into the place of one."""

        def replace() -> None:
            name = self._name()
            splice = self.reference.removal(message_id, name, fate="replaced")
            if splice is not None:
                self._ranks[name] = self._rank(message_id)
                self.sent.append(name)
                self.reference.expect(splice)
                if message_id in self.reference.parked:
                    self.reference.parked.add(name)
            assert self.agent.replace_message(MessageId(message_id), message(name)) == (splice is not None)

        self._act(replace)

    def wake(self) -> None:
        def wake() -> None:
            has_waking = bool(self.reference.waiting - self.reference.quiet)
            assert self.agent.wake() == has_waking
            if has_waking:
                self.reference.parked.clear()

        self._act(wake)

    def tick(self, count: int) -> None:
        async def ticks() -> None:
            for _ in range(count):
                await asyncio.sleep(0)

        self.run(ticks())

    def window(self) -> None:
        """The time is up that events may wait for the disk."""
        timers, self._timers = self._timers, []
        for timer in timers:
            self._act(timer.fire)
        self.tick(2)

    def receipt(self) -> None:
        """Make what was accepted durable, as a surface does before it answers; from then on it is promised."""

        async def flush() -> None:
            await self.writer.flush()
            self._check_durable()
            self.promised = len(self.log)

        try:
            self.run(flush())
        except LogWriteError:
            assert self.disk.is_full
            self.look()

    def fill(self, *, is_full: bool) -> None:
        self.disk.is_full = is_full
        self.reference.disk_is_full = is_full
        self.reference.had_disk_trouble = self.reference.had_disk_trouble or is_full

    def open_gate(self) -> None:
        """Let go whatever answer or tool waits."""
        gate, self.gate = self.gate, asyncio.Event()
        gate.set()
        self.tick(1)

    def settle(self) -> None:
        """Wait until the agent is idle; nothing it might do by itself is left then."""
        self.run(self._until_idle())
        assert self.agent.status == "idle"
        assert not self.reference.turn_open
        assert self.reference.due == set(), "the agent is idle and something is due"
        self.reference.check_fates()
        if not self.disk.is_full:
            self.receipt()

    def restart(self) -> None:
        """End this life in order, and begin the next."""

        async def dispose() -> None:
            self._note_cancel("disposed")
            self.reference.parked = self.reference.waiting
            await self.agent.dispose()

        self.fill(is_full=False)
        self.run(dispose())
        events = tuple(self.log)
        self.run(self.writer.close())
        root = self.writer.path.parents[2]
        assert self.writer.path.exists() == bool(events)
        self._begin(root, exists=bool(events), before=events)

    def crash(self, kept: float) -> None:
        """Lose the process: of what was not durable, that share of its bytes reached the disk, torn or not."""
        path, root = self.writer.path, self.writer.path.parents[2]
        events, promised = tuple(self.log), self.promised
        unwritten = encode_events(events[self.writer.durable_seq + 1 :])
        after = self._root / str(next(self._roots))
        exists = path.exists()
        if exists:
            stored = after / path.relative_to(root)
            stored.parent.mkdir(parents=True)
            stored.write_bytes(path.read_bytes() + unwritten[: round(kept * len(unwritten))])
        self._bury()
        shutil.rmtree(root, ignore_errors=True)
        assert exists or promised == 0
        self._begin(after, exists=exists, before=events)
        assert tuple(self.log)[:promised] == events[:promised], "what was durable is gone"
        started = {str(event.payload.call_id) for event in self.log if isinstance(event.payload, ToolCall)}
        assert set(self.ran) <= started, "a tool ran and the log does not know"

    def end(self) -> None:
        """Come to rest and compare everything that can be had in two ways."""
        self.fill(is_full=False)
        self.settle()
        log = self.log
        check_invariants(log)
        stored = self.store.inspect(SESSION) if len(log) else None
        if stored is not None:
            assert tuple(stored.log) == tuple(log)
            assert fold_messages(stored.log) == fold_messages(tuple(log)) == log.messages()
        assert fold_inbox(log) == self.agent.inbox
        for length, request in self.requests:
            assert rebuild_request(tuple(log)[:length]) == request
            check_each_call_has_one_result(request.messages)
        for (_, earlier), (_, later) in itertools.pairwise(self.requests):
            assert later.messages[: len(earlier.messages)] == tuple(earlier.messages)
        assert len(set(self.ran)) == len(self.ran), "a tool ran twice"

    def close(self) -> None:
        """Let go of everything, whatever state it is in."""
        self._bury()
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()

    def _begin(self, root: Path, *, exists: bool, before: Sequence[Event] = ()) -> None:
        asyncio.set_event_loop(self.loop)
        clock = itertools.count(1000)
        self.disk.is_full = False
        self.gate = asyncio.Event()
        self.promised = 0
        self._requests_before = len(self.requests)
        self._timers: list[HeldTimer] = []
        self._is_buried = False
        self.reference = Reference(MAX_STEPS, self._rank)
        self.store = SessionStore(
            root, clock=lambda: next(clock), disk=self.disk, later=self._later, check=Invariants, report=self._report
        )
        opening = self.store.resume(SESSION) if exists else self.store.create(SessionHeader(SESSION, 0))
        self.writer: SessionWriter = self.loop.run_until_complete(opening)
        self.writer._thread = AtOnce()  # type: ignore[assignment] # where the pool would be
        self.log = self.writer.log
        if exists:
            self._learn(before)
        model = ScriptedModel((), self._note_request, self._reply)
        reads = {"r": "done", "s": self._slow, "n": self._telling}
        tools = [tool(name, self._noted(body), read_only=name != "n") for name, body in reads.items()]
        tools += [tool("w", self._noted("done")), tool("end", self._noted(output("that is all", conclude=True)))]
        self.agent = Agent(
            writer=self.writer,
            model=model,
            route=RequestConfig("scripted", "model-1"),
            tools={each.schema.name: each for each in tools},
            ids=lambda prefix: f"{prefix}-{next(self._numbers)}",
            jitter=lambda: 0.5,
            sleep=_no_time,
            max_steps=MAX_STEPS,
            check_chunks=True,
            hooks=Hooks(pre_step=(self._ask_nobody,)),
            report=self._report,
        )
        self._statuses = ["idle"]
        self.agent.observe_status(self._note_status)
        self.log.observe(self._note_event)
        self.look()

    def _learn(self, before: Sequence[Event]) -> None:
        """Follow what was stored: a beginning of the earlier life, then what closes it."""
        events = tuple(self.log)
        kept = len(list(itertools.takewhile(lambda pair: pair[0] == pair[1], zip(events, before, strict=False))))
        self.reference.follow(events[:kept])
        was_open, claimed = self.reference.turn_open, self.reference.waiting
        self.reference.follow(events[kept:])
        ends = [event.payload.reason.kind for event in events[kept:] if event.type == "turn/end"]  # type: ignore[union-attr]
        assert ends == (["interrupted"] if was_open else [])
        assert claimed <= self.reference.waiting, "a crash took a message out of the queue"
        self.reference.check_fates()

    def _note_event(self, event: Event) -> None:
        self._watch(lambda: self.reference.take(event))

    def _note_request(self, request: ModelRequest) -> None:
        self._watch(self._check_durable)
        self.requests.append((len(self.log), request))

    async def _ask_nobody(self, proposal: StepProposal) -> Enter:
        """The decision before a step: by now everything that led to it is durable."""
        self._watch(self._check_durable)
        return Enter(proposal.messages)

    def _note_status(self, change: StatusChange) -> None:
        def check() -> None:
            assert change.status != self._statuses[-1]
            assert change.pending == len(self.reference.waiting)
            if change.status == "idle":
                self.reference.cancelled, self.reference.abort = False, None
                if not self.reference.had_disk_trouble:
                    self._check_durable()

        self._watch(check)
        self._statuses.append(change.status)

    def _check_durable(self) -> None:
        assert self.is_durable

    def _reply(self, request: ModelRequest) -> Reply:
        kind = self.script.pop(0) if self.script else "text"
        if not self._is_buried:
            self._watch(lambda: self.reference.request(kind))
        number = next(self._numbers)
        return reply_of(kind, number, self.gate)

    def _noted(self, body: Any) -> Any:
        """A tool body that first notes that it ran, and that its call was on disk by then."""

        async def noted(arguments: Mapping[str, Json], context: ToolContext) -> ToolOutput:
            if not self._is_buried:
                self.ran.append(str(context.call_id))
                found = [event.seq for event in self.log if _is_call(event, str(context.call_id))]
                self._watch(
                    lambda: _assert(found[-1] <= self.writer.durable_seq, "a tool runs before its call is kept")
                )
            await asyncio.sleep(0)
            if callable(body):
                return await body(context)
            return body if isinstance(body, ToolOutput) else output(body)

        return noted

    async def _slow(self, context: ToolContext) -> ToolOutput:
        waits = [asyncio.ensure_future(self.gate.wait()), asyncio.ensure_future(context.cancel.wait())]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        await asyncio.wait(waits)
        return output("slowly done")

    async def _telling(self, context: ToolContext) -> ToolOutput:
        return output("done", context=(f"{context.call_id} says",))

    async def _until_idle(self) -> None:
        while self.is_running:
            gate, self.gate = self.gate, asyncio.Event()
            gate.set()
            await asyncio.sleep(0)
        await self.agent.when_idle()

    def _note_cancel(self, cause: str) -> None:
        reference = self.reference
        if self.is_running:
            if reference.turn_open and not reference.cancelled:
                reference.abort = cause
            reference.cancelled = True

    def _act(self, operation: Callable[[], None]) -> None:
        """Do something from inside the loop: what was ready before comes first."""

        async def act() -> None:
            operation()
            self.reference.check_settled()

        self.run(act())

    def _watch(self, check: Callable[[], None]) -> None:
        """Keep what an assertion says: inside an observer it would only be reported to the agent."""
        if self._is_buried or self._broken:
            return
        try:
            check()
        except AssertionError as error:
            self._broken.append(error)

    def _report(self, error: BaseException) -> None:
        self._watch(lambda: _assert(isinstance(error, LogWriteError) and self.reference.had_disk_trouble, repr(error)))

    def _bury(self) -> None:
        """Stop what still runs of a life that is over, unheard; nothing of it reaches a disk."""
        self._is_buried = True
        self.disk.is_full = True
        self.gate.set()

        async def bury() -> None:
            self.agent.cancel(USER)
            await self._until_idle()
            await self.writer.abandon()

        self.loop.run_until_complete(asyncio.wait_for(bury(), PATIENCE_S))

    def _later(self, delay_s: float, call: Callable[[], None]) -> HeldTimer:
        timer = HeldTimer(call)
        self._timers.append(timer)
        return timer

    def _name(self) -> str:
        return f"m{next(self._numbers)}"

    def _rank(self, message_id: str) -> int:
        """The place of a message among all, by the number in its id, or that of the one it replaced."""
        return self._ranks.get(message_id, int(message_id.lstrip("mesag-")))


def _is_call(event: Event, call_id: str) -> bool:
    return isinstance(event.payload, ToolCall) and event.payload.call_id == call_id


def _assert(holds: bool, what: str) -> None:
    assert holds, what


async def _no_time(delay_s: float) -> None:
    """A sleep that is over at once."""
