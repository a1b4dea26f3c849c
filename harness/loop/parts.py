"""What one loop is built from: the log's writer, the model, the tools, and everything that would differ between runs.

Room: the agent builds it from its arguments; driver, attempt and dispatch read it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from harness.log.events import RequestConfig
from harness.log.session_log import SessionLog
from harness.loop.hooks import Hooks
from harness.loop.prompt import Section
from harness.loop.retry import RetryPolicy
from harness.loop.tools import Tool
from harness.model.call import Model


class Writer(Protocol):
    """The log and the way to make it durable; a store's writer is one."""

    @property
    def log(self) -> SessionLog:
        """The log everything is appended to."""
        ...

    async def flush(self) -> None:
        """Return once everything in the log is durable.

        Raises: LogWriteError when it could not be made so.
        """
        ...


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a loop; none is changed by it.

    Units: turn_timeout_s is seconds of one turn; sleep takes seconds; jitter answers a number from 0 up to 1.
    """

    writer: Writer
    model: Model
    tools: Mapping[str, Tool]
    tool_order: tuple[str, ...]
    sections: tuple[Section, ...]
    variables: Mapping[str, str]
    volatile: Callable[[], str | None] | None
    retry: RetryPolicy
    hooks: Hooks
    max_steps: int
    turn_timeout_s: float | None
    parallel_cap: int
    check_chunks: bool
    context_window: Callable[[RequestConfig], int | None] | None
    ids: Callable[[str], str]
    jitter: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]]
    report: Callable[[BaseException], None]

    @property
    def log(self) -> SessionLog:
        """The log everything is appended to."""
        return self.writer.log
