"""The forms nearly every event of a sound log has, read and checked in one go.

Room: pure; load and append ask here first. What is not of exactly these forms is left to json_form, frozen and
validate: they alone refuse, and say why. Nothing is taken here that they would not take, and each value comes out as
theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.errors import InvalidEventError
from harness.log.events import (
    AssistantChunk,
    AssistantMessage,
    Event,
    InboxSpliced,
    Payload,
    RemovedItem,
    StepEnd,
    StepStart,
    ToolCall,
    ToolErrorInfo,
    ToolResult,
    TurnEnd,
    TurnReason,
    TurnStart,
    UserMessage,
)
from harness.log.frozen import MAX_SAFE_INTEGER, freeze_object, join_surrogates
from harness.log.model_form import JsonDict
from harness.model.chunks import (
    BlockEnd,
    BlockStart,
    Chunk,
    Finish,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    Usage,
    UsageChunk,
)
from harness.model.messages import (
    ContentBlock,
    Message,
    ModelSource,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    ToolSource,
    UserSource,
)

_COMPLETED, _COMPLETED_JSON = TurnReason("completed"), {"kind": "completed"}  # values without a difference: one for all
_USER, _USER_JSON = UserSource(), {"kind": "user"}
_TARGETS = ("next-turn", "next-step")
_BLOCK_TYPES = ("text", "reasoning", "tool-call")
_FINISHES = ("stop", "tool-calls", "max-tokens")


def read_usual(value: JsonDict, seq: int) -> Event | None:
    """The event of an object of a usual form that fits at that seq; None says nothing of any other object."""
    try:
        kind, data, time = value["type"], value["data"], value["time"]
        if type(data) is not dict or type(value["seq"]) is not int or value["seq"] != seq:
            return None
        if not _is_time(time):
            return None
        if len(value) == 4:
            payload = _UNSEEN[kind](data)
            return None if payload is None else Event(seq, time, payload)
        if value["surfaceOp"] != "append":
            return None
        sources: tuple[int, ...] | None = None
        if len(value) == 6:
            sources = _sources(value["sourceEventSeqs"], seq, kind)
        elif len(value) != 5:
            return None
        payload = _SEEN[kind](data)
        return None if payload is None else Event(seq, time, payload, "append", sources)
    except (KeyError, TypeError, InvalidEventError):  # a key that lacks, a value of another type: not of these forms
        return None


def is_usual_piece(payload: object, time: object) -> bool:
    """Whether that payload at that time is a piece of text with nothing to freeze or to refuse; False says nothing."""
    if type(payload) is not AssistantChunk or not _is_time(time):
        return False
    chunk = payload.chunk
    if type(chunk) is not TextDelta and type(chunk) is not ReasoningDelta:
        return False
    text, index, turn, step = chunk.text, chunk.index, payload.turn, payload.step
    return (
        type(text) is str
        and type(index) is int
        and type(turn) is int
        and type(step) is int
        and 0 <= index <= MAX_SAFE_INTEGER
        and 0 < turn <= MAX_SAFE_INTEGER
        and 0 < step <= MAX_SAFE_INTEGER
        and (text.isascii() or join_surrogates(text) is text)
    )


def _sources(value: object, seq: int, kind: str) -> tuple[int, ...]:
    """The seqs an event cites; a TypeError leaves the event to those who refuse."""
    if type(value) is not list:
        raise TypeError
    if len(value) == 1:
        if type(value[0]) is not int or not 0 <= value[0] < seq:
            raise TypeError
    elif not value:
        if kind != "assistant/message":
            raise TypeError
    elif set(map(type, value)) != {int} or min(value) < 0 or max(value) >= seq or len(set(value)) != len(value):
        raise TypeError
    return tuple(value)


def _is_time(value: object) -> bool:
    return type(value) is int and -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value <= MAX_SAFE_INTEGER


def _is_place(turn: object, step: object) -> bool:
    return type(turn) is int and 0 < turn <= MAX_SAFE_INTEGER and type(step) is int and 0 < step <= MAX_SAFE_INTEGER


def _turn_start(data: JsonDict) -> Payload | None:
    turn = data["turn"]
    if len(data) != 1 or type(turn) is not int or not 0 < turn <= MAX_SAFE_INTEGER:
        return None
    return TurnStart(turn)


def _turn_end(data: JsonDict) -> Payload | None:
    turn = data["turn"]
    if len(data) != 2 or type(turn) is not int or not 0 < turn <= MAX_SAFE_INTEGER:
        return None
    return TurnEnd(turn, _COMPLETED) if data["reason"] == _COMPLETED_JSON else None


def _step_start(data: JsonDict) -> Payload | None:
    turn, step = data["turn"], data["step"]
    return StepStart(turn, step) if len(data) == 2 and _is_place(turn, step) else None


def _step_end(data: JsonDict) -> Payload | None:
    turn, step = data["turn"], data["step"]
    return StepEnd(turn, step) if len(data) == 2 and _is_place(turn, step) else None


def _tool_call(data: JsonDict) -> Payload | None:
    turn, step, call_id, name, arguments = data["turn"], data["step"], data["callId"], data["name"], data["arguments"]
    if len(data) != 5 or type(call_id) is not str or type(name) is not str or type(arguments) is not str:
        return None
    return ToolCall(turn, step, data["callId"], name, arguments) if call_id and _is_place(turn, step) else None


def _spliced(data: JsonDict) -> Payload | None:
    """One of the two forms of an undisturbed queue: messages come in, or a turn claims them."""
    target, start, inserted = data["target"], data["start"], data["inserted"]
    if target not in _TARGETS or not _is_count(start) or type(inserted) is not list:
        return None
    if inserted:
        wakes = len(data) == 3
        if not wakes and (len(data) != 4 or data["wakes"] is not False):
            return None
        messages: list[Message] = []
        for item in inserted:
            message = _input(item)
            if message is None:
                return None
            messages.append(message)
        return InboxSpliced(target, start, (), tuple(messages), None, wakes)
    removed, count = data["removed"], data["removedCount"]
    if len(data) != 5 or type(removed) is not list or type(count) is not int or count != len(removed) or not removed:
        return None
    items: list[RemovedItem] = []
    for item in removed:
        message_id, turn = item["id"], item["turn"]
        if type(message_id) is not str or not message_id or item["fate"] != "claimed" or len(item) != 3:
            return None
        if type(turn) is not int or not 0 < turn <= MAX_SAFE_INTEGER:
            return None
        items.append(RemovedItem(item["id"], "claimed", turn))
    return InboxSpliced(target, start, tuple(items))


def _input(data: JsonDict) -> Message | None:
    """A message of a user that is only text."""
    message_id, content = data["id"], data["content"]
    if type(message_id) is not str or not message_id or len(data) != 4 or data["role"] != "user":
        return None
    if type(content) is not list or data["source"] != _USER_JSON:
        return None
    blocks = _texts(content)
    return None if blocks is None else Message(data["id"], "user", blocks, _USER)


def _texts(content: list[Any]) -> tuple[TextBlock, ...] | None:
    blocks: list[TextBlock] = []
    for block in content:
        text = block["text"]
        if type(text) is not str or block["type"] != "text" or len(block) != 2:
            return None
        blocks.append(TextBlock(text))
    return tuple(blocks)


def _user_message(data: JsonDict) -> Payload | None:
    message = _input(data)
    return None if message is None else UserMessage(message)


def _assistant_message(data: JsonDict) -> Payload | None:
    turn, step, found = data["turn"], data["step"], data["message"]
    usage: Usage | None = None
    if len(data) == 4:
        usage = _usage(data["usage"])
        if usage is None:
            return None
    elif len(data) != 3:
        return None
    message_id, source, content = found["id"], found["source"], found["content"]
    if type(message_id) is not str or not message_id or len(found) != 4 or found["role"] != "assistant":
        return None
    if type(content) is not list or not _is_place(turn, step):
        return None
    provider, model = source["provider"], source["model"]
    if source["kind"] != "model" or type(provider) is not str or type(model) is not str or not provider or not model:
        return None
    state = None
    if len(source) == 4:
        state = freeze_object(source["replayState"])
    elif len(source) != 3:
        return None
    blocks: list[ContentBlock] = []
    calls = 0
    for item in content:
        block = _block(item)
        if type(block) is ToolCallBlock:
            calls += 1
            if not block.id or (calls > 1 and any(type(b) is ToolCallBlock and b.id == block.id for b in blocks)):
                return None
        elif block is None:
            return None
        blocks.append(block)
    said = Message(found["id"], "assistant", tuple(blocks), ModelSource(provider, model, state))
    return AssistantMessage(turn, step, said, usage)


def _block(item: JsonDict) -> TextBlock | ReasoningBlock | ToolCallBlock | None:
    """A block a model writes; the id of a call may be empty, as a stream may leave it."""
    kind = item["type"]
    if kind == "tool-call":
        call_id, name, arguments = item["id"], item["name"], item["arguments"]
        if type(call_id) is not str or type(name) is not str or type(arguments) is not str or len(item) != 4:
            return None
        return ToolCallBlock(item["id"], name, arguments)
    text = item["text"]
    if type(text) is not str or len(item) != 2:
        return None
    return TextBlock(text) if kind == "text" else ReasoningBlock(text) if kind == "reasoning" else None


def _tool_result(data: JsonDict) -> Payload | None:
    turn, step, found = data["turn"], data["step"], data["message"]
    message_id, source, content = found["id"], found["source"], found["content"]
    if type(message_id) is not str or not message_id or len(found) != 4 or found["role"] != "user":
        return None
    if type(content) is not list or len(content) != 1 or not _is_place(turn, step):
        return None
    block, call_id = content[0], source["callId"]
    if type(call_id) is not str or not call_id or source["kind"] != "tool" or len(source) != 2:
        return None
    parts = block["content"]
    if block["type"] != "tool-result" or block["toolCallId"] != call_id or type(parts) is not list:
        return None
    is_error = len(block) == 4
    if (is_error and block["isError"] is not True) or not 3 <= len(block) <= 4:
        return None
    texts = _texts(parts)
    if texts is None:
        return None
    error, meta, known = None, None, 3
    if "meta" in data:
        meta, known = freeze_object(data["meta"]), 4
    if "error" in data:
        error, known = _error(data["error"]), known + 1
        if error is None or not is_error:
            return None
    if len(data) != known:
        return None
    answer = ToolResultBlock(source["callId"], texts, is_error)
    return ToolResult(turn, step, Message(found["id"], "user", (answer,), ToolSource(source["callId"])), error, meta)


def _error(data: JsonDict) -> ToolErrorInfo | None:
    name, code = data["name"], data["code"]
    if type(name) is not str or type(code) is not str or not code or len(data) != 2:
        return None
    return ToolErrorInfo(name, code)


def _usage(data: JsonDict) -> Usage | None:
    """Token counts, if they are what a service usually reports."""
    given, answered = data["inputTokens"], data["outputTokens"]
    read, reasoning = data.get("cacheReadTokens"), data.get("reasoningTokens")
    if not _is_count(given) or not _is_count(answered):
        return None
    if len(data) != 2 + (read is not None) + (reasoning is not None):
        return None
    if not (read is None or _is_count(read)) or not (reasoning is None or _is_count(reasoning)):
        return None
    return Usage(given, answered, read, None, reasoning)


def _chunk_event(data: JsonDict) -> Payload | None:
    turn, step, found = data["turn"], data["step"], data["chunk"]
    if len(data) != 3 or not _is_place(turn, step):
        return None
    chunk = _chunk(found)
    return None if chunk is None else AssistantChunk(turn, step, chunk)


def _chunk(data: JsonDict) -> Chunk | None:
    kind = data["type"]
    if kind == "usage":
        usage = _usage(data["usage"]) if len(data) == 2 else None
        return None if usage is None else UsageChunk(usage)
    if kind == "finish":
        reason = data["reason"]
        state = freeze_object(data["replayState"]) if len(data) == 3 else None
        if len(reason) != 1 or reason["kind"] not in _FINISHES or not 2 <= len(data) <= 3:
            return None
        return Finish(reason["kind"], None, state)
    index = data["index"]
    if not _is_count(index):
        return None
    if kind == "text-delta" or kind == "reasoning-delta":
        text = data["text"]
        if type(text) is not str or len(data) != 3:
            return None
        return TextDelta(index, text) if kind == "text-delta" else ReasoningDelta(index, text)
    if kind == "tool-call-delta":
        call_id, arguments, name = data["id"], data["argumentsDelta"], data.get("name")
        if type(call_id) is not str or type(arguments) is not str or len(data) != 4 + (name is not None):
            return None
        if name is not None and type(name) is not str:
            return None
        return ToolCallDelta(index, data["id"], arguments, name)
    if len(data) != 3:
        return None
    if kind == "block-start":
        return BlockStart(index, data["blockType"]) if data["blockType"] in _BLOCK_TYPES else None
    if kind == "block-end":
        block = _block(data["block"])
        return None if block is None else BlockEnd(index, block)
    return None


_UNSEEN: dict[str, Callable[[JsonDict], Payload | None]] = {
    "turn/start": _turn_start,
    "turn/end": _turn_end,
    "step/start": _step_start,
    "step/end": _step_end,
    "tool/call": _tool_call,
    "agent/inbox/spliced": _spliced,
    "assistant/chunk": _chunk_event,
}
_SEEN: dict[str, Callable[[JsonDict], Payload | None]] = {
    "user/message": _user_message,
    "assistant/message": _assistant_message,
    "tool/result": _tool_result,
}
