"""A script as data: conversations, their steps, and what each step expects, says and breaks.

Room: pure; the script rooms build these values, matching, playback, faults and the dialects read them.
"""

from __future__ import annotations

from dataclasses import field
from typing import Literal, TypeAlias

from mock_provider.expect import Expect
from mock_provider.json_values import JsonObject
from mock_provider.script_source import NO_MARK, Mark
from mock_provider.values import value

DeadlyKind: TypeAlias = Literal["reset", "cut", "end", "stall", "garbage", "refuse", "truncate", "keep_alive"]
HarmKind: TypeAlias = Literal["duplicate", "swap", "drop", "bad_utf8"]
FaultKind: TypeAlias = "DeadlyKind | HarmKind"
DEADLY_KINDS: tuple[DeadlyKind, ...] = ("reset", "cut", "end", "stall", "garbage", "refuse", "truncate", "keep_alive")
HARM_KINDS: tuple[HarmKind, ...] = ("duplicate", "swap", "drop", "bad_utf8")
FAULT_KINDS: tuple[FaultKind, ...] = (*DEADLY_KINDS, *HARM_KINDS)


@value
class Text:
    """Answer text."""

    text: str


@value
class Reasoning:
    """Thinking text, shown where the dialect has a place for it."""

    text: str


@value
class RefusalText:
    """The model declines, in the dialect's own field."""

    text: str


@value
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


@value
class AtGate:
    """Wait here until the test opens the gate."""

    name: str


@value
class Malformed:
    """An event whose data is this text, not what the dialect says."""

    text: str


@value
class RawBytes:
    """Bytes put on the wire as they are."""

    data: bytes


@value
class Comment:
    """A keep-alive comment line."""

    text: str


@value
class ErrorEvent:
    """An error inside a stream that began with status 200. Shape: cause lets the dialect choose the words."""

    message: str
    code: str | None = None
    kind: str = "server_error"
    cause: str | None = None


@value
class Break:
    """The stream dies here, or its next event is harmed."""

    kind: FaultKind


Part: TypeAlias = (
    "Text | Reasoning | RefusalText | ToolCall | AtGate | Malformed | RawBytes | Comment | ErrorEvent | Break"
)


@value
class HttpError:
    """An answer that is an error status, in the dialect's own form unless body is given.

    Shape: cause lets the dialect choose status and words; status 0 then means that nothing else was said.
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
    cause: str | None = None


@value
class FaultAt:
    """A fault of a step: before any byte when after is None, else after that many pieces.

    Units: ms is how long the port stays closed for "refuse", and the time between two signs of life for "keep_alive".
    """

    kind: FaultKind
    after: int | None = None
    ms: int = 0


@value
class RandomFaults:
    """Faults by lot. Shape: weights by the name of the fault, the cause or the status; "none" is no fault.

    Limits: in_a_row is how many requests of one step may be hit one after the other, 0 for any number.
    """

    weights: tuple[tuple[str, float], ...]
    seed: int
    in_a_row: int = 0


@value
class GateAt:
    """A gate of a step: before any byte when after is None, else after that many pieces."""

    name: str
    after: int | None = None


@value
class Split:
    """How texts become pieces. Units: size counts characters, words or bytes; 0 means whole."""

    by: Literal["whole", "chars", "words", "bytes", "list"] = "whole"
    size: int = 0
    pieces: tuple[str, ...] = ()


@value
class StreamPlan:
    """How a streamed answer is cut into writes, and when they go out.

    Shape: drip_bytes 0 means no drip; bytes_per_write 0 leaves writes as they are; trailing comes after the end.
    Units: ms are waiting times; jitter_ms may be added to or taken from each of them, by lot of the seed.
    """

    split: Split = field(default_factory=Split)
    first_ms: int = 0
    every_ms: int = 0
    events_per_write: int = 1
    end_marks: int = 1
    tokens_per_s: float = 0
    jitter_ms: int = 0
    seed: int = 0
    bytes_per_write: int = 0
    drip_bytes: int = 0
    drip_ms: int = 0
    keep_alive_ms: int = 0
    trailing: str = ""

    @property
    def is_paced(self) -> bool:
        """Whether time passes before or between its writes."""
        return bool(self.first_ms or self.every_ms or self.drip_bytes or self.tokens_per_s or self.jitter_ms)


@value
class Usage:
    """Token counts, as far as the script sets them; the rest is counted by the local rule.

    Shape: times is how often a stream says them, where the dialect says them in an event of their own.
    """

    input: int | None = None
    output: int | None = None
    cached: int | None = None
    reasoning: int | None = None
    is_absent: bool = False
    times: int = 1


@value
class Step:
    """One request and its answer.

    Shape: repeat None means forever; finish None leaves the finish reason out, "" chooses it from the parts. headers
    and content_type are of the answer.
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
    random: RandomFaults | None = None
    headers: tuple[tuple[str, str], ...] = ()
    content_type: str | None = None


@value
class AnyOrder:
    """Steps that parallel requests may take in any order."""

    steps: tuple[Step, ...]
    mark: Mark = NO_MARK


@value
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


@value
class ModelFacts:
    """What a model can do. Units: tokens by the local rule; None for no limit."""

    name: str
    takes_images: bool = True
    max_output_tokens: int | None = None
    context_tokens: int | None = None


@value
class Script:
    """A whole play.

    Shape: name is what messages call it; digest is of the content alone. facts are of those models that have limits.
    dialects are those it is written for, none for any.
    """

    name: str
    digest: str
    conversations: tuple[Conversation, ...]
    model: str | None = None
    models: tuple[str, ...] = ()
    facts: tuple[ModelFacts, ...] = ()
    flavour: str = "openai"
    api_key: str | None = None
    created: int = 1_700_000_000
    refuses_extra_fields: bool = False
    dialects: tuple[str, ...] = ()

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
