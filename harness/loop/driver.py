"""Drive one turn: claim input, ask, enter the step, run it, close everything that was opened.

Room: the agent comes in with a cancel scope. What is next is decided in decide; this room awaits and appends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from harness.log.events import (
    InboxTarget,
    RequestConfig,
    StepEnd,
    StepStart,
    TurnEnd,
    TurnReason,
    TurnStart,
    UserMessage,
)
from harness.log.fold import call_seq, unanswered_calls
from harness.log.inbox import TARGETS, claim_payloads, requeue_payload
from harness.log.repair import unanswered_result
from harness.loop.attempt import Assembled, Attempts
from harness.loop.decide import AskStopping, EndTurn, Enter, Reject, after_claim, after_step
from harness.loop.dispatch import Dispatch
from harness.loop.failure import TURN_TIMEOUT, failed, failure_of
from harness.loop.hooks import Deliveries, StepProposal, TurnStopping
from harness.loop.parts import Parts
from harness.loop.projection import Projection
from harness.loop.prompt import render_system, snapshot_message, sort_tools
from harness.loop.scope import DISPOSED, CancelScope, is_host_cancelling, stop_of
from harness.loop.tools import Tool
from harness.model.messages import Message, MessageId, tool_calls_of

SNAPSHOT_PLUGIN = "context"

Claimed = list[tuple[InboxTarget, tuple[Message, ...]]]


class Driver:
    """The turns of one agent, one after the other.

    Shape: run_turn appends from turn/start to turn/end and answers how the turn ended. It raises only when one of those
    two cannot be appended.
    """

    def __init__(self, parts: Parts, projection: Projection, agent: Deliveries, route: RequestConfig) -> None:
        self._parts = parts
        self._projection = projection
        self._agent = agent
        self._attempts = Attempts(parts, projection, agent)
        self._route = route
        self._selections = 0  # how often a route was selected
        self._tools: Mapping[str, Tool] = {}

    def select(self, route: RequestConfig) -> None:
        """Use this route from the next prompt on, never for half of one."""
        self._route = route
        self._selections += 1

    async def run_turn(self, scope: CancelScope, ending: Callable[[TurnReason], None]) -> TurnReason:
        """Run the next turn to its end; ending is told the reason right before it is appended."""
        log = self._parts.log
        self._close_leftover()
        turn = self._projection.state.turn + 1
        log.append(TurnStart(turn))
        timer = self._start_timer(scope)
        try:
            reason = await self._run_steps(turn, scope)
        except asyncio.CancelledError as error:
            if is_host_cancelling():
                scope.cancel(DISPOSED)
            reason = stop_of(scope) or failed(failure_of(error))
        except Exception as error:  # noqa: BLE001 - hooks, log and disk may raise anything; the turn is still closed
            self._parts.report(error)
            reason = stop_of(scope) or failed(failure_of(error))
        finally:
            if timer is not None:
                timer.cancel()
        ending(reason)
        log.append(TurnEnd(turn, reason))
        return reason

    def _close_leftover(self) -> None:
        """Close a turn whose own end could not be appended when it was due."""
        state = self._projection.state
        if state.step_open:
            self._close_calls(state.turn, state.step)
            self._parts.log.append(StepEnd(state.turn, state.step))
        if state.turn_open:
            lost = failure_of(RuntimeError("the end of this turn could not be recorded when it was due"))
            self._parts.log.append(TurnEnd(state.turn, failed(lost)))

    def _start_timer(self, scope: CancelScope) -> asyncio.Task[None] | None:
        timeout_s = self._parts.turn_timeout_s
        if timeout_s is None:
            return None

        async def expire() -> None:
            await self._parts.sleep(timeout_s)
            scope.cancel(TURN_TIMEOUT)

        return asyncio.ensure_future(expire())

    async def _run_steps(self, turn: int, scope: CancelScope) -> TurnReason:
        parts, projection = self._parts, self._projection
        target: InboxTarget = "next-turn"
        while True:
            claimed = self._claim(turn, target)
            step = projection.state.step + 1
            try:
                await parts.writer.flush()
                if (stop := stop_of(scope)) is not None:
                    return stop
                prompt = await self._assemble()
                if (stop := stop_of(scope)) is not None:
                    return stop
                decision = await self._ask_pre_step(turn, step, claimed, scope)
                if (stop := stop_of(scope)) is not None:
                    return stop
                entered = after_claim(projection.state, decision)
                if isinstance(entered, EndTurn):
                    return entered.reason
                messages = self._with_snapshot(entered.messages)
            except Exception:
                if stop_of(scope) is None:
                    self._requeue(claimed)
                raise
            reason = await self._run_step(turn, step, messages, prompt, scope)
            if reason is not None:
                return reason
            action = after_step(projection.state, self._waiting(), parts.max_steps, asked=False)
            if isinstance(action, AskStopping):
                for stopping in parts.hooks.stopping:
                    await stopping(TurnStopping(self._agent, turn, scope))
                    if stop_of(scope) is not None:
                        break
                action = after_step(projection.state, self._waiting(), parts.max_steps, asked=True)
            if (stop := stop_of(scope)) is not None:
                return stop
            if isinstance(action, EndTurn):
                return action.reason
            target = "next-step"

    def _waiting(self) -> int:
        return len(self._projection.inbox.next_step)

    def _claim(self, turn: int, target: InboxTarget) -> Claimed:
        """Take the input of a step out of the inbox; one list after the other, since an observer may send meanwhile."""
        claimed: Claimed = []
        for wanted in TARGETS:
            for payload, messages in claim_payloads(self._projection.inbox, turn, target == "next-turn"):
                if payload.target == wanted:
                    self._parts.log.append(payload)
                    claimed.append((wanted, messages))
        return claimed

    def _requeue(self, claimed: Claimed) -> None:
        """Put input no model ever saw back at the head of its list; it waits there for the next wake."""
        for target, messages in claimed:
            payload = requeue_payload(self._projection.inbox, messages, target)
            if payload is not None:
                self._parts.log.append(payload)

    async def _assemble(self) -> Assembled:
        """The prompt as it is now. The route is sampled first, so that variables and request speak of one model."""
        parts = self._parts
        route, selections = self._route, self._selections
        texts: list[tuple[str, str]] = []
        for section in parts.sections:
            text = section.text if isinstance(section.text, str) else section.text()
            texts.append((section.name, text if isinstance(text, str) else await text))
        variables = {"provider": route.provider, "model": route.model, **parts.variables}
        system = render_system(texts, variables)
        self._tools = dict(parts.tools)
        tools = sort_tools((tool.schema for tool in self._tools.values()), parts.tool_order)
        return Assembled(route, selections, system, tools)

    async def _ask_pre_step(self, turn: int, step: int, claimed: Claimed, scope: CancelScope) -> Enter | Reject:
        messages = tuple(message for _, taken in claimed for message in taken)
        for ask in self._parts.hooks.pre_step:
            decision = await ask(StepProposal(self._agent, turn, step, messages, scope))
            if isinstance(decision, Reject) or stop_of(scope) is not None:
                return decision
            messages = decision.messages
        return Enter(messages)

    def _with_snapshot(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        volatile = self._parts.volatile
        if volatile is None:
            return messages
        snapshot = snapshot_message(
            self._parts.log.messages(), volatile(), SNAPSHOT_PLUGIN, lambda: MessageId(self._parts.ids("message"))
        )
        return messages if snapshot is None else (snapshot, *messages)

    async def _run_step(
        self, turn: int, step: int, messages: tuple[Message, ...], prompt: Assembled, scope: CancelScope
    ) -> TurnReason | None:
        """Open the step, run it and close it on every path; the reason to end the turn, or None."""
        log = self._parts.log
        log.append(StepStart(turn, step))
        try:
            for message in messages:
                log.append(UserMessage(message))
            if (stop := stop_of(scope)) is not None:
                return stop
            answer = await self._attempts.answer(turn, step, prompt, scope)
            if isinstance(answer, TurnReason):
                return answer
            calls = tool_calls_of(answer)
            if calls:
                await Dispatch(self._parts, self._agent, self._tools, calls, turn, step, scope).run()
            return stop_of(scope)
        finally:
            try:
                self._close_calls(turn, step)
            finally:
                log.append(StepEnd(turn, step))

    def _close_calls(self, turn: int, step: int) -> None:
        """Answer every call of the step that nobody answered; no request may ever hold an open call."""
        log = self._parts.log
        for call in unanswered_calls(log, turn, step):
            started = call_seq(log, turn, step, call.id)
            log.append(
                unanswered_result(call, turn, step, started is not None),
                source_event_seqs=None if started is None else (started,),
            )
