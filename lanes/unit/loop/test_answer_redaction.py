"""What a model says holds no secret when it is written down, however its stream is cut."""

from __future__ import annotations

from collections.abc import AsyncIterator

from hypothesis import given
from hypothesis import strategies as st

from harness.loop.answer_redaction import AnswerCleaner, CleanModel, clean_model
from harness.loop.assembly import Assembler, ChunkGrammar
from harness.loop.redaction import STAND_IN, Secrets
from harness.loop.scope import CancelScope
from harness.model.call import CancelSignal, ModelRequest
from harness.model.chunks import (
    BlockEnd,
    BlockStart,
    Chunk,
    Failure,
    Finish,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    Usage,
    UsageChunk,
)
from harness.model.messages import CallId, ContentBlock, ReasoningBlock, TextBlock, ToolCallBlock

KEY = "example-key-0123"
SHAPED = "sk-test-" + "a1" * 12
SECRETS = Secrets((KEY,))
WITH_SHAPES = Secrets((KEY,), shapes=(r"\bsk-[A-Za-z0-9-]{20,}",))
CALL = CallId("c1")


def cleaned(chunks: list[Chunk], secrets: Secrets = SECRETS) -> list[Chunk]:
    cleaner = AnswerCleaner(secrets)
    return [each for chunk in chunks for each in cleaner.feed(chunk)]


def cut(whole: str, cuts: list[int]) -> list[str]:
    return [whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]


def answer(pieces: list[str], *, is_bracketed: bool) -> list[Chunk]:
    """An answer that says the pieces aloud, in its thoughts and in the arguments of a call."""
    whole = "".join(pieces)
    chunks: list[Chunk] = []
    blocks: list[ContentBlock] = [TextBlock(whole), ReasoningBlock(whole), ToolCallBlock(CALL, "peek", whole)]
    for index, block in enumerate(blocks):
        kind = ("text", "reasoning", "tool-call")[index]
        chunks += [BlockStart(index, kind)] if is_bracketed else []  # type: ignore[arg-type] # the three kinds
        for number, piece in enumerate(pieces):
            name = "peek" if number == 0 else None
            chunks.append((TextDelta(0, piece), ReasoningDelta(1, piece), ToolCallDelta(2, CALL, piece, name))[index])
        chunks += [BlockEnd(index, block)] if is_bracketed else []
    return [*chunks, UsageChunk(Usage(3, 2)), Finish("tool-calls")]


@given(
    st.lists(st.sampled_from(["a ", KEY, KEY[:7], SHAPED, " b"]), max_size=5),
    st.booleans(),
    st.sampled_from([SECRETS, WITH_SHAPES]),
    st.data(),
)
def test_S12_however_an_answer_is_cut_its_blocks_are_those_of_the_cleaned_text(
    words: list[str], is_bracketed: bool, secrets: Secrets, data: st.DataObject
) -> None:
    whole = "".join(words)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    found = cleaned(answer(cut(whole, cuts), is_bracketed=is_bracketed), secrets)
    assembler, grammar = Assembler(), ChunkGrammar()
    for chunk in found:
        assembler.feed(chunk)
        if is_bracketed:
            grammar.feed(chunk)
    expected = secrets.text(whole)
    said = {type(chunk): "" for chunk in found if isinstance(chunk, TextDelta | ReasoningDelta | ToolCallDelta)}
    for chunk in found:
        if isinstance(chunk, TextDelta | ReasoningDelta):
            said[type(chunk)] += chunk.text
        elif isinstance(chunk, ToolCallDelta):
            said[type(chunk)] += chunk.arguments_delta
    ends = [each.block for each in found if isinstance(each, BlockEnd)]
    blocks = [TextBlock(expected), ReasoningBlock(expected), ToolCallBlock(CALL, "peek", expected)]
    assert (set(said.values()) | {expected}, ends) == ({expected}, blocks if is_bracketed else [])
    assert isinstance(found[-1], Finish)


def test_S12_a_failure_and_what_a_provider_wants_back_hold_no_secret() -> None:
    failure = Failure(f"bad key {KEY}", "HTTP", 400, None, f"req-{KEY}")
    (found,) = cleaned([Finish("error", failure, {"entries": [{"signature": KEY}]})])
    assert isinstance(found, Finish)
    assert found.failure == Failure(f"bad key {STAND_IN}", "HTTP", 400, None, None)
    assert found.replay_state == {"entries": [{"signature": STAND_IN}]}


def test_S12_what_holds_no_secret_goes_on_as_it_came() -> None:
    chunks = answer(["some ", "ordinary ", "words"], is_bracketed=True)
    assert cleaned(chunks) == chunks


class Leaky:
    """A model that says one text and notes whether it was closed."""

    def __init__(self) -> None:
        self.is_closed = False

    async def stream(self, request: ModelRequest, cancel: CancelSignal) -> AsyncIterator[Chunk]:
        try:
            yield TextDelta(0, "the key is example-")
            yield TextDelta(0, "key-0123")
            yield Finish("stop")
        finally:
            self.is_closed = True


async def test_S12_a_stream_that_is_left_is_closed_at_once() -> None:
    model = Leaky()
    stream = CleanModel(model, SECRETS).stream(ModelRequest("p", "m", ()), CancelScope())
    assert await anext(stream) == TextDelta(0, "the key is ")
    await stream.aclose()  # type: ignore[attr-defined] # an async generator
    assert model.is_closed


def test_S12_without_secrets_the_model_is_used_as_it_is() -> None:
    model = Leaky()
    assert clean_model(model, Secrets(("short",))) is model
