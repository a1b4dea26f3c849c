"""What a tool hands back: text that worked, or an error the model can act on.

Room: every tool may come in. File work runs off the event loop here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from harness.loop.tools import ToolContext, ToolOutput
from harness.model.messages import Json, JsonObject, TextBlock
from harness.tools.workspace import ToolError

Arguments = Mapping[str, Json]


def text_answer(text: str, *, meta: JsonObject | None = None) -> ToolOutput:
    """A result that worked."""
    return ToolOutput(content=(TextBlock(text),), meta=meta)


def error_answer(text: str, code: str, *, meta: JsonObject | None = None) -> ToolOutput:
    """A result that failed; the turn goes on."""
    return ToolOutput(content=(TextBlock(f"Error: {text}"),), is_error=True, code=code, meta=meta)


def in_thread(
    body: Callable[[Arguments, ToolContext], ToolOutput],
) -> Callable[[Arguments, ToolContext], Awaitable[ToolOutput]]:
    """The body of a tool that does blocking file work, as the loop runs it; a ToolError becomes an error result."""

    async def run(arguments: Arguments, context: ToolContext) -> ToolOutput:
        try:
            return await asyncio.to_thread(body, arguments, context)
        except ToolError as error:
            return error_answer(str(error), error.error_code)

    return run


def text_argument(arguments: Arguments, name: str, default: str | None = None) -> str:
    """A text argument; the schema has been checked, so only a tool called past the loop sees the error."""
    value = arguments.get(name, default)
    if not isinstance(value, str):
        raise ToolError(f"argument {name} must be a text", code="INVALID_ARGS")
    return value


def number_argument(arguments: Arguments, name: str, default: float) -> float:
    """A number argument, as above."""
    value = arguments.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ToolError(f"argument {name} must be a number", code="INVALID_ARGS")
    return value
