"""A model that plays a script, one reply for each call, and tells when the script and the loop part ways.

Room: the loop's own tests; it stands in for the model and for nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from harness.model.call import CancelSignal, ModelRequest
from harness.model.chunks import (
    BlockEnd,
    BlockStart,
    Chunk,
    Failure,
    Finish,
    FinishKind,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    Usage,
    UsageChunk,
)
from harness.model.messages import CallId, ReasoningBlock, TextBlock, ToolCallBlock

Chunks: TypeAlias = Sequence[Chunk]


@dataclass
class Hang:
    """Yield the chunks, then nothing more until the caller stops listening."""

    chunks: Chunks = ()
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    closed: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass
class LateHang:
    """Like Hang, but a cancel is noticed only once release is set, and one more chunk is offered then."""

    chunks: Chunks = ()
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    release: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass
class Gated:
    """Yield before, wait for the gate, yield after."""

    before: Chunks
    after: Chunks
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    gate: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass
class Throw:
    """Yield the chunks, then raise."""

    error: BaseException
    chunks: Chunks = ()


Reply: TypeAlias = Chunks | Callable[[ModelRequest], Chunks] | Hang | LateHang | Gated | Throw


class ScriptedModel:
    """Answers the nth call with the nth reply.

    Shape: requests holds what was asked; on_request is told each request before it is answered; problems says what
    the script did not foresee, leftovers how many replies nobody asked for. endless answers what the script does not.
    """

    def __init__(
        self,
        replies: Sequence[Reply],
        on_request: Callable[[ModelRequest], None] | None = None,
        endless: Callable[[ModelRequest], Reply] | None = None,
    ) -> None:
        self._replies = list(replies)
        self._endless = endless
        self._on_request = on_request
        self.requests: list[ModelRequest] = []
        self.problems: list[str] = []

    @property
    def leftovers(self) -> int:
        return len(self._replies)

    def add(self, *replies: Reply) -> None:
        self._replies.extend(replies)

    def stream(self, request: ModelRequest, cancel: CancelSignal) -> AsyncIterator[Chunk]:
        self.requests.append(request)
        if self._on_request is not None:
            self._on_request(request)
        if not self._replies and self._endless is not None:
            return self._play(self._endless(request), request, cancel)
        if not self._replies:
            problem = f"request {len(self.requests)} arrived, the script has {len(self.requests) - 1} replies"
            self.problems.append(problem)
            raise AssertionError(problem)
        return self._play(self._replies.pop(0), request, cancel)

    async def _play(self, reply: Reply, request: ModelRequest, cancel: CancelSignal) -> AsyncIterator[Chunk]:
        if isinstance(reply, Hang):
            try:
                for chunk in reply.chunks:
                    yield chunk
                reply.reached.set()
                await cancel.wait()
            finally:
                reply.closed.set()
        elif isinstance(reply, LateHang):
            for chunk in reply.chunks:
                yield chunk
            reply.reached.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                reply.cancelled.set()
                await reply.release.wait()
            yield TextDelta(0, "too late")
        elif isinstance(reply, Gated):
            for chunk in reply.before:
                yield chunk
            reply.reached.set()
            await reply.gate.wait()
            for chunk in reply.after:
                yield chunk
        elif isinstance(reply, Throw):
            for chunk in reply.chunks:
                yield chunk
            raise reply.error
        else:
            for chunk in reply(request) if callable(reply) else reply:
                yield chunk


def text(*pieces: str, kind: FinishKind = "stop", usage: Usage | None = None) -> list[Chunk]:
    """An answer of one text block, streamed in these pieces."""
    return [*open_text(*pieces), BlockEnd(0, TextBlock("".join(pieces))), *_end(kind, usage)]


def open_text(*pieces: str) -> list[Chunk]:
    """The beginning of a text block."""
    return [BlockStart(0, "text"), *(TextDelta(0, piece) for piece in pieces)]


def reasoning(thought: str, said: str) -> list[Chunk]:
    """Reasoning, then text."""
    return [
        BlockStart(0, "reasoning"),
        ReasoningDelta(0, thought),
        BlockEnd(0, ReasoningBlock(thought)),
        BlockStart(1, "text"),
        TextDelta(1, said),
        BlockEnd(1, TextBlock(said)),
        Finish("stop"),
    ]


def calls(*wanted: tuple[str, str, str], said: str = "", kind: FinishKind = "tool-calls") -> list[Chunk]:
    """Tool calls given as (id, name, arguments), after some text if there is any."""
    chunks: list[Chunk] = [*open_text(said), BlockEnd(0, TextBlock(said))] if said else []
    first = 1 if said else 0
    for index, (call_id, name, arguments) in enumerate(wanted, first):
        chunks += [
            BlockStart(index, "tool-call"),
            ToolCallDelta(index, CallId(call_id), arguments, name),
            BlockEnd(index, ToolCallBlock(CallId(call_id), name, arguments)),
        ]
    return [*chunks, Finish(kind)]


def failing(code: str, *before: Chunk, status: int | None = None, retry_after_ms: int | None = None) -> list[Chunk]:
    """Some chunks, then the failure."""
    return [*before, Finish("error", Failure(f"scripted {code}", code, status, retry_after_ms))]


def _end(kind: FinishKind, usage: Usage | None) -> list[Chunk]:
    return [*([UsageChunk(usage)] if usage is not None else []), Finish(kind)]
