"""Run the tool calls of one step: starts and results in the order the model wrote them, bodies side by side.

Room: the driver comes in with the calls. What one call does is the business of tools.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from harness.errors import InvalidEventError, LogError
from harness.log.events import ToolCall, ToolErrorInfo, ToolResult
from harness.loop.decide import CONCLUDES
from harness.loop.hooks import Deliveries, GateAnswer, ToolProposal
from harness.loop.parts import Parts
from harness.loop.schedule import Schedule
from harness.loop.scope import DISPOSED, CancelScope, is_host_cancelling, settle, stop_of
from harness.loop.tools import (
    PreparedCall,
    Tool,
    ToolOutput,
    error_output,
    invalid_output,
    mode_of_call,
    not_dispatched,
    prepare_call,
    run_call,
)
from harness.model.messages import (
    JsonObject,
    Message,
    MessageId,
    PluginSource,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    ToolSource,
)


class Dispatch:
    """The calls of one step.

    Shape: run returns when every call has its result in the log. When it raises, no body runs any more, and the calls
    without a result are the driver's to answer.
    """

    def __init__(
        self,
        parts: Parts,
        agent: Deliveries,
        tools: Mapping[str, Tool],
        calls: Sequence[ToolCallBlock],
        turn: int,
        step: int,
        scope: CancelScope,
    ) -> None:
        self._parts = parts
        self._agent = agent
        self._tools = tools
        self._calls = calls
        self._turn = turn
        self._step = step
        self._scope = scope
        self._schedule = Schedule(len(calls), parts.parallel_cap)
        self._bodies: dict[asyncio.Task[ToolOutput], int] = {}
        self._outputs: dict[int, ToolOutput] = {}
        self._call_seqs: dict[int, int] = {}
        self._committed = 0

    async def run(self) -> None:
        """Start what may start, wait for one, commit in order, until every call is answered."""
        try:
            while self._committed < len(self._calls):
                await self._start_what_may()
                if self._bodies:
                    await settle(tuple(self._bodies), self._scope, first=True)
                    self._collect()
                await self._commit_in_order()
        except asyncio.CancelledError:
            if is_host_cancelling():
                self._scope.cancel(DISPOSED)
            raise
        finally:
            await settle(tuple(self._bodies), self._scope)

    async def _start_what_may(self) -> None:
        while (position := self._schedule.next) is not None:
            call = self._calls[position]
            if stop_of(self._scope) is not None:
                if self._bodies or self._committed < position:
                    return  # what was started settles and is answered first, so that results keep the model's order
                self._schedule.start("exclusive")
                self._append_call(position)
                self._settle_now(position, not_dispatched())
                return
            prepared = prepare_call(call, self._tools)
            mode = mode_of_call(prepared)
            if not self._schedule.may_start(mode):
                return
            self._schedule.start(mode)
            self._append_call(position)
            refusal = await self._refusal(call)
            if stop_of(self._scope) is not None:
                self._settle_now(position, not_dispatched())
            elif refusal is not None:
                self._settle_now(position, refusal)
            elif isinstance(prepared, ToolOutput):
                self._settle_now(position, prepared)
            else:
                self._bodies[asyncio.ensure_future(self._run_durably(prepared))] = position
            if mode == "exclusive":
                return  # its result has to stand before anything else starts

    async def _refusal(self, call: ToolCallBlock) -> ToolOutput | None:
        """The denial the gates agreed on, or None when the call may run."""
        hooks = self._parts.hooks
        proposal = self._proposal(call)
        asking = False
        for gate in hooks.gates:
            answer = await gate(proposal)
            if answer.verdict == "deny":
                return _denied(answer)
            asking = asking or answer.verdict == "ask"
        if not asking:
            return None
        if hooks.ask is None:
            return _denied(GateAnswer("deny", "this call needs an approval and nobody is there to give it"))
        answer = await hooks.ask(proposal)
        return None if answer.verdict == "allow" else _denied(answer)

    async def _run_durably(self, prepared: PreparedCall) -> ToolOutput:
        """Run the body once its call is on disk; calls that start together share the write."""
        try:
            await self._parts.writer.flush()
        except LogError as error:
            return error_output(f"the call could not be recorded, so it was not run: {error.what}", error.error_code)
        if stop_of(self._scope) is not None:
            return not_dispatched()
        return await run_call(prepared, self._scope, self._parts.sleep)

    def _collect(self) -> None:
        for task in [task for task in self._bodies if task.done()]:
            position = self._bodies.pop(task)
            self._schedule.finish(position)
            self._outputs[position] = task.result()

    def _settle_now(self, position: int, output: ToolOutput) -> None:
        self._schedule.finish(position)
        self._outputs[position] = output

    async def _commit_in_order(self) -> None:
        while self._committed in self._outputs:
            position = self._committed
            output = self._outputs.pop(position)
            for change in self._parts.hooks.results:
                output = await change(self._proposal(self._calls[position]), output)
            self._append_result(position, output)
            self._committed += 1

    def _append_call(self, position: int) -> None:
        call = self._calls[position]
        event = self._parts.log.append(ToolCall(self._turn, self._step, call.id, call.name, call.arguments))
        self._call_seqs[position] = event.seq

    def _append_result(self, position: int, output: ToolOutput) -> None:
        try:
            self._append_output(position, output)
        except InvalidEventError as error:
            self._append_output(position, invalid_output(f"{error.where}: {error.what}"))
            return
        call = self._calls[position]
        for text in output.context:
            self._agent.inject(
                Message(
                    MessageId(self._parts.ids("message")),
                    "user",
                    (TextBlock(text),),
                    PluginSource(call.name, "notice"),
                )
            )

    def _append_output(self, position: int, output: ToolOutput) -> None:
        call = self._calls[position]
        block = ToolResultBlock(call.id, output.content, output.is_error)
        message = Message(MessageId(self._parts.ids("message")), "user", (block,), ToolSource(call.id))
        error = ToolErrorInfo("ToolError", output.code) if output.is_error and output.code is not None else None
        self._parts.log.append(
            ToolResult(self._turn, self._step, message, error, _meta_of(output)),
            source_event_seqs=(self._call_seqs[position],),
        )

    def _proposal(self, call: ToolCallBlock) -> ToolProposal:
        return ToolProposal(self._agent, self._turn, self._step, call, self._scope)


def _denied(answer: GateAnswer) -> ToolOutput:
    return error_output(answer.text or "this call was denied", "TOOL_DENIED")


def _meta_of(output: ToolOutput) -> JsonObject | None:
    if not output.conclude:
        return output.meta
    return {**(output.meta or {}), CONCLUDES: True}
