"""Every recorded stream, cut at every byte: the same chunks, and of every beginning of it one answer in good order."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.loop.assembly import ChunkGrammar
from harness.model.chunks import Chunk, Finish
from harness.wire.answer import AnswerStream
from harness.wire.anthropic_messages import MessageStream
from harness.wire.openai_chat import ChatStream
from harness.wire.openai_responses import ResponseStream

CASES = sorted((Path(__file__).parents[2] / "cases" / "sse").glob("*.sse"))
EACH_CASE = pytest.mark.parametrize("path", CASES, ids=[path.stem for path in CASES])
DIALECTS: dict[str, Callable[[], AnswerStream]] = {
    "chat": ChatStream,
    "responses": ResponseStream,
    "messages": MessageStream,
}


def play(open_stream: Callable[[], AnswerStream], *pieces: bytes) -> tuple[Chunk, ...]:
    stream = open_stream()
    chunks = [chunk for piece in pieces for chunk in stream.feed(piece)]
    return (*chunks, *stream.end())


def dialect_of(path: Path) -> Callable[[], AnswerStream]:
    return DIALECTS["messages" if "anthropic" in path.name else "chat"]


def test_there_are_recorded_streams() -> None:
    assert len(CASES) > 15


@EACH_CASE
def test_S02_a_split_at_every_byte_gives_the_same_chunks(path: Path) -> None:
    body, dialect = path.read_bytes(), dialect_of(path)
    whole = play(dialect, body)
    assert [at for at in range(len(body) + 1) if play(dialect, body[:at], body[at:]) != whole] == []


@EACH_CASE
@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
def test_S02_bytes_that_come_one_by_one_give_the_same_chunks_also_in_a_foreign_dialect(
    path: Path, dialect: Callable[[], AnswerStream]
) -> None:
    body = path.read_bytes()
    assert play(dialect, *(body[at : at + 1] for at in range(len(body)))) == play(dialect, body)


@EACH_CASE
def test_S11_every_beginning_of_a_stream_is_an_answer_in_good_order_with_one_finish(path: Path) -> None:
    body, dialect = path.read_bytes(), dialect_of(path)
    for end in range(len(body) + 1):
        chunks = play(dialect, body[:end])
        grammar = ChunkGrammar()
        for chunk in chunks:
            grammar.feed(chunk)
        assert [isinstance(chunk, Finish) for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
