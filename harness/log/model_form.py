"""Messages and chunks as JSON objects, the way a log spells them.

Room: pure; json_form and chunk_rows use it. Reading maps keys to fields and no more: what a field may hold is
validate's business, so a reader never accepts what a writer could not have written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from harness.errors import InvalidEventError
from harness.log.frozen import freeze_object, thaw_json
from harness.log.model_checks import refuse
from harness.model.chunks import (
    BlockEnd,
    BlockStart,
    Chunk,
    Failure,
    Finish,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    Usage,
    UsageChunk,
)
from harness.model.messages import (
    AttachmentRef,
    ContentBlock,
    ImageBlock,
    JsonObject,
    Message,
    ModelSource,
    PluginSource,
    ReasoningBlock,
    Source,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    ToolSource,
    UserSource,
)

JsonDict: TypeAlias = "dict[str, Any]"  # Any: fresh from or on the way to the json module; validate proves the values


def take(value: object, where: str, required: frozenset[str], optional: frozenset[str] = frozenset()) -> JsonDict:
    """The value as an object with all of the required keys, any of the optional ones and no other."""
    if type(value) is not dict:
        refuse(where, f"{type(value).__name__} where an object belongs")
    keys = value.keys()
    if keys == required:
        return value
    if not required <= keys:
        refuse(where, f"lacks {', '.join(sorted(required - keys))}")
    if not keys - required <= optional:
        refuse(where, f"has unknown keys {', '.join(sorted(keys - required - optional))}")
    return value


def take_list(value: object, where: str) -> list[Any]:
    """The value as a list."""
    if type(value) is not list:
        refuse(where, f"{type(value).__name__} where a list belongs")
    return value


def take_object(value: object, where: str) -> JsonObject | None:
    """An optional object, frozen; None when it is absent."""
    return None if value is None else freeze_object(value, where)


def message_to_json(message: Message) -> JsonDict:
    """The message as an object on disk."""
    return {
        "id": message.id,
        "role": message.role,
        "content": [block_to_json(block) for block in message.content],
        "source": _source_to_json(message.source),
    }


_MESSAGE = frozenset({"id", "role", "content", "source"})


def message_from_json(value: object, where: str) -> Message:
    """The message an object on disk stands for.

    Raises: InvalidEventError naming the place.
    """
    data = take(value, where, _MESSAGE)
    content = data["content"]
    if type(content) is not list:
        take_list(content, f"{where}.content")
    blocks = _blocks_from_json(content, where)
    return Message(data["id"], data["role"], blocks, _source_from_json(data["source"], where))


def _blocks_from_json(content: list[Any], where: str) -> tuple[ContentBlock, ...]:
    """The blocks of a list; most are plain text, and their place is spelled only when it is asked for."""
    return tuple(
        [
            TextBlock(block["text"])
            if type(block) is dict and block.keys() == _TEXT and block["type"] == "text"
            else block_from_json(block, f"{where}.content[{at}]")
            for at, block in enumerate(content)
        ]
    )


def _source_to_json(source: Source) -> JsonDict:
    match source:
        case UserSource():
            return {"kind": "user"}
        case PluginSource():
            return with_optional({"kind": "plugin", "plugin": source.plugin}, form=source.form)
        case ModelSource():
            return with_optional(
                {"kind": "model", "provider": source.provider, "model": source.model},
                replayState=None if source.replay_state is None else thaw_json(source.replay_state),
            )
        case ToolSource():
            return {"kind": "tool", "callId": source.call_id}


_USER, _USER_JSON = UserSource(), {"kind": "user"}  # there is nothing in it: one for all
_KIND = frozenset({"kind"})
_PLUGIN = frozenset({"kind", "plugin"})
_PLUGIN_MORE = frozenset({"form"})
_MODEL = frozenset({"kind", "provider", "model"})
_MODEL_MORE = frozenset({"replayState"})
_TOOL = frozenset({"kind", "callId"})


def _source_from_json(value: object, message: str) -> Source:
    """The source of the message at that place."""
    kind = value.get("kind") if type(value) is dict else None
    if value == _USER_JSON:
        return _USER
    where = f"{message}.source"
    if kind == "user":
        take(value, where, _KIND)
    if kind == "plugin":
        data = take(value, where, _PLUGIN, _PLUGIN_MORE)
        return PluginSource(data["plugin"], present(data, "form", where))
    if kind == "model":
        data = take(value, where, _MODEL, _MODEL_MORE)
        return ModelSource(
            data["provider"],
            data["model"],
            take_object(present(data, "replayState", where), f"{where}.replayState"),
        )
    if kind == "tool":
        return ToolSource(take(value, where, _TOOL)["callId"])
    raise InvalidEventError(f"source kind {kind!r} is unknown", where=where)


def block_to_json(block: ContentBlock) -> JsonDict:
    """A content block as an object on disk."""
    match block:
        case TextBlock():
            return {"type": "text", "text": block.text}
        case ReasoningBlock():
            return {"type": "reasoning", "text": block.text}
        case ImageBlock():
            reference = block.attachment
            return {
                "type": "image",
                "attachment": with_optional(
                    {
                        "attachmentId": reference.attachment_id,
                        "mediaType": reference.media_type,
                        "bytes": reference.bytes,
                        "width": reference.width,
                        "height": reference.height,
                    },
                    name=reference.name,
                ),
            }
        case ToolCallBlock():
            return {"type": "tool-call", "id": block.id, "name": block.name, "arguments": block.arguments}
        case ToolResultBlock():
            return with_optional(
                {
                    "type": "tool-result",
                    "toolCallId": block.tool_call_id,
                    "content": [block_to_json(part) for part in block.content],
                },
                isError=True if block.is_error else None,
            )


_TEXT = frozenset({"type", "text"})
_IMAGE = frozenset({"type", "attachment"})
_CALL = frozenset({"type", "id", "name", "arguments"})
_RESULT = frozenset({"type", "toolCallId", "content"})
_RESULT_MORE = frozenset({"isError"})
_ATTACHMENT = frozenset({"attachmentId", "mediaType", "bytes", "width", "height"})


def block_from_json(value: object, where: str) -> ContentBlock:
    """The content block an object on disk stands for."""
    kind = value.get("type") if type(value) is dict else None
    if kind == "text":
        return TextBlock(take(value, where, _TEXT)["text"])
    if kind == "reasoning":
        return ReasoningBlock(take(value, where, _TEXT)["text"])
    if kind == "tool-call":
        data = take(value, where, _CALL)
        return ToolCallBlock(data["id"], data["name"], data["arguments"])
    if kind == "tool-result":
        data = take(value, where, _RESULT, _RESULT_MORE)
        parts: list[TextBlock | ImageBlock] = []
        content = take_list(data["content"], f"{where}.content")
        for at, part in enumerate(_blocks_from_json(content, where)):
            if not isinstance(part, TextBlock | ImageBlock):
                refuse(f"{where}.content[{at}]", "is neither text nor an image")
            parts.append(part)
        return ToolResultBlock(data["toolCallId"], tuple(parts), flag(data, "isError", where))
    if kind == "image":
        place = f"{where}.attachment"
        data = take(take(value, where, _IMAGE)["attachment"], place, _ATTACHMENT, frozenset({"name"}))
        reference = AttachmentRef(
            data["attachmentId"],
            data["mediaType"],
            data["bytes"],
            data["width"],
            data["height"],
            present(data, "name", place),
        )
        return ImageBlock(reference)
    raise InvalidEventError(f"block type {kind!r} is unknown", where=where)


def usage_to_json(usage: Usage) -> JsonDict:
    """Token counts as an object on disk; what was not reported is absent."""
    return with_optional(
        {"inputTokens": usage.input_tokens, "outputTokens": usage.output_tokens},
        cacheReadTokens=usage.cache_read_tokens,
        cacheWriteTokens=usage.cache_write_tokens,
        reasoningTokens=usage.reasoning_tokens,
    )


_USAGE = frozenset({"inputTokens", "outputTokens"})
_USAGE_MORE = frozenset({"cacheReadTokens", "cacheWriteTokens", "reasoningTokens"})


def usage_from_json(value: object, where: str) -> Usage:
    """The token counts an object on disk stands for."""
    data = take(value, where, _USAGE, _USAGE_MORE)
    return Usage(
        data["inputTokens"],
        data["outputTokens"],
        present(data, "cacheReadTokens", where),
        present(data, "cacheWriteTokens", where),
        present(data, "reasoningTokens", where),
    )


def failure_to_json(failure: Failure) -> JsonDict:
    """A failure as an object on disk."""
    return with_optional(
        {"message": failure.message, "code": failure.code},
        status=failure.status,
        providerRetryAfterMs=failure.provider_retry_after_ms,
        requestId=failure.request_id,
    )


_FAILURE = frozenset({"message", "code"})
_FAILURE_MORE = frozenset({"status", "providerRetryAfterMs", "requestId"})


def failure_from_json(value: object, where: str) -> Failure:
    """The failure an object on disk stands for."""
    data = take(value, where, _FAILURE, _FAILURE_MORE)
    return Failure(
        data["message"],
        data["code"],
        present(data, "status", where),
        present(data, "providerRetryAfterMs", where),
        present(data, "requestId", where),
    )


def chunk_to_json(chunk: Chunk) -> JsonDict:
    """A stream piece as an object on disk."""
    match chunk:
        case TextDelta():
            return {"type": "text-delta", "index": chunk.index, "text": chunk.text}
        case ReasoningDelta():
            return {"type": "reasoning-delta", "index": chunk.index, "text": chunk.text}
        case ToolCallDelta():
            data: JsonDict = {"type": "tool-call-delta", "index": chunk.index, "id": chunk.id}
            if chunk.name is not None:
                data["name"] = chunk.name
            data["argumentsDelta"] = chunk.arguments_delta
            return data
        case BlockStart():
            return {"type": "block-start", "index": chunk.index, "blockType": chunk.block_type}
        case BlockEnd():
            return {"type": "block-end", "index": chunk.index, "block": block_to_json(chunk.block)}
        case UsageChunk():
            return {"type": "usage", "usage": usage_to_json(chunk.usage)}
        case Finish():
            failure = None if chunk.failure is None else failure_to_json(chunk.failure)
            return with_optional(
                {"type": "finish", "reason": with_optional({"kind": chunk.kind}, failure=failure)},
                replayState=None if chunk.replay_state is None else thaw_json(chunk.replay_state),
            )


_DELTA = frozenset({"type", "index", "text"})
_CALL_DELTA = frozenset({"type", "index", "id", "argumentsDelta"})
_NAME = frozenset({"name"})
_START = frozenset({"type", "index", "blockType"})
_END = frozenset({"type", "index", "block"})
_USAGE_CHUNK = frozenset({"type", "usage"})
_FINISH = frozenset({"type", "reason"})


def chunk_from_json(value: object, where: str) -> Chunk:
    """The stream piece an object on disk stands for."""
    kind = value.get("type") if type(value) is dict else None
    if kind == "text-delta":
        data = take(value, where, _DELTA)
        return TextDelta(data["index"], data["text"])
    if kind == "reasoning-delta":
        data = take(value, where, _DELTA)
        return ReasoningDelta(data["index"], data["text"])
    if kind == "tool-call-delta":
        data = take(value, where, _CALL_DELTA, _NAME)
        return ToolCallDelta(data["index"], data["id"], data["argumentsDelta"], present(data, "name", where))
    if kind == "block-start":
        data = take(value, where, _START)
        return BlockStart(data["index"], data["blockType"])
    if kind == "block-end":
        data = take(value, where, _END)
        return BlockEnd(data["index"], block_from_json(data["block"], f"{where}.block"))
    if kind == "usage":
        return UsageChunk(usage_from_json(take(value, where, _USAGE_CHUNK)["usage"], f"{where}.usage"))
    if kind == "finish":
        data = take(value, where, _FINISH, frozenset({"replayState"}))
        reason = take(data["reason"], f"{where}.reason", _KIND, frozenset({"failure"}))
        failure = present(reason, "failure", where)
        return Finish(
            reason["kind"],
            None if failure is None else failure_from_json(failure, f"{where}.reason.failure"),
            take_object(present(data, "replayState", where), f"{where}.replayState"),
        )
    raise InvalidEventError(f"chunk type {kind!r} is unknown", where=where)


def with_optional(data: JsonDict, **optional: object) -> JsonDict:
    """The object with those optional members that are there: absent, never null."""
    for key, value in optional.items():
        if value is not None:
            data[key] = value
    return data


def present(data: Mapping[str, Any], key: str, where: str) -> Any:  # Any: validate proves the value
    """An optional member; None when it is absent, and refused when it is written as null."""
    value = data.get(key)
    if value is None and key in data:
        refuse(f"{where}.{key}", "is null where it should be absent")
    return value


def flag(data: Mapping[str, Any], key: str, where: str) -> bool:
    """A member that is true or absent."""
    if key not in data:
        return False
    if data[key] is not True:
        refuse(f"{where}.{key}", f"{data[key]!r} where true or nothing belongs")
    return True
