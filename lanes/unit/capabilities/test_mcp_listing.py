"""A listed tool is offered under a name every provider takes, or left out with a reason."""

from __future__ import annotations

import re
from typing import Any

import pytest

from harness.capabilities.mcp_listing import MAX_NAME_CHARACTERS, MAX_TOOLS, offered_tools, tool_name

OBJECT: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}}


@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        pytest.param("read_file", "s__read_file", id="plain"),
        pytest.param("files/read.all", "s__files_read_all", id="other-characters"),
        pytest.param("größe", "s__gr__e", id="not-ascii"),
    ],
)
def test_the_name_is_the_servers_and_the_tools(tool: str, expected: str) -> None:
    assert tool_name("s", tool) == expected


def test_names_that_are_too_long_stay_apart() -> None:
    names = {tool_name("server", "x" * 200 + end) for end in ("a", "b")}
    assert len(names) == 2
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{64}", name) and len(name) == MAX_NAME_CHARACTERS for name in names)


def test_schema_and_description_are_passed_on_as_they_are() -> None:
    (tool,), refused = offered_tools("s", [{"name": "t", "description": "Does it.", "inputSchema": OBJECT}])
    assert (tool.schema.parameters, tool.schema.description, tool.name, refused) == (OBJECT, "Does it.", "t", ())


@pytest.mark.parametrize(
    ("hints", "expected"),
    [
        pytest.param({"readOnlyHint": True}, True, id="true"),
        pytest.param({"readOnlyHint": 1}, False, id="one"),
        pytest.param({"readOnlyHint": "true"}, False, id="text"),
        pytest.param({"readOnlyHint": False}, False, id="false"),
        pytest.param({}, False, id="nothing"),
        pytest.param([], False, id="no-table"),
    ],
)
def test_only_a_plain_true_is_read_only(hints: object, expected: bool) -> None:
    (tool,), _ = offered_tools("s", [{"name": "t", "inputSchema": OBJECT, "annotations": hints}])
    assert tool.is_read_only is expected


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        pytest.param("text", "tool 1 has no name", id="no-table"),
        pytest.param({"name": ""}, "tool 1 has no name", id="empty-name"),
        pytest.param({"name": "t"}, "tool 't': its arguments are no object", id="no-schema"),
        pytest.param(
            {"name": "t", "inputSchema": {"type": "array"}}, "tool 't': its arguments are no object", id="array"
        ),
        pytest.param(
            {"name": "t", "inputSchema": {"type": "object", "x": float("nan")}},
            "tool 't': its schema is no JSON",
            id="not-a-number",
        ),
        pytest.param(
            {"name": "t", "inputSchema": {"type": "object", "required": "a"}},
            "tool 't': its schema is none: $.required: 'a' is not of type 'array'",
            id="no-schema-of-its-kind",
        ),
        pytest.param(
            {"name": "t", "inputSchema": {"type": "object", "x": "y" * 70_000}},
            "tool 't': its schema has 70027 bytes, 65536 are the most",
            id="large",
        ),
    ],
)
def test_what_cannot_be_offered_is_named_with_its_reason(entry: object, expected: str) -> None:
    assert offered_tools("s", [entry]) == ((), (expected,))


def test_of_two_tools_with_one_name_the_first_is_offered() -> None:
    offered, refused = offered_tools("s", [{"name": name, "inputSchema": OBJECT} for name in ("a.b", "a b")])
    assert [tool.name for tool in offered] == ["a.b"]
    assert refused == ("tool 'a b': there is one of the name 's__a_b' already",)


def test_no_server_offers_more_tools_than_fit() -> None:
    offered, refused = offered_tools("s", [{"name": f"t{n}", "inputSchema": OBJECT} for n in range(MAX_TOOLS + 2)])
    assert (len(offered), refused) == (MAX_TOOLS, ("2 tools past the first 500",))
