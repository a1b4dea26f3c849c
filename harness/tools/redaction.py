"""Tools whose answers never hold the key of the model's service.

Room: assemble comes in. A command can read the environment of the program that started it; what it found there must
reach neither the log nor the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from harness.loop.tools import Tool, ToolContext, ToolOutput
from harness.model.messages import Json, TextBlock

STAND_IN = "[key removed]"
MIN_KEY = 8  # a shorter value is no key, and taking it out would cut holes into ordinary text


def redact_tools(tools: Mapping[str, Tool], key: str | None) -> Mapping[str, Tool]:
    """The same tools, with the key's value taken out of every text they answer; all of them where there is no key."""
    if key is None or len(key) < MIN_KEY:
        return tools
    return {name: _redacted(tool, key) for name, tool in tools.items()}


def _redacted(tool: Tool, key: str) -> Tool:
    async def run(arguments: Mapping[str, Json], context: ToolContext) -> ToolOutput:
        output = await tool.run(arguments, context)
        content = tuple(
            replace(block, text=block.text.replace(key, STAND_IN)) if isinstance(block, TextBlock) else block
            for block in output.content
        )
        return replace(output, content=content, context=tuple(each.replace(key, STAND_IN) for each in output.context))

    return replace(tool, run=run)
