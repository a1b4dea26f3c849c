"""What a client is told of a session's work: committed messages in order, and more where it asked for more.

Room: the bridge comes in.
Source: Agent Client Protocol, version 1, session updates.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable

from harness.errors import HarnessError
from harness.log.attachments import AttachmentStore
from harness.log.events import AssistantMessage, Event, ToolCall, ToolResult, UserMessage
from harness.model.messages import (
    AttachmentRef,
    ContentBlock,
    ImageBlock,
    Json,
    JsonObject,
    ReasoningBlock,
    TextBlock,
    ToolResultBlock,
)

Send = Callable[[JsonObject], Awaitable[None]]
KINDS = {
    "read_file": "read", "list_files": "search", "search_files": "search", "write_file": "edit", "edit_file": "edit",
    "shell": "execute",
}  # fmt: skip


class OutputChain:
    """The updates of one session, one after the other.

    Shape: add queues an event; tail returns once everything queued so far was delivered or failed. failed is called
    with the event and what kept it from being delivered whole; its remaining blocks are left out.
    """

    def __init__(self, send: Send, store: AttachmentStore, *, live: bool, failed: Callable[[Event, str], None]) -> None:
        self._send = send
        self._store = store
        self._live = live
        self._failed = failed
        self._last: asyncio.Task[None] | None = None

    def add(self, event: Event) -> None:
        """Queue what this event says to a client, which for most is nothing."""
        if isinstance(event.payload, AssistantMessage) or (
            self._live and isinstance(event.payload, ToolCall | ToolResult)
        ):
            self._last = asyncio.ensure_future(self._deliver(event, self._last))

    def replay(self, event: Event) -> None:
        """Queue an event of a session that is being loaded: what both sides said."""
        if isinstance(event.payload, UserMessage):
            self._last = asyncio.ensure_future(self._deliver(event, self._last))
        else:
            self.add(event)

    async def tail(self) -> None:
        """Wait for everything that is queued now."""
        if self._last is not None:
            await asyncio.wait({self._last})

    async def _deliver(self, event: Event, earlier: asyncio.Task[None] | None) -> None:
        if earlier is not None:
            await asyncio.wait({earlier})
        try:
            match event.payload:
                case AssistantMessage(message=message):
                    await self._message(message.content, "agent_message_chunk")
                case UserMessage(message=message):
                    await self._message(message.content, "user_message_chunk")
                case ToolCall():
                    await self._send(_tool_call(event.payload))
                case ToolResult():
                    await self._send(_tool_result(event.payload))
        except HarnessError as error:
            self._failed(event, error.what)
        except Exception as error:  # noqa: BLE001 - whatever keeps an update back, the chain goes on and the owner hears
            self._failed(event, type(error).__name__)

    async def _message(self, content: tuple[ContentBlock, ...], kind: str) -> None:
        for block in content:
            if isinstance(block, TextBlock) and block.text:
                await self._send({"sessionUpdate": kind, "content": {"type": "text", "text": block.text}})
            elif isinstance(block, ReasoningBlock) and self._live and block.text:
                thought: JsonObject = {"type": "text", "text": block.text}
                await self._send({"sessionUpdate": "agent_thought_chunk", "content": thought})
            elif isinstance(block, ImageBlock):
                await self._send({"sessionUpdate": kind, "content": await self._picture(block.attachment)})

    async def _picture(self, reference: AttachmentRef) -> JsonObject:
        data = await self._store.read(reference)
        text = (await asyncio.to_thread(base64.b64encode, data)).decode("ascii")
        return {"type": "image", "mimeType": reference.media_type, "data": text}


def _tool_call(call: ToolCall) -> JsonObject:
    return {
        "sessionUpdate": "tool_call",
        "toolCallId": call.call_id,
        "title": call.name,
        "kind": KINDS.get(call.name, "other"),
        "status": "in_progress",
        "rawInput": _arguments(call.arguments),
    }


def _tool_result(result: ToolResult) -> JsonObject:
    (block,) = (block for block in result.message.content if isinstance(block, ToolResultBlock))
    content: list[Json] = [
        {"type": "content", "content": {"type": "text", "text": part.text}}
        for part in block.content
        if isinstance(part, TextBlock)
    ]
    return {
        "sessionUpdate": "tool_call_update",
        "toolCallId": block.tool_call_id,
        "status": "failed" if block.is_error else "completed",
        "content": content,
    }


def _arguments(text: str) -> Json:
    """The arguments as an object where they are one; else as the model wrote them."""
    try:
        value: Json = json.loads(text)
    except ValueError:
        return text
    return value
