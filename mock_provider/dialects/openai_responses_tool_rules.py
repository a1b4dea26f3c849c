"""What the Responses endpoint refuses about tools, tool choice and the wanted form of the answer, in its own words.

Room: pure; only the Responses rules come in.
Source: as openai_responses_rules; here a tool's name and schema stand beside its type, not inside it.
"""

from __future__ import annotations

from collections.abc import Sequence

from mock_provider.asked import Refusal
from mock_provider.dialects.json_schema import schema_problem
from mock_provider.dialects.openai_refusals import missing, too_many, unknown_value, wrong_type
from mock_provider.dialects.openai_strict_schema import strict_problem
from mock_provider.dialects.openai_tool_rules import MAX_TOOLS, refuse_name
from mock_provider.json_values import Json, JsonObject
from mock_provider.known import fold

TOOL_KINDS = (
    "apply_patch",
    "code_interpreter",
    "computer",
    "computer_use_preview",
    "custom",
    "file_search",
    "function",
    "image_generation",
    "local_shell",
    "mcp",
    "namespace",
    "programmatic_tool_calling",
    "shell",
    "tool_search",
    "web_search",
    "web_search_2025_08_26",
    "web_search_preview",
    "web_search_preview_2025_03_11",
)
_NAMED = ("function", "custom")
_FORMATS = ("text", "json_object", "json_schema")
_GRAMMARS = ("lark", "regex")


def offered_names(tools: Json) -> tuple[str, ...]:
    """What the offered tools are called, in order; a tool of the service goes by its type."""
    return tuple(
        str(tool.get("name", tool.get("type")))
        for tool in (tools if isinstance(tools, list) else [])
        if isinstance(tool, dict)
    )


def refuse_tools(body: JsonObject) -> Refusal | None:
    """Check the offered tools."""
    tools = body.get("tools")
    if tools is None:
        return None
    if not isinstance(tools, list):
        return wrong_type("tools", "an array of objects", tools)
    if len(tools) > MAX_TOOLS:
        return too_many("too_many_tools", "tools", len(tools), MAX_TOOLS)
    if fold(_offer, _NO_TOOLS, tools) is not None:
        return None
    names: set[str] = set()
    for at, tool in enumerate(tools):
        here = f"tools[{at}]"
        if not isinstance(tool, dict):
            return wrong_type(here, "an object", tool)
        problem = _tool(tool, here)
        if problem:
            return problem
        name = tool.get("name")
        if tool["type"] in _NAMED and isinstance(name, str):
            if name in names:
                text = f"Invalid 'tools': tool names must be unique, but '{name}' is given more than once."
                return Refusal(400, "duplicate_tool_name", text, code="invalid_value", param=f"{here}.name")
            names.add(name)
    return None


_NO_TOOLS: frozenset[str] | None = frozenset()


def _offer(names: frozenset[str] | None, tools: Sequence[Json]) -> frozenset[str] | None:
    """Names of tools in which no rule is broken, after those before them; None where one may be."""
    if names is None:
        return None
    found = set(names)
    for tool in tools:
        if not isinstance(tool, dict) or _tool(tool, ""):
            return None
        name = tool.get("name")
        if tool["type"] in _NAMED and isinstance(name, str):
            if name in found:
                return None
            found.add(name)
    return frozenset(found)


def _tool(tool: JsonObject, here: str) -> Refusal | None:
    if "type" not in tool:
        return missing(f"{here}.type")
    kind = tool["type"]
    if not isinstance(kind, str) or kind not in TOOL_KINDS:
        return unknown_value("unknown_tool_type", f"{here}.type", kind, TOOL_KINDS)
    if kind == "mcp" and not isinstance(tool.get("server_label"), str):
        return missing(f"{here}.server_label")
    if kind == "code_interpreter" and "container" not in tool:
        return missing(f"{here}.container")
    if kind not in _NAMED:
        return None
    if "name" not in tool:
        return missing(f"{here}.name")
    if not isinstance(tool["name"], str):
        return wrong_type(f"{here}.name", "a string", tool["name"])
    problem = refuse_name(tool["name"], f"{here}.name")
    if problem:
        return problem
    description = tool.get("description")
    if description is not None and not isinstance(description, str):
        return wrong_type(f"{here}.description", "a string", description)
    return _parameters(tool, here) if kind == "function" else _grammar(tool.get("format"), f"{here}.format")


def _parameters(tool: JsonObject, here: str) -> Refusal | None:
    strict = tool.get("strict")
    if strict is not None and not isinstance(strict, bool):
        return wrong_type(f"{here}.strict", "a boolean", strict)
    schema = tool.get("parameters")
    if schema is None:
        return None
    if not isinstance(schema, dict):
        return wrong_type(f"{here}.parameters", "an object", schema)
    problem = schema_problem(schema)
    if problem is None and schema.get("type", "object" if not schema else None) != "object":
        problem = f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{schema.get('type')}\"'"
    if problem is None and strict is True:
        problem = strict_problem(schema)
    if problem is None:
        return None
    text = f"Invalid schema for function '{tool['name']}': {problem}."
    return Refusal(400, "bad_tool_schema", text, code="invalid_function_parameters", param=f"{here}.parameters")


def _grammar(wanted: Json, here: str) -> Refusal | None:
    if wanted is None:
        return None
    if not isinstance(wanted, dict):
        return wrong_type(here, "an object", wanted)
    kind = wanted.get("type")
    if kind == "text":
        return None
    if kind != "grammar":
        return (
            missing(f"{here}.type")
            if kind is None
            else unknown_value("unknown_format", f"{here}.type", kind, ("text", "grammar"))
        )
    for name in ("syntax", "definition"):
        if not isinstance(wanted.get(name), str):
            return missing(f"{here}.{name}")
    if wanted["syntax"] not in _GRAMMARS:
        return unknown_value("unknown_format", f"{here}.syntax", wanted["syntax"], _GRAMMARS)
    return None


def refuse_tool_choice(body: JsonObject) -> Refusal | None:
    """Check which tool the model shall call."""
    choice, tools = body.get("tool_choice"), body.get("tools")
    if choice in (None, "none", "auto"):
        return None
    if isinstance(choice, str) and choice != "required":
        return unknown_value("unknown_tool_choice", "tool_choice", choice, ("none", "auto", "required"))
    if not isinstance(choice, str | dict):
        return wrong_type("tool_choice", "one of 'none', 'auto', 'required' or an object", choice)
    if not tools:
        word = choice if isinstance(choice, str) else choice.get("type")
        text = f"Tool choice '{word}' must be specified with 'tools' parameter."
        return Refusal(400, "tool_choice_without_tools", text, param="tool_choice")
    if isinstance(choice, str):
        return None
    kind = choice.get("type")
    if kind is None:
        return missing("tool_choice.type")
    if kind == "allowed_tools":
        return None if isinstance(choice.get("tools"), list) else missing("tool_choice.tools")
    if kind in _NAMED:
        if "name" not in choice:
            return missing("tool_choice.name")
        wanted = choice["name"]
    elif kind in TOOL_KINDS:
        wanted = choice.get("server_label", kind) if kind == "mcp" else kind
        if any(
            isinstance(tool, dict) and wanted in (tool.get("type"), tool.get("server_label")) for tool in _listed(tools)
        ):
            return None
    else:
        return unknown_value("unknown_tool_choice", "tool_choice.type", kind, ("allowed_tools", *TOOL_KINDS))
    if wanted in offered_names(tools):
        return None
    text = f"Tool choice '{wanted}' not found in 'tools' parameter."
    return Refusal(400, "tool_choice_not_offered", text, param="tool_choice")


def _listed(tools: Json) -> list[Json]:
    return tools if isinstance(tools, list) else []


def refuse_text(body: JsonObject) -> Refusal | None:
    """Check the wanted form of the answer."""
    text = body.get("text")
    if text is None:
        return None
    if not isinstance(text, dict):
        return wrong_type("text", "an object", text)
    verbosity = text.get("verbosity")
    if verbosity not in (None, "low", "medium", "high"):
        return unknown_value("unknown_word", "text.verbosity", verbosity, ("low", "medium", "high"))
    wanted = text.get("format")
    if wanted is None:
        return None
    if not isinstance(wanted, dict):
        return wrong_type("text.format", "an object", wanted)
    if "type" not in wanted:
        return missing("text.format.type")
    kind = wanted["type"]
    if not isinstance(kind, str) or kind not in _FORMATS:
        return unknown_value("unknown_response_format", "text.format.type", kind, _FORMATS)
    if kind == "json_object" and not _says_json(body):
        message = (
            "Response input messages must contain the word 'json' in some form to use 'text.format' of type "
            "'json_object'."
        )
        return Refusal(400, "json_word_missing", message, param="input")
    return _schema(wanted) if kind == "json_schema" else None


def _says_json(body: JsonObject) -> bool:
    """Whether the word stands anywhere; what a continued response said is not looked at."""
    return (
        body.get("previous_response_id") is not None
        or "json" in f"{body.get('input')}{body.get('instructions')}".lower()
    )


def _schema(wanted: JsonObject) -> Refusal | None:
    here = "text.format"
    for name in ("name", "schema"):
        if wanted.get(name) is None:
            return missing(f"{here}.{name}")
    if not isinstance(wanted["name"], str):
        return wrong_type(f"{here}.name", "a string", wanted["name"])
    problem = refuse_name(wanted["name"], f"{here}.name")
    if problem:
        return problem
    schema = wanted["schema"]
    if not isinstance(schema, dict):
        return wrong_type(f"{here}.schema", "an object", schema)
    wrong = schema_problem(schema)
    if wrong is None and wanted.get("strict") is True:
        wrong = strict_problem(schema)
    if wrong is None:
        return None
    message = f"Invalid schema for response_format '{wanted['name']}': {wrong}."
    return Refusal(400, "bad_response_schema", message, code="invalid_json_schema", param=f"{here}.schema")
