"""A reply as Ollama answers: one line, or one line a piece with the counts in the last.

Room: pure; the Ollama dialect comes in. Lines are made one by one as they are sent.
Source: the server's own source text (api/types.go: ChatResponse, GenerateResponse, Metrics); tool calls come whole,
each in a line of its own. Its JSON encoder escapes U+2028 and U+2029; U+0085 is escaped here as well, because its
Python client cuts lines there too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime

from mock_provider.asked import Asked
from mock_provider.dialects.codec import Counts, Reply, SaidCall
from mock_provider.dialects.ollama_refusals import event_error
from mock_provider.faults import Die, Item, Send, Wait
from mock_provider.json_values import Json, JsonObject, encode_json
from mock_provider.pieces import split_text
from mock_provider.steps import (
    AtGate,
    Break,
    Comment,
    ErrorEvent,
    Malformed,
    Part,
    RawBytes,
    Reasoning,
    RefusalText,
    Text,
    ToolCall,
)

GENERATE = "generate"  # the form of a request for a completion
DONE_REASONS = {"tool_calls": "stop", "content_filter": "stop"}  # words that this dialect does not have
_LINE_ENDS = (("\u2028", b"\\u2028"), ("\u2029", b"\\u2029"), ("\x85", b"\\u0085"))
# Times that no clock gives: each token takes the same, and none of them is zero.
_LOAD_NS, _READ_NS, _SAY_NS = 1_000_000, 1_000_000, 10_000_000
_CONTEXT: list[Json] = [1, 2, 3]  # what a model has read; clients hand it back unread
_HOLE = "\x00piece\x00"  # stands for the text of a piece while what all pieces share is spelled; always spelled alike


def encode_line(value: JsonObject) -> bytes:
    """Spell a value so that no client finds a line end inside it."""
    data = encode_json(value)
    for mark, escaped in _LINE_ENDS:
        data = data.replace(mark.encode("utf-8"), escaped)
    return data


def moment(created: int) -> str:
    """A time of the script as the server spells it."""
    return datetime.fromtimestamp(created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def whole_answer(asked: Asked, reply: Reply) -> bytes:
    """An answer in one body; a malformed or raw part of the script takes its place."""
    texts: dict[str, list[str]] = {"content": [], "thinking": []}
    calls: list[Json] = []
    said = iter(reply.calls)
    for part in reply.parts:
        if isinstance(part, Malformed):
            return part.text.encode("utf-8", "surrogatepass")
        if isinstance(part, RawBytes):
            return part.data
        if isinstance(part, ErrorEvent):
            return encode_line(event_error(part))
        if isinstance(part, Text | RefusalText | Reasoning):
            texts["thinking" if isinstance(part, Reasoning) else "content"].append(part.text)
        elif isinstance(part, ToolCall):
            call = next(said)
            spelled = call_fields(call)
            if spelled is None:
                texts["content"].append(spoken(call))
            else:
                calls.append(spelled)
    return encode_line(_line(asked, reply, "".join(texts["content"]), "".join(texts["thinking"]), calls, is_last=True))


def call_fields(call: SaidCall) -> JsonObject | None:
    """A tool call; None when its arguments are no object."""
    try:
        arguments: Json = json.loads(call.arguments or "{}")
    except ValueError:
        return None
    if not isinstance(arguments, dict):
        return None
    spelled: JsonObject = {} if call.id is None else {"id": call.id}
    return {**spelled, "function": {"index": call.index, "name": call.name, "arguments": arguments}}


def spoken(call: SaidCall) -> str:
    """What a call is when nobody could read it: text, as the model wrote it."""
    return f'{{"name": {json.dumps(call.name)}, "arguments": {call.arguments}}}'


def metrics(counts: Counts) -> JsonObject:
    """Counts and times; clients take a zero for a count that is missing."""
    read, said = max(counts.input, 1), max(counts.output, 1)
    return {
        "total_duration": _LOAD_NS + read * _READ_NS + said * _SAY_NS,
        "load_duration": _LOAD_NS,
        "prompt_eval_count": read,
        "prompt_eval_duration": read * _READ_NS,
        "eval_count": said,
        "eval_duration": said * _SAY_NS,
    }


def _line(
    asked: Asked, reply: Reply, content: str, thinking: str = "", calls: list[Json] | None = None, *, is_last: bool
) -> JsonObject:
    line: JsonObject = {"model": reply.model, "created_at": moment(reply.created)}
    more: JsonObject = {"thinking": thinking} if thinking else {}
    if calls:
        more["tool_calls"] = calls
    if asked.form == GENERATE:
        line.update({"response": content, **more})
    else:
        line["message"] = {"role": "assistant", "content": content, **more}
    line["done"] = is_last
    if not is_last:
        return line
    if reply.finish is not None:
        line["done_reason"] = DONE_REASONS.get(reply.finish, reply.finish)
    if asked.form == GENERATE and asked.body.get("raw") is not True:
        line["context"] = _CONTEXT
    return {**line, **(metrics(reply.counts) if reply.counts else {})}


def write_lines(asked: Asked, reply: Reply) -> Iterator[Item]:
    """Write an answer as one line a piece, then the one that says that it is done."""
    calls = iter(reply.calls)
    for part in reply.parts:
        yield from _part(asked, reply, part, calls)
    for _ in range(reply.stream.end_marks):
        yield Send(encode_line(_line(asked, reply, "", is_last=True)) + b"\n")


def _part(asked: Asked, reply: Reply, part: Part, calls: Iterator[SaidCall]) -> Iterator[Item]:
    if isinstance(part, Text | RefusalText | Reasoning):
        yield from _texts(asked, reply, part.text, is_thought=isinstance(part, Reasoning))
    elif isinstance(part, ToolCall):
        call = next(calls)
        spelled = call_fields(call)
        if spelled is None:
            yield from _texts(asked, reply, spoken(call), is_thought=False)
        else:
            yield Send(encode_line(_line(asked, reply, "", "", [spelled], is_last=False)) + b"\n", is_piece=True)
    elif isinstance(part, AtGate):
        yield Wait(part.name)
    elif isinstance(part, Break):
        yield Die(part.kind)
    elif isinstance(part, Malformed):
        yield Send(part.text.encode("utf-8", "surrogatepass") + b"\n", is_piece=True)
    elif isinstance(part, RawBytes):
        yield Send(part.data, is_piece=True)
    elif isinstance(part, ErrorEvent):
        yield Send(encode_line(event_error(part)) + b"\n", is_piece=True)
    elif isinstance(part, Comment):
        return  # lines of JSON have no place for one


def _texts(asked: Asked, reply: Reply, text: str, *, is_thought: bool) -> Iterator[Item]:
    """One line a piece; what all of them share is spelled once."""
    line = _line(asked, reply, "" if is_thought else _HOLE, _HOLE if is_thought else "", is_last=False)
    before, after = encode_json(line).rsplit(encode_json(_HOLE), 1)
    for piece in split_text(text, reply.stream.split):
        yield Send(before + _encode_text(piece) + after + b"\n", True)


def _encode_text(text: str) -> bytes:
    data = encode_json(text)
    for mark, escaped in _LINE_ENDS:
        if mark in text:
            data = data.replace(mark.encode("utf-8"), escaped)
    return data
