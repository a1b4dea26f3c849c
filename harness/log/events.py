"""What may stand in a session log: the envelope and one payload type for each kind of event.

Room: pure data. The spelling on disk lives in json_form; what each field may hold lives in validate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from harness.model.call import ReasoningEffort, ToolSchema
from harness.model.chunks import Chunk, Failure, Usage
from harness.model.messages import CallId, JsonObject, Message, MessageId, SessionId
from harness.model.records import made_often

LOG_VERSION = 0

InboxTarget = Literal["next-turn", "next-step"]
CauseKind = Literal["user", "parent", "hook", "disposed"]
ReasonKind = Literal["completed", "max-tokens", "blocked", "aborted", "error", "interrupted", "step-limit"]


@dataclass(frozen=True, slots=True)
class SessionHeader:
    """The first line of a log, never changed. created_at is integer milliseconds since the epoch."""

    id: SessionId
    created_at: int
    cwd: str | None = None
    parent_session: SessionId | None = None
    seed_length: int | None = None
    origin: Literal["subagent"] | None = None
    delegation_depth: int = 0
    agent_preset: str | None = None
    version: int = LOG_VERSION


@dataclass(frozen=True, slots=True)
class Cause:
    """Who cancelled. reason is set for the kind hook only."""

    kind: CauseKind
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class TurnReason:
    """How a turn ended. cause belongs to aborted, failure to error."""

    kind: ReasonKind
    cause: Cause | None = None
    failure: Failure | None = None


@made_often
@dataclass(frozen=True, slots=True)
class TurnStart:
    """turn/start"""

    turn: int


@made_often
@dataclass(frozen=True, slots=True)
class TurnEnd:
    """turn/end"""

    turn: int
    reason: TurnReason


@made_often
@dataclass(frozen=True, slots=True)
class StepStart:
    """step/start"""

    turn: int
    step: int


@made_often
@dataclass(frozen=True, slots=True)
class StepEnd:
    """step/end"""

    turn: int
    step: int


@made_often
@dataclass(frozen=True, slots=True)
class UserMessage:
    """user/message, a surface event: the payload on disk is the message itself."""

    message: Message


@made_often
@dataclass(frozen=True, slots=True)
class AssistantChunk:
    """assistant/chunk"""

    turn: int
    step: int
    chunk: Chunk


@made_often
@dataclass(frozen=True, slots=True)
class AssistantMessage:
    """assistant/message, a surface event; cites the chunks of the attempt that succeeded."""

    turn: int
    step: int
    message: Message
    usage: Usage | None = None


@made_often
@dataclass(frozen=True, slots=True)
class ToolCall:
    """tool/call, written right before the call starts; arguments is the raw string."""

    turn: int
    step: int
    call_id: CallId
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ToolErrorInfo:
    """Which error a tool result stands for."""

    name: str
    code: str


@made_often
@dataclass(frozen=True, slots=True)
class ToolResult:
    """tool/result, a surface event; cites the tool/call it answers."""

    turn: int
    step: int
    message: Message
    error: ToolErrorInfo | None = None
    meta: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class RequestConfig:
    """The options of a request apart from messages, system text and tools."""

    provider: str
    model: str
    temperature: float | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    reasoning_effort: ReasoningEffort | None = None


@dataclass(frozen=True, slots=True)
class Header:
    """Everything of a request but its messages. An empty system text or tool list is absent."""

    config: RequestConfig
    system: str | None = None
    tools: tuple[ToolSchema, ...] = ()
    adapter_defaults: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class RequestHeader:
    """request/header, in full, when it is first or differs from the last one."""

    header: Header
    reason: Literal["initial", "resume", "change"]


@dataclass(frozen=True, slots=True)
class RequestContext:
    """request/context. context_window is tokens."""

    provider: str
    model: str
    context_window: int | None = None


@dataclass(frozen=True, slots=True)
class LlmRetry:
    """llm/retry, before the wait of delay_ms milliseconds."""

    retry_id: str
    turn: int
    step: int
    provider: str
    mode: Literal["normal", "always"]
    policy_key: str
    retry: int
    delay_ms: int
    failure: Failure
    max_retries: int | None = None


@dataclass(frozen=True, slots=True)
class LlmRetryStarted:
    """llm/retry-started, after the wait."""

    retry_id: str
    turn: int
    step: int
    retry: int


@made_often
@dataclass(frozen=True, slots=True)
class RemovedItem:
    """What became of a message that left the inbox; turn is set for claimed."""

    id: MessageId
    fate: Literal["claimed", "canceled", "replaced", "requeued"]
    turn: int | None = None


@made_often
@dataclass(frozen=True, slots=True)
class InboxSpliced:
    """agent/inbox/spliced: one change of one of the two queues.

    Shape: removed names every removed message in order, so its length is the removed count;
    outcome is "canceled" exactly when something was removed other than by a claim; wakes is false for
    messages that wait for a turn somebody else opens (an inject).
    """

    target: InboxTarget
    start: int
    removed: tuple[RemovedItem, ...] = ()
    inserted: tuple[Message, ...] = ()
    outcome: Literal["canceled"] | None = None
    wakes: bool = True


@dataclass(frozen=True, slots=True)
class EndSeed:
    """session/end-seed: everything before it belongs to an ended lifetime."""


@dataclass(frozen=True, slots=True)
class CompactionStart:
    """compaction/start"""

    compaction_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class CompactionSummary:
    """compaction/summary"""

    compaction_id: str
    facts: JsonObject


@dataclass(frozen=True, slots=True)
class CompactionEnd:
    """compaction/end, always written last"""

    compaction_id: str
    outcome: str


@dataclass(frozen=True, slots=True)
class SubagentDescriptor:
    """subagent/descriptor: the durable description of a child"""

    descriptor: JsonObject


@dataclass(frozen=True, slots=True)
class ForeignPayload:
    """An event of a type this version does not know; kept as it is, legal only when ignorable."""

    type: str
    data: JsonObject


Payload: TypeAlias = (
    TurnStart
    | TurnEnd
    | StepStart
    | StepEnd
    | UserMessage
    | AssistantChunk
    | AssistantMessage
    | ToolCall
    | ToolResult
    | RequestHeader
    | RequestContext
    | LlmRetry
    | LlmRetryStarted
    | InboxSpliced
    | EndSeed
    | CompactionStart
    | CompactionSummary
    | CompactionEnd
    | SubagentDescriptor
    | ForeignPayload
)

EVENT_TYPES: dict[type[object], str] = {
    TurnStart: "turn/start",
    TurnEnd: "turn/end",
    StepStart: "step/start",
    StepEnd: "step/end",
    UserMessage: "user/message",
    AssistantChunk: "assistant/chunk",
    AssistantMessage: "assistant/message",
    ToolCall: "tool/call",
    ToolResult: "tool/result",
    RequestHeader: "request/header",
    RequestContext: "request/context",
    LlmRetry: "llm/retry",
    LlmRetryStarted: "llm/retry-started",
    InboxSpliced: "agent/inbox/spliced",
    EndSeed: "session/end-seed",
    CompactionStart: "compaction/start",
    CompactionSummary: "compaction/summary",
    CompactionEnd: "compaction/end",
    SubagentDescriptor: "subagent/descriptor",
}

SURFACE_PAYLOADS = (UserMessage, AssistantMessage, ToolResult)


@dataclass(frozen=True, slots=True)
class Replace:
    """A surface operation: the nodes from start to end, as they stand on the surface, give way to this event."""

    start: int
    end: int


SurfaceOp: TypeAlias = Literal["append"] | Replace


@made_often
@dataclass(frozen=True, slots=True)
class Event:
    """One entry of a log.

    Shape: seq is the index in the log; surface_op stands exactly on the three surface payloads;
    source_event_seqs are earlier seqs this event was built from.
    Units: time is integer milliseconds since the epoch, informational only.
    """

    seq: int
    time: int
    payload: Payload
    surface_op: SurfaceOp | None = None
    source_event_seqs: tuple[int, ...] | None = None
    ignorable: bool = False

    @property
    def type(self) -> str:
        """The event's type as spelled on disk."""
        payload = self.payload
        return payload.type if isinstance(payload, ForeignPayload) else EVENT_TYPES[type(payload)]
