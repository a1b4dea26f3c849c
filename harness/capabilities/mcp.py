"""The tools of MCP servers: opened with a session, closed with it, and never a reason for either to fail.

Room: assemble comes in with the servers that were named. The `mcp` package is loaded here, when there is one to open.
"""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from harness.capabilities.mcp_config import INHERITED, Processes, Server, StdioServer, load_servers
from harness.capabilities.mcp_listing import OfferedTool, offered_tools
from harness.errors import UsageError
from harness.loop.tools import Tool

__all__ = ["INHERITED", "McpServers", "Processes", "Server", "open_servers", "read_servers"]

if TYPE_CHECKING:  # the rooms that load the package; nobody pays for it without a server
    from harness.capabilities.mcp_connection import Connection, Limits


@dataclass(frozen=True, slots=True)
class McpServers:
    """The servers of a session.

    Shape: tools is name to tool; notices has a line for each server or tool that is left out. close ends every server
    in bounded time; end_now kills them without waiting.
    """

    tools: Mapping[str, Tool]
    notices: tuple[str, ...]
    connections: tuple[Connection, ...]

    async def close(self) -> None:
        """End the servers, side by side; may be called twice."""
        await asyncio.gather(*(connection.close() for connection in self.connections))

    def end_now(self) -> None:
        """Kill the servers that are programs, with what they started."""
        for connection in self.connections:
            connection.kill()


def read_servers(
    path: Path | None, environ: Mapping[str, str], allowed_hosts: Collection[str] | None
) -> tuple[Server, ...]:
    """The servers that a file names, none without one; nothing is started and the `mcp` package is not loaded.

    Raises: UsageError for a faulty file, as load_servers says, and when the package is not installed.
    """
    if path is None:
        return ()
    servers = load_servers(path, environ=environ, allowed_hosts=allowed_hosts)
    if importlib.util.find_spec("mcp") is None:
        raise UsageError(
            "it names MCP servers, and the package mcp is not installed",
            where=path.name,
            fix='pip install "five-lanes[mcp]"',
            code="MCP_MISSING",
        )
    return servers


async def open_servers(
    servers: Sequence[Server],
    workspace: Path,
    environment: Mapping[str, str],
    processes: Processes,
    *,
    limits: Limits | None = None,
    key: str | None = None,
) -> McpServers:
    """Start the servers side by side and take over their tools.

    Shape: one that fails is left out with a notice. Of the environment a server gets INHERITED and what its own
    configuration names; processes says how what it started is found again. The secrets of a server and the key are in
    nothing that comes from it.
    """
    if not servers:
        return McpServers({}, (), ())
    from harness.capabilities.mcp_connection import Connection, Limits
    from harness.capabilities.mcp_stdio import StdioTransport

    kept = {name: environment[name] for name in (*INHERITED, processes.variable) if name in environment}

    def connection(number: int, server: Server) -> Connection:
        server = replace(server, secrets=server.secrets.and_of([key]))
        if not isinstance(server, StdioServer):
            return Connection(server.name, server, limits or Limits(), server.secrets)
        marked = replace(processes, mark=f"{processes.mark}-{number}")
        probe_s = (limits or Limits()).probe_s
        transport = StdioTransport(server, cwd=workspace, env=kept, processes=marked, probe_s=probe_s)
        return Connection(server.name, transport, limits or Limits(), server.secrets)

    connections = tuple(connection(number, server) for number, server in enumerate(servers, start=1))
    found = McpServers({}, (), connections)
    try:
        opened = await asyncio.gather(*map(_open, connections))
    except BaseException:
        await found.close()
        raise
    tools: dict[str, Tool] = {}
    notices: list[str] = []
    for server, connected, (offered, refused) in zip(servers, connections, opened, strict=True):
        notices += refused
        tools |= {each.schema.name: _tool(each, connected, server.timeout_s) for each in offered}
    return McpServers(tools, tuple(notices), connections)


async def _open(connection: Connection) -> tuple[tuple[OfferedTool, ...], tuple[str, ...]]:
    """What one server offers; a server that fails offers nothing, with a line that says why."""
    from harness.capabilities.mcp_stdio import ServerFailedError

    try:
        listed = await connection.start()
    except ServerFailedError as error:
        return (), (f"MCP server {connection.name!r} is left out: {error}",)
    except RecursionError:
        return (), (f"MCP server {connection.name!r} is left out: its list of tools is nested too deeply",)
    offered, refused = offered_tools(connection.name, listed)
    return offered, tuple(f"MCP server {connection.name!r}: {each}; left out" for each in refused)


def _tool(offered: OfferedTool, connection: Connection, timeout_s: float) -> Tool:
    def is_read_only(_: object) -> bool:
        return offered.is_read_only

    tool = Tool(offered.schema, partial(connection.call, offered.name), is_read_only, timeout_s)
    return connection.secrets.tool(tool)
