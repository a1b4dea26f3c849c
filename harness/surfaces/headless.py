"""One task in, one answer out: the surface behind `harness run`.

Room: the command line comes in with a task, settings and the streams. Composes no presets: the agent comes from
assemble as it is, and model choice belongs to the host, which settled it in the settings.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, TypeVar

import httpx

from harness.assemble import Assembled, assemble
from harness.errors import HarnessError, LogError
from harness.log.events import Cause, Event, ReasonKind, TurnReason
from harness.log.fold import open_turn
from harness.log.interval import final_text, finish_reason, fold_usage
from harness.log.json_form import encode_line, event_to_json
from harness.log.model_form import JsonDict, usage_to_json
from harness.log.session_log import SessionLog
from harness.log.writer import SessionWriter
from harness.loop.agent import Agent
from harness.model.messages import Message, SessionId, TextBlock, UserSource
from harness.settings import Settings
from harness.surfaces.progress import one_line, progress_line
from harness.transport.signals import heard_signals
from harness.transport.stdio import OutputClosedError, StandardStreams

DRAIN_S = 5.0  # what a cancelled run gets to write its end; upstream's bound, and a person waits no longer
EXIT_OK = 0
EXIT_FAILED = 1
EXIT_NO_TURN = 5
EXIT_RESUME_REFUSED = 6
EXIT_TIMEOUT = 124
EXIT_OF_REASON: dict[ReasonKind, int] = {
    "completed": EXIT_OK,
    "error": EXIT_FAILED,
    "max-tokens": 3,
    "step-limit": 3,
    "aborted": 4,
    "blocked": 4,
    "interrupted": 4,
}
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class HeadlessRun:
    """What one call of the command asks for. timeout_s is seconds for the work on the task."""

    task: str
    as_json: bool = False
    verbose: bool = False
    timeout_s: float | None = None
    resume: str | None = None


class Build(Protocol):
    """How an agent is made; assemble is the only real one."""

    def __call__(
        self, settings: Settings, *, transport: httpx.AsyncBaseTransport | None, resume: SessionId | None
    ) -> Awaitable[Assembled]:
        """An agent ready for work."""
        ...


class _Stop:
    """Why the run ends before the agent is idle; the first reason stands."""

    def __init__(self) -> None:
        self.text: str | None = None
        self.exit_code = EXIT_FAILED
        self.finishing = False  # from here on a signal forces the exit
        self._event = asyncio.Event()

    def ask(self, text: str, exit_code: int) -> None:
        if self.text is None:
            self.text, self.exit_code = text, exit_code
            self._event.set()

    async def wait(self) -> None:
        await self._event.wait()


async def run_headless(
    run: HeadlessRun,
    settings: Settings,
    streams: StandardStreams,
    *,
    transport: httpx.AsyncBaseTransport | None = None,
    build: Build = assemble,
    exit_now: Callable[[int], None] = os._exit,
    drain_s: float = DRAIN_S,
) -> int:
    """Run the task until the agent is idle and print the answer; gives the exit code of the process.

    Shape: exit_now ends the process at once, for a second signal or an end that does not come within drain_s seconds.
    """
    return await _Headless(run, settings, streams, exit_now, drain_s).run(build, transport)


class _Headless:
    def __init__(
        self,
        run: HeadlessRun,
        settings: Settings,
        streams: StandardStreams,
        exit_now: Callable[[int], None],
        drain_s: float,
    ) -> None:
        self._run = run
        self._settings = settings
        self._streams = streams
        self._exit_now = exit_now
        self._drain_s = drain_s
        self._stop = _Stop()
        self._assembled: Assembled | None = None
        self._output_problem: OutputClosedError | None = None

    async def run(self, build: Build, transport: httpx.AsyncBaseTransport | None) -> int:
        with self._signals():
            resume = None if self._run.resume is None else SessionId(self._run.resume)
            try:
                assembled = await self._built(build(self._settings, transport=transport, resume=resume))
            except LogError as error:
                self._say(one_line(str(error)))
                return EXIT_FAILED if resume is None else EXIT_RESUME_REFUSED
            if assembled is None:
                self._say(f"{self._stop.text}; the session was not opened")
                return self._stop.exit_code
            exit_code = EXIT_FAILED
            try:
                exit_code = await self._work(assembled)
            except OutputClosedError as error:
                self._say(error.what)
            except HarnessError as error:
                self._say(one_line(str(error)))
                exit_code = error.exit_code
            except Exception as error:  # noqa: BLE001 - whatever it was, what is open has to be closed and a person told
                self._say(f"{type(error).__name__}: {one_line(str(error))}")
            return await self._close(assembled, exit_code)

    async def _built(self, building: Awaitable[Assembled]) -> Assembled | None:
        """The agent, or None when the run has to end while servers or disks keep it from being built."""
        making = asyncio.ensure_future(building)
        stopped = asyncio.ensure_future(self._stop.wait())
        await asyncio.wait({making, stopped}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if not making.done():
            making.cancel()
            await asyncio.wait({making})
            if making.cancelled():
                return None
        self._assembled = making.result()
        return self._assembled

    @contextmanager
    def _signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        numbers = heard_signals(_SIGNALS)
        for number in numbers:
            loop.add_signal_handler(number, self._on_signal, number)
        try:
            yield
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)

    def _on_signal(self, number: signal.Signals) -> None:
        if self._stop.finishing or self._stop.text is not None:
            self._force(128 + number)
        self._stop.ask(number.name, 128 + number)

    def _force(self, exit_code: int) -> None:
        if self._assembled is not None:
            self._assembled.end_now()
        self._exit_now(exit_code)

    def _say(self, text: str) -> None:
        self._streams.write_error(f"harness: {text}\n")

    async def _work(self, assembled: Assembled) -> int:
        agent, writer = assembled.agent, assembled.writer
        log = writer.log
        if writer.damage is not None:
            self._say(f"the session was repaired: {one_line(writer.damage)}")
        for notice in assembled.mcp.notices:
            self._say(one_line(notice))
        if self._run.verbose:
            self._say(f"session {log.header.id}")
        first_seq = len(log)
        detach = self._show_progress(log)
        printer = _EventPrinter(self._streams, assembled.writer, first_seq) if self._run.as_json else None
        printing = None if printer is None else asyncio.ensure_future(self._print_events(printer))
        try:
            if self._stop.text is None:
                content = (TextBlock(self._run.task),)
                agent.followup(Message(assembled.new_message_id(), "user", content, UserSource()))
                await self._until_idle(assembled)
            is_durable = await self._flush(assembled)
        finally:
            detach()
            if printer is not None and printing is not None:
                printer.finish()
                await printing
        self._stop.finishing = True
        if self._output_problem is not None:
            raise self._output_problem
        return await self._report(assembled.agent, first_seq, is_durable=is_durable)

    async def _print_events(self, printer: _EventPrinter) -> None:
        """Print events as they come; when nobody reads them any more, nobody waits for the work either."""
        try:
            await printer.run()
        except OutputClosedError as error:
            self._output_problem = error
            self._stop.ask("standard output is closed", EXIT_FAILED)
        except LogError:
            return  # the flush at the end meets the same failure and reports it

    async def _until_idle(self, assembled: Assembled) -> None:
        """Wait for the whole agent; cancel it when the run has to end before."""
        idle = asyncio.ensure_future(assembled.agent.when_idle())
        stopped = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait({idle, stopped}, timeout=self._run.timeout_s, return_when=asyncio.FIRST_COMPLETED)
            if idle.done():
                idle.result()
                return
            self._stop.ask(f"not finished after {self._run.timeout_s or 0:g} s", EXIT_TIMEOUT)
            assembled.agent.cancel(Cause("user"))
            if not (await asyncio.wait({idle}, timeout=self._drain_s))[0]:
                await self._cut_off(assembled)
        finally:
            stopped.cancel()
            idle.cancel()

    async def _cut_off(self, assembled: Assembled) -> None:
        """The drain did not end within its bound: keep what can be kept, then end the process."""
        self._say(f"{self._stop.text}; the turn did not end within {self._drain_s:g} s and was cut off")
        flushing = asyncio.ensure_future(assembled.writer.flush())
        await asyncio.wait({flushing}, timeout=1)
        self._force(self._stop.exit_code)

    async def _flush(self, assembled: Assembled) -> bool:
        try:
            await assembled.writer.flush()
        except LogError as error:
            self._say(f"the session log is not durable: {one_line(str(error))}")
            return False
        return True

    async def _report(self, agent: Agent, first_seq: int, *, is_durable: bool) -> int:
        """Print what the interval amounts to; returns the exit code."""
        log = agent.log
        events = log.since(first_seq)
        text = final_text(events, first_seq)
        reason = finish_reason(events, first_seq)
        if not self._run.as_json:
            await asyncio.to_thread(self._streams.write, f"{text}\n")
        elif is_durable:
            usage = fold_usage(events, first_seq)
            result: JsonDict = {"type": "result", "sessionId": log.header.id, "output": text}
            if usage is not None:
                result["usage"] = usage_to_json(usage)
            await asyncio.to_thread(self._streams.write_bytes, encode_line(result))
        if self._stop.text is not None:
            ending = "no turn ran" if reason is None else f"the turn ended {reason.kind}"
            self._say(f"{self._stop.text}; {ending}")
            return self._stop.exit_code
        if agent.failures and open_turn(log) is not None:
            self._say(f"the turn could not be ended: {one_line(str(agent.failures[0]))}")
            return EXIT_FAILED
        if reason is None:
            self._say("no turn ran")
        elif reason.kind != "completed":
            self._say(_ending_line(reason, self._settings.max_steps))
        if not is_durable:
            return EXIT_FAILED
        return EXIT_NO_TURN if reason is None else EXIT_OF_REASON[reason.kind]

    def _show_progress(self, log: SessionLog) -> Callable[[], None]:
        if not (self._streams.is_error_terminal or self._run.verbose):
            return _nothing

        def show(event: Event) -> None:
            line = progress_line(event)
            if line is not None:
                self._streams.write_error(f"{line}\n")

        return log.observe(show)

    async def _close(self, assembled: Assembled, exit_code: int) -> int:
        """Let go of everything within the drain bound; a failure to do so never hides behind a success."""
        self._stop.finishing = True
        closing = asyncio.ensure_future(assembled.close())
        if not (await asyncio.wait({closing}, timeout=self._drain_s))[0]:
            self._say(f"closing did not end within {self._drain_s:g} s and was cut off")
            self._force(exit_code or EXIT_FAILED)
            return exit_code or EXIT_FAILED
        try:
            ended = closing.result()
        except HarnessError as error:
            self._say(one_line(str(error)))
            return exit_code or EXIT_FAILED
        for command in ended:
            self._say(f"ended a process left in the background: {one_line(command)}")
        return exit_code


class _EventPrinter:
    """Prints the log from one seq on, an object a line, in order.

    Shape: run ends after finish, when everything in the log was printed; the receipt is durable before it is printed.
    """

    def __init__(self, streams: StandardStreams, writer: SessionWriter, first_seq: int) -> None:
        self._streams = streams
        self._writer = writer
        self._next = self._first = first_seq
        self._came = asyncio.Event()
        self._finished = False
        self._detach = writer.log.observe(lambda event: self._came.set())

    def finish(self) -> None:
        self._finished = True
        self._came.set()

    async def run(self) -> None:
        log = self._writer.log
        try:
            while not self._finished or self._next < len(log):
                await self._came.wait()
                self._came.clear()
                if self._next == self._first:
                    await self._writer.flush()
                events = log.since(self._next)
                self._next += len(events)
                await asyncio.to_thread(self._streams.write_bytes, _event_lines(events, log.header.id))
        finally:
            self._detach()


def _event_lines(events: tuple[Event, ...], session_id: SessionId) -> bytes:
    return b"".join(
        encode_line({"type": "session_event", "sessionId": session_id, "event": event_to_json(event)})
        for event in events
    )


def _ending_line(reason: TurnReason, max_steps: int) -> str:
    """One line that names how the turn ended."""
    match reason.kind:
        case "error":
            failure = reason.failure
            return "error" if failure is None else f"{failure.code}: {one_line(failure.message)}"
        case "max-tokens":
            return "max-tokens: the model's answer was cut at its token limit"
        case "step-limit":
            return f"step-limit: the turn was ended after {max_steps} steps"
        case "aborted":
            return "aborted: the turn was cancelled" + (f" by {reason.cause.kind}" if reason.cause else "")
        case _:
            return f"the turn ended {reason.kind}"


def _nothing() -> None:
    """There is no progress to stop showing."""
