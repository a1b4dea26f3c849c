"""What the methods of the SDK wire take and give.

Room: pure; the server comes in. Every reader names the field it refuses, and nothing is created before it has read all.
Source of the names: the published clients `deepseek-harness-sdk` and `@deepseek-ai/dsh-sdk-protocol`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

from harness.capabilities.subagents import SubagentFinished, SubagentStarted
from harness.errors import InvalidEventError, UsageError
from harness.log.model_form import block_from_json, block_to_json
from harness.model.call import ReasoningEffort
from harness.model.messages import AttachmentRef, ContentBlock, ImageBlock, Json, JsonObject, MessageId, SessionId

MAX_SAFE_INTEGER = 2**53 - 1  # what a client written in JavaScript can count exactly
SERVER_NAME = "deepseek-harness-sdk-runtime"  # published clients know the wire by this name
SERVER_VERSION = "0.0.1"
EFFORTS: tuple[ReasoningEffort, ...] = ("low", "medium", "high")
_PROVIDERS = {"deepseek-official": "deepseek"}  # what the published clients ask for when nobody chose
_BLOCKS = {"text": {"text"}, "reasoning": {"text"}, "image": {"attachment"}}
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Initialize:
    """What the handshake asks for. cwd is as given; max_tokens and effort are None where nothing was asked."""

    cwd: str
    provider: str
    model: str
    max_tokens: int | None
    effort: ReasoningEffort | None


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt: content may be empty, as clients may send it."""

    session_id: SessionId
    content: tuple[ContentBlock, ...]

    @property
    def attachments(self) -> tuple[AttachmentRef, ...]:
        """The pictures it names."""
        return tuple(block.attachment for block in self.content if isinstance(block, ImageBlock))


def read_initialize(params: JsonObject) -> Initialize:
    """The handshake.

    Raises: UsageError naming the field.
    """
    effort = params.get("reasoningEffort")
    if effort is not None and effort not in EFFORTS:
        _refuse("reasoningEffort", f"expected one of {', '.join(EFFORTS)}")
    return Initialize(
        cwd=read_text(params, "cwd"),
        provider=_read_provider(params),
        model=_read_name(params, "model"),
        max_tokens=_read_max_tokens(params.get("maxTokens")),
        effort=next((known for known in EFFORTS if known == effort), None),
    )


def _read_provider(params: JsonObject) -> str:
    name = _read_name(params, "provider")
    return _PROVIDERS.get(name, name)


def _read_name(params: JsonObject, field: str) -> str:
    """A name; a blank one would count as none, and something else would be chosen for it."""
    name = read_text(params, field)
    if not name.strip():
        _refuse(field, "expected a name")
    return name


def read_prompt(params: JsonObject) -> Prompt:
    """A prompt. An empty list of blocks stays legal.

    Raises: UsageError naming the field, and within contentBlocks the position.
    """
    session_id = read_session_id(params)
    blocks = params.get("contentBlocks")
    if not isinstance(blocks, list | tuple):
        _refuse("contentBlocks", "expected a list of blocks")
    return Prompt(session_id, tuple(_read_block(block, f"contentBlocks[{at}]") for at, block in enumerate(blocks)))


def read_session_id(params: JsonObject) -> SessionId:
    """The session that is meant."""
    return SessionId(read_text(params, "sessionId"))


def read_message_id(params: JsonObject) -> MessageId | None:
    """The message that is meant, where one is named."""
    return None if params.get("messageId") is None else MessageId(read_text(params, "messageId"))


def read_text(params: JsonObject, field: str) -> str:
    """A text that says something."""
    value = params.get(field)
    if not isinstance(value, str) or not value:
        _refuse(field, "expected a text that is not empty")
    return value


def started_params(notice: SubagentStarted) -> JsonObject:
    """subagent.started."""
    return {"parentSessionId": notice.parent, "childSessionId": notice.child}


def finished_params(notice: SubagentFinished, *, max_tokens_as_success: bool) -> JsonObject:
    """subagent.finished. A child that said nothing has no lastAssistantMessage, never an empty one."""
    is_ok = notice.stop == "completed" or (notice.stop == "max-tokens" and max_tokens_as_success)
    params: dict[str, Json] = {
        "provider": notice.provider,
        "agentId": notice.agent_id,
        "parentSessionId": notice.parent,
        "childSessionId": notice.child,
        "status": "ok" if is_ok else "error",
        "stopReason": notice.stop,
    }
    if notice.last_message:
        params["lastAssistantMessage"] = [block_to_json(block) for block in notice.last_message]
    return params


def _read_max_tokens(value: Json) -> int | None:
    if value is None:
        return None
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if isinstance(value, float) and value.is_integer():  # 77.0 and 77 are one number in JSON
        value, is_whole = int(value), True
    if not is_whole or not isinstance(value, int) or not 1 <= value <= MAX_SAFE_INTEGER:
        _refuse("maxTokens", "expected a positive safe integer")
    return value


def _read_block(value: Json, where: str) -> ContentBlock:
    kind = value.get("type") if isinstance(value, Mapping) else None
    if not isinstance(value, Mapping) or not isinstance(kind, str) or kind not in _BLOCKS:
        _refuse(where, f"expected a block of type {', '.join(_BLOCKS)}")
    if kind != "image" and not isinstance(value.get("text"), str):
        _refuse(f"{where}.text", "expected a text")
    if kind == "image" and not _is_reference(value.get("attachment")):
        _refuse(f"{where}.attachment", "expected a reference to a stored picture")
    try:
        return block_from_json({key: value[key] for key in ("type", *_BLOCKS[kind]) if key in value}, where)
    except InvalidEventError as error:
        _refuse(error.where or where, error.what)


def _is_reference(reference: Json) -> bool:
    """Whether every field of a reference to a stored picture is of its type; the store looks at the rest."""
    if not isinstance(reference, Mapping):
        return False
    identity = reference.get("attachmentId")
    numbers = [reference.get(name) for name in ("bytes", "width", "height")]
    return (
        isinstance(identity, str)
        and _DIGEST.fullmatch(identity) is not None
        and isinstance(reference.get("mediaType"), str)
        and all(isinstance(number, int) and not isinstance(number, bool) and number > 0 for number in numbers)
        and isinstance(reference.get("name", ""), str)
    )


def _refuse(field: str, expected: str) -> NoReturn:
    raise UsageError(expected, where=field)
