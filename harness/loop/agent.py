"""The handle of an agent: send to it, cancel it, wait for it.

Room: surfaces and hooks come in; only assemble constructs one. Sending and cancelling are plain functions: nothing can
suspend between a caller's last check and the entry in the log.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar

from harness.errors import UsageError
from harness.log.events import Cause, InboxSpliced, InboxTarget, RequestConfig, TurnReason
from harness.log.inbox import (
    TARGETS,
    Inbox,
    cancel_payloads,
    insert_payload,
    remove_payload,
    replace_payload,
)
from harness.log.session_log import SessionLog
from harness.loop.decide import drains_on
from harness.loop.driver import Driver
from harness.loop.hooks import Hooks
from harness.loop.parts import Parts, Writer
from harness.loop.projection import Projection
from harness.loop.prompt import Section, sort_sections
from harness.loop.retry import RetryPolicy
from harness.loop.schedule import DEFAULT_CAP, check_cap
from harness.loop.scope import DISPOSED, CancelScope, is_host_cancelling
from harness.loop.tools import Tool
from harness.model.call import CancelSignal, Model
from harness.model.messages import Message, MessageId, SessionId

MAX_STEPS = 50  # a task that needs more has usually lost its way; the figure other agents' step budgets start from

Status = Literal["idle", "running"]
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class StatusChange:
    """The new status, and how many messages wait; a message may wait while the agent is idle."""

    status: Status
    pending: int


@dataclass(frozen=True, slots=True)
class CancelOutcome:
    """What a cancel did: the turn it aborted, or None, and the messages it took out of the inbox."""

    turn: int | None
    discarded: tuple[MessageId, ...]


class Agent:
    """One session's loop.

    Shape: followup gives a message a turn of its own, steer puts it into the next step and wakes, inject puts it there
    without waking. None of them says anything of the outcome: read the log. Status observers and log observers may
    call all of it. After an error or a cancel that kept the inbox, what waits does so until the next wake.
    Units: turn_timeout_s is seconds of one turn; sleep takes seconds; jitter answers a number from 0 up to 1; ids
    answers a fresh id with that prefix.
    clean is given each message before it is written down, and answers what is; it raises nothing.
    Raises: UsageError from the constructor for limits that are no limits, and from sending after dispose.
    """

    def __init__(
        self,
        *,
        writer: Writer,
        model: Model,
        route: RequestConfig,
        tools: Mapping[str, Tool],
        ids: Callable[[str], str],
        jitter: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
        system: Iterable[Section] = (),
        variables: Mapping[str, str] | None = None,
        volatile: Callable[[], str | None] | None = None,
        tool_order: tuple[str, ...] = (),
        retry: RetryPolicy | None = None,
        hooks: Hooks | None = None,
        max_steps: int = MAX_STEPS,
        turn_timeout_s: float | None = None,
        parallel_cap: int = DEFAULT_CAP,
        context_window: Callable[[RequestConfig], int | None] | None = None,
        check_chunks: bool = False,
        clean: Callable[[Message], Message] | None = None,
        report: Callable[[BaseException], None] | None = None,
    ) -> None:
        if max_steps < 1:
            raise UsageError(f"{max_steps} is not a number of steps", where="max_steps", expected="1 or more")
        self.failures: list[BaseException] = []
        self._report = report if report is not None else self.failures.append
        parts = Parts(
            writer=writer,
            model=model,
            tools=tools,
            tool_order=tool_order,
            sections=sort_sections(system),
            variables=dict(variables or {}),
            volatile=volatile,
            retry=retry if retry is not None else RetryPolicy(),
            hooks=hooks if hooks is not None else Hooks(),
            max_steps=max_steps,
            turn_timeout_s=turn_timeout_s,
            parallel_cap=check_cap(parallel_cap),
            check_chunks=check_chunks,
            context_window=context_window,
            ids=ids,
            jitter=jitter,
            sleep=sleep,
            report=self._report,
        )
        self._clean = clean if clean is not None else _as_it_is
        self._writer = writer
        self._log = writer.log
        self._projection = Projection(self._log)
        self._driver = Driver(parts, self._projection, self, route)
        self._status: Status = "idle"
        self._status_observers: list[Callable[[StatusChange], None]] = []
        self._changes: deque[StatusChange] = deque()
        self._parked: set[MessageId] = self._waiting_ids()
        self._scope: CancelScope | None = None
        self._activity: asyncio.Task[None] | None = None
        self._maintenance: asyncio.Future[None] | None = None
        self._maintenance_scope: CancelScope | None = None
        self._disposal: asyncio.Task[None] | None = None
        self._disposing = False
        self._disposed = False

    @property
    def id(self) -> SessionId:
        """The session's id, which is the agent's."""
        return self._log.header.id

    @property
    def log(self) -> SessionLog:
        """The session log."""
        return self._log

    @property
    def status(self) -> Status:
        """Whether a driver is at work."""
        return self._status

    @property
    def inbox(self) -> Inbox:
        """Both queues, as the log has them."""
        return self._projection.inbox

    @property
    def pending(self) -> int:
        """How many messages wait."""
        return len(self._projection.inbox)

    def followup(self, message: Message) -> None:
        """Queue the message for a turn of its own, and wake.

        Raises: InvalidEventError when the log refuses it or its id waits already; nothing has changed then.
        """
        self.send(message, "next-turn", wakeup=True)

    def steer(self, message: Message) -> None:
        """Put the message into the next step of the running turn, or open a turn with it."""
        self.send(message, "next-step", wakeup=True)

    def inject(self, message: Message) -> None:
        """Put the message into the next step there is; it opens no turn by itself."""
        self.send(message, "next-step", wakeup=False)

    def send(self, message: Message, target: InboxTarget, wakeup: bool) -> None:
        """The general form: into that queue, waking or not.

        What wakes while an aborted turn is still closing gets a turn of its own after it.
        """
        if self._disposed:
            raise UsageError(f"session {self.id} is closed", where="agent", code="AGENT_DISPOSED")
        if wakeup:
            asyncio.get_running_loop()  # raises before anything is written when there is no loop to run a turn in
            if self._scope is not None and self._scope.cancelled:
                target = "next-turn"
        self._log.append(insert_payload(self._projection.inbox, self._clean(message), target, wakes=wakeup))
        if self._disposing:
            self._parked.add(message.id)
        elif wakeup:
            self._wake()

    def wake(self) -> bool:
        """Run what waits; False when nothing waits that opens a turn."""
        if self._disposing or not self._projection.inbox.has_waking:
            return False
        self._wake()
        return True

    def cancel(self, cause: Cause, keep_inbox: bool = False) -> CancelOutcome:
        """Abort the running turn and empty the inbox; with keep_inbox what waits stays and is parked.

        The first cause of a turn stands. Cancelling an idle agent leaves no trace in what comes next. A disposed one
        keeps what waits: it stands in a log that somebody else may hold by now.
        """
        keep_inbox = keep_inbox or self._disposed
        state = self._projection.state
        turn = state.turn if state.turn_open and self._scope is not None and not self._scope.cancelled else None
        for scope in (self._scope, self._maintenance_scope):
            if scope is not None:
                scope.cancel(cause)
        if keep_inbox:
            self._parked = self._waiting_ids()
            return CancelOutcome(turn, ())
        discarded: list[MessageId] = []
        for target in TARGETS:
            for payload in cancel_payloads(self._projection.inbox):
                if payload.target == target:
                    self._log.append(payload)
                    discarded.extend(item.id for item in payload.removed)
        return CancelOutcome(turn, tuple(discarded))

    def cancel_message(self, message_id: MessageId) -> bool:
        """Take one waiting message out of the inbox; False when it does not wait any more. No turn is touched."""
        return self._append_if(remove_payload(self._projection.inbox, message_id))

    def replace_message(self, message_id: MessageId, message: Message) -> bool:
        """Put a message in the place of a waiting one; False when that does not wait any more.

        Raises: InvalidEventError when the new message's id belongs to another waiting message.
        """
        is_parked = message_id in self._parked
        replaced = self._append_if(replace_payload(self._projection.inbox, message_id, self._clean(message)))
        if replaced and is_parked:
            self._parked.add(message.id)
        return replaced

    def select_model(self, route: RequestConfig) -> None:
        """Use this provider, model and options from the next step on."""
        self._driver.select(route)

    def observe_status(self, observer: Callable[[StatusChange], None]) -> Callable[[], None]:
        """Call the observer at every change of status; the result stops that. One that raises is reported."""
        self._status_observers.append(observer)

        def detach() -> None:
            if observer in self._status_observers:
                self._status_observers.remove(observer)

        return detach

    async def when_idle(self) -> None:
        """Return once no turn and no maintenance runs, following work that starts meanwhile; no turn makes it raise."""
        while (active := self._activity or self._maintenance) is not None:
            await asyncio.wait({active})

    async def run_maintenance(self, task: Callable[[CancelSignal], Awaitable[Result]]) -> Result:
        """Run the task while nothing else does; what wakes meanwhile runs after it. Cancel reaches it.

        Raises: UsageError when the agent is not truly idle.
        """
        if self._activity is not None or self._maintenance is not None or self._disposing:
            raise UsageError("the agent is not idle", where="maintenance", code="NOT_IDLE")
        scope = CancelScope()
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._maintenance, self._maintenance_scope = done, scope
        try:
            return await task(scope)
        finally:
            self._maintenance = self._maintenance_scope = None
            if self._is_due():
                self._start()
            done.set_result(None)

    async def dispose(self) -> None:
        """Abort what runs, wait until it is closed and everything is durable; what waits stays in the log.

        Twice is the same wait. Raises: LogWriteError when the last events could not be made durable.
        """
        if self._disposal is None:
            self._disposing = True
            self.cancel(DISPOSED, keep_inbox=True)
            self._disposal = asyncio.ensure_future(self._finish())
        await asyncio.shield(self._disposal)

    async def _finish(self) -> None:
        try:
            await self.when_idle()
        finally:
            self._disposed = True
        await self._writer.flush()

    def _append_if(self, payload: InboxSpliced | None) -> bool:
        if payload is None:
            return False
        self._log.append(payload)
        return True

    def _waiting_ids(self) -> set[MessageId]:
        inbox = self._projection.inbox
        return {message.id for target in TARGETS for message in inbox.items(target)}

    def _is_due(self) -> bool:
        """Whether a message waits that opens a turn and is not parked."""
        inbox = self._projection.inbox
        if self._disposing or not inbox.has_waking:
            return False
        return bool(self._waiting_ids() - inbox.quiet - self._parked)

    def _wake(self) -> None:
        self._parked.clear()
        if self._activity is None and self._maintenance is None:
            self._start()

    def _start(self) -> None:
        self._scope = CancelScope()
        self._activity = asyncio.ensure_future(self._run())
        self._activity.add_done_callback(self._end_unrun)
        self._announce("running")

    async def _run(self) -> None:
        """Run turns until nothing is due, make their ends durable, and say so."""
        try:
            while self._is_due():
                while self._is_due():
                    await self._run_turn()
                await self._flush()
        finally:
            self._go_idle()

    def _end_unrun(self, activity: asyncio.Task[None]) -> None:
        """Go idle also when the host cancelled the driver before its first tick, so that it never ran."""
        if self._activity is activity:
            self._parked = self._waiting_ids()
            self._go_idle()

    def _go_idle(self) -> None:
        self._scope = self._activity = None
        self._announce("idle")

    async def _run_turn(self) -> None:
        self._scope = scope = CancelScope()
        try:
            await self._driver.run_turn(scope, self._park_after)
        except Exception as error:  # noqa: BLE001 - the turn could not even be closed in the log; the agent goes idle
            self._report(error)
            self._parked = self._waiting_ids()

    def _park_after(self, reason: TurnReason) -> None:
        """Park what waits before the end of a turn that stops the driver; what observers of that end send is new."""
        if is_host_cancelling() or not drains_on(self._projection.state, reason):
            self._parked = self._waiting_ids()

    async def _flush(self) -> None:
        try:
            await self._writer.flush()
        except asyncio.CancelledError:
            self._parked = self._waiting_ids()
        except Exception as error:  # noqa: BLE001 - idle is announced whatever the disk says; the report carries it
            self._report(error)

    def _announce(self, status: Status) -> None:
        """Tell the observers, each change to all of them before the next, also when one of them causes the next."""
        if self._status == status:
            return
        self._status = status
        self._changes.append(StatusChange(status, self.pending))
        if len(self._changes) > 1:
            return  # the loop below is running further up the stack and will come to it
        while self._changes:
            for observer in tuple(self._status_observers):
                try:
                    observer(self._changes[0])
                except Exception as error:  # noqa: BLE001 - an observer may raise anything and may stop nothing
                    self._report(error)
            self._changes.popleft()


def _as_it_is(message: Message) -> Message:
    return message
