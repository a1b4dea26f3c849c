"""What the Gemini endpoints refuse in the tools of a request.

Room: pure; the rules of the Gemini dialect come in.
Source: the provider's published API reference (FunctionDeclaration, FunctionCallingConfig); its error bodies as clients
have reported them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mock_provider.asked import Refusal
from mock_provider.dialects.gemini_fields import pick, pick_list, pick_object, pick_objects, pick_text
from mock_provider.dialects.gemini_refusals import refuse
from mock_provider.dialects.gemini_schema import schema_violations
from mock_provider.dialects.json_schema import schema_problem
from mock_provider.json_values import Json, JsonObject
from mock_provider.known import fold

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,63}")
_NAME_TEXT = (
    "[FIELD_INVALID] Invalid function name. Must start with a letter or an underscore. Must be a-z, A-Z, 0-9, or "
    "contain underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 64."
)


def declared_names(body: JsonObject) -> list[str]:
    """The names of all functions that a request offers."""
    return [
        pick_text(declaration, "name")
        for tool in pick_objects(body, "tools")
        for declaration in pick_objects(tool, "functionDeclarations")
    ]


def refuse_tools(body: JsonObject) -> Refusal | None:
    """Check declarations and configuration. Shape: the first rule that is broken."""
    tools = pick(body, "tools")
    names = fold(_offer, _NO_TOOLS, tools) if isinstance(tools, list) else None
    if names is not None:
        return _config(body, list(names))
    for at, tool in enumerate(pick_objects(body, "tools")):
        if not tool:
            text = f"tools[{at}].tool_type: required one_of 'tool_type' must have one initialized field"
            return refuse("missing_field", f"* GenerateContentRequest.{text}\n")
        for number, declaration in enumerate(pick_objects(tool, "functionDeclarations")):
            here = f"tools[{at}].function_declarations[{number}]"
            refused = _declaration(declaration, here)
            if refused:
                return refused
    declared = declared_names(body)
    twice = next((name for at, name in enumerate(declared) if name in declared[:at]), None)
    if twice is not None:
        return refuse("duplicate_tool_name", f"Duplicate function declaration found: {twice}")
    return _config(body, declared)


_NO_TOOLS: tuple[str, ...] | None = ()


def _offer(before: tuple[str, ...] | None, tools: Sequence[Json]) -> tuple[str, ...] | None:
    """Names declared by tools in which no rule is broken, after those before them; None where one may be."""
    if before is None:
        return None
    names = [*before]
    for tool in tools:
        if not isinstance(tool, dict) or not tool:
            return None
        for declaration in pick_objects(tool, "functionDeclarations"):
            name = pick_text(declaration, "name")
            if name in names or _declaration(declaration, ""):
                return None
            names.append(name)
    return tuple(names)


def _declaration(declaration: JsonObject, here: str) -> Refusal | None:
    name = pick_text(declaration, "name")
    if not _NAME.fullmatch(name):
        return refuse("name_pattern", f"The GenerateContentRequest proto is invalid:\n  * {here}.name: {_NAME_TEXT}")
    parameters, free = pick(declaration, "parameters"), pick(declaration, "parametersJsonSchema")
    if parameters is not None and free is not None:
        text = f"* GenerateContentRequest.{here}: only one of parameters and parameters_json_schema may be set\n"
        return refuse("bad_tool_schema", text)
    if isinstance(parameters, dict):
        violations = schema_violations(parameters, "")
        if violations:
            text = "".join(f"* GenerateContentRequest.{here}.parameters{one}\n" for one in violations)
            return refuse("bad_tool_schema", text)
    if free is not None:
        problem = schema_problem(free)
        if problem:
            return refuse("bad_tool_schema", f"* GenerateContentRequest.{here}.parameters_json_schema: {problem}\n")
    return None


def _config(body: JsonObject, names: list[str]) -> Refusal | None:
    config = pick_object(pick_object(body, "toolConfig"), "functionCallingConfig")
    mode = pick_text(config, "mode").upper()
    allowed = pick_list(config, "allowedFunctionNames")
    if mode in ("ANY", "VALIDATED") and not names:
        return refuse("tool_choice_without_tools", "Function calling config is set without function_declarations.")
    if allowed and mode not in ("ANY", "VALIDATED"):
        text = "Please set allowed_function_names only when function calling mode is ANY."
        return refuse("unknown_tool_choice", text)
    missing = next((name for name in allowed if name not in names), None)
    if missing is not None:
        text = (
            "* GenerateContentRequest.tool_config.function_calling_config.allowed_function_names: "
            f"{missing} is not a declared function\n"
        )
        return refuse("tool_choice_not_offered", text)
    return None
