"""An MCP server written with the official package.

Room: the tests of MCP start it as a program, or serve it over HTTP.
"""

from __future__ import annotations

from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import BaseModel


class Sum(BaseModel):
    """An answer with fields."""

    left: int
    right: int
    total: int


def build_server() -> MCPServer[Any]:
    server: MCPServer[Any] = MCPServer("good")

    @server.tool(annotations=ToolAnnotations(readOnlyHint=True))
    def shout(text: str) -> str:
        """Give the text back in capitals."""
        return text.upper()

    @server.tool()
    def add(left: int, right: int) -> Sum:
        """Add two numbers."""
        return Sum(left=left, right=right, total=left + right)

    @server.tool()
    def fail(reason: str) -> str:
        """Fail."""
        raise ToolError(reason)

    return server


if __name__ == "__main__":
    build_server().run("stdio")
