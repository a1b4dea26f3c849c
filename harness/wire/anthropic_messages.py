"""The Messages dialect: Anthropic, and the servers that offer its form beside their own.

Room: pure; the provider's shell may come in. Requests are written in messages_request, error answers read in failures.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.errors import PeerError
from harness.model.chunks import Chunk, Failure, Finish, FinishKind, Usage
from harness.model.messages import Json, JsonObject
from harness.wire.answer import AnswerStream, failed, unknown_finish, usage_chunks
from harness.wire.blocks import OpenBlock, OpenBlocks, grow_call, grow_text
from harness.wire.failures import classify_error, find_error, stream_failure
from harness.wire.growing_body import Growth
from harness.wire.json_text import encode_json
from harness.wire.messages_request import encode_request, settled
from harness.wire.shapes import count_of, object_in, object_of, text_of

__all__ = [
    "GROWTH",
    "HEADERS",
    "PATH",
    "MessageStream",
    "authorization",
    "classify_error",
    "encode_body",
    "encode_request",
]

PATH = "/messages"
GROWTH = Growth("messages", settled)
HEADERS: Mapping[str, str] = {"anthropic-version": "2023-06-01"}

_FINISH_KINDS: Mapping[str, FinishKind] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool-calls",
    "max_tokens": "max-tokens",
    "model_context_window_exceeded": "max-tokens",  # the answer was cut because the window is full: it is a beginning
}
_COUNTS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


def authorization(api_key: str) -> Mapping[str, str]:
    """The header fields that carry the key."""
    return {"x-api-key": api_key}


def encode_body(body: JsonObject) -> bytes:
    """The bytes of a request body; equal bodies give equal bytes."""
    return encode_json(body)


class MessageStream(AnswerStream):
    """One message as it streams in; see AnswerStream."""

    def __init__(self) -> None:
        super().__init__(MessageReader())


class MessageReader:
    """Read the events of one message.

    Shape: the Finish's replay_state is {"entries": [...]}, one entry a block in block order: the signature of a
    thinking block, the data of a redacted one, null for every other. It is absent when there is nothing to give back.
    Source: Anthropic API reference, "Streaming messages" and "Extended thinking".
    """

    def __init__(self) -> None:
        self._blocks = OpenBlocks()
        self._by_index: dict[Json, OpenBlock] = {}
        self._types: dict[Json, str] = {}
        self._entries: dict[int, dict[str, Json]] = {}
        self._counts: dict[str, int] = {}
        self._finish_word = ""

    @property
    def complete(self) -> bool:
        """Whether a stop reason was seen."""
        return bool(self._finish_word)

    @property
    def usage(self) -> Usage | None:
        """The latest value of each count; the wire counts input without cache hits already."""
        if "input_tokens" not in self._counts or "output_tokens" not in self._counts:
            return None
        return Usage(*(self._counts.get(name) for name in _COUNTS))  # type: ignore[arg-type]  # the first two are there

    def take(self, data: str) -> tuple[Chunk, ...] | None:
        """The chunks of one event; its kind stands in the payload, an event line may be missing."""
        payload = object_in(data)
        error = find_error(payload)
        if error is not None:
            return failed(self.usage, stream_failure(error))
        match payload.get("type"):
            case "ping":
                return None
            case "message_start":
                self._count(object_of(payload, "message"))
            case "content_block_start":
                return self._start(payload.get("index"), object_of(payload, "content_block"))
            case "content_block_delta":
                return self._grow(payload.get("index"), object_of(payload, "delta"))
            case "message_delta":
                self._count(payload)
                self._finish_word = text_of(object_of(payload, "delta"), "stop_reason") or self._finish_word
            case "message_stop":
                return self.release()
        return ()

    def release(self) -> tuple[Chunk, ...]:
        """What was held back until the end."""
        word = self._finish_word or "end_turn"
        kind = _FINISH_KINDS.get(word)
        if kind is None:
            return failed(self.usage, unknown_finish(word))
        if kind != "max-tokens" and not self._blocks.opened:
            return failed(self.usage, Failure("the answer ended without any content", "EMPTY_RESPONSE"))
        replay_state: JsonObject | None = None
        if self._entries:
            replay_state = {"entries": [self._entries.get(block.index) for block in self._blocks.opened]}
        return (*self._blocks.ends(), *usage_chunks(self.usage), Finish(kind, replay_state=replay_state))

    def _count(self, holder: JsonObject) -> None:
        usage = object_of(holder, "usage")
        for name in _COUNTS:
            count = count_of(usage, name)
            if count is not None:
                self._counts[name] = count

    def _start(self, index: Json, content: JsonObject) -> tuple[Chunk, ...]:
        if isinstance(index, Mapping | list):
            raise PeerError("index is no number")
        block_type = text_of(content, "type")
        self._types[index] = block_type
        self._by_index.pop(index, None)
        match block_type:
            case "text":
                return self._grow_text(index, text_of(content, "text"))
            case "thinking":
                return (
                    *self._grow_text(index, text_of(content, "thinking")),
                    *self._sign(index, text_of(content, "signature")),
                )
            case "redacted_thinking":
                block, start = self._blocks.start("reasoning")
                self._by_index[index] = block
                self._entries[block.index] = {"data": text_of(content, "data")}
                return (start,)
            case "tool_use":
                block, start = self._blocks.start("tool-call")
                self._by_index[index] = block
                given = object_of(content, "input")
                arguments = encode_json(given).decode("ascii") if given else ""
                delta = grow_call(
                    block, call_id=text_of(content, "id"), name=text_of(content, "name"), arguments=arguments
                )
                return (start,) if delta is None else (start, delta)
        return ()  # a block of the service's own tools: nothing of ours to run or to show

    def _grow(self, index: Json, delta: JsonObject) -> tuple[Chunk, ...]:
        if isinstance(index, Mapping | list):
            raise PeerError("index is no number")
        match text_of(delta, "type"), self._types.get(index):
            case "text_delta", "text":
                return self._grow_text(index, text_of(delta, "text"))
            case "thinking_delta", "thinking":
                return self._grow_text(index, text_of(delta, "thinking"))
            case "signature_delta", "thinking":
                return self._sign(index, text_of(delta, "signature"))
            case "input_json_delta", "tool_use":
                call = grow_call(self._by_index[index], call_id="", name="", arguments=text_of(delta, "partial_json"))
                return (call,) if call is not None else ()
        return ()

    def _grow_text(self, index: Json, text: str) -> tuple[Chunk, ...]:
        if not text:
            return ()
        block, started = self._opened(index)
        return (*started, grow_text(block, text))

    def _sign(self, index: Json, signature: str) -> tuple[Chunk, ...]:
        """Keep a signature; a thinking block may consist of nothing else."""
        if not signature:
            return ()
        block, started = self._opened(index)
        entry = self._entries.setdefault(block.index, {"signature": ""})
        entry["signature"] = f"{entry['signature']}{signature}"
        return started

    def _opened(self, index: Json) -> tuple[OpenBlock, tuple[Chunk, ...]]:
        block = self._by_index.get(index)
        if block is not None:
            return block, ()
        block, start = self._blocks.start("text" if self._types[index] == "text" else "reasoning")
        self._by_index[index] = block
        return block, (start,)
