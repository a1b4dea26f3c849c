"""The tool `delegate`: the model gives a part of its work to a child and gets the child's last words back.

Room: assemble comes in with the children of an agent. What a child is and how it ends stands in subagents.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from harness.capabilities.subagents import ChildResult, Subagents
from harness.errors import HarnessError
from harness.loop.tools import Tool, ToolContext, ToolOutput, error_output
from harness.model.call import ToolSchema
from harness.model.messages import Json, TextBlock

NAME = "delegate"

SCHEMA = ToolSchema(
    NAME,
    "Give one self-contained part of the work to another agent in the same workspace, and wait for its answer. It has "
    "the same tools and sees nothing of this conversation unless fork is true; say everything it has to know.",
    {
        "type": "object",
        "properties": {
            "task": {"type": "string", "description": "what to do and what to report back"},
            "fork": {
                "type": "boolean",
                "description": "let it begin with this conversation up to the end of the last turn",
            },
        },
        "required": ["task"],
        "additionalProperties": False,
    },
)


def build_delegate_tool(subagents: Subagents, *, is_read_only: bool = False) -> Tool:
    """The tool over these children.

    Shape: is_read_only declares that children change nothing, so that several may work side by side; only who takes
    the changing tools away from them may say so.
    """

    async def delegate(arguments: Mapping[str, Json], context: ToolContext) -> ToolOutput:
        task = str(arguments["task"])
        if not task.strip():
            return error_output("the task says nothing", "INVALID_ARGS")
        try:
            result = await subagents.run(
                task, context.cancel, fork=arguments.get("fork") is True, call_id=context.call_id
            )
        except HarnessError as error:
            expected = f"; expected: {error.expected}" if error.expected else ""
            return error_output(f"no child was started: {error.what}{expected}", error.error_code)
        return output_of(result)

    return Tool(SCHEMA, delegate, (lambda arguments: True) if is_read_only else None)


def output_of(result: ChildResult) -> ToolOutput:
    """What the parent's model is told of a child's work; what the child said stands in it however it ended."""
    text = result.text
    if result.is_ok and result.problem is None:
        output = ToolOutput((TextBlock(text or "The child ended without a word."),))
    else:
        said = f"\nWhat it had said until then:\n{text}" if text else "\nIt had said nothing until then."
        output = error_output(f"the child's work ended {_ending(result)}.{said}", _CODES.get(result.stop, "SUBAGENT"))
    if result.ended:
        note = "Ended with the child, left in the background by it:\n" + "\n".join(result.ended)
        output = replace(output, content=(*output.content, TextBlock(f"\n{note}")))
    return replace(output, meta={"childSession": result.session_id, "stopReason": result.stop})


_CODES = {"aborted": "ABORTED", "max-tokens": "SUBAGENT_CUT", "refusal": "SUBAGENT_REFUSED", "error": "SUBAGENT_FAILED"}


def _ending(result: ChildResult) -> str:
    """How it ended, in words that name a cause where there is one."""
    if result.problem is not None:
        return f"{result.stop}, {result.problem.what} [{result.problem.error_code}]"
    reason = result.reason
    if reason is not None and reason.failure is not None:
        return f"{result.stop}, {reason.failure.message} [{reason.failure.code}]"
    if reason is not None and reason.kind not in ("aborted", "max-tokens", "blocked"):
        return f"{result.stop} ({reason.kind})"
    return result.stop
