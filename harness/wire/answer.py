"""One streamed answer, whatever its dialect: framing, the single end, and what a broken stream still is.

Room: pure; the dialects build on it and the provider's shell reads it.
"""

from __future__ import annotations

import re
from typing import Protocol

from harness.errors import PeerError
from harness.model.chunks import Chunk, Failure, Finish, FinishKind, Usage, UsageChunk
from harness.wire.sse import MAX_EVENT_BYTES, SseDecoder


class EventReader(Protocol):
    """What a dialect knows about its events."""

    @property
    def usage(self) -> Usage | None:
        """The token counts so far."""
        ...

    @property
    def complete(self) -> bool:
        """Whether a finish reason was seen."""
        ...

    def take(self, data: str) -> tuple[Chunk, ...] | None:
        """The chunks of one event; None when it says only that the service is alive. The end mark and an error
        object give a Finish.

        Raises: PeerError for an event that breaks the dialect's form.
        """
        ...

    def release(self) -> tuple[Chunk, ...]:
        """What was held back until the end: block ends, usage and the Finish."""
        ...


class AnswerStream:
    """Turn the bytes of one streamed answer into chunks.

    Shape: feed(bytes) returns chunks as they come; deltas at once, block ends, usage and the finish only when the
    answer is over. Exactly one Finish is returned, as the last chunk, by feed, end, broken or aborted; after it every
    function returns nothing. payloads counts the events that carried something, so that a watcher can tell progress
    from mere signs of life.
    """

    def __init__(self, reader: EventReader, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self.payloads = 0
        self.finished = False
        self._events = SseDecoder(max_event_bytes)
        self._reader = reader

    def feed(self, data: bytes) -> tuple[Chunk, ...]:
        """Take the next bytes of the body."""
        if self.finished:
            return ()
        chunks: list[Chunk] = []
        try:
            for event in self._events.feed(data):
                found = self._reader.take(event.data)
                if found is None:
                    continue
                self.payloads += 1
                chunks += found
                if found and isinstance(found[-1], Finish):
                    self.finished = True
                    break
        except PeerError as error:
            chunks += self.broken(Failure(error.what, "MALFORMED_RESPONSE"))
        return tuple(chunks)

    def end(self) -> tuple[Chunk, ...]:
        """The body ended properly."""
        try:
            self._events.end()
        except PeerError as error:
            return self.broken(Failure(error.what, "MALFORMED_RESPONSE"))
        return self.broken(Failure("the stream ended before a finish reason and before its end mark", "STREAM_CLOSED"))

    def broken(self, failure: Failure) -> tuple[Chunk, ...]:
        """Nothing more will come, for this reason. It does not matter when the finish reason had already come."""
        if self.finished:
            return ()
        self.finished = True
        return self._reader.release() if self._reader.complete else failed(self._reader.usage, failure)

    def aborted(self, failure: Failure) -> tuple[Chunk, ...]:
        """The caller does not want the rest."""
        if self.finished:
            return ()
        self.finished = True
        return failed(self._reader.usage, failure, "aborted")


def usage_chunks(usage: Usage | None) -> tuple[UsageChunk, ...]:
    """The usage as a chunk, if there is any."""
    return (UsageChunk(usage),) if usage is not None else ()


def failed(usage: Usage | None, failure: Failure, kind: FinishKind = "error") -> tuple[Chunk, ...]:
    """The end of an answer that did not come: tokens were spent all the same."""
    return (*usage_chunks(usage), Finish(kind, failure))


def unknown_finish(word: str) -> Failure:
    """What a finish reason means that no kind of ours stands for; its code is the word itself."""
    code = re.sub(r"[^A-Z0-9]+", "_", word.upper())[:64].strip("_") or "UNKNOWN"
    return Failure(f"the answer ended with finish reason {word!r}", code)
