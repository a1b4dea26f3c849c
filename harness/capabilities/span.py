"""Which part of what the model sees may give way to a summary, and how many tokens it is worth.

Room: pure; compaction asks. A cut never parts a tool call from its result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.log.events import AssistantMessage, CompactionEnd, Event
from harness.log.fold import message_of
from harness.log.session_log import SessionLog
from harness.model.chunks import Usage
from harness.model.messages import (
    ImageBlock,
    Message,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UserSource,
)

CHARACTERS_PER_TOKEN = (
    4  # the rule of thumb for English and code; off by a third at most, and only deciding when to act
)
IMAGE_TOKENS = 1000  # between what providers charge for a small and for a large picture
FEWEST_NODES = 2  # a single message gives way to a summary of itself, and nothing is won

_Node = tuple[int, Message | None]


@dataclass(frozen=True, slots=True)
class Span:
    """The oldest part of the surface, whole from its first node on.

    Shape: seqs stand in surface order; messages are what the model sees of them; last_request is the last thing the
    user asked when what stays says nothing of the user's, else None.
    Units: tokens are estimated.
    """

    seqs: tuple[int, ...]
    messages: tuple[Message, ...]
    tokens: int
    last_request: Message | None


def choose_span(log: SessionLog, keep_tokens: int) -> Span | None:
    """The span that leaves the longest end of at most keep_tokens, or None when nothing may be cut."""
    nodes, sizes = _nodes_of(log)
    for cut, tail in _cuts_of(nodes, sizes):
        if tail <= keep_tokens:
            return _span_up_to(nodes, sizes, cut)
    return None


def possible_spans(log: SessionLog, most_tokens: int) -> tuple[Span, ...]:
    """Every span that choose_span gives for some number of tokens up to that one, the shortest first."""
    nodes, sizes = _nodes_of(log)
    spans: list[Span] = []
    fewer_than = most_tokens + 1
    for cut, tail in _cuts_of(nodes, sizes):
        if tail < fewer_than:
            spans.append(_span_up_to(nodes, sizes, cut))
            fewer_than = tail
    return tuple(spans)


def _nodes_of(log: SessionLog) -> tuple[list[_Node], list[int]]:
    """What the model sees, node by node, and how long each is in tokens."""
    nodes = [(seq, message_of(log[seq])) for seq in log.surface()]
    return nodes, [0 if message is None else message_tokens(message) for _, message in nodes]


def _cuts_of(nodes: Sequence[_Node], sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The positions where a span may end, in order, each with the tokens of what stands behind it."""
    tail, before = sum(sizes), 0
    for cut in balanced_cuts([message for _, message in nodes]):
        tail -= sum(sizes[before:cut])
        before = cut
        if cut >= FEWEST_NODES:
            yield cut, tail


def _span_up_to(nodes: Sequence[_Node], sizes: Sequence[int], cut: int) -> Span:
    taken = nodes[:cut]
    return Span(
        tuple(seq for seq, _ in taken),
        tuple(message for _, message in taken if message is not None),
        sum(sizes[:cut]),
        _last_request(nodes, cut),
    )


def balanced_cuts(messages: Sequence[Message | None]) -> tuple[int, ...]:
    """The positions with nothing open before them: each call that stands there has its result there too."""
    open_calls: set[str] = set()
    cuts: list[int] = [0]
    for at, message in enumerate(messages, 1):
        for block in message.content if message is not None else ():
            if isinstance(block, ToolCallBlock):
                open_calls.add(block.id)
            elif isinstance(block, ToolResultBlock):
                open_calls.discard(block.tool_call_id)
        if not open_calls:
            cuts.append(at)
    return tuple(cuts)


def surface_tokens(log: SessionLog) -> int:
    """How long the next request would be: the last figures a provider gave, and an estimate of what came since.

    Figures from before the last compaction speak of another surface and are passed over.
    """
    compacted = log.last(CompactionEnd)
    fresh_from = -1 if compacted is None else compacted.seq
    tokens = 0
    for seq in reversed(log.surface()):
        event = log[seq]
        usage = _usage(event)
        if usage is not None and seq > fresh_from:
            return tokens + _all_tokens(usage)
        message = message_of(event)
        tokens += 0 if message is None else message_tokens(message)
    return tokens


def message_tokens(message: Message) -> int:
    """An estimate of what the message costs in a request."""
    return sum(_block_tokens(block) for block in message.content)


def _block_tokens(block: object) -> int:
    if isinstance(block, TextBlock | ReasoningBlock):
        return _text_tokens(block.text)
    if isinstance(block, ToolCallBlock):
        return _text_tokens(block.name) + _text_tokens(block.arguments)
    if isinstance(block, ToolResultBlock):
        return sum(_block_tokens(inner) for inner in block.content)
    return IMAGE_TOKENS if isinstance(block, ImageBlock) else 0


def _text_tokens(text: str) -> int:
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def _usage(event: Event) -> Usage | None:
    return event.payload.usage if isinstance(event.payload, AssistantMessage) else None


def _all_tokens(usage: Usage) -> int:
    return usage.input_tokens + (usage.cache_read_tokens or 0) + (usage.cache_write_tokens or 0) + usage.output_tokens


def _last_request(nodes: Sequence[_Node], cut: int) -> Message | None:
    """The user's last message, when it stands before the cut."""
    for at in range(len(nodes) - 1, -1, -1):
        message = nodes[at][1]
        if message is not None and isinstance(message.source, UserSource):
            return message if at < cut else None
    return None
