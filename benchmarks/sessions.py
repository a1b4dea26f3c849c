"""Sessions to measure with: one of streamed text, and one of small events that no packing shortens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

from harness.log.events import (
    AssistantChunk,
    AssistantMessage,
    InboxSpliced,
    RemovedItem,
    SessionHeader,
    StepEnd,
    StepStart,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnReason,
    TurnStart,
    UserMessage,
)
from harness.log.session_log import SessionLog
from harness.log.store import SessionStore
from harness.model.chunks import BlockStart, TextDelta
from harness.model.messages import (
    CallId,
    Message,
    MessageId,
    ModelSource,
    SessionId,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    ToolSource,
    UserSource,
)

SESSION = SessionId("bench")
_STREAMED = 200  # events in one turn of streamed text


def clock() -> int:
    """A time that stands still."""
    return 1_700_000_000_000


def header() -> SessionHeader:
    """The header of every session here."""
    return SessionHeader(SESSION, created_at=clock())


def stream_turn(log: SessionLog, turn: int) -> None:
    """A turn of streamed text."""
    log.append(TurnStart(turn))
    log.append(StepStart(turn, 1))
    log.append(AssistantChunk(turn, 1, BlockStart(0, "text")))
    for piece in range(_STREAMED - 5):
        log.append(AssistantChunk(turn, 1, TextDelta(0, f"piece {piece} of a sentence ")))
    log.append(StepEnd(turn, 1))
    log.append(TurnEnd(turn, TurnReason("completed")))


def work_turn(log: SessionLog, turn: int) -> None:
    """A turn of ten small events: input, an answer with a call, and its result."""
    asked = Message(MessageId(f"message-{turn}"), "user", (TextBlock(f"do piece {turn}"),), UserSource())
    call = ToolCallBlock(CallId(f"call-{turn}"), "read_file", '{"path":"a.txt"}')
    answer = Message(MessageId(f"answer-{turn}"), "assistant", (TextBlock("I look."), call), ModelSource("p", "m"))
    block = ToolResultBlock(call.id, (TextBlock("a line of text"),))
    result = Message(MessageId(f"result-{turn}"), "user", (block,), ToolSource(call.id))
    log.append(InboxSpliced("next-turn", 0, inserted=(asked,)))
    log.append(TurnStart(turn))
    log.append(InboxSpliced("next-turn", 0, removed=(RemovedItem(asked.id, "claimed", turn),)))
    log.append(StepStart(turn, 1))
    log.append(UserMessage(asked))
    log.append(AssistantMessage(turn, 1, answer))
    started = log.append(ToolCall(turn, 1, call.id, call.name, call.arguments))
    log.append(ToolResult(turn, 1, result), source_event_seqs=(started.seq,))
    log.append(StepEnd(turn, 1))
    log.append(TurnEnd(turn, TurnReason("completed")))


KINDS: Mapping[str, tuple[int, Callable[[SessionLog, int], None]]] = {
    "streamed": (_STREAMED, stream_turn),
    "small": (10, work_turn),
}


def fill(log: SessionLog, kind: str, events: int) -> None:
    """Append whole turns of that kind until there are that many events."""
    size, add_turn = KINDS[kind]
    for turn in range(1, events // size + 1):
        add_turn(log, turn)


def store_session(root: Path, kind: str, events: int) -> Path:
    """Store a session of that kind and give its file."""

    async def store() -> Path:
        writer = await SessionStore(root, clock=clock).create(header())
        fill(writer.log, kind, events)
        await writer.flush()
        await writer.close()
        return writer.path

    return asyncio.run(store())


def resume_session(root: Path) -> None:
    """Open the stored session for work, and close it again."""

    async def open_and_close() -> None:
        await (await SessionStore(root, clock=clock).resume(SESSION)).close()

    asyncio.run(open_and_close())
