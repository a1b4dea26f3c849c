"""All tools shipped with the harness, by name, for one workspace.

Room: assemble comes in, and nobody else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.errors import UsageError
from harness.loop.redaction import Secrets
from harness.loop.tools import Tool
from harness.tools.files import build_file_tools
from harness.tools.search import build_search_tools
from harness.tools.shell import Shell, build_shell_tool
from harness.tools.workspace import Workspace

DEFAULT_SHELL_TIMEOUT_S = 120.0  # a test suite of a small project ends well before; a hung command costs two minutes


@dataclass(frozen=True, slots=True)
class ShippedTools:
    """The tools and what they hold open.

    Shape: tools is name to tool; close() ends background processes and gives their command lines.
    """

    tools: Mapping[str, Tool]
    shell: Shell

    async def close(self) -> tuple[str, ...]:
        """End what shell commands left running; safe to call twice."""
        return await self.shell.close()

    async def end_leftovers(self) -> None:
        """End what shell commands of an earlier process left running; for the start of a resumed session."""
        await self.shell.end_leftovers()

    def end_now(self) -> None:
        """Kill what shell commands left running, without waiting for anything."""
        self.shell.end_now()


def build_tools(
    workspace: Path,
    *,
    spill_dir: Path,
    environment: Mapping[str, str],
    shell_timeout_s: float = DEFAULT_SHELL_TIMEOUT_S,
    secrets: Secrets | None = None,
) -> ShippedTools:
    """Build every shipped tool for one workspace folder.

    Limits: environment is all a shell command gets to see; the caller leaves keys out of it. secrets are taken out of
    what commands print before any of it is kept.
    Raises: UsageError when the workspace is not a folder.
    """
    if not workspace.is_dir():
        raise UsageError("not a folder", where=str(workspace), expected="an existing folder to work in")
    place = Workspace(workspace, spill_dir=spill_dir)
    shell = Shell(place, timeout_s=shell_timeout_s, environment=environment, secrets=secrets)
    tools = (*build_file_tools(place), *build_search_tools(place), build_shell_tool(shell))
    return ShippedTools(tools={tool.schema.name: tool for tool in tools}, shell=shell)
