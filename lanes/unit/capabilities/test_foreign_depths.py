"""What strangers hand over nested without end: a file of servers, the schema of a tool, a task of blanks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.capabilities.mcp_config import load_servers
from harness.capabilities.mcp_listing import offered_tools
from harness.errors import UsageError
from lanes.unit.capabilities.family import Family, delegates
from lanes.unit.loop.scripted_model import text


@pytest.mark.parametrize(
    ("name", "content"),
    [
        pytest.param("mcp.toml", "servers = " + "[" * 5000 + "]" * 5000, id="toml"),
        pytest.param("mcp.json", '{"servers": ' + "[" * 50_000 + "]" * 50_000 + "}", id="json"),
    ],
)
def test_a_file_of_servers_that_is_nested_too_deeply_is_named(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content, "utf-8")
    with pytest.raises(UsageError) as raised:
        load_servers(tmp_path / name, environ={})
    assert raised.value.what == "is nested too deeply"


def test_a_schema_that_no_checker_can_walk_leaves_its_tool_out() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(300):
        schema = {"type": "object", "properties": {"a": schema}}
    assert offered_tools("s", [{"name": "t", "inputSchema": schema}]) == (
        (),
        ("tool 't': its schema cannot be checked: RecursionError",),
    )


async def test_a_task_of_blanks_starts_no_child(make_family: Callable[..., Family]) -> None:
    family = make_family(delegates(" \\n "), text("then not"))
    await family.parent.run("go")
    assert (family.parent.results(), family.made) == (
        [("d1", True, "INVALID_ARGS", "Error: the task says nothing")],
        [],
    )
