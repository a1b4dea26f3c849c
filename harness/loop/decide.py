"""What comes next in a turn, and how the turn ended.

Room: pure; the driver asks after each thing it did. Nobody else decides.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from harness.log.events import (
    AssistantChunk,
    AssistantMessage,
    Event,
    InboxTarget,
    StepEnd,
    StepStart,
    ToolResult,
    TurnEnd,
    TurnReason,
    TurnStart,
)
from harness.model.chunks import Finish, FinishKind
from harness.model.messages import Message, tool_calls_of

CONCLUDES = "concludesTurn"  # key in the meta of a tool result that ends the turn without another request


@dataclass(frozen=True, slots=True)
class TurnState:
    """Where the log stands: the last turn and its last step.

    Shape: cut says that a step of this turn hit the output ceiling; settled, that the last step owes the model nothing.
    """

    turn: int = 0
    turn_open: bool = False
    step: int = 0
    step_open: bool = False
    cut: bool = False
    settled: bool = False
    finish: FinishKind | None = None


@dataclass(frozen=True, slots=True)
class Enter:
    """Go into the step with these messages."""

    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Reject:
    """Do not go into the step; the turn ends as blocked."""


@dataclass(frozen=True, slots=True)
class ClaimInput:
    """Take input for another step; from next-turn only at the start of a turn."""

    target: InboxTarget


@dataclass(frozen=True, slots=True)
class AskStopping:
    """Nothing is owed and nothing waits: let the observers of the turn's end object by steering."""


@dataclass(frozen=True, slots=True)
class EndTurn:
    """Close the turn with this reason."""

    reason: TurnReason


Decision: TypeAlias = Enter | Reject
Action: TypeAlias = ClaimInput | AskStopping | EndTurn


def advance(state: TurnState, event: Event) -> TurnState:
    """The state after one more event; folding it over a whole log says where the log stands."""
    payload = event.payload
    match payload:
        case AssistantChunk():
            chunk = payload.chunk
            return replace(state, finish=chunk.kind) if type(chunk) is Finish and state.step_open else state
        case TurnStart():
            return TurnState(turn=payload.turn, turn_open=True)
        case TurnEnd():
            return replace(state, turn_open=False, step_open=False)
        case StepStart():
            return replace(state, step=payload.step, step_open=True, settled=False, finish=None)
        case StepEnd():
            return replace(state, step_open=False)
        case AssistantMessage() if state.step_open:
            cut = state.cut or state.finish == "max-tokens"
            return replace(state, cut=cut, settled=not tool_calls_of(payload.message))
        case ToolResult() if state.step_open and payload.meta is not None and payload.meta.get(CONCLUDES) is True:
            return replace(state, settled=True)
        case _:
            return state


def outcome(state: TurnState) -> TurnReason | None:
    """How the turn would end here, or None while its last step owes the model an answer."""
    if not state.settled:
        return None
    return TurnReason("max-tokens" if state.cut else "completed")


def after_claim(state: TurnState, decision: Decision) -> Enter | EndTurn:
    """What to do with the pre-step decision on the claimed input. Nothing of the step is in the log yet."""
    if isinstance(decision, Reject):
        return EndTurn(TurnReason("blocked"))
    if not decision.messages:
        if state.step == 0:
            return EndTurn(TurnReason("completed"))
        known = outcome(state)
        if known is not None:
            return EndTurn(known)
    return decision


def after_step(state: TurnState, waiting: int, max_steps: int, *, asked: bool) -> Action:
    """What to do once a step is closed and nobody cancelled.

    Shape: waiting counts the messages for the next step; asked says that the observers of the turn's end had their say.
    """
    known = outcome(state)
    if known is None or waiting:
        if state.step >= max_steps:
            return EndTurn(TurnReason("step-limit"))
        return ClaimInput("next-step")
    return EndTurn(known) if asked else AskStopping()


def drains_on(state: TurnState, reason: TurnReason) -> bool:
    """Whether input that waits may open the next turn by itself after this one; otherwise it waits for a wake."""
    if reason.kind == "completed":
        return state.step > 0
    return reason.kind in ("max-tokens", "step-limit", "aborted")
