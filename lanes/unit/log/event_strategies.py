"""Payloads of every type with every field drawn: what may stand in a log, as widely as its checks allow.

Room: the properties of this folder. A type that is added to the log and not here fails its test.
"""

from __future__ import annotations

from hypothesis import strategies as st

from harness.log.events import (
    AssistantChunk,
    AssistantMessage,
    Cause,
    CompactionEnd,
    CompactionStart,
    CompactionSummary,
    EndSeed,
    ForeignPayload,
    Header,
    InboxSpliced,
    LlmRetry,
    LlmRetryStarted,
    Payload,
    RemovedItem,
    RequestConfig,
    RequestContext,
    RequestHeader,
    StepEnd,
    StepStart,
    SubagentDescriptor,
    ToolCall,
    ToolErrorInfo,
    ToolResult,
    TurnEnd,
    TurnReason,
    TurnStart,
    UserMessage,
)
from harness.model.call import ToolSchema
from harness.model.chunks import (
    BlockEnd,
    BlockStart,
    Failure,
    Finish,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    Usage,
    UsageChunk,
)
from harness.model.messages import (
    AttachmentRef,
    CallId,
    ImageBlock,
    Message,
    MessageId,
    ModelSource,
    PluginSource,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    ToolSource,
    UserSource,
)

MOST = 2**53 - 1

texts = st.text(st.characters(codec=None, categories=None), max_size=8)  # halves of surrogate pairs included
words = texts.filter(bool)
counts = st.integers(0, 3) | st.sampled_from([MOST - 1, MOST])
numbers = st.integers(1, 3) | st.just(MOST)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-MOST, MOST)
    | st.floats(allow_nan=False, allow_infinity=False).filter(lambda number: str(number) != "-0.0")
    | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)
objects = st.dictionaries(texts, json_values, max_size=2)


def maybe(strategy: st.SearchStrategy) -> st.SearchStrategy:
    return st.none() | strategy


def few(strategy: st.SearchStrategy, least: int = 0) -> st.SearchStrategy:
    return st.lists(strategy, min_size=least, max_size=2).map(tuple)


usages = st.builds(Usage, counts, counts, maybe(counts), maybe(counts), maybe(counts))
failures = st.builds(Failure, texts, words, maybe(st.integers(100, 599)), maybe(numbers), maybe(texts))
pictures = st.builds(ImageBlock, st.builds(AttachmentRef, words, words, counts, counts, counts, maybe(texts)))
text_blocks = st.builds(TextBlock, texts)
call_ids = words.map(CallId)
calls = st.builds(ToolCallBlock, call_ids, texts, texts)
forms = st.sampled_from([None, "instructions", "catalog", "snapshot", "notice", "relay", "recall"])
inputs = st.builds(
    Message,
    words.map(MessageId),
    st.just("user"),
    few(text_blocks | pictures),
    st.just(UserSource()) | st.builds(PluginSource, words, forms),
)
answers = st.builds(
    Message,
    words.map(MessageId),
    st.just("assistant"),
    st.lists(
        text_blocks | st.builds(ReasoningBlock, texts) | pictures | calls,
        max_size=3,
        unique_by=lambda block: block.id if isinstance(block, ToolCallBlock) else id(block),
    ).map(tuple),
    st.builds(ModelSource, words, words, maybe(objects)),
)
streamed = text_blocks | st.builds(ReasoningBlock, texts) | st.builds(ToolCallBlock, texts.map(CallId), texts, texts)
chunks = st.one_of(
    st.builds(BlockStart, counts, st.sampled_from(["text", "reasoning", "tool-call"])),
    st.builds(TextDelta, counts, texts),
    st.builds(ReasoningDelta, counts, texts),
    st.builds(ToolCallDelta, counts, texts.map(CallId), texts, maybe(texts)),
    st.builds(BlockEnd, counts, streamed),
    st.builds(UsageChunk, usages),
    st.builds(Finish, st.sampled_from(["stop", "tool-calls", "max-tokens"]), st.none(), maybe(objects)),
    st.builds(Finish, st.sampled_from(["aborted", "error"]), failures, maybe(objects)),
)
reasons = st.one_of(
    st.builds(TurnReason, st.sampled_from(["completed", "max-tokens", "blocked", "interrupted", "step-limit"])),
    st.builds(
        lambda cause: TurnReason("aborted", cause=cause),
        st.builds(Cause, st.sampled_from(["user", "parent", "disposed"])) | st.builds(Cause, st.just("hook"), texts),
    ),
    st.builds(lambda failure: TurnReason("error", failure=failure), failures),
)
removals = st.builds(RemovedItem, words.map(MessageId), st.just("claimed"), numbers) | st.builds(
    RemovedItem, words.map(MessageId), st.sampled_from(["canceled", "replaced", "requeued"])
)


@st.composite
def _results(draw: st.DrawFn) -> ToolResult:
    call_id = draw(call_ids)
    error = draw(maybe(st.builds(ToolErrorInfo, texts, words)))
    is_error = error is not None or draw(st.booleans())
    block = ToolResultBlock(call_id, draw(few(text_blocks | pictures)), is_error)
    message = Message(draw(words.map(MessageId)), "user", (block,), ToolSource(call_id))
    return ToolResult(draw(numbers), draw(numbers), message, error, draw(maybe(objects)))


@st.composite
def _splices(draw: st.DrawFn) -> InboxSpliced:
    removed = draw(few(removals))
    inserted = draw(few(inputs, least=0 if removed else 1))
    dropped = any(item.fate != "claimed" for item in removed)
    target = draw(st.sampled_from(["next-turn", "next-step"]))
    wakes = draw(st.booleans()) if inserted else True
    return InboxSpliced(target, draw(counts), removed, inserted, "canceled" if dropped else None, wakes)


configs = st.builds(
    RequestConfig,
    words,
    words,
    maybe(st.sampled_from([0, 1, 0.0, 0.7, 10])),
    maybe(numbers),
    few(words),
    st.sampled_from([None, "low", "medium", "high"]),
)
headers = st.builds(Header, configs, maybe(words), few(st.builds(ToolSchema, words, texts, objects)), maybe(objects))

PAYLOADS: dict[type[object], st.SearchStrategy[Payload]] = {
    TurnStart: st.builds(TurnStart, numbers),
    TurnEnd: st.builds(TurnEnd, numbers, reasons),
    StepStart: st.builds(StepStart, numbers, numbers),
    StepEnd: st.builds(StepEnd, numbers, numbers),
    UserMessage: st.builds(UserMessage, inputs),
    AssistantChunk: st.builds(AssistantChunk, numbers, numbers, chunks),
    AssistantMessage: st.builds(AssistantMessage, numbers, numbers, answers, maybe(usages)),
    ToolCall: st.builds(ToolCall, numbers, numbers, call_ids, texts, texts),
    ToolResult: _results(),
    RequestHeader: st.builds(RequestHeader, headers, st.sampled_from(["initial", "resume", "change"])),
    RequestContext: st.builds(RequestContext, words, words, maybe(numbers)),
    LlmRetry: st.builds(
        LlmRetry,
        words,
        numbers,
        numbers,
        words,
        st.sampled_from(["normal", "always"]),
        words,
        numbers,
        counts,
        failures,
        maybe(counts),
    ),
    LlmRetryStarted: st.builds(LlmRetryStarted, words, numbers, numbers, numbers),
    InboxSpliced: _splices(),
    EndSeed: st.just(EndSeed()),
    CompactionStart: st.builds(CompactionStart, words, texts),
    CompactionSummary: st.builds(CompactionSummary, words, objects),
    CompactionEnd: st.builds(CompactionEnd, words, texts),
    SubagentDescriptor: st.builds(SubagentDescriptor, objects),
    ForeignPayload: st.builds(ForeignPayload, words.map(lambda name: f"other/{name}"), objects),
}
