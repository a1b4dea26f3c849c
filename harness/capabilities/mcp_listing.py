"""The tools a server lists: which of them are offered to the model, under which names, and why others are not.

Room: the connection comes in with the list as plain JSON.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from harness.capabilities.mcp_config import SEPARATOR
from harness.model.call import ToolSchema
from harness.model.messages import JsonObject

MAX_NAME_CHARACTERS = 64  # what every provider takes: [A-Za-z0-9_-], 64 of them
MAX_TOOLS = 500  # of one server; more would fill a request before the work begins
MAX_SCHEMA_BYTES = 64 << 10  # generous: the largest known to us are a tenth of it
MAX_DESCRIPTION_CHARACTERS = 10_000
_DIGEST_CHARACTERS = 8


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool as the model is told of it, and the name its server knows it by."""

    schema: ToolSchema
    name: str
    is_read_only: bool


def offered_tools(server: str, listed: Sequence[object]) -> tuple[tuple[OfferedTool, ...], tuple[str, ...]]:
    """The tools that can be offered, in the order of the list, and one line for each that cannot."""
    offered: dict[str, OfferedTool] = {}
    refused: list[str] = []
    for number, entry in enumerate(listed[:MAX_TOOLS], start=1):
        table = entry if isinstance(entry, Mapping) else {}
        name = table.get("name")
        if not isinstance(name, str) or not name:
            refused.append(f"tool {number} has no name")
            continue
        problem = _schema_problem(table.get("inputSchema"))
        public = tool_name(server, name)
        if problem:
            refused.append(f"tool {name!r:.80}: {problem}")
        elif public in offered:
            refused.append(f"tool {name!r:.80}: there is one of the name {public!r} already")
        else:
            schema = ToolSchema(public, _description(table), cast("JsonObject", table["inputSchema"]))
            offered[public] = OfferedTool(schema, name, _says_read_only(table.get("annotations")))
    if len(listed) > MAX_TOOLS:
        refused.append(f"{len(listed) - MAX_TOOLS} tools past the first {MAX_TOOLS}")
    return tuple(offered.values()), tuple(refused)


def tool_name(server: str, tool: str) -> str:
    """The name the model uses: the server's, two underscores, the tool's.

    Shape: characters no provider takes become underscores; a name that is too long ends in a digest of the whole.
    """
    whole = f"{server}{SEPARATOR}{tool}"
    name = re.sub(r"[^A-Za-z0-9_-]", "_", whole)
    if len(name) <= MAX_NAME_CHARACTERS:
        return name
    digest = hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_CHARACTERS]
    return f"{name[: MAX_NAME_CHARACTERS - _DIGEST_CHARACTERS - 1]}_{digest}"


def _description(table: Mapping[str, object]) -> str:
    text = table.get("description") or table.get("title") or ""
    return str(text)[:MAX_DESCRIPTION_CHARACTERS]


def _says_read_only(annotations: object) -> bool:
    """Only a plain true counts: a hint that has to be read kindly is no promise."""
    return isinstance(annotations, Mapping) and annotations.get("readOnlyHint") is True


def _schema_problem(schema: object) -> str:
    if not isinstance(schema, Mapping) or schema.get("type") != "object":
        return "its arguments are no object"
    try:
        size_bytes = len(json.dumps(schema, allow_nan=False))
    except (ValueError, RecursionError):
        return "its schema is no JSON"
    if size_bytes > MAX_SCHEMA_BYTES:
        return f"its schema has {size_bytes} bytes, {MAX_SCHEMA_BYTES} are the most"
    from jsonschema import SchemaError  # comes with the mcp package, and is wanted only when a server was asked
    from jsonschema.validators import validator_for

    try:
        validator_for(schema).check_schema(schema)
    except SchemaError as error:
        return f"its schema is none: {error.json_path}: {error.message:.120}"
    except Exception as error:  # noqa: BLE001 - a foreign schema walks a foreign checker; whatever it raises, it is bad
        return f"its schema cannot be checked: {type(error).__name__}"
    return ""
