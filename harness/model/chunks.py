"""The pieces a streamed answer arrives in, its usage and its end.

Room: pure data. A stream is a run of chunks with exactly one Finish, which is the last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from harness.model.messages import CallId, ContentBlock, JsonObject
from harness.model.records import made_often

BlockType = Literal["text", "reasoning", "tool-call"]
FinishKind = Literal["stop", "tool-calls", "max-tokens", "aborted", "error"]


@made_often
@dataclass(frozen=True, slots=True)
class BlockStart:
    """A block opens under a non-negative index that is not open now."""

    index: int
    block_type: BlockType


@made_often
@dataclass(frozen=True, slots=True)
class TextDelta:
    """Text for the open text block of that index."""

    index: int
    text: str


@made_often
@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """Reasoning for the open reasoning block of that index."""

    index: int
    text: str


@made_often
@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """A fragment of a tool call; arguments_delta grows the arguments, name comes once."""

    index: int
    id: CallId
    arguments_delta: str
    name: str | None = None


@made_often
@dataclass(frozen=True, slots=True)
class BlockEnd:
    """The block of that index is complete; block is its whole content."""

    index: int
    block: ContentBlock


@made_often
@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts of one answer; the counts are disjoint, absent means not reported."""

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class UsageChunk:
    """The answer's usage; at most one, before Finish."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an answer did not come.

    Units: status is an HTTP status; provider_retry_after_ms is milliseconds.
    """

    message: str
    code: str
    status: int | None = None
    provider_retry_after_ms: int | None = None
    request_id: str | None = None


@dataclass(frozen=True, slots=True)
class Finish:
    """The end of the stream. failure is set exactly for the kinds aborted and error.

    replay_state is what the provider wants back with this answer in later requests.
    """

    kind: FinishKind
    failure: Failure | None = None
    replay_state: JsonObject | None = None


Chunk: TypeAlias = BlockStart | TextDelta | ReasoningDelta | ToolCallDelta | BlockEnd | UsageChunk | Finish
