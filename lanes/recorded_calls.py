"""The model calls of one session log: for each the request that must come, and the answer that was given.

Room: recorded_log comes in. It knows the product: it reads events with the product's own types and rebuilds requests
with the product's own rules. Nothing here plays anything.

A log keeps no requests. That of a step follows from the header and the messages before its answer; that of a compaction
from the messages that its summary replaced, or, when none came of it, from what the model saw as it began.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from harness.capabilities.compaction import spans_at_end
from harness.capabilities.summary import summary_request
from harness.errors import LogBusyError, LogWriteError, SessionExistsError
from harness.log.events import (
    AssistantChunk,
    AssistantMessage,
    CompactionEnd,
    CompactionStart,
    CompactionSummary,
    EndSeed,
    Event,
    LlmRetry,
    RequestConfig,
    SessionHeader,
    StepEnd,
    TurnEnd,
    UserMessage,
)
from harness.log.fold import latest_header, message_of
from harness.log.session_log import SessionLog
from harness.loop.request import rebuild_request
from harness.model.call import ModelRequest
from harness.model.chunks import Chunk, Finish, TextDelta, Usage, UsageChunk
from harness.model.messages import Message, SessionId, text_of
from harness.wire.openai_chat import encode_body, encode_request
from lanes.errors import CassetteError
from lanes.normalize import Json

Ending = Literal["answered", "failed", "unfinished"]

FINISH_WORDS = {"stop": "stop", "tool-calls": "tool_calls", "max-tokens": "length"}
# What the product writes around a summary; were these words others, the log of every replay would differ.
SUMMARY_HEAD = "Summary of the earlier part of this session, which is no longer shown:\n\n"
SUMMARY_TAIL = "\n\nWhat the user last asked there, word for word:\n\n"
# A compaction that failed with one of these never came to ask: before it does, its start has to be on disk.
UNASKED_CODES = frozenset({LogWriteError.code, LogBusyError.code, SessionExistsError.code})
_FAILED = re.compile(r"failed: (?P<said>.*) \[(?P<code>[A-Z][A-Z0-9_]*)\]", re.DOTALL)
_ENDS = (AssistantMessage, LlmRetry, StepEnd, TurnEnd, EndSeed, CompactionStart)  # none of them stands inside an answer


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One model call.

    Shape: seq is where its answer begins in the log; chunks are what came of it, without a failure at the end. Of a
    failed or an unfinished one the log does not say how it came to that: failure is the code of the first, said what
    the log tells people of it. others build the requests that may come in place of body where the log does not tell
    which of them it was.
    """

    name: str
    seq: int
    body: Json
    chunks: tuple[Chunk, ...]
    ending: Ending = "answered"
    failure: str = ""
    said: str = ""
    others: tuple[Callable[[], Json], ...] = ()

    def bodies(self) -> Iterator[Json]:
        """The requests one of which must come; almost always there is one."""
        yield self.body
        for build in self.others:
            yield build()


def derive_calls(events: Sequence[Event], begin: int, where: str, data: bytes) -> tuple[RecordedCall, ...]:
    """The calls of a log in order, those before the seq `begin` left out: they are another session's.

    Shape: where names the file to people, data is what stands in it.
    Raises: CassetteError for a log that ends inside an answer, and with code CASSETTE_UNREPLAYABLE for a compaction
    of which the log does not say whether the model was asked, or that nobody could be asked for again.
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
            calls.append(_call_of_compaction(events, event, payload, where, data))
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


def line_of(data: bytes, seq: int) -> int:
    """The number of the line that holds the event of that seq; the header stands on line 1."""
    found = 1
    for number, line in enumerate(data.split(b"\n")[1:], start=2):
        row = json.loads(line) if line else {}
        first = row.get("seq", row.get("seq0"))
        if isinstance(first, int) and first <= seq:
            found = number
    return found


def _call_of_compaction(
    events: Sequence[Event], start: Event, started: CompactionStart, where: str, data: bytes
) -> RecordedCall:
    """The call of a compaction, by the summary it is marked with and the user message that took the span's place."""
    summary: CompactionSummary | None = None
    for event in events[start.seq :]:
        payload = event.payload
        if isinstance(payload, CompactionSummary) and payload.compaction_id == started.compaction_id:
            summary = payload
        elif summary is not None and isinstance(payload, UserMessage) and event.source_event_seqs:
            return _call_of_summary(events, start, summary, event)
        elif isinstance(payload, CompactionEnd) and payload.compaction_id == started.compaction_id:
            place = f"{where}, line {line_of(data, event.seq)}, data.outcome"
            return _call_without_summary(events, start, started, payload.outcome, place)
    raise _unreplayable(
        "the compaction that begins here has no end, and nothing tells whether the model was asked",
        f"{where}, line {line_of(data, start.seq)}, data.compactionId",
    )


def _call_without_summary(
    events: Sequence[Event], start: Event, started: CompactionStart, outcome: str, place: str
) -> RecordedCall:
    """The call of a compaction that came to nothing: it failed, was cut short, or its answer was of no use.

    What was asked is in no log, but what the model saw is: it was the beginning of that.
    """
    failed = _FAILED.fullmatch(outcome)
    if outcome != "cancelled" and failed is None:
        raise _unreplayable(
            f"{outcome!r} does not tell whether the model was asked, and no summary stands there", place
        )
    if failed is not None and failed["code"] in UNASKED_CODES:
        raise _unreplayable(
            f"the log itself could not be written [{failed['code']}], so the model was not asked, and a replay asks it",
            place,
        )
    header = latest_header(events[: start.seq])
    seen = SessionLog(SessionHeader(SessionId("recorded"), 0), clock=lambda: 0)
    for event in events[: start.seq]:
        seen.restore(event)
    spans = spans_at_end(seen, started.reason)
    if header is None or not spans:
        raise _unreplayable(f"{outcome!r}, and nothing the model saw could have been summed up", place)
    body, *others = (partial(_body_of_summary, header.config, span.messages) for span in spans)
    name = f"summary at seq {start.seq}"
    if failed is None:
        return RecordedCall(name, start.seq, body(), (), "unfinished", others=tuple(others))
    return RecordedCall(name, start.seq, body(), (), "failed", failed["code"], failed["said"], tuple(others))


def _unreplayable(what: str, where: str) -> CassetteError:
    return CassetteError(
        what,
        where=where,
        expected="a compaction that came to a summary, failed with the code of the model's service, or was cancelled",
        fix="record a story whose compactions end so",
        code="CASSETTE_UNREPLAYABLE",
    )


def _call_of_summary(
    events: Sequence[Event], start: Event, summary: CompactionSummary, replacing: Event
) -> RecordedCall:
    header = latest_header(events[: start.seq])
    assert header is not None  # noqa: S101 - nothing is summed up that no request was made of
    taken = (message_of(events[seq]) for seq in replacing.source_event_seqs or ())
    body = _body_of_summary(header.config, [message for message in taken if message is not None])
    assert isinstance(replacing.payload, UserMessage)  # noqa: S101 - the caller found it so
    text = text_of(replacing.payload.message).removeprefix(SUMMARY_HEAD)
    chunks: list[Chunk] = [TextDelta(0, text.rpartition(SUMMARY_TAIL)[0] or text)]
    read, wrote = summary.facts.get("inputTokens"), summary.facts.get("outputTokens")
    if isinstance(read, int) and isinstance(wrote, int):
        chunks.append(UsageChunk(Usage(read, wrote)))
    return RecordedCall(f"summary at seq {start.seq}", start.seq, body, (*chunks, Finish("stop")))


def _body_of_summary(config: RequestConfig, messages: Sequence[Message]) -> Json:
    return _body(summary_request(config, messages))


def _body(request: ModelRequest) -> Json:
    body: Json = json.loads(encode_body(encode_request(request)))
    return body
