"""The places where the rest of the product may have a say in a turn, as plain optional functions.

Room: assemble fills it in; the driver calls. A raising hook fails the turn, never the loop.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from harness.log.events import Cause, RequestConfig
from harness.log.session_log import SessionLog
from harness.loop.decide import Decision
from harness.loop.tools import ToolOutput
from harness.model.call import CancelSignal
from harness.model.chunks import Failure
from harness.model.messages import Message, SessionId, ToolCallBlock


class Deliveries(Protocol):
    """The side of an agent a hook may use: read the log, send, cancel."""

    @property
    def id(self) -> SessionId: ...

    @property
    def log(self) -> SessionLog: ...

    def followup(self, message: Message) -> None: ...

    def steer(self, message: Message) -> None: ...

    def inject(self, message: Message) -> None: ...

    def cancel(self, cause: Cause, keep_inbox: bool = False) -> object: ...


@dataclass(frozen=True, slots=True)
class StepProposal:
    """A step that may be entered with these messages; it is not in the log yet."""

    agent: Deliveries
    turn: int
    step: int
    messages: tuple[Message, ...]
    cancel: CancelSignal


@dataclass(frozen=True, slots=True)
class TurnStopping:
    """A turn that owes nothing; steering now makes it go on."""

    agent: Deliveries
    turn: int
    cancel: CancelSignal


@dataclass(frozen=True, slots=True)
class ToolProposal:
    """A tool call that was logged and has not started."""

    agent: Deliveries
    turn: int
    step: int
    call: ToolCallBlock
    cancel: CancelSignal


@dataclass(frozen=True, slots=True)
class GateAnswer:
    """Whether the call may run; text is what the model is told of a denial."""

    verdict: Literal["allow", "deny", "ask"]
    text: str = ""


@dataclass(frozen=True, slots=True)
class Overflow:
    """A request that was too long for the model's window."""

    agent: Deliveries
    turn: int
    step: int
    failure: Failure
    cancel: CancelSignal


PreStep: TypeAlias = Callable[[StepProposal], Awaitable[Decision]]
ConfigHook: TypeAlias = Callable[[RequestConfig], Awaitable[RequestConfig]]
ToolGate: TypeAlias = Callable[[ToolProposal], Awaitable[GateAnswer]]
ResultHook: TypeAlias = Callable[[ToolProposal, ToolOutput], Awaitable[ToolOutput]]
StoppingHook: TypeAlias = Callable[[TurnStopping], Awaitable[None]]
Shrink: TypeAlias = Callable[[Overflow], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Hooks:
    """Who has a say, each kind in the order given.

    Shape: pre_step sees the messages the one before it let through, and a rejection is final; request replaces
    options; a gate can only deny more, ask without an answer is a denial; results may replace or block an output;
    stopping objects by steering; shrink may make the surface smaller once in a step.
    """

    pre_step: tuple[PreStep, ...] = ()
    request: tuple[ConfigHook, ...] = ()
    gates: tuple[ToolGate, ...] = ()
    ask: ToolGate | None = None
    results: tuple[ResultHook, ...] = ()
    stopping: tuple[StoppingHook, ...] = ()
    shrink: Shrink | None = None
