"""Say whether an event may stand in a log: one check for each type, the same for append and for load.

Room: pure; session_log asks before it commits, and nobody else decides what a log may hold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

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
from harness.log.model_checks import (
    check_chunk,
    check_count,
    check_failure,
    check_input,
    check_member,
    check_message,
    check_object,
    check_string,
    check_text,
    check_usage,
    refuse,
)
from harness.log.surface import check_surface
from harness.model.call import ToolSchema
from harness.model.messages import (
    ModelSource,
    ToolCallBlock,
    ToolResultBlock,
    ToolSource,
)

_KNOWN_TYPES = frozenset(EVENT_TYPES.values())
_EFFORTS = frozenset({None, "low", "medium", "high"})
_CAUSES = frozenset({"user", "parent", "hook", "disposed"})
_REASONS = frozenset({"completed", "max-tokens", "blocked", "aborted", "error", "interrupted", "step-limit"})
_FATES = frozenset({"claimed", "canceled", "replaced", "requeued"})
_SURFACE = frozenset(SURFACE_PAYLOADS)


def check_header(header: SessionHeader) -> None:
    """Refuse a session header with a field out of its range.

    Raises: InvalidEventError naming the field. The version is not judged here: a foreign version is not a fault.
    """
    check_text(header.id, "header.id")
    check_count(header.created_at, "header.createdAt")
    if header.cwd is not None:
        check_text(header.cwd, "header.cwd")
        if not header.cwd.startswith("/"):
            refuse("header.cwd", f"{header.cwd!r} is not an absolute path")
    if header.parent_session is not None:
        check_text(header.parent_session, "header.parentSession")
    if header.seed_length is not None:
        check_count(header.seed_length, "header.seedLength")
    if header.origin not in (None, "subagent"):
        refuse("header.origin", f"{header.origin!r} is not 'subagent'")
    check_count(header.delegation_depth, "header.delegationDepth")
    if header.agent_preset is not None:
        check_text(header.agent_preset, "header.agentPreset")


def check_event(event: Event, events: Sequence[Event], surface: Sequence[int]) -> None:
    """Refuse an event that may not come next in the log that holds these events and this surface.

    Raises: InvalidEventError naming the field; nothing was changed.
    """
    if type(event.seq) is not int or event.seq != len(events):
        refuse("seq", f"{event.seq!r} where {len(events)} comes next")
    if type(event.time) is not int or abs(event.time) > MAX_SAFE_INTEGER:
        refuse("time", f"{event.time!r} is not an integer of milliseconds")
    if type(event.ignorable) is not bool:
        refuse("ignorable", f"{event.ignorable!r} is not true or false")
    payload = event.payload
    kind: type[object] = type(payload)
    check = CHECKS.get(kind)
    if check is None:
        refuse("data", f"a {kind.__name__} is not an event payload")
    check(payload)
    if kind is ForeignPayload and not event.ignorable:
        refuse("type", f"{event.type!r} is unknown and not ignorable")
    if kind in _SURFACE:
        check_surface(event, events, surface)
    elif event.surface_op is not None:
        refuse("surfaceOp", f"stands on {event.type}, which the model does not see")
    elif event.source_event_seqs is not None:
        refuse("sourceEventSeqs", f"stands on {event.type}, which the model does not see")


def _step(payload: StepStart | StepEnd | AssistantChunk | AssistantMessage | ToolCall | ToolResult) -> None:
    check_count(payload.turn, "data.turn", 1)
    check_count(payload.step, "data.step", 1)


def _turn_start(payload: TurnStart) -> None:
    check_count(payload.turn, "data.turn", 1)


def _turn_end(payload: TurnEnd) -> None:
    check_count(payload.turn, "data.turn", 1)
    reason = payload.reason
    if type(reason) is not TurnReason:
        refuse("data.reason", f"{reason!r} is not a reason")
    check_member(reason.kind, _REASONS, "data.reason.kind")
    if (reason.cause is not None) != (reason.kind == "aborted"):
        refuse("data.reason.reason", "a cause stands exactly on aborted")
    if (reason.failure is not None) != (reason.kind == "error"):
        refuse("data.reason.failure", "a failure stands exactly on error")
    if reason.cause is not None:
        cause = reason.cause
        if type(cause) is not Cause:
            refuse("data.reason.reason", f"{cause!r} is not a cause")
        check_member(cause.kind, _CAUSES, "data.reason.reason.kind")
        if cause.reason is not None:
            check_string(cause.reason, "data.reason.reason.reason")
            if cause.kind != "hook":
                refuse("data.reason.reason.reason", "only a hook gives a reason")
    if reason.failure is not None:
        check_failure(reason.failure, "data.reason.failure")


def _user_message(payload: UserMessage) -> None:
    check_input(payload.message, "data")


def _assistant_message(payload: AssistantMessage) -> None:
    _step(payload)
    message = payload.message
    check_message(message, "data.message")
    if message.role != "assistant":
        refuse("data.message.role", f"{message.role!r} where 'assistant' belongs")
    if type(message.source) is not ModelSource:
        refuse("data.message.source", "an assistant message comes from a model")
    calls: set[str] = set()
    for at, block in enumerate(message.content):
        if isinstance(block, ToolResultBlock):
            refuse(f"data.message.content[{at}]", "an assistant message holds no tool result")
        if isinstance(block, ToolCallBlock):
            if block.id in calls:
                refuse(f"data.message.content[{at}].id", f"call id {block.id!r} stands twice")
            calls.add(block.id)
    if payload.usage is not None:
        check_usage(payload.usage, "data.usage")


def _assistant_chunk(payload: AssistantChunk) -> None:
    _step(payload)
    check_chunk(payload.chunk, "data.chunk")


def _tool_call(payload: ToolCall) -> None:
    _step(payload)
    check_text(payload.call_id, "data.callId")
    check_string(payload.name, "data.name")
    check_string(payload.arguments, "data.arguments")


def _tool_result(payload: ToolResult) -> None:
    _step(payload)
    message = payload.message
    check_message(message, "data.message")
    if message.role != "user":
        refuse("data.message.role", f"{message.role!r} where 'user' belongs")
    if not isinstance(message.source, ToolSource):
        refuse("data.message.source", "a tool result comes from a tool")
    block = message.content[0] if len(message.content) == 1 else None
    if not isinstance(block, ToolResultBlock) or block.tool_call_id != message.source.call_id:
        refuse("data.message.content", "has to be one tool-result block for the call of its source")
    if payload.error is not None:
        if type(payload.error) is not ToolErrorInfo:
            refuse("data.error", f"{payload.error!r} is not an error")
        check_string(payload.error.name, "data.error.name")
        check_text(payload.error.code, "data.error.code")
        if not block.is_error:
            refuse("data.error", "stands on a result that is no error")
    if payload.meta is not None:
        check_object(payload.meta, "data.meta")


def _request_header(payload: RequestHeader) -> None:
    check_member(payload.reason, frozenset({"initial", "resume", "change"}), "data.reason")
    header = payload.header
    if type(header) is not Header or type(header.config) is not RequestConfig:
        refuse("data.header", f"{header!r} is not a request header")
    config = header.config
    check_text(config.provider, "data.header.config.provider")
    check_text(config.model, "data.header.config.model")
    if config.temperature is not None:
        if type(config.temperature) not in (int, float) or not 0 <= config.temperature <= 10:
            refuse("data.header.config.temperature", f"{config.temperature!r} is not a temperature")
        if str(config.temperature) == "-0.0":
            refuse("data.header.config.temperature", "-0.0 does not survive JSON")
    if config.max_tokens is not None:
        check_count(config.max_tokens, "data.header.config.maxTokens", 1)
    if type(config.stop) is not tuple:
        refuse("data.header.config.stop", "is not a list")
    for word in config.stop:
        check_text(word, "data.header.config.stop")
    check_member(config.reasoning_effort, _EFFORTS, "data.header.config.reasoningEffort")
    if header.system is not None:
        check_text(header.system, "data.header.system")
    if type(header.tools) is not tuple:
        refuse("data.header.tools", "is not a list")
    for at, tool in enumerate(header.tools):
        if type(tool) is not ToolSchema:
            refuse(f"data.header.tools[{at}]", f"{tool!r} is not a tool schema")
        check_text(tool.name, f"data.header.tools[{at}].name")
        check_string(tool.description, f"data.header.tools[{at}].description")
        check_object(tool.parameters, f"data.header.tools[{at}].parameters")
    if header.adapter_defaults is not None:
        check_object(header.adapter_defaults, "data.header.adapterDefaults")


def _request_context(payload: RequestContext) -> None:
    check_text(payload.provider, "data.provider")
    check_text(payload.model, "data.model")
    if payload.context_window is not None:
        check_count(payload.context_window, "data.contextWindow", 1)


def _llm_retry(payload: LlmRetry) -> None:
    check_text(payload.retry_id, "data.retryId")
    check_count(payload.turn, "data.turn", 1)
    check_count(payload.step, "data.step", 1)
    check_text(payload.provider, "data.provider")
    check_member(payload.mode, frozenset({"normal", "always"}), "data.mode")
    check_text(payload.policy_key, "data.policyKey")
    check_count(payload.retry, "data.retry", 1)
    check_count(payload.delay_ms, "data.delayMs")
    if payload.max_retries is not None:
        check_count(payload.max_retries, "data.maxRetries")
    check_failure(payload.failure, "data.failure")


def _llm_retry_started(payload: LlmRetryStarted) -> None:
    check_text(payload.retry_id, "data.retryId")
    check_count(payload.turn, "data.turn", 1)
    check_count(payload.step, "data.step", 1)
    check_count(payload.retry, "data.retry", 1)


def _inbox_spliced(payload: InboxSpliced) -> None:
    check_member(payload.target, frozenset({"next-turn", "next-step"}), "data.target")
    check_count(payload.start, "data.start")
    if type(payload.removed) is not tuple or type(payload.inserted) is not tuple:
        refuse("data", "removed and inserted have to be lists")
    if not payload.removed and not payload.inserted:
        refuse("data", "a splice that changes nothing is not written")
    dropped = False
    for at, item in enumerate(payload.removed):
        where = f"data.removed[{at}]"
        if type(item) is not RemovedItem:
            refuse(where, f"{item!r} is not a removed item")
        check_text(item.id, f"{where}.id")
        check_member(item.fate, _FATES, f"{where}.fate")
        if (item.turn is not None) != (item.fate == "claimed"):
            refuse(f"{where}.turn", "a turn stands exactly on claimed")
        if item.turn is not None:
            check_count(item.turn, f"{where}.turn", 1)
        dropped = dropped or item.fate != "claimed"
    if payload.outcome != ("canceled" if dropped else None):
        refuse("data.outcome", "is 'canceled' exactly when something left other than by a claim")
    for at, message in enumerate(payload.inserted):
        check_input(message, f"data.inserted[{at}]")
    if type(payload.wakes) is not bool:
        refuse("data.wakes", f"{payload.wakes!r} is not true or false")
    if not payload.wakes and not payload.inserted:
        refuse("data.wakes", "only an insertion can be quiet")


def _nothing(payload: EndSeed) -> None:
    """session/end-seed carries no data."""


def _compaction_start(payload: CompactionStart) -> None:
    check_text(payload.compaction_id, "data.compactionId")
    check_string(payload.reason, "data.reason")


def _compaction_summary(payload: CompactionSummary) -> None:
    check_text(payload.compaction_id, "data.compactionId")
    check_object(payload.facts, "data.facts")


def _compaction_end(payload: CompactionEnd) -> None:
    check_text(payload.compaction_id, "data.compactionId")
    check_string(payload.outcome, "data.outcome")


def _subagent_descriptor(payload: SubagentDescriptor) -> None:
    check_object(payload.descriptor, "data.descriptor")


def _foreign(payload: ForeignPayload) -> None:
    check_text(payload.type, "type")
    if payload.type in _KNOWN_TYPES:
        refuse("type", f"{payload.type!r} is a type of our own and has its own payload")
    check_object(payload.data, "data")


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
