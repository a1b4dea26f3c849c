"""Have a model write the summary that stands for a span: what it is asked, and how its answer is read.

Room: compaction comes in. The span goes to the model as one text, so that no dialect's rules for calls and results
apply to what is over.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from harness.errors import ProviderError
from harness.log.events import Cause, RequestConfig
from harness.loop.assembly import Assembler, assemble_answer
from harness.loop.failure import STREAM_CLOSED, failure_of
from harness.loop.reader import ChunkReader
from harness.loop.scope import CancelScope
from harness.model.call import CancelSignal, Model, ModelRequest
from harness.model.chunks import Failure, Usage
from harness.model.messages import (
    Message,
    MessageId,
    PluginSource,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    text_of,
)

PLUGIN = "compaction"
MAX_RESULT_CHARACTERS = 2000  # of one tool result: enough for what mattered in it, and a long log file does not fit

INSTRUCTION = (
    "You shorten the record of an agent's work so that the agent can go on from your text alone. Write what the user "
    "asked for, in the user's own words; what was found out, with file names, commands and figures; what was changed "
    "and how it was checked; what failed; and what is still to do. Add nothing of your own and address nobody."
)


@dataclass(frozen=True, slots=True)
class Summary:
    """A model's summary and what it cost."""

    text: str
    usage: Usage | None


def summary_request(route: RequestConfig, messages: Sequence[Message]) -> ModelRequest:
    """The request for a summary of these messages; it holds nothing but them and a fixed instruction."""
    record = Message(
        MessageId("record"), "user", (TextBlock(render_record(messages)),), PluginSource(PLUGIN, "snapshot")
    )
    return ModelRequest(route.provider, route.model, (record,), system=INSTRUCTION, max_tokens=route.max_tokens)


def render_record(messages: Sequence[Message]) -> str:
    """The messages as one text, long results cut in the middle."""
    return "\n\n".join(part for message in messages for part in _parts(message))


def _parts(message: Message) -> list[str]:
    parts: list[str] = []
    text = text_of(message)
    if text:
        parts.append(f"[{message.role}]\n{text}")
    for block in message.content:
        if isinstance(block, ToolCallBlock):
            parts.append(f"[call {json.dumps(block.name)}]\n{_shortened(block.arguments)}")
        elif isinstance(block, ToolResultBlock):
            said = "".join(inner.text for inner in block.content if isinstance(inner, TextBlock))
            parts.append(f"[{'failed result' if block.is_error else 'result'}]\n{_shortened(said)}")
    return parts


def _shortened(text: str) -> str:
    if len(text) <= MAX_RESULT_CHARACTERS:
        return text
    half = MAX_RESULT_CHARACTERS // 2
    return f"{text[:half]}\n[{len(text) - 2 * half} characters left out]\n{text[-half:]}"


async def ask_summary(model: Model, request: ModelRequest, cancel: CancelSignal) -> Summary:
    """The model's summary; empty when it was cancelled before its end.

    Raises: ProviderError when the model fails, or answers nothing.
    """
    scope = CancelScope()
    listening = asyncio.ensure_future(_pass_on(cancel, scope))
    assembler = Assembler()
    reader = ChunkReader(lambda: model.stream(request, scope), scope)
    try:
        while assembler.finish is None and (chunk := await reader.next()) is not None:
            assembler.feed(chunk)
    finally:
        listening.cancel()
        await reader.close()
    if scope.cancelled:
        return Summary("", assembler.usage)
    finish = assembler.finish
    if finish is None:
        _fail(failure_of(reader.error) if reader.error is not None else STREAM_CLOSED)
    if finish.failure is not None:
        _fail(finish.failure)
    answer = assemble_answer(assembler, 0, 0, set())
    text = "".join(block.text for block in answer.blocks if isinstance(block, TextBlock)).strip()
    if not text:
        _fail(Failure("the model wrote no summary", "EMPTY_RESPONSE"))
    return Summary(text, answer.usage)


async def _pass_on(cancel: CancelSignal, scope: CancelScope) -> None:
    await cancel.wait()
    scope.cancel(Cause("parent"))


def _fail(failure: Failure) -> NoReturn:
    raise ProviderError(
        failure.message,
        code=failure.code,
        status=failure.status,
        retry_after_ms=failure.provider_retry_after_ms,
        request_id=failure.request_id,
    )
