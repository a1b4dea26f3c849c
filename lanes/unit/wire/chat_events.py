"""Chat completion streams as their tests write them, and what those tests look for in the chunks.

Room: the wire's own tests.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from harness.model.chunks import BlockEnd, Chunk, Failure, Finish, TextDelta
from harness.wire.openai_chat import ChatStream

CLOSED = Failure("the stream ended before a finish reason and before its end mark", "STREAM_CLOSED")
DONE = b"data: [DONE]\n\n"
STOP = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


def play(*pieces: bytes) -> tuple[Chunk, ...]:
    stream = ChatStream()
    chunks = [chunk for piece in pieces for chunk in stream.feed(piece)]
    return (*chunks, *stream.end())


def event(payload: object) -> bytes:
    return b"data: " + json.dumps(payload).encode() + b"\n\n"


def delta(**fields: object) -> bytes:
    return event({"choices": [{"index": 0, "delta": fields, "finish_reason": None}]})


def call(index: object = 0, arguments: object = None, **fields: object) -> bytes:
    function = {key: value for key, value in (("name", fields.pop("name", None)), ("arguments", arguments)) if value}
    return delta(tool_calls=[{"index": index, "function": function, **fields}])


def finish(word: str | None) -> bytes:
    return event({"choices": [{"index": 0, "delta": {}, "finish_reason": word}]})


def blocks(chunks: Iterable[Chunk]) -> list[object]:
    return [chunk.block for chunk in chunks if isinstance(chunk, BlockEnd)]


def streamed_text(chunks: Iterable[Chunk]) -> str:
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, TextDelta))


def ending(chunks: tuple[Chunk, ...]) -> Finish:
    """The finish of these chunks, which is the last of them and the only one."""
    ends = [at for at, chunk in enumerate(chunks) if isinstance(chunk, Finish)]
    assert ends == [len(chunks) - 1], f"not exactly one finish at the end: {chunks}"
    last = chunks[-1]
    assert isinstance(last, Finish)  # tells the type checker
    return last


def error_code(chunks: tuple[Chunk, ...]) -> str:
    last = ending(chunks)
    assert last.failure is not None, f"no failure: {last}"
    return last.failure.code


def with_usage(**usage: object) -> bytes:
    return event({"choices": [], "usage": usage})
