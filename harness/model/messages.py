"""Messages and the content blocks they are made of.

Room: pure data. Values are frozen, sequences are tuples.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NewType, TypeAlias

from harness.model.records import made_often

SessionId = NewType("SessionId", str)
MessageId = NewType("MessageId", str)
CallId = NewType("CallId", str)

Json: TypeAlias = "bool | int | float | str | tuple[Json, ...] | list[Json] | Mapping[str, Json] | None"
JsonObject: TypeAlias = "Mapping[str, Json]"

Role = Literal["system", "user", "assistant"]


@made_often
@dataclass(frozen=True, slots=True)
class TextBlock:
    """Plain text."""

    text: str


@made_often
@dataclass(frozen=True, slots=True)
class ReasoningBlock:
    """Text the model thought with; never part of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class AttachmentRef:
    """A stored object, by content; logs hold these and never bytes.

    Units: bytes is a size in bytes, width and height are pixels.
    """

    attachment_id: str
    media_type: str
    bytes: int
    width: int
    height: int
    name: str | None = None


@dataclass(frozen=True, slots=True)
class ImageBlock:
    """A picture held in the attachment store."""

    attachment: AttachmentRef


@made_often
@dataclass(frozen=True, slots=True)
class ToolCallBlock:
    """A request by the model to run a tool; arguments is the raw string as the model wrote it."""

    id: CallId
    name: str
    arguments: str


@made_often
@dataclass(frozen=True, slots=True)
class ToolResultBlock:
    """The answer to one tool call."""

    tool_call_id: CallId
    content: tuple[TextBlock | ImageBlock, ...]
    is_error: bool = False


ContentBlock: TypeAlias = TextBlock | ReasoningBlock | ImageBlock | ToolCallBlock | ToolResultBlock


@dataclass(frozen=True, slots=True)
class UserSource:
    """A person, or a program speaking for one."""


@dataclass(frozen=True, slots=True)
class PluginSource:
    """A part of the product that adds context; form is a hint at its meaning."""

    plugin: str
    form: Literal["instructions", "catalog", "snapshot", "notice", "relay", "recall"] | None = None


@made_often
@dataclass(frozen=True, slots=True)
class ModelSource:
    """A model; replay_state is what its provider wants back with this message, opaque to everyone else."""

    provider: str
    model: str
    replay_state: JsonObject | None = None


@made_often
@dataclass(frozen=True, slots=True)
class ToolSource:
    """A tool that answered the call."""

    call_id: CallId


Source: TypeAlias = UserSource | PluginSource | ModelSource | ToolSource


@made_often
@dataclass(frozen=True, slots=True)
class Message:
    """One entry of what the model sees. Tool results travel as user messages with one ToolResultBlock."""

    id: MessageId
    role: Role
    content: tuple[ContentBlock, ...]
    source: Source


def text_of(message: Message) -> str:
    """The message's text blocks, joined without a separator."""
    return "".join(block.text for block in message.content if isinstance(block, TextBlock))


def tool_calls_of(message: Message) -> tuple[ToolCallBlock, ...]:
    """The message's tool calls, in order."""
    return tuple(block for block in message.content if isinstance(block, ToolCallBlock))
