"""Ask the model once for a step, and again as long as the retry policy says so.

Room: the driver comes in with a step and leaves with an answer or the end of the turn. No tool runs here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import is_

from harness.log.events import (
    AssistantChunk,
    AssistantMessage,
    Header,
    LlmRetry,
    LlmRetryStarted,
    RequestConfig,
    RequestContext,
    RequestHeader,
    StepStart,
    TurnReason,
)
from harness.log.session_log import SessionLog
from harness.loop.assembly import Assembler, ChunkGrammar, assemble_answer
from harness.loop.failure import EMPTY_RESPONSE, STREAM_CLOSED, failed, failure_of, finish_for, stopped
from harness.loop.hooks import Deliveries, Overflow
from harness.loop.parts import Parts
from harness.loop.picture_places import placed
from harness.loop.projection import Projection
from harness.loop.reader import ChunkReader
from harness.loop.request import (
    build_header,
    build_request,
    context_change,
    header_reason,
    seed_config,
    stored_effort,
)
from harness.loop.retry import next_retry, used_retries
from harness.loop.scope import CancelScope, pause, stop_of
from harness.model.call import ModelRequest, ToolSchema
from harness.model.chunks import Chunk, Failure, Finish
from harness.model.messages import Message, MessageId, ModelSource

OVERFLOW = "CONTEXT_WINDOW_EXCEEDED"


@dataclass(frozen=True, slots=True)
class Assembled:
    """The prompt of one step as it was when its assembly began; selections counts how often a route was selected."""

    route: RequestConfig
    selections: int
    system: str | None
    tools: tuple[ToolSchema, ...]


@dataclass(frozen=True, slots=True)
class _Built:
    """The header the log holds, and the prompt it was built of."""

    system: str | None
    tools: tuple[ToolSchema, ...]
    header: Header

    def is_of(self, config: RequestConfig, prompt: Assembled) -> bool:
        """Whether the same would come of these; a tool is the same only as the same object."""
        same = len(self.tools) == len(prompt.tools) and all(map(is_, self.tools, prompt.tools))
        return same and self.header.config == config and self.system == prompt.system


class Attempts:
    """The model calls of one loop.

    Shape: answer appends everything from the request header to the assistant message. It returns that message, or how
    the turn ends. Only what the adapter says or raises is tried again.
    """

    def __init__(self, parts: Parts, projection: Projection, agent: Deliveries) -> None:
        self._parts = parts
        self._projection = projection
        self._agent = agent
        self._built: _Built | None = None  # by the last request
        self._is_first = True  # no request of this loop has been logged yet
        self._selections = 0  # of the last prompt whose header was logged; a step may end before it asks
        self._paired = (0, 0)  # the rewrites of the surface at the last request, and how many messages it held

    async def answer(self, turn: int, step: int, prompt: Assembled, scope: CancelScope) -> Message | TurnReason:
        """The assistant message of this step, or the reason that ends the turn."""
        shrunk = False
        is_fresh = prompt.selections != self._selections
        while True:
            header = await self._log_header(prompt, is_fresh)
            self._selections = prompt.selections
            await self._parts.writer.flush()
            if (stop := stop_of(scope)) is not None:
                return stop
            request = self._build(header)
            outcome = await self._attempt(turn, step, request, scope)
            if isinstance(outcome, Message):
                return outcome
            if outcome is None or (stop := stop_of(scope)) is not None:
                return stopped(scope.cause)
            if outcome.code == OVERFLOW and not shrunk:
                shrunk = True
                if await self._shrink(turn, step, outcome, scope):
                    continue
                if (stop := stop_of(scope)) is not None:
                    return stop
            ended = await self._wait_for_retry(turn, step, request.provider, outcome, scope)
            if ended is not None:
                return ended

    def _build(self, header: Header) -> ModelRequest:
        """The next request; only messages no earlier one held are checked, or a long session would slow down."""
        rewrites, paired = self._paired
        messages = self._parts.log.messages()
        if rewrites != self._projection.rewrites:
            paired = 0
        request = build_request(header, messages, paired=paired)
        self._paired = (self._projection.rewrites, len(messages))
        return request

    async def _log_header(self, prompt: Assembled, is_fresh: bool) -> Header:
        """The header of the next request, logged if the log does not say it already."""
        log, projection = self._parts.log, self._projection
        previous = projection.header
        config = await self._config(prompt, previous, is_fresh)
        wanted = self._header_of(config, prompt)
        reason = header_reason(previous, wanted, is_first=self._is_first)
        if reason is not None:
            log.append(RequestHeader(wanted, reason))
        self._is_first = False
        window = self._parts.context_window
        context = RequestContext(config.provider, config.model, window(config) if window is not None else None)
        changed = context_change(projection.context, context)
        if changed is not None:
            log.append(changed)
        logged = projection.header or wanted
        self._built = _Built(prompt.system, prompt.tools, logged)
        return logged

    def _header_of(self, config: RequestConfig, prompt: Assembled) -> Header:
        """The header of a request; one built of the very same things is not built, frozen and compared again."""
        built = self._built
        if built is not None and built.is_of(config, prompt):
            return built.header
        return build_header(config, prompt.system, prompt.tools)

    async def _config(self, prompt: Assembled, previous: Header | None, is_fresh: bool) -> RequestConfig:
        stored = previous.config if previous is not None else None
        if self._is_first:
            config = stored_effort(prompt.route, stored)
        else:
            config = seed_config(prompt.route, stored, is_fresh=is_fresh)
        for change in self._parts.hooks.request:
            config = await change(config)
        return config

    async def _attempt(
        self, turn: int, step: int, request: ModelRequest, scope: CancelScope
    ) -> Message | Failure | None:
        """One model call, None when it was cancelled.

        Its chunks stay in the log whatever becomes of it; only a whole answer becomes a message, and only that cites
        them.
        """
        log, parts = self._parts.log, self._parts
        assembler, grammar = Assembler(), ChunkGrammar()
        seqs: list[int] = []

        def take(chunk: Chunk) -> None:
            seqs.append(log.append(AssistantChunk(turn, step, chunk)).seq)
            assembler.feed(chunk)

        reader = ChunkReader(lambda: parts.model.stream(request, scope), scope)
        try:
            while assembler.finish is None:
                chunk = await reader.next()
                if chunk is None:
                    break
                if parts.check_chunks:
                    grammar.feed(chunk)
                take(_as_it_ends(chunk, assembler, log))
        finally:
            await reader.close()
        if stop_of(scope) is not None:
            return None
        if assembler.finish is None:
            take(finish_for(failure_of(reader.error) if reader.error is not None else STREAM_CLOSED))
        elif reader.error is not None:
            parts.report(reader.error)
        finish = assembler.finish
        if finish is not None and finish.failure is not None:
            return finish.failure
        answer = assemble_answer(assembler, turn, step, self._projection.call_ids)
        message = Message(
            MessageId(parts.ids("message")),
            "assistant",
            answer.blocks,
            ModelSource(request.provider, request.model, answer.replay_state),
        )
        event = log.append(AssistantMessage(turn, step, message, answer.usage), source_event_seqs=tuple(seqs))
        assert isinstance(event.payload, AssistantMessage)  # noqa: S101 - append keeps the type; tells the type checker
        return event.payload.message

    async def _shrink(self, turn: int, step: int, failure: Failure, scope: CancelScope) -> bool:
        """Whether the surface was made smaller, so that the same step may ask once more."""
        shrink = self._parts.hooks.shrink
        if shrink is None:
            return False
        before = self._parts.log.surface()
        await shrink(Overflow(self._agent, turn, step, failure, scope))
        return stop_of(scope) is None and self._parts.log.surface() != before

    async def _wait_for_retry(
        self, turn: int, step: int, provider: str, failure: Failure, scope: CancelScope
    ) -> TurnReason | None:
        """None once the next attempt may begin, or how the turn ends instead."""
        parts, log = self._parts, self._parts.log
        policy = parts.retry
        began = log.last(StepStart)
        used = used_retries(log.since(began.seq if began is not None else 0), turn, step, provider, policy.key)
        retry = next_retry(policy, used, failure, parts.jitter())
        if retry is None:
            return failed(failure)
        retry_id = parts.ids("retry")
        log.append(
            LlmRetry(
                retry_id=retry_id,
                turn=turn,
                step=step,
                provider=provider,
                mode=policy.mode,
                policy_key=policy.key,
                retry=retry.number,
                delay_ms=retry.delay_ms,
                failure=failure,
                max_retries=policy.max_retries if policy.mode == "normal" else None,
            )
        )
        await pause(parts.sleep, retry.delay_ms / 1000, scope)
        if (stop := stop_of(scope)) is not None:
            return stop
        log.append(LlmRetryStarted(retry_id, turn, step, retry.number))
        return None


def _as_it_ends(chunk: Chunk, assembler: Assembler, log: SessionLog) -> Chunk:
    """The chunk; a failure in its place when it would end an answer in which nothing was said.

    A failure for a picture says which event of the log names it.
    """
    if not isinstance(chunk, Finish):
        return chunk
    if chunk.failure is not None:
        return replace(chunk, failure=placed(chunk.failure, log))
    if chunk.kind in ("stop", "tool-calls") and assembler.is_empty:
        return Finish("error", EMPTY_RESPONSE)
    return chunk
