"""A bench for MCP: servers of a test's own, opened with short limits, and what their processes leave.

Room: the tests of MCP come in.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from harness.capabilities.mcp import McpServers, Processes, open_servers
from harness.capabilities.mcp_config import Server, StdioServer
from harness.capabilities.mcp_connection import Limits
from harness.loop.scope import CancelScope
from harness.loop.tools import ToolContext, ToolOutput
from harness.model.messages import CallId, TextBlock
from harness.tools.processes import MARK, end_all, find_members, read_table, signal_now

HERE = Path(__file__).parent
RAW = HERE / "mcp_raw_server.py"
GOOD = HERE / "mcp_good_server.py"
START_S = 60.0  # a busy machine may take long; no test waits for it but those that give another


@dataclass
class Bench:
    """Opens servers for one test."""

    folder: Path
    limits: Limits = field(default_factory=lambda: Limits(start_s=START_S))
    opened: list[McpServers] = field(default_factory=list)

    @property
    def notes_file(self) -> Path:
        return self.folder / "notes"

    @property
    def notes(self) -> list[str]:
        return self.notes_file.read_text("utf-8").splitlines() if self.notes_file.exists() else []

    @property
    def mark(self) -> str:
        return f"test-{self.folder.name}-{os.getpid()}"

    def raw(self, way: str, name: str = "raw", **options: Any) -> StdioServer:
        return StdioServer(name, sys.executable, (str(RAW), way, str(self.notes_file)), **options)

    async def open(
        self, *servers: Server, environment: Mapping[str, str] | None = None, key: str | None = None
    ) -> McpServers:
        processes = Processes(
            MARK, self.mark, partial(end_all, grace_s=0.3), partial(signal_now, number=signal.SIGKILL)
        )
        found = await open_servers(
            servers,
            self.folder,
            os.environ if environment is None else environment,
            processes,
            limits=self.limits,
            key=key,
        )
        self.opened.append(found)
        return found

    def left(self) -> tuple[int, ...]:
        """The processes of this test's servers that still run."""
        return tuple(row.pid for row in find_members(read_table(), frozenset(), self.mark))

    async def close(self) -> None:
        for each in self.opened:
            await each.close()


async def ask(servers: McpServers, tool: str, cancel: CancelScope | None = None, **arguments: Any) -> ToolOutput:
    """Call a tool as the loop would."""
    return await servers.tools[tool].run(arguments, ToolContext(CallId("call_1"), cancel or CancelScope()))


def text_of(output: ToolOutput) -> str:
    return "".join(block.text for block in output.content if isinstance(block, TextBlock))


async def until(is_so: Callable[[], bool]) -> None:
    """Wait for what another process does."""
    while not is_so():  # noqa: ASYNC110 - there is nothing of ours that another process could set
        await asyncio.sleep(0.01)
