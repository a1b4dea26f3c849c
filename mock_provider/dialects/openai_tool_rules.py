"""What the chat completions endpoint refuses about tools, tool choice and response schemas, in its own words.

Room: pure; only the chat rules come in.
Source: as openai_chat_rules.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from mock_provider.asked import Refusal
from mock_provider.dialects.json_schema import schema_problem
from mock_provider.dialects.openai_refusals import empty, empty_text, missing, too_long, too_many, wrong_type
from mock_provider.dialects.openai_responses_input import custom_names
from mock_provider.dialects.openai_strict_schema import strict_problem
from mock_provider.json_values import Json, JsonObject
from mock_provider.known import fold
from mock_provider.values import value

MAX_TOOLS = 128
_FUNCTION_NAME = re.compile(r"[a-zA-Z0-9_-]+")
MAX_NAME = 64


@value
class Offered:
    """The tools that a request offers.

    Shape: names in order; custom are those that take free text; is_sound says that no rule about a tool is broken.
    """

    names: tuple[str, ...] = ()
    custom: frozenset[str] = frozenset()
    is_sound: bool = True


_NOTHING = Offered()


def read_tools(tools: Json) -> Offered:
    """Read the offered tools, from where the last request with these ended."""
    return fold(_offer, _NOTHING, tools) if isinstance(tools, list) else _NOTHING


def _offer(before: Offered, tools: Sequence[Json]) -> Offered:
    names, seen, is_sound = list(before.names), list(before.names), before.is_sound
    for tool in tools:
        is_sound = is_sound and _tool(tool, "", seen) is None
        definition = tool.get(str(tool.get("type"))) if isinstance(tool, dict) else None
        if isinstance(definition, dict):
            names.append(str(definition.get("name")))
    return Offered(tuple(names), before.custom | custom_names([*tools]), is_sound)


@functools.lru_cache(maxsize=1024)
def is_good_name(name: str) -> bool:
    """Whether a name of a function breaks no rule."""
    return refuse_name(name, "") is None


def refuse_name(name: str, param: str) -> Refusal | None:
    """Check the name of a function."""
    if not name:
        return empty_text("name_pattern", param)
    if len(name) > MAX_NAME:
        return too_long("name_length", param, len(name), MAX_NAME)
    if not _FUNCTION_NAME.fullmatch(name):
        text = (
            f"Invalid '{param}': string does not match pattern. "
            "Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
        )
        return Refusal(400, "name_pattern", text, code="invalid_value", param=param)
    return None


def refuse_tools(body: JsonObject, offered: Offered) -> Refusal | None:
    """Check the offered tools."""
    if body.get("tools") is None:
        return None
    tools = body["tools"]
    if not isinstance(tools, list):
        return wrong_type("tools", "an array of objects", tools)
    if not tools:
        return empty("tools")
    if len(tools) > MAX_TOOLS:
        return too_many("too_many_tools", "tools", len(tools), MAX_TOOLS)
    if offered.is_sound:
        return None
    names: list[str] = []
    for at, tool in enumerate(tools):
        problem = _tool(tool, f"tools[{at}]", names)
        if problem:
            return problem
    return None


def _tool(tool: Json, here: str, names: list[str]) -> Refusal | None:
    if not isinstance(tool, dict):
        return wrong_type(here, "an object", tool)
    if "type" not in tool:
        return missing(f"{here}.type")
    kind = tool["type"]
    if kind not in ("function", "custom"):
        text = f"Invalid value: '{kind}'. Supported values are: 'function' and 'custom'."
        return Refusal(400, "unknown_tool_type", text, code="invalid_value", param=f"{here}.type")
    definition = tool.get(str(kind))
    at = f"{here}.{kind}"
    if definition is None:
        return missing(at)
    if not isinstance(definition, dict):
        return wrong_type(at, "an object", definition)
    if "name" not in definition:
        return missing(f"{at}.name")
    name = definition["name"]
    if not isinstance(name, str):
        return wrong_type(f"{at}.name", "a string", name)
    problem = refuse_name(name, f"{at}.name")
    if problem:
        return problem
    if name in names:
        text = f"Invalid 'tools': tool names must be unique, but '{name}' is given more than once."
        return Refusal(400, "duplicate_tool_name", text, code="invalid_value", param=f"{at}.name")
    names.append(name)
    description = definition.get("description")
    if description is not None and not isinstance(description, str):
        return wrong_type(f"{at}.description", "a string", description)
    return _parameters(definition, name, at)


def _parameters(definition: JsonObject, name: str, here: str) -> Refusal | None:
    strict = definition.get("strict")
    if strict is not None and not isinstance(strict, bool):
        return wrong_type(f"{here}.strict", "a boolean", strict)
    schema = definition.get("parameters")
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
    text = f"Invalid schema for function '{name}': {problem}."
    return Refusal(400, "bad_tool_schema", text, code="invalid_function_parameters", param=f"{here}.parameters")


def refuse_tool_choice(body: JsonObject, offered: Offered) -> Refusal | None:
    """Check what speaks about the tools beside them."""
    if "tool_choice" not in body and "parallel_tool_calls" not in body:
        return None
    tools = body.get("tools")
    for name in ("tool_choice", "parallel_tool_calls"):
        if body.get(name) is not None and not tools:
            text = f"Invalid value for '{name}': '{name}' is only allowed when 'tools' are specified."
            return Refusal(400, f"{name}_without_tools", text, param=name)
    choice = body.get("tool_choice")
    if choice is None:
        return None
    if isinstance(choice, str):
        if choice in ("none", "auto", "required"):
            return None
        text = f"Invalid value: '{choice}'. Supported values are: 'none', 'auto', and 'required'."
        return Refusal(400, "unknown_tool_choice", text, code="invalid_value", param="tool_choice")
    if not isinstance(choice, dict):
        return wrong_type("tool_choice", "one of 'none', 'auto', 'required' or an object", choice)
    function = choice.get("function")
    if choice.get("type") != "function" or not isinstance(function, dict):
        return None if choice.get("type") in ("allowed_tools", "custom") else missing("tool_choice.function")
    if function.get("name") not in offered.names:
        text = f"Tool choice '{function.get('name')}' not found in 'tools' parameter."
        return Refusal(400, "tool_choice_not_offered", text, param="tool_choice")
    return None


def refuse_response_format(body: JsonObject) -> Refusal | None:
    """Check the wanted form of the answer."""
    wanted = body.get("response_format")
    if wanted is None:
        return None
    if not isinstance(wanted, dict):
        return wrong_type("response_format", "an object", wanted)
    if "type" not in wanted:
        return missing("response_format.type")
    kind = wanted["type"]
    if kind not in ("text", "json_object", "json_schema"):
        text = f"Invalid value: '{kind}'. Supported values are: 'json_object', 'json_schema', and 'text'."
        return Refusal(400, "unknown_response_format", text, code="invalid_value", param="response_format.type")
    if kind == "json_object" and "json" not in str(body["messages"]).lower():
        text = "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'."
        return Refusal(400, "json_word_missing", text, param="messages")
    if kind == "json_schema":
        return _json_schema(wanted.get("json_schema"))
    return None


def _json_schema(wanted: Json) -> Refusal | None:
    here = "response_format.json_schema"
    if wanted is None:
        return missing(here)
    if not isinstance(wanted, dict):
        return wrong_type(here, "an object", wanted)
    name = wanted.get("name")
    if name is None:
        return missing(f"{here}.name")
    if not isinstance(name, str):
        return wrong_type(f"{here}.name", "a string", name)
    wrong_name = refuse_name(name, f"{here}.name")
    if wrong_name:
        return wrong_name
    schema = wanted.get("schema", {})
    problem = schema_problem(schema)
    if problem is None and wanted.get("strict") is True and isinstance(schema, dict):
        problem = strict_problem(schema)
    if problem is None:
        return None
    text = f"Invalid schema for response_format '{name}': {problem}."
    return Refusal(400, "bad_response_schema", text, param="response_format")
