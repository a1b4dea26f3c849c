"""Say whether a message, a block, a stream piece or a plain value is what its type promises.

Room: pure; validate builds its checks for events from these, model_form refuses with the same words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from harness.errors import InvalidEventError
from harness.log.frozen import MAX_SAFE_INTEGER
from harness.model.chunks import (
    BlockEnd,
    BlockStart,
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
    ImageBlock,
    Message,
    ModelSource,
    PluginSource,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    ToolSource,
    UserSource,
)

_FORMS = frozenset({None, "instructions", "catalog", "snapshot", "notice", "relay", "recall"})
_FINISHES = frozenset({"stop", "tool-calls", "max-tokens", "aborted", "error"})
_BLOCKS = frozenset({"text", "reasoning", "tool-call"})


def refuse(where: str, what: str) -> NoReturn:
    """Raise the error of a value that may not stand where it stands."""
    raise InvalidEventError(what, where=where)


def check_text(value: object, where: str) -> None:
    """Refuse anything but a non-empty string."""
    if type(value) is not str or not value:
        refuse(where, f"{value!r} is not a non-empty string")


def check_string(value: object, where: str) -> None:
    """Refuse anything but a string."""
    if type(value) is not str:
        refuse(where, f"{value!r} is not a string")


def check_count(value: object, where: str, least: int = 0) -> None:
    """Refuse anything but an integer from least up to 2**53 - 1."""
    if type(value) is not int or not least <= value <= MAX_SAFE_INTEGER:
        refuse(where, f"{value!r} is not an integer from {least} up")


def check_object(value: object, where: str) -> None:
    """Refuse anything but a JSON object."""
    if not isinstance(value, Mapping):
        refuse(where, f"{type(value).__name__} where an object belongs")


def check_member(value: object, allowed: frozenset[Any], where: str) -> None:
    """Refuse a value outside a fixed set of strings, None where the set has it."""
    if not (value is None or type(value) is str) or value not in allowed:
        names = ", ".join(sorted(str(name) for name in allowed if name is not None))
        refuse(where, f"{value!r} is not one of {names}")


def check_failure(failure: Failure, where: str) -> None:
    """Refuse a failure with facts no service can have given."""
    if type(failure) is not Failure:
        refuse(where, f"{failure!r} is not a failure")
    check_string(failure.message, f"{where}.message")
    check_text(failure.code, f"{where}.code")
    if failure.status is not None:
        check_count(failure.status, f"{where}.status", 100)
        if failure.status > 599:
            refuse(f"{where}.status", f"{failure.status} is not an HTTP status")
    if failure.provider_retry_after_ms is not None:
        check_count(failure.provider_retry_after_ms, f"{where}.providerRetryAfterMs", 1)
    if failure.request_id is not None:
        check_string(failure.request_id, f"{where}.requestId")


def check_message(message: Message, where: str) -> None:
    """Refuse a message whose parts are not what they say they are."""
    if type(message) is not Message:
        refuse(where, f"{message!r} is not a message")
    if type(message.id) is not str or not message.id:
        check_text(message.id, f"{where}.id")
    if type(message.content) is not tuple:
        refuse(f"{where}.content", "is not a list of blocks")
    for at, block in enumerate(message.content):
        if type(block) is not TextBlock or type(block.text) is not str:  # a place is spelled only when it is needed
            check_block(block, f"{where}.content[{at}]")
    if type(message.source) is not UserSource:
        check_source(message.source, f"{where}.source")


def check_source(source: object, where: str) -> None:
    """Refuse an unknown or incomplete source."""
    match source:
        case UserSource():
            pass
        case PluginSource():
            check_text(source.plugin, f"{where}.plugin")
            check_member(source.form, _FORMS, f"{where}.form")
        case ModelSource():
            check_text(source.provider, f"{where}.provider")
            check_text(source.model, f"{where}.model")
            if source.replay_state is not None:
                check_object(source.replay_state, f"{where}.replayState")
        case ToolSource():
            check_text(source.call_id, f"{where}.callId")
        case _:
            refuse(where, f"{source!r} is not a source")


def check_block(block: object, where: str) -> None:
    """Refuse an unknown or incomplete content block."""
    match block:
        case TextBlock() | ReasoningBlock():
            check_string(block.text, f"{where}.text")
        case ToolCallBlock():
            check_text(block.id, f"{where}.id")
            check_string(block.name, f"{where}.name")
            check_string(block.arguments, f"{where}.arguments")
        case ToolResultBlock():
            check_text(block.tool_call_id, f"{where}.toolCallId")
            if type(block.is_error) is not bool:
                refuse(f"{where}.isError", f"{block.is_error!r} is not true or false")
            if type(block.content) is not tuple:
                refuse(f"{where}.content", "is not a list of blocks")
            for at, part in enumerate(block.content):
                if type(part) is TextBlock and type(part.text) is str:
                    continue
                if type(part) not in (TextBlock, ImageBlock):
                    refuse(f"{where}.content[{at}]", f"a {type(part).__name__} is not a result")
                check_block(part, f"{where}.content[{at}]")
        case ImageBlock():
            check_attachment(block.attachment, f"{where}.attachment")
        case _:
            refuse(where, f"{block!r} is not a content block")


def check_attachment(reference: AttachmentRef, where: str) -> None:
    """Refuse an incomplete attachment reference."""
    if type(reference) is not AttachmentRef:
        refuse(where, f"{reference!r} is not an attachment reference")
    check_text(reference.attachment_id, f"{where}.attachmentId")
    check_text(reference.media_type, f"{where}.mediaType")
    for name in ("bytes", "width", "height"):
        check_count(getattr(reference, name), f"{where}.{name}")
    if reference.name is not None:
        check_string(reference.name, f"{where}.name")


def check_usage(usage: Usage, where: str) -> None:
    """Refuse token counts that are not counts."""
    if type(usage) is not Usage:
        refuse(where, f"{usage!r} is not a usage")
    check_count(usage.input_tokens, f"{where}.inputTokens")
    check_count(usage.output_tokens, f"{where}.outputTokens")
    for name, value in (
        ("cacheReadTokens", usage.cache_read_tokens),
        ("cacheWriteTokens", usage.cache_write_tokens),
        ("reasoningTokens", usage.reasoning_tokens),
    ):
        if value is not None:
            check_count(value, f"{where}.{name}")


def check_streamed_block(block: object, where: str) -> None:
    """What a provider streamed is kept as it came: a call may still lack the id that assembly will give it."""
    if isinstance(block, ToolCallBlock):
        for name in ("id", "name", "arguments"):
            check_string(getattr(block, name), f"{where}.{name}")
    else:
        check_block(block, where)


def check_input(message: Message, where: str) -> None:
    """Refuse a message that may not enter as input: another role than user, or blocks only a model or a tool writes."""
    check_message(message, where)
    if message.role != "user":
        refuse(f"{where}.role", f"{message.role!r} where 'user' belongs")
    if type(message.source) not in (UserSource, PluginSource):
        refuse(f"{where}.source", "input comes from a user or a plugin")
    for at, block in enumerate(message.content):
        if type(block) is not TextBlock and type(block) is not ImageBlock:
            refuse(f"{where}.content[{at}]", f"a {type(block).__name__} is not input")


def _is_index(value: object) -> bool:
    return type(value) is int and 0 <= value <= MAX_SAFE_INTEGER


def check_chunk(chunk: object, where: str) -> None:
    """Refuse a stream piece of an unknown kind or with a field out of its range."""
    if type(chunk) is TextDelta and type(chunk.text) is str and _is_index(chunk.index):
        return  # most of a log is this; a place is spelled only when it is needed
    match chunk:
        case TextDelta() | ReasoningDelta():
            check_count(chunk.index, f"{where}.index")
            check_string(chunk.text, f"{where}.text")
        case ToolCallDelta():
            check_count(chunk.index, f"{where}.index")
            check_string(chunk.id, f"{where}.id")
            check_string(chunk.arguments_delta, f"{where}.argumentsDelta")
            if chunk.name is not None:
                check_string(chunk.name, f"{where}.name")
        case BlockStart():
            check_count(chunk.index, f"{where}.index")
            check_member(chunk.block_type, _BLOCKS, f"{where}.blockType")
        case BlockEnd():
            check_count(chunk.index, f"{where}.index")
            check_streamed_block(chunk.block, f"{where}.block")
        case UsageChunk():
            check_usage(chunk.usage, f"{where}.usage")
        case Finish():
            check_member(chunk.kind, _FINISHES, f"{where}.reason.kind")
            if (chunk.failure is not None) != (chunk.kind in ("aborted", "error")):
                refuse(f"{where}.reason.failure", "a failure stands exactly on aborted and error")
            if chunk.failure is not None:
                check_failure(chunk.failure, f"{where}.reason.failure")
            if chunk.replay_state is not None:
                check_object(chunk.replay_state, f"{where}.replayState")
        case _:
            refuse(where, f"{chunk!r} is not a chunk")
