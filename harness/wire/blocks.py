"""The content blocks of an answer while it streams in.

Room: pure; the dialects share it, nobody else may come in.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.model.chunks import BlockEnd, BlockStart, BlockType, ReasoningDelta, TextDelta, ToolCallDelta
from harness.model.messages import CallId, ContentBlock, ReasoningBlock, TextBlock, ToolCallBlock


@dataclass(slots=True)
class OpenBlock:
    """One block as far as it has come. id and name belong to tool calls and are set once."""

    index: int
    block_type: BlockType
    parts: list[str] = field(default_factory=list)
    id: str = ""
    name: str = ""

    def content(self) -> ContentBlock:
        """The block as it stands now."""
        text = "".join(self.parts)
        if self.block_type == "text":
            return TextBlock(text)
        if self.block_type == "reasoning":
            return ReasoningBlock(text)
        return ToolCallBlock(CallId(self.id), self.name, text)


class OpenBlocks:
    """The blocks of one answer, in the order in which they opened; each is closed only when the answer ends.

    Shape: start and the grow functions return the chunks that say what they did.
    """

    def __init__(self) -> None:
        self.opened: list[OpenBlock] = []

    def start(self, block_type: BlockType) -> tuple[OpenBlock, BlockStart]:
        """Open a block under the next index."""
        block = OpenBlock(len(self.opened), block_type)
        self.opened.append(block)
        return block, BlockStart(block.index, block_type)

    def ends(self) -> tuple[BlockEnd, ...]:
        """Close all blocks, in order."""
        return tuple(BlockEnd(block.index, block.content()) for block in self.opened)


def grow_text(block: OpenBlock, text: str) -> TextDelta | ReasoningDelta:
    """Add text to a text or reasoning block."""
    block.parts.append(text)
    if block.block_type == "reasoning":
        return ReasoningDelta(block.index, text)
    return TextDelta(block.index, text)


def grow_call(block: OpenBlock, *, call_id: str, name: str, arguments: str) -> ToolCallDelta | None:
    """Add a fragment to a tool call; None when the fragment says nothing new."""
    fresh_id = call_id if not block.id else ""
    fresh_name = name if not block.name else ""
    if not (fresh_id or fresh_name or arguments):
        return None
    block.id = block.id or fresh_id
    block.name = block.name or fresh_name
    block.parts.append(arguments)
    return ToolCallDelta(block.index, CallId(block.id), arguments, fresh_name or None)
