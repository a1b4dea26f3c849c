"""The model calls of one session log: for each the request that must come, and the answer that was given.

Room: recorded_log comes in. It knows the product: it reads events with the product's own types and rebuilds requests
with the product's own rules. Nothing here plays anything.

A log keeps no requests. That of a step follows from the header and the messages before its answer; that of a compaction
from the messages that its summary replaced.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from harness.capabilities.summary import summary_request
from harness.log.events import (
    AssistantChunk,
    AssistantMessage,
    CompactionEnd,
    CompactionStart,
    CompactionSummary,
    EndSeed,
    Event,
    LlmRetry,
    StepEnd,
    TurnEnd,
    UserMessage,
)
from harness.log.fold import latest_header, message_of
from harness.loop.request import rebuild_request
from harness.model.call import ModelRequest
from harness.model.chunks import Chunk, Finish, TextDelta, Usage, UsageChunk
from harness.model.messages import text_of
from harness.wire.openai_chat import encode_body, encode_request
from lanes.errors import CassetteError
from lanes.normalize import Json

Ending = Literal["answered", "failed", "unfinished"]

FINISH_WORDS = {"stop": "stop", "tool-calls": "tool_calls", "max-tokens": "length"}
# What the product writes around a summary; were these words others, the log of every replay would differ.
SUMMARY_HEAD = "Summary of the earlier part of this session, which is no longer shown:\n\n"
SUMMARY_TAIL = "\n\nWhat the user last asked there, word for word:\n\n"
_ENDS = (AssistantMessage, LlmRetry, StepEnd, TurnEnd, EndSeed, CompactionStart)  # none of them stands inside an answer


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One model call.

    Shape: seq is where its answer begins in the log; chunks are what came of it, without a failure at the end. Of a
    failed or an unfinished one the log does not say how it came to that: failure is the code of the first, said what
    the log tells people of it.
    """

    name: str
    seq: int
    body: Json
    chunks: tuple[Chunk, ...]
    ending: Ending = "answered"
    failure: str = ""
    said: str = ""


def derive_calls(events: Sequence[Event], begin: int, where: str) -> tuple[RecordedCall, ...]:
    """The calls of a log in order, those before the seq `begin` left out: they are another session's.

    Raises: CassetteError for a log that ends inside an answer, and with code CASSETTE_UNREPLAYABLE for a compaction
    without a summary, whose request no log holds.
    """
    calls: list[RecordedCall] = []
    open_at: int | None = None
    chunks: list[Chunk] = []
    for event in events[begin:]:
        payload = event.payload
        if isinstance(payload, AssistantChunk):
            open_at = event.seq if open_at is None else open_at
            chunks.append(payload.chunk)
            if isinstance(payload.chunk, Finish):
                calls.append(_call_of_step(events, open_at, chunks))
                open_at, chunks = None, []
            continue
        if open_at is not None and isinstance(payload, _ENDS):
            calls.append(_call_of_step(events, open_at, chunks))
            open_at, chunks = None, []
        if isinstance(payload, CompactionStart):
            calls.append(_call_of_compaction(events, event, payload.compaction_id, where))
    if open_at is not None:
        raise CassetteError(
            f"the answer that begins at seq {open_at} has no end",
            where=where,
            expected="the recording as it was committed",
            fix="restore the file",
            code="CASSETTE_DAMAGED",
        )
    return tuple(calls)


def _call_of_step(events: Sequence[Event], begin: int, chunks: Sequence[Chunk]) -> RecordedCall:
    payload = events[begin].payload
    assert isinstance(payload, AssistantChunk)  # noqa: S101 - the caller found it so; tells the type checker
    last = chunks[-1]
    body = _body(rebuild_request(events[:begin]))
    name = f"turn {payload.turn} step {payload.step}"
    if not isinstance(last, Finish):
        return RecordedCall(name, begin, body, tuple(chunks), "unfinished")
    if last.kind in FINISH_WORDS:
        return RecordedCall(name, begin, body, tuple(chunks))
    code, said = (last.kind, "") if last.failure is None else (last.failure.code, last.failure.message)
    return RecordedCall(name, begin, body, tuple(chunks[:-1]), "failed", code, said)


def _call_of_compaction(events: Sequence[Event], start: Event, compaction_id: str, where: str) -> RecordedCall:
    """The call of a compaction, by the summary it is marked with and the user message that took the span's place."""
    summary: CompactionSummary | None = None
    for event in events[start.seq :]:
        payload = event.payload
        if isinstance(payload, CompactionSummary) and payload.compaction_id == compaction_id:
            summary = payload
        elif summary is not None and isinstance(payload, UserMessage) and event.source_event_seqs:
            return _call_of_summary(events, start, summary, event)
        elif isinstance(payload, CompactionEnd) and payload.compaction_id == compaction_id:
            break
    raise CassetteError(
        f"the compaction at seq {start.seq} has no summary, and so its request is not in the log",
        where=where,
        expected="compactions that came to their end",
        fix="record a story whose compactions succeed",
        code="CASSETTE_UNREPLAYABLE",
    )


def _call_of_summary(
    events: Sequence[Event], start: Event, summary: CompactionSummary, replacing: Event
) -> RecordedCall:
    header = latest_header(events[: start.seq])
    assert header is not None  # noqa: S101 - nothing is summed up that no request was made of
    taken = (message_of(events[seq]) for seq in replacing.source_event_seqs or ())
    request = summary_request(header.config, [message for message in taken if message is not None])
    assert isinstance(replacing.payload, UserMessage)  # noqa: S101 - the caller found it so
    text = text_of(replacing.payload.message).removeprefix(SUMMARY_HEAD)
    chunks: list[Chunk] = [TextDelta(0, text.rpartition(SUMMARY_TAIL)[0] or text)]
    read, wrote = summary.facts.get("inputTokens"), summary.facts.get("outputTokens")
    if isinstance(read, int) and isinstance(wrote, int):
        chunks.append(UsageChunk(Usage(read, wrote)))
    return RecordedCall(f"summary at seq {start.seq}", start.seq, _body(request), (*chunks, Finish("stop")))


def _body(request: ModelRequest) -> Json:
    body: Json = json.loads(encode_body(encode_request(request)))
    return body
