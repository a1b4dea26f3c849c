"""A model whose answers hold no secrets: what it says is cleaned before anybody writes it down.

Room: assemble comes in. A secret may come cut into pieces of a stream, so what could be the beginning of one waits for
the next piece.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import assert_never, cast

from harness.loop.pieces import PieceFilter
from harness.loop.redaction import Secrets
from harness.model.call import CancelSignal, Model, ModelRequest
from harness.model.chunks import (
    BlockEnd,
    BlockStart,
    Chunk,
    Failure,
    Finish,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    UsageChunk,
)
from harness.model.messages import CallId, ContentBlock, JsonObject, ReasoningBlock, TextBlock, ToolCallBlock

Delta = TextDelta | ReasoningDelta | ToolCallDelta


class CleanModel:
    """A model and the secrets that its answers must not hold."""

    def __init__(self, model: Model, secrets: Secrets) -> None:
        self._model = model
        self._secrets = secrets

    async def stream(self, request: ModelRequest, cancel: CancelSignal) -> AsyncIterator[Chunk]:
        """Yield the chunks of one answer, cleaned; aclose() frees the connection at once."""
        cleaner = AnswerCleaner(self._secrets)
        chunks = self._model.stream(request, cancel)
        try:
            async for chunk in chunks:
                for each in cleaner.feed(chunk):
                    yield each
        finally:
            close = getattr(chunks, "aclose", None)
            if close is not None:
                await close()


def clean_model(model: Model, secrets: Secrets) -> Model:
    """The model with the secrets taken out of its answers; as it is where there are none."""
    return CleanModel(model, secrets) if secrets else model


@dataclass(slots=True)
class _Growing:
    """A block of the answer: its filter, and its last delta, by whose form the rest is given."""

    filter: PieceFilter | _Whole
    last: Delta


class _Whole:
    """Holds a text back until its end; a shape may fit to the very last piece."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        self._pieces: list[str] = []

    def feed(self, text: str) -> str:
        self._pieces.append(text)
        return ""

    def end(self) -> str:
        return self._secrets.text("".join(self._pieces))


class AnswerCleaner:
    """Cleans the chunks of one answer.

    Shape: feed gives what is certain by now. A block's rest comes before its end, and before the finish.
    Limits: secrets that have shapes hold a whole block back until it ends.
    """

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        self._growing: dict[int, _Growing] = {}

    def feed(self, chunk: Chunk) -> tuple[Chunk, ...]:
        """What the next chunk lets out."""
        match chunk:
            case TextDelta() | ReasoningDelta() | ToolCallDelta():
                return self._grow(chunk)
            case BlockEnd():
                return (*self._rest(chunk.index), replace(chunk, block=self._block(chunk.block)))
            case Finish():
                rest = [each for index in tuple(self._growing) for each in self._rest(index)]
                return (*rest, self._finish(chunk))
            case BlockStart() | UsageChunk():
                return (chunk,)
            case _:
                assert_never(chunk)

    def _grow(self, chunk: Delta) -> tuple[Chunk, ...]:
        growing = self._growing.get(chunk.index)
        if growing is None or type(growing.last) is not type(chunk):
            rest = self._rest(chunk.index)
            growing = self._growing[chunk.index] = _Growing(self._filter(), chunk)
            return (*rest, *self._through(growing, chunk))
        return self._through(growing, chunk)

    def _through(self, growing: _Growing, chunk: Delta) -> tuple[Chunk, ...]:
        growing.last = chunk
        if not isinstance(chunk, ToolCallDelta):
            text = growing.filter.feed(chunk.text)
            if not text and chunk.text:
                return ()
            return (chunk if text == chunk.text else replace(chunk, text=text),)
        text = growing.filter.feed(chunk.arguments_delta)
        name = None if chunk.name is None else self._secrets.text(chunk.name)
        if not text and chunk.arguments_delta and name is None:
            return ()
        return (replace(chunk, id=CallId(self._secrets.text(chunk.id)), arguments_delta=text, name=name),)

    def _rest(self, index: int) -> tuple[Chunk, ...]:
        growing = self._growing.pop(index, None)
        text = "" if growing is None else growing.filter.end()
        if growing is None or not text:
            return ()
        if isinstance(growing.last, ToolCallDelta):
            call_id = CallId(self._secrets.text(growing.last.id))
            return (replace(growing.last, id=call_id, arguments_delta=text, name=None),)
        return (replace(growing.last, text=text),)

    def _filter(self) -> PieceFilter | _Whole:
        secrets = self._secrets
        return _Whole(secrets) if secrets.shapes else PieceFilter(secrets.forms, secrets.stand_in)

    def _block(self, block: ContentBlock) -> ContentBlock:
        if isinstance(block, TextBlock | ReasoningBlock):
            return replace(block, text=self._secrets.text(block.text))
        if not isinstance(block, ToolCallBlock):
            return block
        text = self._secrets.text
        return replace(block, id=CallId(text(block.id)), name=text(block.name), arguments=text(block.arguments))

    def _finish(self, chunk: Finish) -> Finish:
        state = None if chunk.replay_state is None else cast("JsonObject", self._secrets.value(chunk.replay_state))
        return replace(chunk, failure=self._failure(chunk.failure), replay_state=state)

    def _failure(self, failure: Failure | None) -> Failure | None:
        if failure is None:
            return None
        told = failure.request_id
        request_id = None if told is None or self._secrets.text(told) != told else told
        return replace(failure, message=self._secrets.text(failure.message), request_id=request_id)
