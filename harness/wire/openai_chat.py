"""The chat completions dialect: OpenAI, DeepSeek and the many servers that speak like them.

Room: pure; the provider's shell may come in. Requests are written in chat_request, error answers read in failures.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from harness.errors import PeerError
from harness.model.chunks import Chunk, Failure, Finish, FinishKind, Usage, UsageChunk
from harness.model.messages import Json, JsonObject
from harness.wire.blocks import OpenBlock, OpenBlocks, grow_call, grow_text
from harness.wire.chat_request import encode_request
from harness.wire.failures import classify_error, find_error, stream_failure
from harness.wire.json_text import encode_json, parse_json
from harness.wire.sse import SseDecoder

__all__ = ["PATH", "ChatStream", "authorization", "classify_error", "encode_body", "encode_request"]

PATH = "/chat/completions"

_END_MARK = "[DONE]"
_FINISH_KINDS: Mapping[str, FinishKind] = {"stop": "stop", "tool_calls": "tool-calls", "length": "max-tokens"}


def authorization(api_key: str) -> Mapping[str, str]:
    """The header fields that carry the key."""
    return {"authorization": f"Bearer {api_key}"}


def encode_body(body: JsonObject) -> bytes:
    """The bytes of a request body; equal bodies give equal bytes."""
    return encode_json(body)


class ChatStream:
    """Turn the bytes of one streamed answer into chunks.

    Shape: feed(bytes) returns chunks as they come; deltas at once, block ends, usage and the finish only when the
    answer is over. Exactly one Finish is returned, as the last chunk, by feed, end, broken or aborted; after it every
    function returns nothing. complete says that the answer is whole: a finish reason or the end mark was seen.
    payloads counts the events that carried something, so that a watcher can tell progress from mere activity.
    Source: OpenAI API reference, "Chat completion chunk"; DeepSeek API, "Create chat completion".
    """

    def __init__(self) -> None:
        self.payloads = 0
        self.finished = False
        self._events = SseDecoder()
        self._blocks = OpenBlocks()
        self._text: OpenBlock | None = None
        self._reasoning: OpenBlock | None = None
        self._calls: dict[int, list[OpenBlock]] = {}  # the last one of a list is the running call of that wire index
        self._usage: Usage | None = None
        self._finish_word: str | None = None

    @property
    def complete(self) -> bool:
        """Whether what was received is a whole answer."""
        return self.finished or self._finish_word is not None

    def feed(self, data: bytes) -> tuple[Chunk, ...]:
        """Take the next bytes of the body."""
        if self.finished:
            return ()
        chunks: list[Chunk] = []
        try:
            for event in self._events.feed(data):
                self.payloads += 1
                chunks += self._take(event.data)
                if chunks and isinstance(chunks[-1], Finish):
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
        return self._release() if self.complete else self._fail("error", failure)

    def aborted(self, failure: Failure) -> tuple[Chunk, ...]:
        """The caller does not want the rest."""
        return () if self.finished else self._fail("aborted", failure)

    def _take(self, data: str) -> tuple[Chunk, ...]:
        if data.strip() == _END_MARK:
            return self._release()
        try:
            payload = parse_json(data)
        except PeerError as error:
            raise PeerError(f"an event is not JSON: {error.what}: {data!r}") from None
        error_object = find_error(payload)
        if error_object is not None:
            return self._fail("error", stream_failure(error_object))
        if not isinstance(payload, Mapping):
            raise PeerError(f"an event is not a JSON object: {data!r}")
        self._usage = _parse_usage(payload.get("usage")) or self._usage
        choices = payload.get("choices")
        if choices is None:
            return ()
        chunks: list[Chunk] = []
        for choice in _objects(choices, "choices"):
            if choice.get("index") not in (None, 0):
                continue  # a second answer; we ask for one
            self._usage = _parse_usage(choice.get("usage")) or self._usage
            delta = choice.get("delta")
            if delta is not None:
                chunks += self._take_delta(_object(delta, "delta"))
            self._finish_word = _string(choice, "finish_reason") or self._finish_word
        return tuple(chunks)

    def _take_delta(self, delta: JsonObject) -> list[Chunk]:
        chunks: list[Chunk] = []
        reasoning = _string(delta, "reasoning_content") or _string(delta, "reasoning")
        if reasoning:
            if self._reasoning is None:
                self._reasoning, start = self._blocks.start("reasoning")
                chunks.append(start)
            chunks.append(grow_text(self._reasoning, reasoning))
        text = _string(delta, "content") + _string(delta, "refusal")  # a refusal is what the person has to read
        if text:
            if self._text is None:
                self._text, start = self._blocks.start("text")
                chunks.append(start)
            chunks.append(grow_text(self._text, text))
        fragments = delta.get("tool_calls")
        if fragments is not None:
            for position, fragment in enumerate(_objects(fragments, "tool_calls")):
                chunks += self._take_fragment(fragment, position)
        return chunks

    def _take_fragment(self, fragment: JsonObject, position: int) -> list[Chunk]:
        index = fragment.get("index")
        if not isinstance(index, int) or isinstance(index, bool):
            index = position
        function = fragment.get("function")
        function = {} if function is None else _object(function, "function")
        call_id, name = _string(fragment, "id"), _string(function, "name")
        arguments = function.get("arguments")
        if isinstance(arguments, Mapping):
            arguments = encode_json(arguments).decode("ascii")
        elif arguments is None:
            arguments = ""
        elif not isinstance(arguments, str):
            raise PeerError("tool call arguments are neither text nor an object")
        chunks: list[Chunk] = []
        block = self._running_call(index, call_id, name)
        if block is None:
            if not (call_id or name or arguments):
                return chunks
            block, start = self._blocks.start("tool-call")
            self._calls.setdefault(index, []).append(block)
            chunks.append(start)
        delta = grow_call(block, call_id=call_id, name=name, arguments=arguments)
        if delta is not None:
            chunks.append(delta)
        return chunks

    def _running_call(self, index: int, call_id: str, name: str) -> OpenBlock | None:
        """The call this fragment belongs to; None when it opens one.

        Some servers give every call of an answer the index 0: there a new id is a new call, and an id that was seen
        under this index before means that earlier call again.
        """
        calls = self._calls.get(index)
        if not calls:
            return None
        running = calls[-1]
        if not call_id or running.id == call_id:
            return running
        if not running.id and not (running.name and name):
            return running
        for call in calls:
            if call.id == call_id:
                calls.remove(call)
                calls.append(call)
                return call
        return None

    def _release(self) -> tuple[Chunk, ...]:
        word = self._finish_word or "stop"
        kind = _FINISH_KINDS.get(word)
        if kind is None:
            code = re.sub(r"[^A-Z0-9]+", "_", word.upper())[:64].strip("_") or "UNKNOWN"
            return self._fail("error", Failure(f"the answer ended with finish reason {word!r}", code))
        if kind != "max-tokens" and not self._blocks.opened:
            return self._fail("error", Failure("the answer ended without any content", "EMPTY_RESPONSE"))
        self.finished = True
        return (*self._blocks.ends(), *self._usage_chunks(), Finish(kind))

    def _fail(self, kind: FinishKind, failure: Failure) -> tuple[Chunk, ...]:
        self.finished = True
        return (*self._usage_chunks(), Finish(kind, failure))

    def _usage_chunks(self) -> tuple[UsageChunk, ...]:
        return (UsageChunk(self._usage),) if self._usage is not None else ()


def _parse_usage(value: Json) -> Usage | None:
    """Wire usage as disjoint counts; None when it does not say what went in and out.

    The wire counts cache hits into the prompt and reasoning into the completion.
    """
    if not isinstance(value, Mapping):
        return None
    prompt, completion, total = (_count(value.get(f"{name}_tokens")) for name in ("prompt", "completion", "total"))
    if prompt is None and total is not None and completion is not None:
        prompt = max(0, total - completion)
    if completion is None and total is not None and prompt is not None:
        completion = max(0, total - prompt)
    if prompt is None or completion is None:
        return None
    cached = _count(_detail(value, "prompt_tokens_details", "cached_tokens"))
    if cached is None:
        cached = _count(value.get("prompt_cache_hit_tokens"))
    reasoning = _count(_detail(value, "completion_tokens_details", "reasoning_tokens"))
    return Usage(
        input_tokens=max(0, prompt - (cached or 0)),
        output_tokens=max(0, completion - (reasoning or 0)),
        cache_read_tokens=cached,
        reasoning_tokens=reasoning,
    )


def _detail(usage: JsonObject, group: str, name: str) -> Json:
    details = usage.get(group)
    return details.get(name) if isinstance(details, Mapping) else None


def _count(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _string(holder: JsonObject, name: str) -> str:
    value = holder.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise PeerError(f"{name} is not text")
    return value


def _object(value: Json, name: str) -> JsonObject:
    if not isinstance(value, Mapping):
        raise PeerError(f"{name} is not a JSON object")
    return value


def _objects(value: Json, name: str) -> tuple[JsonObject, ...]:
    if not isinstance(value, list):
        raise PeerError(f"{name} is not a list")
    return tuple(_object(item, name) for item in value)
