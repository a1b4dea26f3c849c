"""One model call: what is asked, and the one method that answers.

Room: pure; the two protocols exist because the loop must not see a provider.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from harness.model.chunks import Chunk
from harness.model.messages import JsonObject, Message

ReasoningEffort = Literal["low", "medium", "high"]


@dataclass(frozen=True, slots=True)
class ToolSchema:
    """A tool as the model is told of it; parameters is a JSON Schema of the arguments."""

    name: str
    description: str
    parameters: JsonObject


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """Everything a model is asked with. It can be rebuilt from the session log alone.

    Shape: messages is a tuple, or a view that never changes.
    """

    provider: str
    model: str
    messages: Sequence[Message]
    system: str | None = None
    tools: tuple[ToolSchema, ...] = ()
    temperature: float | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    reasoning_effort: ReasoningEffort | None = None


class CancelSignal(Protocol):
    """Whether the work at hand was cancelled; read after every wait."""

    @property
    def cancelled(self) -> bool:
        """True from the moment of the first cancel."""
        ...

    async def wait(self) -> None:
        """Return once cancelled."""
        ...


class Model(Protocol):
    """Answers model requests. Failures arrive as the last chunk, never as exceptions."""

    def stream(self, request: ModelRequest, cancel: CancelSignal) -> AsyncIterator[Chunk]:
        """Yield the chunks of one answer; the last one is a Finish. aclose() frees the connection at once."""
        ...
