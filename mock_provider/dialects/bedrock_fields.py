"""The structures of the Converse operations, and how Bedrock checks a request against them.

Room: pure; the rules of the Bedrock dialect come in. What a structure means is their affair, its members are this
room's.
Source: the service model that AWS publishes with its clients (bedrock-runtime: members, required, patterns, lengths,
ranges); the wording is that of its services' error bodies, which count list members from 1.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping

from mock_provider.asked import Refusal
from mock_provider.dialects.bedrock_refusals import refuse
from mock_provider.json_values import Json, JsonObject
from mock_provider.values import value

_SHOWN = 60  # characters of a wrong value that an error shows

# Structure → member → type; `*` behind a type means a list of it. "Document" is any JSON, "Map" any mapping.
STRUCTURES: Mapping[str, Mapping[str, str]] = {
    "ConverseRequest": {
        "messages": "Message*",
        "system": "SystemContentBlock*",
        "inferenceConfig": "InferenceConfiguration",
        "toolConfig": "ToolConfiguration",
        "guardrailConfig": "Map",
        "additionalModelRequestFields": "Document",
        "promptVariables": "Map",
        "additionalModelResponseFieldPaths": "String*",
        "requestMetadata": "Map",
        "performanceConfig": "Map",
        "serviceTier": "Map",
        "outputConfig": "OutputConfig",
    },
    "CountTokensRequest": {"input": "CountTokensInput"},
    "CountTokensInput": {"converse": "ConverseRequest", "invokeModel": "InvokeModelTokensRequest"},
    "InvokeModelTokensRequest": {"body": "Blob"},
    "Message": {"role": "ConversationRole", "content": "ContentBlock*"},
    "ContentBlock": {
        "text": "String",
        "image": "Map",
        "document": "Map",
        "video": "Map",
        "audio": "Map",
        "toolUse": "ToolUseBlock",
        "toolResult": "ToolResultBlock",
        "guardContent": "Map",
        "cachePoint": "Map",
        "reasoningContent": "ReasoningContentBlock",
        "citationsContent": "Map",
        "searchResult": "Map",
        "toolAddition": "Map",
        "toolRemoval": "Map",
    },
    "SystemContentBlock": {"text": "NonEmptyString", "guardContent": "Map", "cachePoint": "Map"},
    "ToolUseBlock": {"toolUseId": "ToolUseId", "name": "ToolName", "input": "Document", "type": "String"},
    "ToolResultBlock": {
        "toolUseId": "ToolUseId",
        "content": "ToolResultContentBlock*",
        "status": "ToolResultStatus",
        "type": "String",
    },
    "ToolResultContentBlock": {
        "text": "String",
        "json": "Document",
        "image": "Map",
        "document": "Map",
        "video": "Map",
        "searchResult": "Map",
    },
    "ReasoningContentBlock": {"reasoningText": "ReasoningTextBlock", "redactedContent": "Blob"},
    "ReasoningTextBlock": {"text": "String", "signature": "String"},
    "InferenceConfiguration": {
        "maxTokens": "MaxTokens",
        "temperature": "Share",
        "topP": "Share",
        "stopSequences": "NonEmptyString*",
    },
    "ToolConfiguration": {"tools": "Tool*", "toolChoice": "ToolChoice"},
    "Tool": {"toolSpec": "ToolSpecification", "systemTool": "SystemTool", "cachePoint": "Map"},
    "ToolSpecification": {
        "name": "ToolName",
        "description": "NonEmptyString",
        "inputSchema": "ToolInputSchema",
        "strict": "Boolean",
    },
    "SystemTool": {"name": "ToolName"},
    "ToolInputSchema": {"json": "Document"},
    "ToolChoice": {"auto": "Map", "any": "Map", "tool": "SystemTool"},
    "OutputConfig": {"textFormat": "OutputFormat", "effort": "String"},
    "OutputFormat": {"type": "OutputFormatType", "structure": "OutputFormatStructure"},
    "OutputFormatStructure": {"jsonSchema": "JsonSchemaDefinition"},
    "JsonSchemaDefinition": {"schema": "String", "name": "String", "description": "String"},
}
REQUIRED: Mapping[str, tuple[str, ...]] = {
    "CountTokensRequest": ("input",),
    "InvokeModelTokensRequest": ("body",),
    "Message": ("role", "content"),
    "ToolUseBlock": ("toolUseId", "name", "input"),
    "ToolResultBlock": ("toolUseId", "content"),
    "ReasoningTextBlock": ("text",),
    "ToolConfiguration": ("tools",),
    "ToolSpecification": ("name", "inputSchema"),
    "SystemTool": ("name",),
    "OutputFormat": ("type", "structure"),
    "JsonSchemaDefinition": ("schema",),
}
UNIONS = frozenset(
    {
        "ContentBlock",
        "SystemContentBlock",
        "ToolResultContentBlock",
        "ReasoningContentBlock",
        "Tool",
        "ToolInputSchema",
        "ToolChoice",
        "OutputFormatStructure",
        "CountTokensInput",
    }
)
_KINDS: Mapping[str, tuple[type, ...]] = {
    "String": (str,),
    "Blob": (str,),
    "Integer": (int,),
    "Float": (int, float),
    "Boolean": (bool,),
    "Map": (dict,),
}
_WORDS: tuple[tuple[type, str], ...] = (
    (bool, "TRUE_VALUE"),
    (int, "NUMBER_VALUE"),
    (float, "DECIMAL_VALUE"),
    (str, "STRING_VALUE"),
    (list, "START_ARRAY"),
    (dict, "START_OBJECT"),
)


@value
class _Limits:
    """What a scalar must satisfy. Shape: kind names its type; least and most are lengths of texts, else values."""

    kind: str
    least: float | None = None
    most: float | None = None
    pattern: str = ""
    words: tuple[str, ...] = ()


_SCALARS: Mapping[str, _Limits] = {
    "NonEmptyString": _Limits("String", 1),
    "ToolName": _Limits("String", 1, 64, "[a-zA-Z0-9_-]+"),
    "ToolUseId": _Limits("String", 1, 64, "[a-zA-Z0-9_.:-]+"),
    "ConversationRole": _Limits("String", words=("user", "assistant", "system")),
    "ToolResultStatus": _Limits("String", words=("success", "error")),
    "OutputFormatType": _Limits("String", words=("json_schema",)),
    "MaxTokens": _Limits("Integer", 1),
    "Share": _Limits("Float", 0, 1),
}


class Violations:
    """What is wrong with the members of a request, and which it has that no structure has."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str]] = []
        self.unknown: list[str] = []

    def add(self, rule: str, path: str, text: str, value: Json = None) -> None:
        """Note a constraint that is not met."""
        shown = "" if value is None else f" '{str(value)[:_SHOWN]}'"
        self.found.append((rule, f"Value{shown} at '{path}' failed to satisfy constraint: {text}"))

    def refusal(self) -> Refusal | None:
        """All of them in one error, as the services write it."""
        if not self.found:
            return None
        count = len(self.found)
        head = f"{count} validation error{'s' if count > 1 else ''} detected: "
        return refuse(self.found[0][0], head + "; ".join(text for _, text in self.found))


def examine(value: JsonObject, structure: str, path: str, violations: Violations) -> Refusal | None:
    """Check a structure and everything in it.

    Shape: a value of the wrong type is refused at once, constraints that are not met are added to the violations.
    """
    members = STRUCTURES[structure]
    inside = f"{path}." if path else ""
    violations.unknown += [inside + name for name in value if name not in members]
    for name in REQUIRED.get(structure, ()):
        if value.get(name) is None:
            violations.add("missing_field", inside + name, "Member must not be null")
    if structure in UNIONS:
        given = [name for name in members if value.get(name) is not None]
        if len(given) != 1:
            text = "Member must have exactly one of " + ", ".join(members)
            violations.add("unknown_content_part", path, text)
    for name, kind in members.items():
        item = value.get(name)
        refused = None if item is None else _member(item, kind, inside + name, violations)
        if refused:
            return refused
    return None


def _member(value: Json, kind: str, path: str, violations: Violations) -> Refusal | None:
    if kind.endswith("*"):
        if not isinstance(value, list):
            return _wrong_type(value, "a List", path)
        for at, item in enumerate(value, 1):
            refused = _member(item, kind[:-1], f"{path}.{at}.member", violations)
            if refused:
                return refused
        return None
    if kind in STRUCTURES:
        return examine(value, kind, path, violations) if isinstance(value, dict) else _wrong_type(value, kind, path)
    if kind == "Document":
        return None
    limits = _SCALARS.get(kind, _Limits(kind))
    if not isinstance(value, _KINDS[limits.kind]) or (isinstance(value, bool) and limits.kind != "Boolean"):
        return _wrong_type(value, limits.kind, path)
    if limits.kind == "Blob" and decode_blob(value) is None:
        return refuse("bad_base64", f"The value at {path} is not Base64", kind="SerializationException")
    _scalar(value, limits, path, violations)
    return None


def _scalar(value: Json, limits: _Limits, path: str, violations: Violations) -> None:
    is_text = isinstance(value, str)
    size = len(value) if isinstance(value, str) else value
    what = "length" if is_text else "value"
    rule = "name_pattern" if limits.pattern else "out_of_range"
    if isinstance(size, int | float) and limits.least is not None and size < limits.least:
        violations.add(rule, path, f"Member must have {what} greater than or equal to {limits.least:g}", value)
    if isinstance(size, int | float) and limits.most is not None and size > limits.most:
        violations.add(rule, path, f"Member must have {what} less than or equal to {limits.most:g}", value)
    if limits.pattern and isinstance(value, str) and value and not re.fullmatch(limits.pattern, value):
        violations.add(rule, path, f"Member must satisfy regular expression pattern: {limits.pattern}", value)
    if limits.words and value not in limits.words:
        rule = "unknown_role" if path.endswith("role") else "unknown_word"
        violations.add(rule, path, f"Member must satisfy enum value set: [{', '.join(limits.words)}]", value)


def decode_blob(value: Json) -> bytes | None:
    """Read bytes in base64; None when they are none."""
    try:
        return base64.b64decode(value, validate=True) if isinstance(value, str) else None
    except (binascii.Error, ValueError):
        return None


def _wrong_type(value: Json, wanted: str, path: str) -> Refusal:
    given = next((word for kind, word in _WORDS if isinstance(value, kind)), "NULL_VALUE")
    text = f"{given} can not be converted to {wanted} at {path}"
    return refuse("wrong_type", text, kind="SerializationException")


def objects(value: Json) -> list[JsonObject]:
    """The structures in a list, once it is checked."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def inside(value: JsonObject, name: str) -> JsonObject:
    """A structure inside another; an absent one is an empty one."""
    found = value.get(name)
    return found if isinstance(found, dict) else {}
