"""How a prompt ends: one outcome from everything that happened to it, by fixed precedence.

Room: pure; the bridge comes in.
Source: Agent Client Protocol, version 1, stop reasons.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from harness.log.events import TurnReason

StopReason = Literal["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"]


@dataclass(frozen=True, slots=True)
class Happened:
    """What is known of a prompt once nothing more can happen to it.

    Shape: delivery_problem and agent_problem are None where there was none; ending is that of the turn which claimed
    the message, None when none did.
    """

    was_cancelled: bool
    delivery_problem: str | None = None
    agent_problem: str | None = None
    ending: TurnReason | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """The prompt is answered with an error."""

    text: str


def settle(happened: Happened, *, tells_max_tokens: bool) -> StopReason | Failed:
    """The outcome; the first fact that holds decides.

    Shape: tells_max_tokens is the connection's own choice; others are told end_turn, as automation expects.
    """
    if happened.was_cancelled:
        return "cancelled"
    if happened.delivery_problem is not None:
        return Failed(f"assistant output delivery failed: {happened.delivery_problem}")
    if happened.agent_problem is not None:
        return Failed(f"turn failed: {happened.agent_problem}")
    ending = happened.ending
    if ending is None or ending.kind == "interrupted":
        return "cancelled"
    if ending.kind == "error":
        return Failed(f"turn failed: {'error' if ending.failure is None else ending.failure.message}")
    if tells_max_tokens:
        return {"max-tokens": "max_tokens", "step-limit": "max_turn_requests"}.get(ending.kind, "end_turn")  # type: ignore[return-value] # both are stop reasons
    return "end_turn"
