"""Check the order of stream chunks and put the blocks of one answer together.

Room: pure; the attempt feeds it. Nothing here knows a provider.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field, replace
from typing import NoReturn, assert_never

from harness.errors import PeerError
from harness.model.chunks import (
    BlockEnd,
    BlockStart,
    BlockType,
    Chunk,
    Finish,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    Usage,
    UsageChunk,
)
from harness.model.messages import CallId, ContentBlock, JsonObject, ReasoningBlock, TextBlock, ToolCallBlock

ENTRIES = "entries"  # key of a replay state whose list holds one entry for each block, in block order
UNNAMED_TOOL = "unnamed"  # stands for a call without a name; providers refuse an empty one in every later request


class ChunkGrammar:
    """Refuse a chunk that may not come next in its stream.

    Shape: feed each chunk once, in order. An index opens once: assembly would drop what a second block under it says.
    Raises: PeerError with code BAD_CHUNK naming the rule.
    """

    def __init__(self) -> None:
        self._open: dict[int, BlockType] = {}
        self._seen: set[int] = set()
        self._usage = False
        self._finished = False
        self._count = 0

    def feed(self, chunk: Chunk) -> None:
        """Take the next chunk."""
        if self._finished:
            self._refuse(chunk, "nothing follows a finish")
        match chunk:
            case BlockStart():
                if chunk.index < 0 or chunk.index in self._seen:
                    self._refuse(chunk, f"index {chunk.index} cannot open")
                self._seen.add(chunk.index)
                self._open[chunk.index] = chunk.block_type
            case TextDelta():
                self._check_open(chunk, chunk.index, "text")
            case ReasoningDelta():
                self._check_open(chunk, chunk.index, "reasoning")
            case ToolCallDelta():
                self._check_open(chunk, chunk.index, "tool-call")
            case BlockEnd():
                kind = _type_of(chunk.block)
                if kind is None:
                    self._refuse(chunk, "a model writes text, reasoning and tool calls only")
                self._check_open(chunk, chunk.index, kind)
                del self._open[chunk.index]
            case UsageChunk():
                if self._usage:
                    self._refuse(chunk, "usage comes once")
                self._usage = True
            case Finish():
                if self._open and chunk.kind not in ("error", "aborted"):
                    self._refuse(chunk, f"block {min(self._open)} is still open")
                self._finished = True
            case _:
                assert_never(chunk)
        self._count += 1

    def _check_open(self, chunk: Chunk, index: int, kind: BlockType) -> None:
        if self._open.get(index) != kind:
            self._refuse(chunk, f"no {kind} block is open under index {index}")

    def _refuse(self, chunk: Chunk, rule: str) -> NoReturn:
        raise PeerError(rule, where=f"chunk {self._count}, {type(chunk).__name__}", code="BAD_CHUNK")


@dataclass(slots=True)
class _Block:
    """A block as it grows; whole is set once it was closed, and the first close stands."""

    kind: BlockType
    texts: list[str] = field(default_factory=list)
    call_id: str = ""
    name: str = ""
    whole: ContentBlock | None = None


class Assembler:
    """Blocks, usage and finish out of chunks; streams without block starts and ends are fine.

    Shape: blocks stand in the order their indexes were first seen. What comes for a closed index is passed over.
    Limits: memory grows with the text and the number of distinct indexes.
    """

    def __init__(self) -> None:
        self._blocks: dict[int, _Block] = {}
        self.usage: Usage | None = None
        self.finish: Finish | None = None

    def feed(self, chunk: Chunk) -> None:
        """Take the next chunk."""
        match chunk:
            case BlockStart():
                self._blocks.setdefault(chunk.index, _Block(chunk.block_type))
            case TextDelta():
                self._grow(chunk.index, "text", chunk.text)
            case ReasoningDelta():
                self._grow(chunk.index, "reasoning", chunk.text)
            case ToolCallDelta():
                block = self._grow(chunk.index, "tool-call", chunk.arguments_delta)
                if block is not None:
                    block.call_id = block.call_id or chunk.id
                    block.name = block.name or chunk.name or ""
            case BlockEnd():
                kind = _type_of(chunk.block)
                if kind is not None:
                    ended = self._blocks.setdefault(chunk.index, _Block(kind))
                    ended.whole = ended.whole or chunk.block
            case UsageChunk():
                self.usage = chunk.usage
            case Finish():
                self.finish = self.finish or chunk
            case _:
                assert_never(chunk)

    def blocks(self) -> tuple[ContentBlock, ...]:
        """The blocks so far; asking changes nothing."""
        return tuple(block.whole or _built(block) for block in self._blocks.values())

    @property
    def is_empty(self) -> bool:
        """Whether nothing was said: no call, and no text or reasoning of any length."""
        return not any(
            isinstance(block, ToolCallBlock) or (isinstance(block, TextBlock | ReasoningBlock) and block.text)
            for block in self.blocks()
        )

    def _grow(self, index: int, kind: BlockType, text: str) -> _Block | None:
        block = self._blocks.setdefault(index, _Block(kind))
        if block.whole is not None or block.kind != kind:
            return None
        block.texts.append(text)
        return block


@dataclass(frozen=True, slots=True)
class Answer:
    """What a successful attempt said."""

    blocks: tuple[ContentBlock, ...]
    usage: Usage | None
    replay_state: JsonObject | None


def assemble_answer(assembler: Assembler, turn: int, step: int, taken: Container[CallId]) -> Answer:
    """The answer as history keeps it: calls have ids and names, an answer cut at its ceiling has no calls.

    Shape: taken are the call ids of the session so far; a missing, repeated or taken id becomes call-<turn>-<step>-<n>.
    """
    blocks = assembler.blocks()
    finish = assembler.finish
    kept = tuple(
        at
        for at, block in enumerate(blocks)
        if not (finish is not None and finish.kind == "max-tokens" and isinstance(block, ToolCallBlock))
    )
    replay_state = align_replay(finish.replay_state if finish is not None else None, len(blocks), kept)
    return Answer(name_calls(tuple(blocks[at] for at in kept), turn, step, taken), assembler.usage, replay_state)


def name_calls(
    blocks: tuple[ContentBlock, ...], turn: int, step: int, taken: Container[CallId]
) -> tuple[ContentBlock, ...]:
    """The blocks with an id of its own and a name for every tool call."""
    given: set[CallId] = {block.id for block in blocks if isinstance(block, ToolCallBlock)}
    used: set[CallId] = set()
    named: list[ContentBlock] = []
    number = 0
    for block in blocks:
        if not isinstance(block, ToolCallBlock):
            named.append(block)
            continue
        number += 1
        call_id = block.id
        if not call_id or call_id in used or call_id in taken:
            call_id = CallId(f"call-{turn}-{step}-{number}")
            while call_id in used or call_id in given or call_id in taken:
                call_id = CallId(f"{call_id}x")
        used.add(call_id)
        named.append(replace(block, id=call_id, name=block.name or UNNAMED_TOOL))
    return tuple(named)


def align_replay(state: JsonObject | None, blocks: int, kept: tuple[int, ...]) -> JsonObject | None:
    """The replay state for the blocks that were kept; one whose entries do not match the blocks is dropped whole."""
    if state is None or ENTRIES not in state:
        return state
    entries = state[ENTRIES]
    if not isinstance(entries, list | tuple) or len(entries) != blocks:
        return None
    if len(kept) == blocks:
        return state
    return {**state, ENTRIES: tuple(entries[at] for at in kept)}


def _built(block: _Block) -> ContentBlock:
    text = "".join(block.texts)
    if block.kind == "text":
        return TextBlock(text)
    if block.kind == "reasoning":
        return ReasoningBlock(text)
    return ToolCallBlock(CallId(block.call_id), block.name, text)


def _type_of(block: ContentBlock) -> BlockType | None:
    if isinstance(block, TextBlock):
        return "text"
    if isinstance(block, ReasoningBlock):
        return "reasoning"
    return "tool-call" if isinstance(block, ToolCallBlock) else None
