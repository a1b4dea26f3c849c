"""The chat completions dialect: OpenAI, DeepSeek and the many servers that speak like them.

Room: pure; the provider's shell may come in. Requests are written in chat_request, error answers read in failures.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.errors import PeerError
from harness.model.chunks import Chunk, Failure, Finish, FinishKind, Usage
from harness.model.messages import JsonObject
from harness.wire.answer import AnswerStream, failed, unknown_finish, usage_chunks
from harness.wire.blocks import OpenBlock, OpenBlocks, grow_call, grow_text
from harness.wire.chat_request import encode_request, settled
from harness.wire.failures import classify_error, find_error, stream_failure
from harness.wire.growing_body import Growth
from harness.wire.json_text import encode_json
from harness.wire.shapes import count_of, object_in, object_of, objects_of, text_of

__all__ = ["GROWTH", "PATH", "ChatStream", "authorization", "classify_error", "encode_body", "encode_request"]

PATH = "/chat/completions"
GROWTH = Growth("messages", settled)

_END_MARK = "[DONE]"
_FINISH_KINDS: Mapping[str, FinishKind] = {"stop": "stop", "tool_calls": "tool-calls", "length": "max-tokens"}


def authorization(api_key: str) -> Mapping[str, str]:
    """The header fields that carry the key."""
    return {"authorization": f"Bearer {api_key}"}


def encode_body(body: JsonObject) -> bytes:
    """The bytes of a request body; equal bodies give equal bytes."""
    return encode_json(body)


class ChatStream(AnswerStream):
    """One chat completion as it streams in; see AnswerStream."""

    def __init__(self) -> None:
        super().__init__(ChatReader())


class ChatReader:
    """Read the events of one chat completion.

    Source: OpenAI API reference, "Chat completion chunk"; DeepSeek API, "Create chat completion".
    """

    def __init__(self) -> None:
        self.usage: Usage | None = None
        self._blocks = OpenBlocks()
        self._text: OpenBlock | None = None
        self._reasoning: OpenBlock | None = None
        self._calls: dict[int, list[OpenBlock]] = {}  # the last one of a list is the running call of that wire index
        self._finish_word = ""

    @property
    def complete(self) -> bool:
        """Whether a finish reason was seen."""
        return bool(self._finish_word)

    def take(self, data: str) -> tuple[Chunk, ...]:
        """The chunks of one event."""
        if data.strip() == _END_MARK:
            return self.release()
        payload = object_in(data)
        error = find_error(payload)
        if error is not None:
            return failed(self.usage, stream_failure(error))
        self.usage = _parse_usage(payload) or self.usage
        chunks: list[Chunk] = []
        for choice in objects_of(payload, "choices"):
            if choice.get("index") not in (None, 0):
                continue  # a second answer; we ask for one
            self.usage = _parse_usage(choice) or self.usage
            chunks += self._take_delta(object_of(choice, "delta"))
            self._finish_word = text_of(choice, "finish_reason") or self._finish_word
        return tuple(chunks)

    def release(self) -> tuple[Chunk, ...]:
        """What was held back until the end."""
        word = self._finish_word or "stop"
        kind = _FINISH_KINDS.get(word)
        if kind is None:
            return failed(self.usage, unknown_finish(word))
        if kind != "max-tokens" and not self._blocks.opened:
            return failed(self.usage, Failure("the answer ended without any content", "EMPTY_RESPONSE"))
        return (*self._blocks.ends(), *usage_chunks(self.usage), Finish(kind))

    def _take_delta(self, delta: JsonObject) -> list[Chunk]:
        chunks: list[Chunk] = []
        reasoning = text_of(delta, "reasoning_content") or text_of(delta, "reasoning")
        if reasoning:
            if self._reasoning is None:
                self._reasoning, start = self._blocks.start("reasoning")
                chunks.append(start)
            chunks.append(grow_text(self._reasoning, reasoning))
        text = text_of(delta, "content") + text_of(delta, "refusal")  # a refusal is what the person has to read
        if text:
            if self._text is None:
                self._text, start = self._blocks.start("text")
                chunks.append(start)
            chunks.append(grow_text(self._text, text))
        for position, fragment in enumerate(objects_of(delta, "tool_calls")):
            chunks += self._take_fragment(fragment, position)
        return chunks

    def _take_fragment(self, fragment: JsonObject, position: int) -> list[Chunk]:
        index = fragment.get("index")
        if not isinstance(index, int) or isinstance(index, bool):
            index = position
        function = object_of(fragment, "function")
        call_id, name, arguments = text_of(fragment, "id"), text_of(function, "name"), _arguments_of(function)
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


def _arguments_of(function: JsonObject) -> str:
    arguments = function.get("arguments")
    if isinstance(arguments, Mapping):
        return encode_json(arguments).decode("ascii")  # some servers give the object itself
    if arguments is not None and not isinstance(arguments, str):
        raise PeerError("tool call arguments are neither text nor an object")
    return arguments or ""


def _parse_usage(holder: JsonObject) -> Usage | None:
    """The wire's usage as disjoint counts; None when it does not say what went in and out.

    The wire counts cache hits into the prompt and reasoning into the completion.
    """
    usage = holder.get("usage")
    if not isinstance(usage, Mapping):
        return None
    prompt, completion, total = (count_of(usage, f"{name}_tokens") for name in ("prompt", "completion", "total"))
    if prompt is None and total is not None and completion is not None:
        prompt = max(0, total - completion)
    if completion is None and total is not None and prompt is not None:
        completion = max(0, total - prompt)
    if prompt is None or completion is None:
        return None
    cached = _detail(usage, "prompt_tokens_details", "cached_tokens")
    if cached is None:
        cached = count_of(usage, "prompt_cache_hit_tokens")
    reasoning = _detail(usage, "completion_tokens_details", "reasoning_tokens")
    return Usage(
        input_tokens=max(0, prompt - (cached or 0)),
        output_tokens=max(0, completion - (reasoning or 0)),
        cache_read_tokens=cached,
        reasoning_tokens=reasoning,
    )


def _detail(usage: JsonObject, group: str, name: str) -> int | None:
    details = usage.get(group)
    return count_of(details, name) if isinstance(details, Mapping) else None
