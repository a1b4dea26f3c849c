"""The Responses dialect: OpenAI, and the servers that offer its form beside the older one.

Room: pure; the provider's shell may come in. Requests are written in responses_request, error answers read in failures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from harness.errors import PeerError
from harness.model.chunks import BlockType, Chunk, Failure, Finish, Usage
from harness.model.messages import Json, JsonObject
from harness.wire.answer import AnswerStream, failed, unknown_finish, usage_chunks
from harness.wire.blocks import OpenBlock, OpenBlocks, grow_call, grow_text
from harness.wire.failures import classify_error, find_error, stream_failure
from harness.wire.growing_body import Growth
from harness.wire.json_text import encode_json
from harness.wire.responses_request import encode_request, settled
from harness.wire.shapes import count_of, object_in, object_of, objects_of, text_of

__all__ = ["GROWTH", "PATH", "ResponseStream", "authorization", "classify_error", "encode_body", "encode_request"]

PATH = "/responses"
GROWTH = Growth("input", settled)
MAX_EVENT_BYTES = 1 << 24  # the last event repeats the whole answer, sealed reasoning and tool schemas included

_END_MARK = "[DONE]"  # not of this form; some servers send it after their last event all the same
_PART_BREAK = "\n\n"  # summary parts are paragraphs, each with its own heading
_ALIVE = frozenset({"keepalive", "response.keep_alive", "ping"})  # undocumented: tjardoo/openai-client pull 170
_ITEM_BLOCKS: Mapping[str, BlockType] = {"message": "text", "reasoning": "reasoning", "function_call": "tool-call"}

# Words of a failed response that mean that this very request can never succeed.
# Source: OpenAI API reference, "The response object", error.code.
_REQUEST_FAULTS = frozenset(
    {
        "bio_policy",
        "data_residency_mismatch",
        "empty_image_file",
        "failed_to_download_image",
        "image_content_policy_violation",
        "image_file_not_found",
        "image_file_too_large",
        "image_parse_error",
        "image_too_large",
        "image_too_small",
        "invalid_base64_image",
        "invalid_image",
        "invalid_image_format",
        "invalid_image_mode",
        "invalid_image_url",
        "invalid_prompt",
        "misalignment_policy_violation",
        "unsupported_image_media_type",
    }
)


def authorization(api_key: str) -> Mapping[str, str]:
    """The header fields that carry the key."""
    return {"authorization": f"Bearer {api_key}"}


def encode_body(body: JsonObject) -> bytes:
    """The bytes of a request body; equal bodies give equal bytes."""
    return encode_json(body)


class ResponseStream(AnswerStream):
    """One response as it streams in; see AnswerStream."""

    def __init__(self) -> None:
        super().__init__(ResponseReader(), MAX_EVENT_BYTES)


@dataclass(slots=True)
class _Item:
    """One output item of the response and what it wants to have given back."""

    block: OpenBlock | None = None
    part: tuple[str, Json] | None = None
    entry: JsonObject | None = None


class ResponseReader:
    """Read the events of one response.

    Shape: one block for each message, reasoning and function call item, in the order in which they first say
    something. The Finish's replay_state is {"entries": [...]}, one entry a block in block order: a reasoning item to
    give back, the phase of a message, null for every other; it is absent when there is nothing to give back. What an
    item's end says replaces what its deltas said.
    Source: OpenAI API reference, "Responses, streaming events", and the guide "Reasoning models", reasoning items.
    """

    complete = False  # the event that says how the response ended is its last one

    def __init__(self) -> None:
        self.usage: Usage | None = None
        self._blocks = OpenBlocks()
        self._items: dict[int, _Item] = {}
        self._called = False

    def take(self, data: str) -> tuple[Chunk, ...] | None:
        """The chunks of one event; its kind stands in the payload, an event line may be missing."""
        if data.strip() == _END_MARK:
            return failed(self.usage, Failure("the end mark came before the response was over", "STREAM_CLOSED"))
        payload = object_in(data)
        error = find_error(payload)
        if error is not None:
            return failed(self.usage, _failure(payload))
        kind = text_of(payload, "type")
        if kind in _ALIVE:
            return None
        match kind:
            case "response.output_item.added" | "response.output_item.done":
                return tuple(self._take_item(self._at(payload), object_of(payload, "item"), kind.endswith("done")))
            case "response.output_text.delta" | "response.refusal.delta":
                # a refusal is what the person has to read
                return self._grow(self._at(payload), "text", text_of(payload, "delta"))
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                part = (kind, payload.get("summary_index", payload.get("content_index")))
                return self._grow(self._at(payload), "reasoning", text_of(payload, "delta"), part)
            case "response.function_call_arguments.delta":
                return self._grow_call(self._at(payload), {"arguments": payload.get("delta")})
            case "response.function_call_arguments.done":
                return self._settle_call(self._at(payload), {"arguments": payload.get("arguments")})
            case "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled":
                return self._end(kind, object_of(payload, "response"))
        return ()

    def release(self) -> tuple[Chunk, ...]:
        """Nothing is held back: the last event says everything."""
        return ()

    def _at(self, payload: JsonObject) -> _Item:
        index = payload.get("output_index")
        if not isinstance(index, int) or isinstance(index, bool):
            raise PeerError("output_index is no number")
        return self._items.setdefault(index, _Item())

    def _end(self, kind: str, response: JsonObject) -> tuple[Chunk, ...]:
        self.usage = _parse_usage(response) or self.usage
        if kind == "response.failed":
            return failed(self.usage, _failure(response))
        chunks: list[Chunk] = []
        for index, item in enumerate(objects_of(response, "output")):
            chunks += self._take_item(self._items.setdefault(index, _Item()), item, True)
        if kind == "response.cancelled":
            return (*chunks, *failed(self.usage, unknown_finish("cancelled")))
        if kind == "response.incomplete":
            word = text_of(object_of(response, "incomplete_details"), "reason") or "incomplete"
            if word != "max_output_tokens":
                return (*chunks, *failed(self.usage, unknown_finish(word)))
            finish = Finish("max-tokens", replay_state=self._replay_state())
        elif not self._blocks.opened:
            return failed(self.usage, Failure("the answer ended without any content", "EMPTY_RESPONSE"))
        else:
            finish = Finish("tool-calls" if self._called else "stop", replay_state=self._replay_state())
        return (*chunks, *self._blocks.ends(), *usage_chunks(self.usage), finish)

    def _replay_state(self) -> JsonObject | None:
        entries: dict[int, Json] = {
            item.block.index: item.entry
            for item in self._items.values()
            if item.block is not None and item.entry is not None
        }
        return {"entries": [entries.get(block.index) for block in self._blocks.opened]} if entries else None

    def _take_item(self, at: _Item, item: JsonObject, is_done: bool) -> list[Chunk]:
        """What an item says of itself when it begins, and in full when it is done."""
        chunks: list[Chunk] = []
        match text_of(item, "type"):
            case "message":
                text = "".join(text_of(part, "text") + text_of(part, "refusal") for part in objects_of(item, "content"))
                chunks += self._settle(at, "text", text)
                if text_of(item, "phase"):
                    at.entry = {"phase": text_of(item, "phase")}
            case "reasoning":
                parts = [text_of(part, "text") for name in ("summary", "content") for part in objects_of(item, name)]
                chunks += self._settle(at, "reasoning", _PART_BREAK.join(filter(None, parts)))
                if is_done:
                    at.entry = _reasoning_entry(item)
                    if at.entry is not None:
                        chunks += self._opened(at, "reasoning")
            case "function_call":
                chunks += self._settle_call(at, item) if is_done else self._grow_call(at, {**item, "arguments": None})
        return chunks  # an item of the service's own tools is nothing of ours to run or to show

    def _opened(self, at: _Item, block_type: BlockType) -> tuple[Chunk, ...]:
        if at.block is None:
            at.block, start = self._blocks.start(block_type)
            return (start,)
        if at.block.block_type != block_type:
            raise PeerError("an output item changes its kind")
        return ()

    def _grow(
        self, at: _Item, block_type: BlockType, text: str, part: tuple[str, Json] | None = None
    ) -> tuple[Chunk, ...]:
        if not text:
            return ()
        started = self._opened(at, block_type)
        assert at.block is not None  # noqa: S101 - opened on the line above
        if at.part is not None and at.part != part:
            text = _PART_BREAK + text
        at.part = part
        return (*started, grow_text(at.block, text))

    def _settle(self, at: _Item, block_type: BlockType, text: str) -> tuple[Chunk, ...]:
        """Make the block say this text, and stream what of it was not streamed."""
        streamed = "".join(at.block.parts) if at.block is not None else ""
        if not text or text == streamed:
            return ()
        at.part = None
        if text.startswith(streamed):
            return self._grow(at, block_type, text[len(streamed) :])
        self._opened(at, block_type)
        assert at.block is not None  # noqa: S101 - it streamed something
        at.block.parts[:] = [text]
        return ()

    def _grow_call(self, at: _Item, fields: JsonObject) -> tuple[Chunk, ...]:
        started = self._opened(at, "tool-call")
        assert at.block is not None  # noqa: S101 - opened on the line above
        self._called = True
        delta = grow_call(
            at.block,
            call_id=text_of(fields, "call_id"),
            name=text_of(fields, "name"),
            arguments=text_of(fields, "arguments"),
        )
        return (*started, delta) if delta is not None else started

    def _settle_call(self, at: _Item, fields: JsonObject) -> tuple[Chunk, ...]:
        streamed = "".join(at.block.parts) if at.block is not None else ""
        arguments = text_of(fields, "arguments")
        rest = arguments.removeprefix(streamed) if arguments.startswith(streamed) else ""
        chunks = self._grow_call(at, {**fields, "arguments": rest})
        if arguments and at.block is not None and not arguments.startswith(streamed):
            at.block.parts[:] = [arguments]
        return chunks


def _failure(holder: JsonObject) -> Failure:
    error = find_error(holder)
    if error is None:
        return Failure("the response failed and does not say why", "SERVER")
    failure = stream_failure(error)
    return replace(failure, code="INVALID_REQUEST") if error.code in _REQUEST_FAULTS else failure


def _reasoning_entry(item: JsonObject) -> JsonObject | None:
    """The item to give back: sealed content, or plain content from a server that does not seal it.

    Source: OpenAI API reference, reasoning item: id, summary, content, encrypted_content; the sealed content is whole
    only in response.output_item.done.
    """
    sealed = text_of(item, "encrypted_content")
    content: list[Json] = [_part(part, "reasoning_text") for part in objects_of(item, "content")]
    if not sealed and not content:
        return None
    kept: dict[str, Json] = {
        "type": "reasoning",
        "summary": [_part(part, "summary_text") for part in objects_of(item, "summary")],
    }
    if text_of(item, "id"):
        kept["id"] = text_of(item, "id")
    if content:
        kept["content"] = content
    if sealed:
        kept["encrypted_content"] = sealed
    return {"item": kept}


def _part(part: JsonObject, part_type: str) -> JsonObject:
    return {"type": part_type, "text": text_of(part, "text")}


def _parse_usage(response: JsonObject) -> Usage | None:
    """The wire's usage as disjoint counts; None when it does not say what went in and out.

    The wire counts cached input into the input and reasoning into the output.
    Source: OpenAI API reference, "The response object", usage.
    """
    usage = object_of(response, "usage")
    total_in, total_out = count_of(usage, "input_tokens"), count_of(usage, "output_tokens")
    if total_in is None or total_out is None:
        return None
    details = object_of(usage, "input_tokens_details")
    read, written = count_of(details, "cached_tokens"), count_of(details, "cache_write_tokens")
    reasoning = count_of(object_of(usage, "output_tokens_details"), "reasoning_tokens")
    return Usage(
        input_tokens=max(0, total_in - (read or 0) - (written or 0)),
        output_tokens=max(0, total_out - (reasoning or 0)),
        cache_read_tokens=read,
        cache_write_tokens=written,
        reasoning_tokens=reasoning,
    )
