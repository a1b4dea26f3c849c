"""What a person at a terminal is told while the agent works, one line an event.

Room: pure; headless comes in. Text of a model or a tool is shown without its control characters. Composes no presets;
model choice belongs to the host.
"""

from __future__ import annotations

import re

from harness.log.events import AssistantMessage, Event, LlmRetry, StepStart, ToolCall, ToolResult
from harness.model.messages import ToolResultBlock

MAX_ARGUMENTS = 100  # characters of a call's arguments: one line of a wide terminal

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


def one_line(text: str) -> str:
    """The text on one line, without control characters."""
    return " ".join(_CONTROL.sub(" ", text).split())


def progress_line(event: Event) -> str | None:
    """The line that tells of an event, or None for one that nobody waits for."""
    payload = event.payload
    match payload:
        case StepStart():
            return f"step {payload.step}"
        case ToolCall():
            arguments = one_line(payload.arguments)
            if len(arguments) > MAX_ARGUMENTS:
                arguments = f"{arguments[:MAX_ARGUMENTS]}…"
            return f"  {one_line(payload.name)} {arguments}"
        case ToolResult():
            return _failed_call(payload)
        case AssistantMessage() if payload.usage is not None:
            return f"  {payload.usage.input_tokens} tokens in, {payload.usage.output_tokens} out"
        case LlmRetry():
            return f"  {payload.failure.code}, trying again in {payload.delay_ms / 1000:g} s"
        case _:
            return None


def _failed_call(payload: ToolResult) -> str | None:
    for block in payload.message.content:
        if isinstance(block, ToolResultBlock) and block.is_error:
            return f"    failed{f': {payload.error.code}' if payload.error else ''}"
    return None
