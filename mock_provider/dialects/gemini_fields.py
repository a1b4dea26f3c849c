"""The messages of the Gemini endpoints, and how the provider reads JSON into them.

Room: pure; the rules of the Gemini dialect come in. What a message means is their affair, its types are this room's.
Source: the provider's published API reference (v1beta: GenerateContentRequest and everything below it) for the fields;
Protocol Buffers, "JSON mapping": both spellings of a name, null for absent, one value for a list of one, numbers as
texts; the wording is that of the provider's error bodies as clients have reported them.
"""

from __future__ import annotations

import base64
import binascii
import functools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from mock_provider.asked import Refusal
from mock_provider.json_values import Json, JsonObject
from mock_provider.known import KnownList, fold

PACKAGE = "type.googleapis.com/google.ai.generativelanguage.v1beta."
_QUOTED = 80  # characters of a wrong value that an error shows

# Message → field → type; `*` behind a type means a list of it, `%` a mapping from names to it.
MESSAGES: Mapping[str, Mapping[str, str]] = {
    "GenerateContentRequest": {
        "model": "TYPE_STRING",
        "contents": "Content*",
        "systemInstruction": "Content",
        "tools": "Tool*",
        "toolConfig": "ToolConfig",
        "safetySettings": "SafetySetting*",
        "generationConfig": "GenerationConfig",
        "cachedContent": "TYPE_STRING",
        "labels": "Struct",
        "serviceTier": "TYPE_STRING",
        "store": "TYPE_BOOL",
    },
    "CountTokensRequest": {
        "model": "TYPE_STRING",
        "contents": "Content*",
        "generateContentRequest": "GenerateContentRequest",
    },
    "EmbedContentRequest": {
        "model": "TYPE_STRING",
        "content": "Content",
        "taskType": "TaskType",
        "title": "TYPE_STRING",
        "outputDimensionality": "TYPE_INT32",
    },
    "BatchEmbedContentsRequest": {"model": "TYPE_STRING", "requests": "EmbedContentRequest*"},
    "Content": {"parts": "Part*", "role": "TYPE_STRING"},
    "Part": {
        "text": "TYPE_STRING",
        "inlineData": "Blob",
        "fileData": "FileData",
        "functionCall": "FunctionCall",
        "functionResponse": "FunctionResponse",
        "executableCode": "ExecutableCode",
        "codeExecutionResult": "CodeExecutionResult",
        "toolCall": "Struct",
        "toolResponse": "Struct",
        "thought": "TYPE_BOOL",
        "thoughtSignature": "TYPE_BYTES",
        "videoMetadata": "Struct",
        "partMetadata": "Struct",
        "mediaResolution": "Value",
    },
    "Blob": {"mimeType": "TYPE_STRING", "data": "TYPE_BYTES", "displayName": "TYPE_STRING"},
    "FileData": {"mimeType": "TYPE_STRING", "fileUri": "TYPE_STRING", "displayName": "TYPE_STRING"},
    "FunctionCall": {"id": "TYPE_STRING", "name": "TYPE_STRING", "args": "Struct"},
    "FunctionResponse": {
        "id": "TYPE_STRING",
        "name": "TYPE_STRING",
        "response": "Struct",
        "parts": "Struct*",
        "willContinue": "TYPE_BOOL",
        "scheduling": "TYPE_STRING",
    },
    "ExecutableCode": {"id": "TYPE_STRING", "language": "TYPE_STRING", "code": "TYPE_STRING"},
    "CodeExecutionResult": {"id": "TYPE_STRING", "outcome": "TYPE_STRING", "output": "TYPE_STRING"},
    "Tool": {
        "functionDeclarations": "FunctionDeclaration*",
        "googleSearch": "Struct",
        "googleSearchRetrieval": "Struct",
        "googleMaps": "Struct",
        "codeExecution": "Struct",
        "computerUse": "Struct",
        "fileSearch": "Struct",
        "urlContext": "Struct",
        "mcpServers": "Struct*",
    },
    "FunctionDeclaration": {
        "name": "TYPE_STRING",
        "description": "TYPE_STRING",
        "behavior": "TYPE_STRING",
        "parameters": "Schema",
        "parametersJsonSchema": "Value",
        "response": "Schema",
        "responseJsonSchema": "Value",
    },
    "Schema": {
        "type": "Type",
        "format": "TYPE_STRING",
        "title": "TYPE_STRING",
        "description": "TYPE_STRING",
        "nullable": "TYPE_BOOL",
        "enum": "TYPE_STRING*",
        "items": "Schema",
        "maxItems": "TYPE_INT64",
        "minItems": "TYPE_INT64",
        "properties": "Schema%",
        "required": "TYPE_STRING*",
        "propertyOrdering": "TYPE_STRING*",
        "minProperties": "TYPE_INT64",
        "maxProperties": "TYPE_INT64",
        "minLength": "TYPE_INT64",
        "maxLength": "TYPE_INT64",
        "minimum": "TYPE_DOUBLE",
        "maximum": "TYPE_DOUBLE",
        "pattern": "TYPE_STRING",
        "example": "Value",
        "default": "Value",
        "anyOf": "Schema*",
    },
    "ToolConfig": {
        "functionCallingConfig": "FunctionCallingConfig",
        "retrievalConfig": "Struct",
        "includeServerSideToolInvocations": "TYPE_BOOL",
    },
    "FunctionCallingConfig": {
        "mode": "FunctionCallingConfig.Mode",
        "allowedFunctionNames": "TYPE_STRING*",
        "streamFunctionCallArguments": "TYPE_BOOL",
    },
    "SafetySetting": {"category": "HarmCategory", "threshold": "SafetySetting.HarmBlockThreshold"},
    "GenerationConfig": {
        "stopSequences": "TYPE_STRING*",
        "responseMimeType": "TYPE_STRING",
        "responseSchema": "Schema",
        "responseJsonSchema": "Value",
        "_responseJsonSchema": "Value",
        "responseModalities": "TYPE_STRING*",
        "candidateCount": "TYPE_INT32",
        "maxOutputTokens": "TYPE_INT32",
        "temperature": "TYPE_FLOAT",
        "topP": "TYPE_FLOAT",
        "topK": "TYPE_FLOAT",
        "seed": "TYPE_INT32",
        "presencePenalty": "TYPE_FLOAT",
        "frequencyPenalty": "TYPE_FLOAT",
        "responseLogprobs": "TYPE_BOOL",
        "logprobs": "TYPE_INT32",
        "enableEnhancedCivicAnswers": "TYPE_BOOL",
        "speechConfig": "Struct",
        "imageConfig": "Struct",
        "audioTranscriptionConfig": "Struct",
        "thinkingConfig": "ThinkingConfig",
        "mediaResolution": "TYPE_STRING",
    },
    "ThinkingConfig": {
        "includeThoughts": "TYPE_BOOL",
        "thinkingBudget": "TYPE_INT32",
        "thinkingLevel": "ThinkingConfig.ThinkingLevel",
    },
}
CLOSED = frozenset({"Schema"})  # a keyword that the provider does not know fails the request; this breaks real clients
ENUMS: Mapping[str, tuple[str, ...]] = {
    "Type": ("TYPE_UNSPECIFIED", "STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"),
    "TaskType": (
        "TASK_TYPE_UNSPECIFIED",
        "RETRIEVAL_QUERY",
        "RETRIEVAL_DOCUMENT",
        "SEMANTIC_SIMILARITY",
        "CLASSIFICATION",
        "CLUSTERING",
        "QUESTION_ANSWERING",
        "FACT_VERIFICATION",
        "CODE_RETRIEVAL_QUERY",
    ),
    "FunctionCallingConfig.Mode": ("MODE_UNSPECIFIED", "AUTO", "ANY", "NONE", "VALIDATED"),
    "HarmCategory": (
        "HARM_CATEGORY_UNSPECIFIED",
        "HARM_CATEGORY_HARASSMENT",
        "HARM_CATEGORY_HATE_SPEECH",
        "HARM_CATEGORY_SEXUALLY_EXPLICIT",
        "HARM_CATEGORY_DANGEROUS_CONTENT",
        "HARM_CATEGORY_CIVIC_INTEGRITY",
    ),
    "SafetySetting.HarmBlockThreshold": (
        "HARM_BLOCK_THRESHOLD_UNSPECIFIED",
        "BLOCK_LOW_AND_ABOVE",
        "BLOCK_MEDIUM_AND_ABOVE",
        "BLOCK_ONLY_HIGH",
        "BLOCK_NONE",
        "OFF",
    ),
    "ThinkingConfig.ThinkingLevel": ("THINKING_LEVEL_UNSPECIFIED", "MINIMAL", "LOW", "MEDIUM", "HIGH"),
}
_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")
_RANGES = {"TYPE_INT32": 1 << 31, "TYPE_INT64": 1 << 63}


@functools.lru_cache(maxsize=256)
def snake(name: str) -> str:
    """The other spelling of a field's name, in which the provider's errors name it."""
    return re.sub(r"(?<!^)([A-Z])", lambda found: "_" + found.group().lower(), name)


def pick(value: JsonObject, name: str) -> Json:
    """A field under either spelling of its name; None when it is absent."""
    found = value.get(name)
    return value.get(snake(name)) if found is None else found


def pick_object(value: JsonObject, name: str) -> JsonObject:
    """A field that holds a message; an absent one is an empty one."""
    found = pick(value, name)
    return found if isinstance(found, dict) else {}


def pick_list(value: JsonObject, name: str) -> list[Json]:
    """A field that holds a list; one value stands for a list of one."""
    found = pick(value, name)
    if found is None:
        return []
    return found if isinstance(found, list) else [found]


def pick_objects(value: JsonObject, name: str) -> list[JsonObject]:
    """The messages in a list, as `examine` let them pass."""
    return [item for item in pick_list(value, name) if isinstance(item, dict)]


def pick_text(value: JsonObject, name: str) -> str:
    """A field that holds a text; an absent one is empty."""
    found = pick(value, name)
    return found if isinstance(found, str) else ""


def pick_number(value: JsonObject, name: str) -> float | None:
    """A field that holds a number, which may be spelled as a text."""
    found = pick(value, name)
    if isinstance(found, bool) or not isinstance(found, int | float | str):
        return None
    return float(found) if not isinstance(found, str) or _NUMBER.fullmatch(found) else None


def examine(value: JsonObject, message: str, path: str, unknown: list[str]) -> Refusal | None:
    """Check the types of everything in a message.

    Shape: path is the message's own, "" at the top; names of fields that no message has are added to unknown, with
    their place. The first wrong type is refused.
    """
    fields = MESSAGES[message]
    for name, item in value.items():
        known = _known_name(fields, name)
        here = f"{path}.{snake(name)}" if path else snake(name)
        if known is None:
            if message in CLOSED:
                return unknown_name("bad_tool_schema" if path.startswith("tools") else "bad_schema", name, path)
            unknown.append(here)
            continue
        refused = None if item is None else _field(item, fields[known], here, unknown)
        if refused:
            return refused
    return None


@functools.lru_cache(maxsize=64)
def _spellings(names: tuple[str, ...]) -> dict[str, str]:
    return {spelled: name for name in names for spelled in (name, snake(name))}


def _known_name(fields: Mapping[str, str], name: str) -> str | None:
    return _spellings(tuple(fields)).get(name)


def _field(value: Json, kind: str, path: str, unknown: list[str]) -> Refusal | None:
    if kind.endswith("*"):
        if isinstance(value, KnownList):
            seen = fold(_seen_by(kind[:-1], path), _NOTHING_SEEN, value)
            if seen is not None:
                unknown += seen[1]
                return None
        for at, item in enumerate(value if isinstance(value, list) else [value]):
            refused = _one(item, kind[:-1], f"{path}[{at}]", unknown)
            if refused:
                return refused
        return None
    if kind.endswith("%"):
        if not isinstance(value, dict):
            return wrong_value(path, f"map<string, {kind[:-1]}>", value)
        for at, item in enumerate(value.values()):
            refused = _one(item, kind[:-1], f"{path}[{at}].value", unknown)
            if refused:
                return refused
        return None
    if isinstance(value, list) and kind != "Value":
        parent, _, name = path.rpartition(".")
        text = f'Invalid JSON payload received. Unknown name "{name}"{_at(parent)}: '
        return Refusal(400, "wrong_type", f"{text}Proto field is not repeating, cannot start list.", param=path)
    return _one(value, kind, path, unknown)


# How many messages of a list were looked at, and the places of unknown fields in them; None when a type is wrong.
_Seen: TypeAlias = "tuple[int, tuple[str, ...]] | None"
_NOTHING_SEEN: _Seen = (0, ())


@functools.lru_cache(maxsize=64)
def _seen_by(kind: str, path: str) -> Callable[[_Seen, Sequence[Json]], _Seen]:
    """A function that looks at messages of one kind at one place, after those before them; one and the same each time,
    so that what it found is known again."""

    def see(before: _Seen, items: Sequence[Json]) -> _Seen:
        if before is None:
            return None
        count, unknown = before[0], [*before[1]]
        for at, item in enumerate(items, count):
            if _one(item, kind, f"{path}[{at}]", unknown):
                return None
        return count + len(items), tuple(unknown)

    return see


def _one(value: Json, kind: str, path: str, unknown: list[str]) -> Refusal | None:
    if kind == "Value":
        return None
    if kind == "Struct":
        return (
            None if isinstance(value, dict) else wrong_value(path, "type.googleapis.com/google.protobuf.Struct", value)
        )
    if kind in MESSAGES:
        if not isinstance(value, dict):
            return wrong_value(path, PACKAGE + kind, value)
        return examine(value, kind, path, unknown)
    if kind in ENUMS:
        is_known = isinstance(value, str) and value.upper() in ENUMS[kind]
        return None if is_known else wrong_value(path, PACKAGE + kind, value)
    return _scalar(value, kind, path)


def _scalar(value: Json, kind: str, path: str) -> Refusal | None:
    if isinstance(value, dict | list):
        what = "an object" if isinstance(value, dict) else "a list"
        text = f"Invalid value at '{path}' ({kind}), Starting {what} on a scalar field"
        return Refusal(400, "wrong_type", text, param=path)
    if kind == "TYPE_BOOL":
        return None if isinstance(value, bool) else wrong_value(path, kind, value)
    if kind == "TYPE_STRING":
        return None if isinstance(value, str) else wrong_value(path, kind, value)
    if kind == "TYPE_BYTES":
        if not isinstance(value, str):
            return wrong_value(path, kind, value)
        if decode_bytes(value) is None:
            shown = json.dumps(value[:_QUOTED])
            text = f"Invalid value at '{path}' ({kind}), Base64 decoding failed for {shown}"
            return Refusal(400, "bad_base64", text, param=path)
        return None
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return wrong_value(path, kind, value)
    limit = _RANGES.get(kind)
    if limit is not None and (value != int(value) or not -limit <= value < limit):
        return wrong_value(path, kind, value)
    return None


def decode_bytes(text: str) -> bytes | None:
    """Read bytes in either base64 alphabet, with or without padding; None when they are neither."""
    plain = text.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None


def _at(path: str) -> str:
    return f" at '{path}'" if path else ""


def wrong_value(path: str, kind: str, value: Json) -> Refusal:
    """A value has another type than its field."""
    shown = json.dumps(value)
    text = f"Invalid value at '{path}' ({kind}), {shown if len(shown) <= _QUOTED else shown[:_QUOTED] + '…'}"
    return Refusal(400, "wrong_type", text, param=path)


def unknown_name(rule: str, name: str, path: str) -> Refusal:
    """A message has a field that its type does not have."""
    text = f'Invalid JSON payload received. Unknown name "{name}"{_at(path)}: Cannot find field.'
    return Refusal(400, rule, text, param=path or name)
