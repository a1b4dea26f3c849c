"""Run one tool call: find the tool, check its arguments, keep its time, name what went wrong.

Room: the dispatcher comes in with a call and gets an output back, never an exception; tools import the types.
"""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from harness.log.events import Cause
from harness.loop.arguments import InvalidArgumentsError, read_arguments
from harness.loop.assembly import UNNAMED_TOOL
from harness.loop.failure import render_chain
from harness.loop.schedule import Mode, mode_of
from harness.loop.scope import CancelScope, settle
from harness.model.call import CancelSignal, ToolSchema
from harness.model.messages import CallId, ImageBlock, Json, JsonObject, TextBlock, ToolCallBlock

TOOL_TIMEOUT = Cause("hook", "tool timeout")


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a tool answers.

    Shape: code names an error for programs; meta is for readers of the log, the model does not see it; conclude ends
    the turn without another request; context are texts the model gets after all results of the step.
    """

    content: tuple[TextBlock | ImageBlock, ...]
    is_error: bool = False
    code: str | None = None
    meta: JsonObject | None = None
    conclude: bool = False
    context: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a running tool knows of its call; it has to end soon once cancel is set."""

    call_id: CallId
    cancel: CancelSignal


ToolBody = Callable[[Mapping[str, Json], ToolContext], Awaitable[ToolOutput]]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool the model may call.

    Shape: is_read_only says for these arguments whether the call may run beside others.
    Units: timeout_s is a time limit in seconds; the body is told and waited for.
    """

    schema: ToolSchema
    run: ToolBody
    is_read_only: Callable[[Mapping[str, Json]], bool] | None = None
    timeout_s: float | None = None


@dataclass(frozen=True, slots=True)
class PreparedCall:
    """A call whose tool exists and takes these arguments."""

    call_id: CallId
    tool: Tool
    arguments: Mapping[str, Json]


def error_output(text: str, code: str | None = None) -> ToolOutput:
    """An error the model can read, `Error: …`."""
    return ToolOutput((TextBlock(f"Error: {text}"),), is_error=True, code=code)


def not_dispatched() -> ToolOutput:
    """The answer to a call that was not started because the turn was cancelled."""
    return error_output(
        "the turn was cancelled before this call was started; it did not run", "ABORTED_BEFORE_DISPATCH"
    )


def prepare_call(call: ToolCallBlock, tools: Mapping[str, Tool]) -> PreparedCall | ToolOutput:
    """The call ready to run, or the error to answer it with."""
    tool = tools.get(call.name)
    if tool is None:
        return error_output(_unknown(call.name, tools), "UNKNOWN_TOOL")
    try:
        arguments = read_arguments(call.arguments, tool.schema.parameters)
    except InvalidArgumentsError as error:
        return error_output(f"invalid arguments for {call.name}: {error}", "INVALID_ARGS")
    return PreparedCall(call.id, tool, arguments)


def mode_of_call(prepared: PreparedCall | ToolOutput) -> Mode:
    """Whether the call may run beside others; a call that cannot run at all is exclusive."""
    if isinstance(prepared, ToolOutput) or prepared.tool.is_read_only is None:
        return "exclusive"
    classify = prepared.tool.is_read_only
    return mode_of(lambda: classify(prepared.arguments))


async def run_call(prepared: PreparedCall, scope: CancelScope, sleep: Callable[[float], Awaitable[None]]) -> ToolOutput:
    """Run the body until it ends by itself, however it was told to stop.

    A body that succeeds after the turn was cancelled counts as ABORTED, one that fails keeps its own error; its own
    time limit counts only when it ran out before anyone cancelled.
    """
    inner = CancelScope()
    detach = scope.on_cancel(lambda: inner.cancel(scope.cause or Cause("user")))
    body = asyncio.ensure_future(_body(prepared, inner))
    timer: asyncio.Task[None] | None = None
    if prepared.tool.timeout_s is not None:
        timer = asyncio.ensure_future(_expire(prepared.tool.timeout_s, sleep, inner))
    try:
        await settle((body,), scope)
    finally:
        detach()
        if timer is not None:
            timer.cancel()
    output = checked_output(body.result())
    if inner.cause is TOOL_TIMEOUT:
        return error_output(
            f"{prepared.tool.schema.name} was stopped after its time limit of {prepared.tool.timeout_s:g} s",
            "TOOL_TIMEOUT",
        )
    if scope.cancelled and not output.is_error:
        return error_output("the call was cancelled while it ran; what it did until then stays done", "ABORTED")
    return output


async def _expire(timeout_s: float, sleep: Callable[[float], Awaitable[None]], inner: CancelScope) -> None:
    await sleep(timeout_s)
    inner.cancel(TOOL_TIMEOUT)


async def _body(prepared: PreparedCall, inner: CancelScope) -> object:
    try:
        return await prepared.tool.run(prepared.arguments, ToolContext(prepared.call_id, inner))
    except asyncio.CancelledError:
        return error_output("the call was cancelled from within", "ABORTED" if inner.cancelled else None)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - a tool may raise anything, SystemExit too; the turn goes on
        return failed_output(error)


def failed_output(error: BaseException) -> ToolOutput:
    """The answer to a call whose tool raised."""
    return error_output(render_chain(error))


def checked_output(output: object) -> ToolOutput:
    """The output, if it is one; what stands in it is judged by the log when the result is appended."""
    if not isinstance(output, ToolOutput):
        return invalid_output(f"a {type(output).__name__} where a ToolOutput belongs")
    if type(output.content) is not tuple or type(output.context) is not tuple:
        return invalid_output("content and context have to be tuples")
    if not all(type(text) is str and text for text in output.context):
        return invalid_output("context has to hold non-empty strings")
    return output


def invalid_output(problem: str) -> ToolOutput:
    """The answer to a call whose tool handed back something a log cannot hold."""
    return error_output(f"the tool answered with something that is not an output: {problem}", "INVALID_TOOL_OUTPUT")


def _unknown(name: str, tools: Mapping[str, Tool]) -> str:
    known = ", ".join(sorted(tools)) or "none"
    if name == UNNAMED_TOOL:
        return f"the call names no tool; tools: {known}"
    near = difflib.get_close_matches(name, tools, n=1)
    hint = f", did you mean {near[0]!r}" if near else ""
    return f"there is no tool {name!r}{hint}; tools: {known}"
