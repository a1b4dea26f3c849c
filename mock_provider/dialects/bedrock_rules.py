"""What the Converse operations refuse, in their own words.

Room: pure; only the Bedrock dialect comes in.
Source: the service model that AWS publishes with its clients, by way of bedrock_fields; error bodies as clients have
reported them.
"""

from __future__ import annotations

import json
from itertools import pairwise

from mock_provider.asked import Refusal
from mock_provider.dialects.bedrock_fields import Violations, examine, inside, objects
from mock_provider.dialects.bedrock_refusals import refuse
from mock_provider.dialects.json_schema import schema_problem
from mock_provider.json_values import Json, JsonObject
from mock_provider.steps import Script

_MODEL_SAYS = "The model returned the following errors: "


def refuse_model(model: str, script: Script) -> Refusal | None:
    """Refuse a model that the script does not list."""
    if not script.models or model in script.models:
        return None
    return refuse("unknown_model", "The provided model identifier is invalid.")


def refuse_members(body: Json, structure: str, script: Script) -> tuple[str, ...] | Refusal:
    """Check the members of a whole body. Shape: the places of members that the service does not know."""
    if not isinstance(body, dict):
        return refuse("wrong_type", "The request body must be a structure.", kind="SerializationException")
    violations = Violations()
    refused = examine(body, structure, "", violations) or violations.refusal()
    if refused:
        return refused
    if violations.unknown and script.refuses_extra_fields:
        text = f"extraneous key [{violations.unknown[0]}] is not permitted"
        return refuse("extra_field", f"Malformed input request: {text}, please reformat your input and try again.")
    return tuple(violations.unknown)


def refuse_conversation(body: JsonObject) -> Refusal | None:
    """Check what a body of the right members says. Shape: the first rule that is broken."""
    messages = objects(body.get("messages"))
    return (
        _turns(messages)
        or next(filter(None, (_content(message, at) for at, message in enumerate(messages))), None)
        or _tool_use(messages, body)
        or _tools(body)
        or _output(body)
    )


def _turns(messages: list[JsonObject]) -> Refusal | None:
    said = [message for message in messages if message["role"] != "system"]
    if not said or said[0]["role"] != "user":
        text = (
            "A conversation must start with a user message. Try again with a conversation that starts with a user "
            "message."
        )
        return refuse("first_role" if said else "empty_array", text)
    if any(before["role"] == after["role"] for before, after in pairwise(said)):
        text = (
            "A conversation must alternate between user and assistant roles. Make sure the conversation alternates "
            "between user and assistant roles and try again."
        )
        return refuse("role_order", text)
    return None


def _content(message: JsonObject, at: int) -> Refusal | None:
    blocks = objects(message["content"])
    if not blocks:
        text = (
            f"The content field in the Message object at messages.{at} is empty. Add a ContentBlock object to the "
            "content field and try again."
        )
        return refuse("missing_content", text)
    for number, block in enumerate(blocks):
        here = f"messages.{at}.content.{number}"
        said = block.get("text")
        if isinstance(said, str) and not said.strip():
            words = f"The text field in the ContentBlock object at {here} is blank. Add text to the text field, and "
            words += "try again."
            return refuse("missing_content", words)
        wrong = "toolUse" if message["role"] == "user" else "toolResult"
        if wrong in block:
            other = "assistant" if message["role"] == "user" else "user"
            return refuse(
                "block_in_wrong_role", f"{wrong} blocks can only be in {other} messages, found one at {here}."
            )
        result = inside(block, "toolResult")
        if result.get("status") == "error" and not result.get("content"):
            words = f"The content field at {here}.toolResult cannot be empty when status value is error."
            return refuse("missing_content", words)
        use = inside(block, "toolUse")
        if use and not isinstance(use["input"], dict):
            return refuse(
                "wrong_type", f"The format of the value at {here}.toolUse.input is invalid. Provide a json object."
            )
    return None


def _ids(message: JsonObject, kind: str) -> list[str]:
    return [str(inside(block, kind)["toolUseId"]) for block in objects(message["content"]) if kind in block]


def _tool_use(messages: list[JsonObject], body: JsonObject) -> Refusal | None:
    """Every toolUse answered in the next message, every toolResult an answer to the message before."""
    waiting: list[str] = []
    has_any = False
    for at, message in enumerate(messages):
        if message["role"] == "system":
            continue
        answered = _ids(message, "toolResult")
        if len(answered) > len(waiting):
            text = (
                f"The number of toolResult blocks at messages.{at}.content exceeds the number of toolUse blocks of "
                "previous turn."
            )
            return refuse("orphan_tool_result", text)
        missing = [name for name in waiting if name not in answered]
        if missing:
            return _expected(missing, at)
        waiting = _ids(message, "toolUse")
        has_any = has_any or bool(waiting)
        twice = next((name for number, name in enumerate(waiting) if name in waiting[:number]), None)
        if twice is not None:
            text = f"{_MODEL_SAYS}messages.{at}.content: `tool_use` ids must be unique"
            return refuse("duplicate_call_id", text)
    if waiting:
        return _expected(waiting, len(messages))
    if has_any and not inside(body, "toolConfig"):
        text = "The toolConfig field must be defined when using toolUse and toolResult content blocks."
        return refuse("missing_tools", text)
    return None


def _expected(missing: list[str], at: int) -> Refusal:
    text = f"Expected toolResult blocks at messages.{at}.content for the following Ids: {', '.join(missing)}"
    return refuse("unanswered_tool_call", text)


def offered_names(body: JsonObject) -> list[str]:
    """The names of the tools, once they are checked."""
    tools = objects(inside(body, "toolConfig").get("tools"))
    return [str(inside(tool, kind)["name"]) for tool in tools for kind in ("toolSpec", "systemTool") if kind in tool]


def _tools(body: JsonObject) -> Refusal | None:
    config = inside(body, "toolConfig")
    tools = objects(config.get("tools"))
    if config and not tools:
        path = "'toolConfig.tools' failed to satisfy constraint: Member must have length greater than or equal to 1"
        return refuse("empty_array", f"1 validation error detected: Value '[]' at {path}")
    names = offered_names(body)
    if len(set(names)) != len(names):
        return refuse("duplicate_tool_name", f"{_MODEL_SAYS}tools: Tool names must be unique.")
    for at, tool in enumerate(tools):
        if "toolSpec" not in tool:
            continue
        schema = inside(inside(tool, "toolSpec"), "inputSchema").get("json")
        here = f"toolConfig.tools.{at}.toolSpec.inputSchema.json"
        if not isinstance(schema, dict):
            return refuse("bad_tool_schema", f"The format of the value at {here} is invalid. Provide a json object.")
        if schema.get("type") != "object":
            return refuse("bad_tool_schema", f"The value at {here}.type must be one of the following: object.")
        problem = schema_problem(schema)
        if problem:
            text = f"{_MODEL_SAYS}tools.{at}.custom.input_schema: JSON schema is invalid: {problem}"
            return refuse("bad_tool_schema", text)
    chosen = inside(inside(config, "toolChoice"), "tool").get("name")
    if chosen is not None and chosen not in names:
        return refuse("tool_choice_not_offered", f"{_MODEL_SAYS}Tool '{chosen}' not found in provided tools")
    return None


def _output(body: JsonObject) -> Refusal | None:
    form = inside(inside(body, "outputConfig"), "textFormat")
    if not form:
        return None
    here = "outputConfig.textFormat.structure.jsonSchema.schema"
    try:
        schema: Json = json.loads(str(inside(inside(form, "structure"), "jsonSchema")["schema"]))
    except (ValueError, RecursionError):
        return refuse("bad_schema", f"The value at {here} is not valid JSON.")
    problem = schema_problem(schema) if isinstance(schema, dict) else "it must be an object"
    return refuse("bad_schema", f"The value at {here} is not a valid JSON schema: {problem}") if problem else None
