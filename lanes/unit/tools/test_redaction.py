"""The key of the model's service never leaves a tool."""

from __future__ import annotations

import pytest

from harness.loop.scope import CancelScope
from harness.loop.tools import Tool, ToolContext, ToolOutput
from harness.model.call import ToolSchema
from harness.model.messages import CallId, TextBlock
from harness.tools.redaction import redact_tools


def tool(text: str) -> Tool:
    async def run(arguments: object, context: ToolContext) -> ToolOutput:
        return ToolOutput((TextBlock(text),), context=(text,))

    return Tool(ToolSchema("peek", "d", {"type": "object"}), run)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        pytest.param("sk-0123456789", "A=[key removed] B", id="key"),
        pytest.param(None, "A=sk-0123456789 B", id="no-key"),
        pytest.param("sk-0", "A=sk-0123456789 B", id="too-short-to-be-one"),
    ],
)
async def test_a_key_found_by_a_tool_is_taken_out_of_its_answer(key: str | None, expected: str) -> None:
    found = redact_tools({"peek": tool("A=sk-0123456789 B")}, key)["peek"]
    output = await found.run({}, ToolContext(CallId("c"), CancelScope()))
    assert (output.content, output.context) == ((TextBlock(expected),), (expected,))
