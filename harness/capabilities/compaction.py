"""Keep a session within its model's window: the oldest part of what the model sees gives way to a summary.

Room: assemble comes in and hangs relieve and shrink into the hooks; surfaces ask for one by hand. The bracket in the
log is the lock, and nothing but its own user message changes what the model sees.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Literal, TypeAlias

from harness.capabilities.span import Span, choose_span, message_tokens, possible_spans, surface_tokens
from harness.capabilities.summary import PLUGIN, Summary, ask_summary, summary_request
from harness.errors import HarnessError, UsageError
from harness.log.events import (
    CompactionEnd,
    CompactionStart,
    CompactionSummary,
    EndSeed,
    InboxSpliced,
    Replace,
    RequestConfig,
    RequestHeader,
    StepEnd,
    TurnStart,
    UserMessage,
)
from harness.log.session_log import SessionLog
from harness.loop.decide import Decision, Enter
from harness.loop.failure import render_chain
from harness.loop.hooks import Overflow, StepProposal
from harness.loop.parts import Writer
from harness.model.call import CancelSignal, Model
from harness.model.messages import Json, Message, MessageId, PluginSource, TextBlock, text_of

KEPT_SHARE = 4  # a quarter of the limit stays word for word: the work at hand, without soon being at the limit again
WORTH_SHARE = 4  # a span of less than a quarter of the limit wins too little for the model call it costs
MAX_REASON_CHARACTERS = 500  # of a failure, in the log: a provider may answer with a page
MAX_REQUEST_CHARACTERS = 4000  # of the user's last words, kept as they were: longer ones are a document, not a request

Occasion = Literal["pressure", "overflow", "manual"]
Outcome: TypeAlias = Literal["done", "cancelled", "failed", "nothing"]


def open_compaction(log: SessionLog) -> CompactionStart | None:
    """The compaction that runs, by the log; one that an ended lifetime left without an end is stale."""
    start = log.last(CompactionStart)
    later = log.last(CompactionEnd, EndSeed)
    if start is None or (later is not None and later.seq > start.seq):
        return None
    return start.payload if isinstance(start.payload, CompactionStart) else None


def spans_at_end(log: SessionLog, occasion: str) -> tuple[Span, ...]:
    """The spans one of which a compaction takes that begins at the end of this log, the shortest first.

    Under pressure the limit decides which. No log holds it, only that it was reached; else there is one, or none.
    """
    if occasion == "pressure":
        return possible_spans(log, (surface_tokens(log) + _claimed_tokens(log)) // KEPT_SHARE)
    span = choose_span(log, _kept_by_default(log))
    return () if span is None else (span,)


class Compaction:
    """The compactions of one session.

    Shape: relieve is a pre-step hook and shrink answers an overflow; neither ever raises for a compaction that fails,
    the log says why. compact answers how it went; "nothing" wrote nothing.
    Units: limit_tokens is the length of a request from which on relieve acts; None never.
    Raises: from compact, UsageError with code COMPACTION_RUNNING while one runs.
    """

    def __init__(
        self, writer: Writer, *, model: Model, ids: Callable[[str], str], limit_tokens: int | None = None
    ) -> None:
        self.failures: list[Exception] = []
        self._writer = writer
        self._log = writer.log
        self._model = model
        self._ids = ids
        self._limit = limit_tokens

    async def relieve(self, proposal: StepProposal) -> Decision:
        """Before a step: compact when the next request would reach the limit, and let the step go on whatever came."""
        if self._limit is not None and self._is_pressed(proposal, self._limit):
            await self._contained("pressure", proposal.cancel, self._limit // KEPT_SHARE)
        return Enter(proposal.messages)

    async def shrink(self, overflow: Overflow) -> None:
        """After a request that was too long: compact if that makes it shorter; else nothing changes."""
        await self._contained("overflow", overflow.cancel, _kept_by_default(self._log))

    async def compact(self, occasion: Occasion, cancel: CancelSignal, keep_tokens: int | None = None) -> Outcome:
        """Replace the oldest part of the surface by a summary; the end of the surface of that many tokens stays."""
        log = self._log
        running = open_compaction(log)
        if running is not None:
            raise UsageError(
                f"compaction {running.compaction_id!r} has not ended",
                where=f"session {log.header.id}",
                fix="wait for its end",
                code="COMPACTION_RUNNING",
            )
        span = choose_span(log, _kept_by_default(log) if keep_tokens is None else keep_tokens)
        route = _last_route(log)
        if span is None or route is None or not self._is_worth_it(occasion, span):
            return "nothing"
        compaction_id = self._ids("compaction")
        log.append(CompactionStart(compaction_id, occasion))
        outcome: Outcome = "failed"
        why = ""
        try:
            await self._writer.flush()  # a crash from here on leaves a start that a reader of the file can see
            summary = await ask_summary(self._model, summary_request(route, span.messages), cancel)
            if cancel.cancelled:
                outcome = "cancelled"
            else:
                self._replace(compaction_id, span, route, summary)
                outcome = "done"
        except asyncio.CancelledError:
            outcome = "cancelled"
            raise
        except Exception as error:  # noqa: BLE001 - model, disk and log may raise anything; the log is told, the turn goes on
            why = f": {_reason_of(error)}"
        finally:
            log.append(CompactionEnd(compaction_id, f"{outcome}{why}"))
        return outcome

    def _replace(self, compaction_id: str, span: Span, route: RequestConfig, summary: Summary) -> None:
        message = Message(
            MessageId(self._ids("message")),
            "user",
            (TextBlock(_wording(summary.text, span.last_request)),),
            PluginSource(PLUGIN, "recall"),
        )
        written = message_tokens(message)
        if written >= span.tokens:
            raise UsageError(f"the summary has {written} tokens, what it stands for {span.tokens}", code="NOT_SHORTER")
        facts: dict[str, Json] = {
            "provider": route.provider,
            "model": route.model,
            "messages": len(span.messages),
            "tokensBefore": span.tokens,
            "tokensAfter": written,
        }
        if summary.usage is not None:
            facts["inputTokens"] = summary.usage.input_tokens
            facts["outputTokens"] = summary.usage.output_tokens
        self._log.append(CompactionSummary(compaction_id, facts))
        self._log.append(
            UserMessage(message), surface_op=Replace(span.seqs[0], span.seqs[-1]), source_event_seqs=span.seqs
        )

    async def _contained(self, occasion: Occasion, cancel: CancelSignal, keep_tokens: int) -> None:
        try:
            await self.compact(occasion, cancel, keep_tokens)
        except Exception as error:  # noqa: BLE001 - a compaction is a favour; the turn must be no worse off for it
            self.failures.append(error)

    def _is_pressed(self, proposal: StepProposal, limit: int) -> bool:
        if self._failed_in_this_turn():
            return False  # whoever pays for a model should not pay for the same failure at every step
        claimed = sum(message_tokens(message) for message in proposal.messages)
        return surface_tokens(self._log) + claimed >= limit

    def _is_worth_it(self, occasion: Occasion, span: Span) -> bool:
        """Under pressure, whether the span is a good part of what is too much; tools and system text cannot shrink."""
        return occasion != "pressure" or self._limit is None or span.tokens >= self._limit // WORTH_SHARE

    def _failed_in_this_turn(self) -> bool:
        end, turn = self._log.last(CompactionEnd), self._log.last(TurnStart)
        if end is None or turn is None or end.seq < turn.seq:
            return False
        return isinstance(end.payload, CompactionEnd) and end.payload.outcome != "done"


def _kept_by_default(log: SessionLog) -> int:
    return surface_tokens(log) // KEPT_SHARE


def _claimed_tokens(log: SessionLog) -> int:
    """How long is what was taken out of the inbox for a step that has not begun."""
    sent: dict[MessageId, int] = {}
    claimed = 0
    began = log.last(TurnStart, StepEnd)
    for event in log.without_chunks():
        payload = event.payload
        if not isinstance(payload, InboxSpliced):
            continue
        sent.update((message.id, message_tokens(message)) for message in payload.inserted)
        if began is not None and event.seq > began.seq:
            claimed += sum(sent.get(item.id, 0) for item in payload.removed if item.fate == "claimed")
    return claimed


def _last_route(log: SessionLog) -> RequestConfig | None:
    found = log.last(RequestHeader)
    return found.payload.header.config if found is not None and isinstance(found.payload, RequestHeader) else None


def _wording(summary: str, last_request: Message | None) -> str:
    text = f"Summary of the earlier part of this session, which is no longer shown:\n\n{summary}"
    asked = "" if last_request is None else text_of(last_request)
    if asked:
        cut = " […]" if len(asked) > MAX_REQUEST_CHARACTERS else ""
        text += f"\n\nWhat the user last asked there, word for word:\n\n{asked[:MAX_REQUEST_CHARACTERS]}{cut}"
    return text


def _reason_of(error: Exception) -> str:
    """Why, in words; a code stands whole at the end, for a replay tells by it whether the model was asked."""
    if isinstance(error, HarnessError):
        return f"{error.what[:MAX_REASON_CHARACTERS]} [{error.error_code}]"
    return render_chain(error)[:MAX_REASON_CHARACTERS]
