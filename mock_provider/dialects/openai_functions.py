"""The older way of calling in chat completions: `functions`, at most one call an answer, results by name.

Room: pure; the chat dialect comes in.
Source: the published API schema of /v1/chat/completions, fields that it calls deprecated.
"""

from __future__ import annotations

from collections.abc import Sequence

from mock_provider.asked import AskedCall, Refusal
from mock_provider.dialects.codec import SaidCall
from mock_provider.dialects.json_schema import schema_problem
from mock_provider.dialects.openai_refusals import empty, missing, too_many, wrong_type
from mock_provider.dialects.openai_tool_rules import MAX_TOOLS, refuse_name
from mock_provider.json_values import Json, JsonObject

FINISH = "function_call"


def asks_old_way(body: JsonObject) -> bool:
    """Whether calls are wanted in the older form."""
    return bool(body.get("functions")) and not body.get("tools")


def function_names(body: JsonObject) -> tuple[str, ...]:
    """Names of the offered functions."""
    functions = body.get("functions")
    listed = functions if isinstance(functions, list) else []
    return tuple(str(one.get("name")) for one in listed if isinstance(one, dict))


def read_call(call: Json) -> tuple[AskedCall, ...]:
    """The call of a message in the history; it has no id."""
    if not isinstance(call, dict):
        return ()
    return (AskedCall("", str(call.get("name", "")), str(call.get("arguments", ""))),)


def spell_call(calls: Sequence[SaidCall]) -> JsonObject:
    """The call of an answer. Shape: of several the first, there is no room for more."""
    return {"function_call": {"name": calls[0].name, "arguments": calls[0].arguments}}


def finish_of_old(finish: str | None) -> str | None:
    """Why an answer ended, in the older words."""
    return FINISH if finish == "tool_calls" else finish


def refuse_functions(body: JsonObject) -> Refusal | None:
    """Check the offered functions, and which of them has to be called."""
    functions, choice = body.get("functions"), body.get("function_call")
    if functions is not None:
        problem = _functions(functions)
        if problem:
            return problem
    if choice is None:
        return None
    if not functions:
        text = "Invalid value for 'function_call': 'function_call' is only allowed when 'functions' are specified."
        return Refusal(400, "function_call_without_functions", text, param="function_call")
    if choice in ("none", "auto"):
        return None
    if not isinstance(choice, dict):
        return wrong_type("function_call", "one of 'none', 'auto' or an object", choice)
    if choice.get("name") not in function_names(body):
        text = f"Invalid value for 'function_call': no function named '{choice.get('name')}' was specified."
        return Refusal(400, "function_call_not_offered", text, param="function_call")
    return None


def _functions(functions: Json) -> Refusal | None:
    if not isinstance(functions, list):
        return wrong_type("functions", "an array of objects", functions)
    if not functions:
        return empty("functions")
    if len(functions) > MAX_TOOLS:
        return too_many("too_many_tools", "functions", len(functions), MAX_TOOLS)
    for at, function in enumerate(functions):
        here = f"functions[{at}]"
        if not isinstance(function, dict):
            return wrong_type(here, "an object", function)
        if "name" not in function:
            return missing(f"{here}.name")
        if not isinstance(function["name"], str):
            return wrong_type(f"{here}.name", "a string", function["name"])
        schema = function.get("parameters", {})
        problem = refuse_name(function["name"], f"{here}.name") or _schema(function["name"], schema, here)
        if problem:
            return problem
    return None


def _schema(name: str, schema: Json, here: str) -> Refusal | None:
    problem = schema_problem(schema)
    if problem is None:
        return None
    text = f"Invalid schema for function '{name}': {problem}."
    return Refusal(400, "bad_tool_schema", text, code="invalid_function_parameters", param=f"{here}.parameters")


def refuse_old_message(message: JsonObject, here: str) -> Refusal | None:
    """Check what a message of the older form needs: a result its name, a call its name and arguments."""
    call = message.get("function_call")
    if message.get("role") == "function" and not isinstance(message.get("name"), str):
        text = "Missing parameter 'name': messages with role 'function' must have a 'name'."
        return Refusal(400, "missing_field", text, param=f"{here}.name")
    if call is None:
        return None
    if not isinstance(call, dict):
        return wrong_type(f"{here}.function_call", "an object", call)
    for name in ("name", "arguments"):
        if name not in call:
            return missing(f"{here}.function_call.{name}")
        if not isinstance(call[name], str):
            return wrong_type(f"{here}.function_call.{name}", "a string", call[name])
    return None
