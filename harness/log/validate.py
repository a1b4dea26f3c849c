"""Say whether an event may stand in a log: one check for each type, the same for append and for load.

Room: pure; session_log asks before it commits, and nobody else decides what a log may hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from harness.errors import InvalidEventError
from harness.log.events import (
    EVENT_TYPES,
    SURFACE_PAYLOADS,
    AssistantChunk,
    AssistantMessage,
    Cause,
    CompactionEnd,
    CompactionStart,
    CompactionSummary,
    EndSeed,
    Event,
    ForeignPayload,
    Header,
    InboxSpliced,
    LlmRetry,
    LlmRetryStarted,
    RemovedItem,
    Replace,
    RequestConfig,
    RequestContext,
    RequestHeader,
    SessionHeader,
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
from harness.log.frozen import MAX_SAFE_INTEGER
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
    ImageBlock,
    Message,
    ModelSource,
    PluginSource,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    ToolSource,
    UserSource,
)

_KNOWN_TYPES = frozenset(EVENT_TYPES.values())
_FORMS = frozenset({None, "instructions", "catalog", "snapshot", "notice", "relay", "recall"})
_EFFORTS = frozenset({None, "low", "medium", "high"})
_CAUSES = frozenset({"user", "parent", "hook", "disposed"})
_REASONS = frozenset({"completed", "max-tokens", "blocked", "aborted", "error", "interrupted", "step-limit"})
_FINISHES = frozenset({"stop", "tool-calls", "max-tokens", "aborted", "error"})
_FATES = frozenset({"claimed", "canceled", "replaced", "requeued"})
_SURFACE = frozenset(SURFACE_PAYLOADS)


def check_header(header: SessionHeader) -> None:
    """Refuse a session header with a field out of its range.

    Raises: InvalidEventError naming the field. The version is not judged here: a foreign version is not a fault.
    """
    _text(header.id, "header.id")
    _count(header.created_at, "header.createdAt")
    if header.cwd is not None:
        _text(header.cwd, "header.cwd")
        if not header.cwd.startswith("/"):
            _refuse("header.cwd", f"{header.cwd!r} is not an absolute path")
    if header.parent_session is not None:
        _text(header.parent_session, "header.parentSession")
    if header.seed_length is not None:
        _count(header.seed_length, "header.seedLength")
    if header.origin not in (None, "subagent"):
        _refuse("header.origin", f"{header.origin!r} is not 'subagent'")
    _count(header.delegation_depth, "header.delegationDepth")
    if header.agent_preset is not None:
        _text(header.agent_preset, "header.agentPreset")


def check_event(event: Event, events: Sequence[Event], surface: Sequence[int]) -> None:
    """Refuse an event that may not come next in the log that holds these events and this surface.

    Raises: InvalidEventError naming the field; nothing was changed.
    """
    if type(event.seq) is not int or event.seq != len(events):
        _refuse("seq", f"{event.seq!r} where {len(events)} comes next")
    if type(event.time) is not int or abs(event.time) > MAX_SAFE_INTEGER:
        _refuse("time", f"{event.time!r} is not an integer of milliseconds")
    if type(event.ignorable) is not bool:
        _refuse("ignorable", f"{event.ignorable!r} is not true or false")
    payload = event.payload
    kind: type[object] = type(payload)
    check = CHECKS.get(kind)
    if check is None:
        _refuse("data", f"a {kind.__name__} is not an event payload")
    check(payload)
    if kind is ForeignPayload and not event.ignorable:
        _refuse("type", f"{event.type!r} is unknown and not ignorable")
    if kind in _SURFACE:
        check_surface(event, events, surface)
    elif event.surface_op is not None:
        _refuse("surfaceOp", f"stands on {event.type}, which the model does not see")
    elif event.source_event_seqs is not None:
        _refuse("sourceEventSeqs", f"stands on {event.type}, which the model does not see")


def check_surface(event: Event, events: Sequence[Event], surface: Sequence[int]) -> None:
    """Refuse a surface event whose operation or citations do not fit the surface as it stands."""
    sources = event.source_event_seqs
    if sources is not None:
        if type(sources) is not tuple or not all(type(seq) is int for seq in sources):
            _refuse("sourceEventSeqs", "is not a list of seqs")
        if not sources and type(event.payload) is not AssistantMessage:
            _refuse("sourceEventSeqs", "may be empty on assistant/message only")
        if sources and (min(sources) < 0 or max(sources) >= event.seq or len(set(sources)) != len(sources)):
            _refuse("sourceEventSeqs", f"has to name each seq once, all before {event.seq}")
    operation = event.surface_op
    if operation == "append":
        return
    if not isinstance(operation, Replace):
        _refuse("surfaceOp", f"{operation!r} is neither 'append' nor a replace")
    if type(operation.start) is not int or type(operation.end) is not int:
        _refuse("surfaceOp", "start and end have to be seqs")
    shadowed = shadowed_by(operation, surface)
    missing = set(shadowed).difference(sources or ())
    if missing:
        _refuse("sourceEventSeqs", f"does not cite the replaced seqs {sorted(missing)}")
    if isinstance(event.payload, ToolResult):
        _check_result_replacement(event.payload, [events[seq] for seq in shadowed])


def shadowed_by(operation: Replace, surface: Sequence[int]) -> Sequence[int]:
    """The surface seqs a replace takes away, in surface order.

    Raises: InvalidEventError when an end of the range is not on the surface, or they stand the wrong way round.
    """
    try:
        first, last = surface.index(operation.start), surface.index(operation.end)
    except ValueError:
        _refuse("surfaceOp", f"{operation.start}..{operation.end} is not wholly on the surface")
    if first > last:
        _refuse("surfaceOp", f"{operation.start} stands after {operation.end} on the surface")
    return surface[first : last + 1]


def _check_result_replacement(new: ToolResult, shadowed: Sequence[Event]) -> None:
    old = shadowed[0].payload
    if len(shadowed) != 1 or not isinstance(old, ToolResult):
        _refuse("surfaceOp", "a tool/result may replace exactly one tool/result")
    if _without_content(old) != _without_content(new):
        _refuse("data", "a tool/result that replaces another may change nothing but its content")


def _without_content(result: ToolResult) -> tuple[object, ...]:
    message = result.message
    block = message.content[0]
    assert isinstance(block, ToolResultBlock)  # noqa: S101 - both results passed their own check
    return (
        result.turn,
        result.step,
        message.id,
        message.role,
        message.source,
        block.tool_call_id,
        block.is_error,
        result.error,
        result.meta,
    )


def _refuse(where: str, what: str) -> NoReturn:
    raise InvalidEventError(what, where=where)


def _text(value: object, where: str) -> None:
    if type(value) is not str or not value:
        _refuse(where, f"{value!r} is not a non-empty string")


def _string(value: object, where: str) -> None:
    if type(value) is not str:
        _refuse(where, f"{value!r} is not a string")


def _count(value: object, where: str, least: int = 0) -> None:
    if type(value) is not int or not least <= value <= MAX_SAFE_INTEGER:
        _refuse(where, f"{value!r} is not an integer from {least} up")


def _object(value: object, where: str) -> None:
    if not isinstance(value, Mapping):
        _refuse(where, f"{type(value).__name__} where an object belongs")


def _member(value: object, allowed: frozenset[Any], where: str) -> None:
    if not (value is None or type(value) is str) or value not in allowed:
        names = ", ".join(sorted(str(name) for name in allowed if name is not None))
        _refuse(where, f"{value!r} is not one of {names}")


def _step(payload: StepStart | StepEnd | AssistantChunk | AssistantMessage | ToolCall | ToolResult) -> None:
    _count(payload.turn, "data.turn", 1)
    _count(payload.step, "data.step", 1)


def _turn_start(payload: TurnStart) -> None:
    _count(payload.turn, "data.turn", 1)


def _turn_end(payload: TurnEnd) -> None:
    _count(payload.turn, "data.turn", 1)
    reason = payload.reason
    if type(reason) is not TurnReason:
        _refuse("data.reason", f"{reason!r} is not a reason")
    _member(reason.kind, _REASONS, "data.reason.kind")
    if (reason.cause is not None) != (reason.kind == "aborted"):
        _refuse("data.reason.reason", "a cause stands exactly on aborted")
    if (reason.failure is not None) != (reason.kind == "error"):
        _refuse("data.reason.failure", "a failure stands exactly on error")
    if reason.cause is not None:
        cause = reason.cause
        if type(cause) is not Cause:
            _refuse("data.reason.reason", f"{cause!r} is not a cause")
        _member(cause.kind, _CAUSES, "data.reason.reason.kind")
        if cause.reason is not None:
            _string(cause.reason, "data.reason.reason.reason")
            if cause.kind != "hook":
                _refuse("data.reason.reason.reason", "only a hook gives a reason")
    if reason.failure is not None:
        _failure(reason.failure, "data.reason.failure")


def _failure(failure: Failure, where: str) -> None:
    if type(failure) is not Failure:
        _refuse(where, f"{failure!r} is not a failure")
    _string(failure.message, f"{where}.message")
    _text(failure.code, f"{where}.code")
    if failure.status is not None:
        _count(failure.status, f"{where}.status", 100)
        if failure.status > 599:
            _refuse(f"{where}.status", f"{failure.status} is not an HTTP status")
    if failure.provider_retry_after_ms is not None:
        _count(failure.provider_retry_after_ms, f"{where}.providerRetryAfterMs", 1)
    if failure.request_id is not None:
        _string(failure.request_id, f"{where}.requestId")


def _user_message(payload: UserMessage) -> None:
    check_input(payload.message, "data")


def check_input(message: Message, where: str) -> None:
    """Refuse a message that may not enter as input: another role than user, or blocks only a model or a tool writes."""
    _message(message, where)
    if message.role != "user":
        _refuse(f"{where}.role", f"{message.role!r} where 'user' belongs")
    if type(message.source) not in (UserSource, PluginSource):
        _refuse(f"{where}.source", "input comes from a user or a plugin")
    for at, block in enumerate(message.content):
        if type(block) not in (TextBlock, ImageBlock):
            _refuse(f"{where}.content[{at}]", f"a {type(block).__name__} is not input")


def _message(message: Message, where: str) -> None:
    if type(message) is not Message:
        _refuse(where, f"{message!r} is not a message")
    _text(message.id, f"{where}.id")
    if type(message.content) is not tuple:
        _refuse(f"{where}.content", "is not a list of blocks")
    for at, block in enumerate(message.content):
        _block(block, f"{where}.content[{at}]")
    _source(message.source, f"{where}.source")


def _source(source: object, where: str) -> None:
    match source:
        case UserSource():
            pass
        case PluginSource():
            _text(source.plugin, f"{where}.plugin")
            _member(source.form, _FORMS, f"{where}.form")
        case ModelSource():
            _text(source.provider, f"{where}.provider")
            _text(source.model, f"{where}.model")
            if source.replay_state is not None:
                _object(source.replay_state, f"{where}.replayState")
        case ToolSource():
            _text(source.call_id, f"{where}.callId")
        case _:
            _refuse(where, f"{source!r} is not a source")


def _block(block: object, where: str) -> None:
    match block:
        case TextBlock() | ReasoningBlock():
            _string(block.text, f"{where}.text")
        case ToolCallBlock():
            _text(block.id, f"{where}.id")
            _string(block.name, f"{where}.name")
            _string(block.arguments, f"{where}.arguments")
        case ToolResultBlock():
            _text(block.tool_call_id, f"{where}.toolCallId")
            if type(block.is_error) is not bool:
                _refuse(f"{where}.isError", f"{block.is_error!r} is not true or false")
            if type(block.content) is not tuple:
                _refuse(f"{where}.content", "is not a list of blocks")
            for at, part in enumerate(block.content):
                if type(part) not in (TextBlock, ImageBlock):
                    _refuse(f"{where}.content[{at}]", f"a {type(part).__name__} is not a result")
                _block(part, f"{where}.content[{at}]")
        case ImageBlock():
            _attachment(block.attachment, f"{where}.attachment")
        case _:
            _refuse(where, f"{block!r} is not a content block")


def _attachment(reference: AttachmentRef, where: str) -> None:
    if type(reference) is not AttachmentRef:
        _refuse(where, f"{reference!r} is not an attachment reference")
    _text(reference.attachment_id, f"{where}.attachmentId")
    _text(reference.media_type, f"{where}.mediaType")
    for name in ("bytes", "width", "height"):
        _count(getattr(reference, name), f"{where}.{name}")
    if reference.name is not None:
        _string(reference.name, f"{where}.name")


def _assistant_message(payload: AssistantMessage) -> None:
    _step(payload)
    message = payload.message
    _message(message, "data.message")
    if message.role != "assistant":
        _refuse("data.message.role", f"{message.role!r} where 'assistant' belongs")
    if type(message.source) is not ModelSource:
        _refuse("data.message.source", "an assistant message comes from a model")
    calls: set[str] = set()
    for at, block in enumerate(message.content):
        if isinstance(block, ToolResultBlock):
            _refuse(f"data.message.content[{at}]", "an assistant message holds no tool result")
        if isinstance(block, ToolCallBlock):
            if block.id in calls:
                _refuse(f"data.message.content[{at}].id", f"call id {block.id!r} stands twice")
            calls.add(block.id)
    if payload.usage is not None:
        _usage(payload.usage, "data.usage")


def _usage(usage: Usage, where: str) -> None:
    if type(usage) is not Usage:
        _refuse(where, f"{usage!r} is not a usage")
    _count(usage.input_tokens, f"{where}.inputTokens")
    _count(usage.output_tokens, f"{where}.outputTokens")
    for name, value in (
        ("cacheReadTokens", usage.cache_read_tokens),
        ("cacheWriteTokens", usage.cache_write_tokens),
        ("reasoningTokens", usage.reasoning_tokens),
    ):
        if value is not None:
            _count(value, f"{where}.{name}")


def _assistant_chunk(payload: AssistantChunk) -> None:
    _step(payload)
    chunk = payload.chunk
    match chunk:
        case TextDelta() | ReasoningDelta():
            _count(chunk.index, "data.chunk.index")
            _string(chunk.text, "data.chunk.text")
        case ToolCallDelta():
            _count(chunk.index, "data.chunk.index")
            _string(chunk.id, "data.chunk.id")
            _string(chunk.arguments_delta, "data.chunk.argumentsDelta")
            if chunk.name is not None:
                _string(chunk.name, "data.chunk.name")
        case BlockStart():
            _count(chunk.index, "data.chunk.index")
            _member(chunk.block_type, frozenset({"text", "reasoning", "tool-call"}), "data.chunk.blockType")
        case BlockEnd():
            _count(chunk.index, "data.chunk.index")
            _chunk_block(chunk.block)
        case UsageChunk():
            _usage(chunk.usage, "data.chunk.usage")
        case Finish():
            _member(chunk.kind, _FINISHES, "data.chunk.reason.kind")
            if (chunk.failure is not None) != (chunk.kind in ("aborted", "error")):
                _refuse("data.chunk.reason.failure", "a failure stands exactly on aborted and error")
            if chunk.failure is not None:
                _failure(chunk.failure, "data.chunk.reason.failure")
            if chunk.replay_state is not None:
                _object(chunk.replay_state, "data.chunk.replayState")
        case _:
            _refuse("data.chunk", f"{chunk!r} is not a chunk")


def _chunk_block(block: object) -> None:
    """What a provider streamed is kept as it came: a call may still lack the id that assembly will give it."""
    if isinstance(block, ToolCallBlock):
        for name in ("id", "name", "arguments"):
            _string(getattr(block, name), f"data.chunk.block.{name}")
    else:
        _block(block, "data.chunk.block")


def _tool_call(payload: ToolCall) -> None:
    _step(payload)
    _text(payload.call_id, "data.callId")
    _string(payload.name, "data.name")
    _string(payload.arguments, "data.arguments")


def _tool_result(payload: ToolResult) -> None:
    _step(payload)
    message = payload.message
    _message(message, "data.message")
    if message.role != "user":
        _refuse("data.message.role", f"{message.role!r} where 'user' belongs")
    if not isinstance(message.source, ToolSource):
        _refuse("data.message.source", "a tool result comes from a tool")
    block = message.content[0] if len(message.content) == 1 else None
    if not isinstance(block, ToolResultBlock) or block.tool_call_id != message.source.call_id:
        _refuse("data.message.content", "has to be one tool-result block for the call of its source")
    if payload.error is not None:
        if type(payload.error) is not ToolErrorInfo:
            _refuse("data.error", f"{payload.error!r} is not an error")
        _string(payload.error.name, "data.error.name")
        _text(payload.error.code, "data.error.code")
        if not block.is_error:
            _refuse("data.error", "stands on a result that is no error")
    if payload.meta is not None:
        _object(payload.meta, "data.meta")


def _request_header(payload: RequestHeader) -> None:
    _member(payload.reason, frozenset({"initial", "resume", "change"}), "data.reason")
    header = payload.header
    if type(header) is not Header or type(header.config) is not RequestConfig:
        _refuse("data.header", f"{header!r} is not a request header")
    config = header.config
    _text(config.provider, "data.header.config.provider")
    _text(config.model, "data.header.config.model")
    if config.temperature is not None:
        if type(config.temperature) not in (int, float) or not 0 <= config.temperature <= 10:
            _refuse("data.header.config.temperature", f"{config.temperature!r} is not a temperature")
        if str(config.temperature) == "-0.0":
            _refuse("data.header.config.temperature", "-0.0 does not survive JSON")
    if config.max_tokens is not None:
        _count(config.max_tokens, "data.header.config.maxTokens", 1)
    if type(config.stop) is not tuple:
        _refuse("data.header.config.stop", "is not a list")
    for word in config.stop:
        _text(word, "data.header.config.stop")
    _member(config.reasoning_effort, _EFFORTS, "data.header.config.reasoningEffort")
    if header.system is not None:
        _text(header.system, "data.header.system")
    if type(header.tools) is not tuple:
        _refuse("data.header.tools", "is not a list")
    for at, tool in enumerate(header.tools):
        if type(tool) is not ToolSchema:
            _refuse(f"data.header.tools[{at}]", f"{tool!r} is not a tool schema")
        _text(tool.name, f"data.header.tools[{at}].name")
        _string(tool.description, f"data.header.tools[{at}].description")
        _object(tool.parameters, f"data.header.tools[{at}].parameters")
    if header.adapter_defaults is not None:
        _object(header.adapter_defaults, "data.header.adapterDefaults")


def _request_context(payload: RequestContext) -> None:
    _text(payload.provider, "data.provider")
    _text(payload.model, "data.model")
    if payload.context_window is not None:
        _count(payload.context_window, "data.contextWindow", 1)


def _llm_retry(payload: LlmRetry) -> None:
    _text(payload.retry_id, "data.retryId")
    _count(payload.turn, "data.turn", 1)
    _count(payload.step, "data.step", 1)
    _text(payload.provider, "data.provider")
    _member(payload.mode, frozenset({"normal", "always"}), "data.mode")
    _text(payload.policy_key, "data.policyKey")
    _count(payload.retry, "data.retry", 1)
    _count(payload.delay_ms, "data.delayMs")
    if payload.max_retries is not None:
        _count(payload.max_retries, "data.maxRetries")
    _failure(payload.failure, "data.failure")


def _llm_retry_started(payload: LlmRetryStarted) -> None:
    _text(payload.retry_id, "data.retryId")
    _count(payload.turn, "data.turn", 1)
    _count(payload.step, "data.step", 1)
    _count(payload.retry, "data.retry", 1)


def _inbox_spliced(payload: InboxSpliced) -> None:
    _member(payload.target, frozenset({"next-turn", "next-step"}), "data.target")
    _count(payload.start, "data.start")
    if type(payload.removed) is not tuple or type(payload.inserted) is not tuple:
        _refuse("data", "removed and inserted have to be lists")
    if not payload.removed and not payload.inserted:
        _refuse("data", "a splice that changes nothing is not written")
    dropped = False
    for at, item in enumerate(payload.removed):
        where = f"data.removed[{at}]"
        if type(item) is not RemovedItem:
            _refuse(where, f"{item!r} is not a removed item")
        _text(item.id, f"{where}.id")
        _member(item.fate, _FATES, f"{where}.fate")
        if (item.turn is not None) != (item.fate == "claimed"):
            _refuse(f"{where}.turn", "a turn stands exactly on claimed")
        if item.turn is not None:
            _count(item.turn, f"{where}.turn", 1)
        dropped = dropped or item.fate != "claimed"
    if payload.outcome != ("canceled" if dropped else None):
        _refuse("data.outcome", "is 'canceled' exactly when something left other than by a claim")
    for at, message in enumerate(payload.inserted):
        check_input(message, f"data.inserted[{at}]")
    if type(payload.wakes) is not bool:
        _refuse("data.wakes", f"{payload.wakes!r} is not true or false")
    if not payload.wakes and not payload.inserted:
        _refuse("data.wakes", "only an insertion can be quiet")


def _nothing(payload: EndSeed) -> None:
    """session/end-seed carries no data."""


def _compaction_start(payload: CompactionStart) -> None:
    _text(payload.compaction_id, "data.compactionId")
    _string(payload.reason, "data.reason")


def _compaction_summary(payload: CompactionSummary) -> None:
    _text(payload.compaction_id, "data.compactionId")
    _object(payload.facts, "data.facts")


def _compaction_end(payload: CompactionEnd) -> None:
    _text(payload.compaction_id, "data.compactionId")
    _string(payload.outcome, "data.outcome")


def _subagent_descriptor(payload: SubagentDescriptor) -> None:
    _object(payload.descriptor, "data.descriptor")


def _foreign(payload: ForeignPayload) -> None:
    _text(payload.type, "type")
    if payload.type in _KNOWN_TYPES:
        _refuse("type", f"{payload.type!r} is a type of our own and has its own payload")
    _object(payload.data, "data")


CHECKS: dict[type[object], Callable[[Any], None]] = {  # Any: each check takes the payload type it is listed under
    TurnStart: _turn_start,
    TurnEnd: _turn_end,
    StepStart: _step,
    StepEnd: _step,
    UserMessage: _user_message,
    AssistantChunk: _assistant_chunk,
    AssistantMessage: _assistant_message,
    ToolCall: _tool_call,
    ToolResult: _tool_result,
    RequestHeader: _request_header,
    RequestContext: _request_context,
    LlmRetry: _llm_retry,
    LlmRetryStarted: _llm_retry_started,
    InboxSpliced: _inbox_spliced,
    EndSeed: _nothing,
    CompactionStart: _compaction_start,
    CompactionSummary: _compaction_summary,
    CompactionEnd: _compaction_end,
    SubagentDescriptor: _subagent_descriptor,
    ForeignPayload: _foreign,
}
