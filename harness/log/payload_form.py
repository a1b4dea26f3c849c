"""The payload of each event type as a JSON object, the way a log spells it.

Room: pure; json_form puts the envelope around it. One writer and one reader for each type, in two tables.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any

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
from harness.log.frozen import freeze_object, thaw_json
from harness.log.model_checks import refuse
from harness.log.model_form import (
    JsonDict,
    chunk_from_json,
    chunk_to_json,
    failure_from_json,
    failure_to_json,
    message_from_json,
    message_to_json,
    present,
    take,
    take_list,
    take_object,
    usage_from_json,
    usage_to_json,
    with_optional,
)
from harness.model.call import ToolSchema


def _plain(build: Callable[..., Payload], *keys: str) -> Callable[[object], Payload]:
    """A reader for a payload whose fields are these keys, in this order, each as it is."""
    required = frozenset(keys)
    values_of = itemgetter(*keys)

    def read_one(value: object) -> Payload:
        return build(values_of(take(value, "data", required)))

    def read(value: object) -> Payload:
        return build(*values_of(take(value, "data", required)))

    return read_one if len(keys) == 1 else read


def _turn_end_to_json(payload: TurnEnd) -> JsonDict:
    reason = payload.reason
    cause = None
    if reason.cause is not None:
        cause = with_optional({"kind": reason.cause.kind}, reason=reason.cause.reason)
    failure = None if reason.failure is None else failure_to_json(reason.failure)
    return {"turn": payload.turn, "reason": with_optional({"kind": reason.kind}, reason=cause, failure=failure)}


_TURN_END = frozenset({"turn", "reason"})
_COMPLETED, _COMPLETED_JSON = TurnReason("completed"), {"kind": "completed"}  # most turns end like this: one for all
_KIND = frozenset({"kind"})
_REASON_MORE = frozenset({"reason", "failure"})


def _turn_end_from_json(value: object) -> TurnEnd:
    data = take(value, "data", _TURN_END)
    if data["reason"] == _COMPLETED_JSON:
        return TurnEnd(data["turn"], _COMPLETED)
    reason = take(data["reason"], "data.reason", _KIND, _REASON_MORE)
    cause = None
    if "reason" in reason:
        place = "data.reason.reason"
        found = take(reason["reason"], place, _KIND, frozenset({"reason"}))
        cause = Cause(found["kind"], present(found, "reason", place))
    failure = None
    if "failure" in reason:
        failure = failure_from_json(reason["failure"], "data.reason.failure")
    return TurnEnd(data["turn"], TurnReason(reason["kind"], cause, failure))


def _step_to_json(payload: StepStart | StepEnd) -> JsonDict:
    return {"turn": payload.turn, "step": payload.step}


_CHUNK = frozenset({"turn", "step", "chunk"})


def _chunk_event_to_json(payload: AssistantChunk) -> JsonDict:
    return {"turn": payload.turn, "step": payload.step, "chunk": chunk_to_json(payload.chunk)}


def _chunk_event_from_json(value: object) -> AssistantChunk:
    data = take(value, "data", _CHUNK)
    return AssistantChunk(data["turn"], data["step"], chunk_from_json(data["chunk"], "data.chunk"))


def _assistant_to_json(payload: AssistantMessage) -> JsonDict:
    return with_optional(
        {"turn": payload.turn, "step": payload.step, "message": message_to_json(payload.message)},
        usage=None if payload.usage is None else usage_to_json(payload.usage),
    )


_MESSAGE = frozenset({"turn", "step", "message"})
_ANSWER_MORE = frozenset({"usage"})
_RESULT_MORE = frozenset({"error", "meta"})


def _assistant_from_json(value: object) -> AssistantMessage:
    data = take(value, "data", _MESSAGE, _ANSWER_MORE)
    usage = usage_from_json(data["usage"], "data.usage") if "usage" in data else None
    return AssistantMessage(data["turn"], data["step"], message_from_json(data["message"], "data.message"), usage)


def _call_to_json(payload: ToolCall) -> JsonDict:
    return {
        "turn": payload.turn,
        "step": payload.step,
        "callId": payload.call_id,
        "name": payload.name,
        "arguments": payload.arguments,
    }


def _result_to_json(payload: ToolResult) -> JsonDict:
    error = payload.error
    return with_optional(
        {"turn": payload.turn, "step": payload.step, "message": message_to_json(payload.message)},
        error=None if error is None else {"name": error.name, "code": error.code},
        meta=None if payload.meta is None else thaw_json(payload.meta),
    )


def _result_from_json(value: object) -> ToolResult:
    data = take(value, "data", _MESSAGE, _RESULT_MORE)
    error = None
    if "error" in data:
        found = take(data["error"], "data.error", frozenset({"name", "code"}))
        error = ToolErrorInfo(found["name"], found["code"])
    return ToolResult(
        data["turn"],
        data["step"],
        message_from_json(data["message"], "data.message"),
        error,
        take_object(present(data, "meta", "data"), "data.meta"),
    )


def _request_header_to_json(payload: RequestHeader) -> JsonDict:
    header, config = payload.header, payload.header.config
    return {
        "header": with_optional(
            {
                "config": with_optional(
                    {"provider": config.provider, "model": config.model},
                    temperature=config.temperature,
                    maxTokens=config.max_tokens,
                    stop=list(config.stop) or None,
                    reasoningEffort=config.reasoning_effort,
                )
            },
            adapterDefaults=None if header.adapter_defaults is None else thaw_json(header.adapter_defaults),
            system=header.system,
            tools=[
                {"name": tool.name, "description": tool.description, "parameters": thaw_json(tool.parameters)}
                for tool in header.tools
            ]
            or None,
        ),
        "reason": payload.reason,
    }


_REQUEST_HEADER = frozenset({"header", "reason"})
_CONFIG = frozenset({"provider", "model"})
_CONFIG_MORE = frozenset({"temperature", "maxTokens", "stop", "reasoningEffort"})
_TOOL = frozenset({"name", "description", "parameters"})


def _request_header_from_json(value: object) -> RequestHeader:
    data = take(value, "data", _REQUEST_HEADER)
    place = "data.header"
    header = take(data["header"], place, frozenset({"config"}), frozenset({"adapterDefaults", "system", "tools"}))
    config = take(header["config"], f"{place}.config", _CONFIG, _CONFIG_MORE)
    tools: list[ToolSchema] = []
    for at, item in enumerate(take_list(header.get("tools", []), f"{place}.tools")):
        tool = take(item, f"{place}.tools[{at}]", _TOOL)
        tools.append(
            ToolSchema(
                tool["name"],
                tool["description"],
                freeze_object(tool["parameters"], f"{place}.tools[{at}].parameters"),
            )
        )
    return RequestHeader(
        Header(
            RequestConfig(
                config["provider"],
                config["model"],
                present(config, "temperature", place),
                present(config, "maxTokens", place),
                tuple(take_list(config.get("stop", []), f"{place}.config.stop")),
                present(config, "reasoningEffort", place),
            ),
            present(header, "system", place),
            tuple(tools),
            take_object(present(header, "adapterDefaults", place), f"{place}.adapterDefaults"),
        ),
        data["reason"],
    )


_CONTEXT = frozenset({"provider", "model"})


def _context_to_json(payload: RequestContext) -> JsonDict:
    return with_optional({"provider": payload.provider, "model": payload.model}, contextWindow=payload.context_window)


def _context_from_json(value: object) -> RequestContext:
    data = take(value, "data", _CONTEXT, frozenset({"contextWindow"}))
    return RequestContext(data["provider"], data["model"], present(data, "contextWindow", "data"))


def _retry_to_json(payload: LlmRetry) -> JsonDict:
    return with_optional(
        {
            "retryId": payload.retry_id,
            "turn": payload.turn,
            "step": payload.step,
            "provider": payload.provider,
            "mode": payload.mode,
            "policyKey": payload.policy_key,
            "retry": payload.retry,
            "delayMs": payload.delay_ms,
            "failure": failure_to_json(payload.failure),
        },
        maxRetries=payload.max_retries,
    )


_RETRY = frozenset({"retryId", "turn", "step", "provider", "mode", "policyKey", "retry", "delayMs", "failure"})


def _retry_from_json(value: object) -> LlmRetry:
    data = take(value, "data", _RETRY, frozenset({"maxRetries"}))
    return LlmRetry(
        data["retryId"],
        data["turn"],
        data["step"],
        data["provider"],
        data["mode"],
        data["policyKey"],
        data["retry"],
        data["delayMs"],
        failure_from_json(data["failure"], "data.failure"),
        present(data, "maxRetries", "data"),
    )


def _retry_started_to_json(payload: LlmRetryStarted) -> JsonDict:
    return {"retryId": payload.retry_id, "turn": payload.turn, "step": payload.step, "retry": payload.retry}


def _spliced_to_json(payload: InboxSpliced) -> JsonDict:
    return with_optional(
        {
            "target": payload.target,
            "start": payload.start,
            "inserted": [message_to_json(message) for message in payload.inserted],
        },
        removedCount=len(payload.removed) or None,
        removed=[with_optional({"id": item.id, "fate": item.fate}, turn=item.turn) for item in payload.removed] or None,
        outcome=payload.outcome,
        wakes=None if payload.wakes else False,
    )


_SPLICED = frozenset({"target", "start", "inserted"})
_SPLICED_MORE = frozenset({"removedCount", "removed", "outcome", "wakes"})
_REMOVED = frozenset({"id", "fate"})
_REMOVED_MORE = frozenset({"turn"})


def _spliced_from_json(value: object) -> InboxSpliced:
    data = take(value, "data", _SPLICED, _SPLICED_MORE)
    removed: list[RemovedItem] = []
    if "removed" in data:
        for at, item in enumerate(take_list(data["removed"], "data.removed")):
            found = take(item, f"data.removed[{at}]", _REMOVED, _REMOVED_MORE)
            removed.append(RemovedItem(found["id"], found["fate"], present(found, "turn", f"data.removed[{at}]")))
    count = present(data, "removedCount", "data")
    if count != (len(removed) or None) or type(count) is bool:
        refuse("data.removedCount", f"{count!r} is not the number of removed items")
    if "wakes" in data and data["wakes"] is not False:
        refuse("data.wakes", f"{data['wakes']!r} where false or nothing belongs")
    inserted = take_list(data["inserted"], "data.inserted")
    return InboxSpliced(
        data["target"],
        data["start"],
        tuple(removed),
        tuple(message_from_json(item, f"data.inserted[{at}]") for at, item in enumerate(inserted)),
        present(data, "outcome", "data"),
        "wakes" not in data,
    )


def _empty_from_json(value: object) -> EndSeed:
    take(value, "data", frozenset())
    return EndSeed()


def _summary_from_json(value: object) -> CompactionSummary:
    data = take(value, "data", frozenset({"compactionId", "facts"}))
    return CompactionSummary(data["compactionId"], freeze_object(data["facts"], "data.facts"))


WRITERS: dict[type[object], Callable[[Any], JsonDict]] = {  # Any: each takes the payload type it is listed under
    TurnStart: lambda payload: {"turn": payload.turn},
    TurnEnd: _turn_end_to_json,
    StepStart: _step_to_json,
    StepEnd: _step_to_json,
    UserMessage: lambda payload: message_to_json(payload.message),
    AssistantChunk: _chunk_event_to_json,
    AssistantMessage: _assistant_to_json,
    ToolCall: _call_to_json,
    ToolResult: _result_to_json,
    RequestHeader: _request_header_to_json,
    RequestContext: _context_to_json,
    LlmRetry: _retry_to_json,
    LlmRetryStarted: _retry_started_to_json,
    InboxSpliced: _spliced_to_json,
    EndSeed: lambda _payload: {},
    CompactionStart: lambda payload: {"compactionId": payload.compaction_id, "reason": payload.reason},
    CompactionSummary: lambda payload: {"compactionId": payload.compaction_id, "facts": thaw_json(payload.facts)},
    CompactionEnd: lambda payload: {"compactionId": payload.compaction_id, "outcome": payload.outcome},
    SubagentDescriptor: lambda payload: thaw_json(payload.descriptor),
    ForeignPayload: lambda payload: thaw_json(payload.data),
}

READERS: dict[str, Callable[[object], Payload]] = {
    "turn/start": _plain(TurnStart, "turn"),
    "turn/end": _turn_end_from_json,
    "step/start": _plain(StepStart, "turn", "step"),
    "step/end": _plain(StepEnd, "turn", "step"),
    "user/message": lambda value: UserMessage(message_from_json(value, "data")),
    "assistant/chunk": _chunk_event_from_json,
    "assistant/message": _assistant_from_json,
    "tool/call": _plain(ToolCall, "turn", "step", "callId", "name", "arguments"),
    "tool/result": _result_from_json,
    "request/header": _request_header_from_json,
    "request/context": _context_from_json,
    "llm/retry": _retry_from_json,
    "llm/retry-started": _plain(LlmRetryStarted, "retryId", "turn", "step", "retry"),
    "agent/inbox/spliced": _spliced_from_json,
    "session/end-seed": _empty_from_json,
    "compaction/start": _plain(CompactionStart, "compactionId", "reason"),
    "compaction/summary": _summary_from_json,
    "compaction/end": _plain(CompactionEnd, "compactionId", "outcome"),
    "subagent/descriptor": lambda value: SubagentDescriptor(freeze_object(value)),
}
