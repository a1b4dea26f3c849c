"""A script as data: conversations, their steps, and what each step expects, says and breaks.

Room: pure; the script rooms build these values, matching, playback, faults and the dialects read them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from mock_provider.expect import Expect
from mock_provider.json_values import JsonObject
from mock_provider.script_source import NO_MARK, Mark

FaultKind: TypeAlias = Literal["reset", "cut", "end", "stall", "garbage"]
FAULT_KINDS: tuple[FaultKind, ...] = ("reset", "cut", "end", "stall", "garbage")


@dataclass(frozen=True, slots=True)
class Text:
    """Answer text."""

    text: str


@dataclass(frozen=True, slots=True)
class Reasoning:
    """Thinking text, shown where the dialect has a place for it."""

    text: str


@dataclass(frozen=True, slots=True)
class RefusalText:
    """The model declines, in the dialect's own field."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call.

    Shape: arguments is a mapping, or raw the exact text instead. id None with own_id means: leave the id out.
    """

    name: str
    arguments: JsonObject | None
    raw: str | None = None
    id: str | None = None
    own_id: bool = False
    index: int | None = None


@dataclass(frozen=True, slots=True)
class AtGate:
    """Wait here until the test opens the gate."""

    name: str


@dataclass(frozen=True, slots=True)
class Malformed:
    """An event whose data is this text, not what the dialect says."""

    text: str


@dataclass(frozen=True, slots=True)
class RawBytes:
    """Bytes put on the wire as they are."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Comment:
    """A keep-alive comment line."""

    text: str


@dataclass(frozen=True, slots=True)
class ErrorEvent:
    """An error inside a stream that began with status 200."""

    message: str
    code: str | None = None
    kind: str = "server_error"


@dataclass(frozen=True, slots=True)
class Break:
    """The stream dies here."""

    kind: FaultKind


Part: TypeAlias = (
    "Text | Reasoning | RefusalText | ToolCall | AtGate | Malformed | RawBytes | Comment | ErrorEvent | Break"
)


@dataclass(frozen=True, slots=True)
class HttpError:
    """An answer that is an error status, in the dialect's own form unless body is given.

    Units: retry_after_s in seconds, retry_after_ms in milliseconds, each sent as its own header.
    """

    status: int
    message: str = ""
    code: str | None = None
    kind: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    retry_after_s: float | None = None
    retry_after_ms: int | None = None
    body: str | None = None
    content_type: str | None = None


@dataclass(frozen=True, slots=True)
class FaultAt:
    """A fault of a step: before any byte when after is None, else after that many pieces."""

    kind: FaultKind
    after: int | None = None


@dataclass(frozen=True, slots=True)
class GateAt:
    """A gate of a step: before any byte when after is None, else after that many pieces."""

    name: str
    after: int | None = None


@dataclass(frozen=True, slots=True)
class Split:
    """How texts become pieces. Units: size counts characters, words or bytes; 0 means whole."""

    by: Literal["whole", "chars", "words", "bytes", "list"] = "whole"
    size: int = 0
    pieces: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StreamPlan:
    """How a streamed answer is cut into writes, and when they go out. Units: ms are waiting times."""

    split: Split = field(default_factory=Split)
    first_ms: int = 0
    every_ms: int = 0
    events_per_write: int = 1
    end_marks: int = 1


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts, as far as the script sets them; the rest is counted by the local rule."""

    input: int | None = None
    output: int | None = None
    cached: int | None = None
    reasoning: int | None = None
    is_absent: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One request and its answer.

    Shape: repeat None means forever; finish None leaves the finish reason out, "" chooses it from the parts.
    """

    number: int
    expect: Expect | None = None
    parts: tuple[Part, ...] = ()
    http_error: HttpError | None = None
    fault: FaultAt | None = None
    gates: tuple[GateAt, ...] = ()
    finish: str | None = ""
    usage: Usage = field(default_factory=Usage)
    stream: StreamPlan = field(default_factory=StreamPlan)
    repeat: int | None = 1
    is_optional: bool = False
    model: str | None = None
    mark: Mark = NO_MARK


@dataclass(frozen=True, slots=True)
class AnyOrder:
    """Steps that parallel requests may take in any order."""

    steps: tuple[Step, ...]
    mark: Mark = NO_MARK


@dataclass(frozen=True, slots=True)
class Conversation:
    """Ordered steps, and how a request finds them.

    Shape: name "" is the single unnamed conversation. parallel says how many clients may play it at once.
    """

    name: str
    items: tuple[Step | AnyOrder, ...]
    when: Expect | None = None
    parallel: int = 1
    is_background: bool = False
    mark: Mark = NO_MARK

    def steps(self) -> tuple[Step, ...]:
        """All steps in the order of the text."""
        return tuple(step for item in self.items for step in ((item,) if isinstance(item, Step) else item.steps))


@dataclass(frozen=True, slots=True)
class Script:
    """A whole play. Shape: name is what messages call it; digest is of the content alone."""

    name: str
    digest: str
    conversations: tuple[Conversation, ...]
    model: str | None = None
    models: tuple[str, ...] = ()
    flavour: str = "openai"
    api_key: str | None = None
    created: int = 1_700_000_000
    refuses_extra_fields: bool = False

    def gate_names(self) -> tuple[str, ...]:
        """Every gate named anywhere, each once, in order."""
        names = dict.fromkeys(
            name
            for conversation in self.conversations
            for step in conversation.steps()
            for name in (
                *(gate.name for gate in step.gates),
                *(part.name for part in step.parts if isinstance(part, AtGate)),
            )
        )
        return tuple(names)
