"""Events and headers as JSON objects, the way a log spells them, and the lines they make.

Room: pure; the store writes and reads lines with it, surfaces show the same objects to their clients.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from harness.errors import InvalidEventError, LogDamagedError, LogUnsupportedError
from harness.log.events import (
    LOG_VERSION,
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
    Payload,
    RemovedItem,
    Replace,
    RequestConfig,
    RequestContext,
    RequestHeader,
    SessionHeader,
    StepEnd,
    StepStart,
    SubagentDescriptor,
    SurfaceOp,
    ToolCall,
    ToolErrorInfo,
    ToolResult,
    TurnEnd,
    TurnReason,
    TurnStart,
    UserMessage,
)
from harness.log.frozen import freeze_object, thaw_json
from harness.log.model_form import (
    JsonDict,
    chunk_from_json,
    chunk_to_json,
    failure_from_json,
    failure_to_json,
    message_from_json,
    message_to_json,
    present,
    refuse,
    take,
    take_list,
    take_object,
    usage_from_json,
    usage_to_json,
    with_optional,
)
from harness.log.validate import check_header
from harness.model.call import ToolSchema

# ASCII escapes: lone surrogates stay what they were, and no reader takes an exotic separator for a line end.
_encode = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode


def encode_line(value: JsonDict) -> bytes:
    """One object as one line, newline included."""
    return _encode(value).encode("ascii") + b"\n"


def parse_line(line: bytes) -> JsonDict:
    """The object on one line.

    Raises: InvalidEventError when the bytes are not UTF-8, not JSON, not an object, or hold a number JSON has not.
    """
    try:
        value = _decode(line.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise InvalidEventError(f"is not JSON: {error}", where="line") from error
    if type(value) is not dict:
        raise InvalidEventError("is not a JSON object", where="line")
    return value


def _reject_constant(word: str) -> float:
    raise ValueError(f"{word} is not a JSON number")


_decode = json.JSONDecoder(parse_constant=_reject_constant).decode


def header_to_json(header: SessionHeader) -> JsonDict:
    """The first line of a log, as an object."""
    return with_optional(
        {"type": "session", "version": header.version, "id": header.id, "createdAt": header.created_at},
        cwd=header.cwd,
        parentSession=header.parent_session,
        seedLength=header.seed_length,
        origin=header.origin,
        delegationDepth=header.delegation_depth or None,
        agentPreset=header.agent_preset,
    )


_HEADER = frozenset({"type", "version", "id", "createdAt"})
_HEADER_MORE = frozenset({"cwd", "parentSession", "seedLength", "origin", "delegationDepth", "agentPreset"})


def header_from_json(value: JsonDict) -> SessionHeader:
    """The header a first line stands for.

    Raises: LogUnsupportedError for another version, whatever the rest looks like; LogDamagedError otherwise.
    """
    version = value.get("version")
    if type(version) is int and version != LOG_VERSION:
        newer = version > LOG_VERSION
        raise LogUnsupportedError(
            f"log version {version} was written by {'a newer' if newer else 'an older'} build",
            expected=f"version {LOG_VERSION}",
            fix="upgrade this program" if newer else "there is no upgrade path; open it with the build that wrote it",
        )
    try:
        data = take(value, "header", _HEADER, _HEADER_MORE)
        if data["type"] != "session" or type(version) is not int:
            refuse("header", "does not say type 'session' and a version")
        header = SessionHeader(
            data["id"],
            data["createdAt"],
            present(data, "cwd", "header"),
            present(data, "parentSession", "header"),
            present(data, "seedLength", "header"),
            present(data, "origin", "header"),
            data.get("delegationDepth", 0),
            present(data, "agentPreset", "header"),
        )
        check_header(header)
    except InvalidEventError as error:
        raise LogDamagedError(f"the first line is not a session header: {error.where}: {error.what}") from error
    return header


def event_to_json(event: Event) -> JsonDict:
    """One event as an object."""
    payload = event.payload
    kind: type[object] = type(payload)
    value: JsonDict = {
        "type": event.type,
        "seq": event.seq,
        "time": event.time,
        "data": _WRITERS[kind](payload),
    }
    operation = event.surface_op
    if operation is not None:
        value["surfaceOp"] = (
            {"op": "replace", "start": operation.start, "end": operation.end}
            if isinstance(operation, Replace)
            else operation
        )
    if event.source_event_seqs is not None:
        value["sourceEventSeqs"] = list(event.source_event_seqs)
    if event.ignorable:
        value["ignorable"] = True
    return value


_EVENT = frozenset({"type", "seq", "time", "data"})
_EVENT_MORE = frozenset({"surfaceOp", "sourceEventSeqs", "ignorable"})
_REPLACE = frozenset({"op", "start", "end"})


def event_from_json(value: JsonDict) -> Event:
    """The event an object stands for.

    Raises: LogUnsupportedError for a type this version does not know and may not skip; InvalidEventError otherwise.
    """
    data = take(value, "event", _EVENT, _EVENT_MORE)
    kind = data["type"]
    ignorable = False
    operation: SurfaceOp | None = None
    sources: tuple[int, ...] | None = None
    if len(data) > len(_EVENT):
        if "ignorable" in data:
            if data["ignorable"] is not True:
                refuse("ignorable", f"{data['ignorable']!r} where true or nothing belongs")
            ignorable = True
        if "surfaceOp" in data:
            operation = _operation_from_json(data["surfaceOp"])
        if "sourceEventSeqs" in data:
            sources = tuple(take_list(data["sourceEventSeqs"], "sourceEventSeqs"))
    if type(kind) is not str:
        refuse("type", f"{kind!r} is not a string")
    read = _READERS.get(kind)
    if read is not None:
        payload = read(data["data"])
    elif ignorable:
        payload = ForeignPayload(kind, freeze_object(data["data"]))
    else:
        raise LogUnsupportedError(
            f"event {data['seq']} has the type {kind!r}, which this build does not know and may not skip",
            expected="a known type, or one marked ignorable",
            fix="open the session with the build that wrote it, or a newer one",
        )
    return Event(data["seq"], data["time"], payload, operation, sources, ignorable)


def _operation_from_json(value: object) -> SurfaceOp:
    if value == "append":
        return "append"
    data = take(value, "surfaceOp", _REPLACE)
    if data["op"] != "replace":
        refuse("surfaceOp", f"{data['op']!r} is neither 'append' nor 'replace'")
    return Replace(data["start"], data["end"])


def _turn_end_to_json(payload: TurnEnd) -> JsonDict:
    reason = payload.reason
    cause = None
    if reason.cause is not None:
        cause = with_optional({"kind": reason.cause.kind}, reason=reason.cause.reason)
    failure = None if reason.failure is None else failure_to_json(reason.failure)
    return {"turn": payload.turn, "reason": with_optional({"kind": reason.kind}, reason=cause, failure=failure)}


_TURN = frozenset({"turn"})
_TURN_END = frozenset({"turn", "reason"})
_KIND = frozenset({"kind"})


def _turn_end_from_json(value: object) -> TurnEnd:
    data = take(value, "data", _TURN_END)
    reason = take(data["reason"], "data.reason", _KIND, frozenset({"reason", "failure"}))
    cause = None
    if "reason" in reason:
        place = "data.reason.reason"
        found = take(reason["reason"], place, _KIND, frozenset({"reason"}))
        cause = Cause(found["kind"], present(found, "reason", place))
    failure = None
    if "failure" in reason:
        failure = failure_from_json(reason["failure"], "data.reason.failure")
    return TurnEnd(data["turn"], TurnReason(reason["kind"], cause, failure))


_STEP = frozenset({"turn", "step"})


def _step_to_json(payload: StepStart | StepEnd) -> JsonDict:
    return {"turn": payload.turn, "step": payload.step}


def _step_start_from_json(value: object) -> StepStart:
    data = take(value, "data", _STEP)
    return StepStart(data["turn"], data["step"])


def _step_end_from_json(value: object) -> StepEnd:
    data = take(value, "data", _STEP)
    return StepEnd(data["turn"], data["step"])


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


def _assistant_from_json(value: object) -> AssistantMessage:
    data = take(value, "data", _MESSAGE, frozenset({"usage"}))
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


_CALL = frozenset({"turn", "step", "callId", "name", "arguments"})


def _call_from_json(value: object) -> ToolCall:
    data = take(value, "data", _CALL)
    return ToolCall(data["turn"], data["step"], data["callId"], data["name"], data["arguments"])


def _result_to_json(payload: ToolResult) -> JsonDict:
    error = payload.error
    return with_optional(
        {"turn": payload.turn, "step": payload.step, "message": message_to_json(payload.message)},
        error=None if error is None else {"name": error.name, "code": error.code},
        meta=None if payload.meta is None else thaw_json(payload.meta),
    )


def _result_from_json(value: object) -> ToolResult:
    data = take(value, "data", _MESSAGE, frozenset({"error", "meta"}))
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
_RETRY_STARTED = frozenset({"retryId", "turn", "step", "retry"})


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


def _retry_started_from_json(value: object) -> LlmRetryStarted:
    data = take(value, "data", _RETRY_STARTED)
    return LlmRetryStarted(data["retryId"], data["turn"], data["step"], data["retry"])


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


def _spliced_from_json(value: object) -> InboxSpliced:
    data = take(value, "data", _SPLICED, _SPLICED_MORE)
    removed: list[RemovedItem] = []
    for at, item in enumerate(take_list(data.get("removed", []), "data.removed")):
        found = take(item, f"data.removed[{at}]", _REMOVED, frozenset({"turn"}))
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


_COMPACTION_START = frozenset({"compactionId", "reason"})
_COMPACTION_SUMMARY = frozenset({"compactionId", "facts"})
_COMPACTION_END = frozenset({"compactionId", "outcome"})


def _compaction_start_from_json(value: object) -> CompactionStart:
    data = take(value, "data", _COMPACTION_START)
    return CompactionStart(data["compactionId"], data["reason"])


def _compaction_summary_from_json(value: object) -> CompactionSummary:
    data = take(value, "data", _COMPACTION_SUMMARY)
    return CompactionSummary(data["compactionId"], freeze_object(data["facts"], "data.facts"))


def _compaction_end_from_json(value: object) -> CompactionEnd:
    data = take(value, "data", _COMPACTION_END)
    return CompactionEnd(data["compactionId"], data["outcome"])


_WRITERS: dict[type[object], Callable[[Any], JsonDict]] = {  # Any: each takes the payload type it is listed under
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

_READERS: dict[str, Callable[[object], Payload]] = {
    "turn/start": lambda value: TurnStart(take(value, "data", _TURN)["turn"]),
    "turn/end": _turn_end_from_json,
    "step/start": _step_start_from_json,
    "step/end": _step_end_from_json,
    "user/message": lambda value: UserMessage(message_from_json(value, "data")),
    "assistant/chunk": _chunk_event_from_json,
    "assistant/message": _assistant_from_json,
    "tool/call": _call_from_json,
    "tool/result": _result_from_json,
    "request/header": _request_header_from_json,
    "request/context": _context_from_json,
    "llm/retry": _retry_from_json,
    "llm/retry-started": _retry_started_from_json,
    "agent/inbox/spliced": _spliced_from_json,
    "session/end-seed": _empty_from_json,
    "compaction/start": _compaction_start_from_json,
    "compaction/summary": _compaction_summary_from_json,
    "compaction/end": _compaction_end_from_json,
    "subagent/descriptor": lambda value: SubagentDescriptor(freeze_object(value)),
}
