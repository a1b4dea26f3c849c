"""Anthropic messages: requests read, answers and event streams written.

Room: pure; the dialect table comes in.
Source: the provider's published API reference for /v1/messages, its streaming events and its error types.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

from mock_provider.asked import Asked, AskedCall, AskedMessage, AskedResult, Refusal
from mock_provider.dialects.anthropic_models import list_models, show_model
from mock_provider.dialects.anthropic_rules import FIELDS, refuse, refuse_body
from mock_provider.dialects.codec import (
    Address,
    Base,
    Counts,
    Dialect,
    Received,
    Reply,
    SaidCall,
    count_input,
)
from mock_provider.faults import Die, Item, Send, Wait
from mock_provider.json_values import Json, JsonObject, encode_json
from mock_provider.pieces import split_text
from mock_provider.steps import (
    AtGate,
    Break,
    Comment,
    ErrorEvent,
    Malformed,
    RawBytes,
    Reasoning,
    RefusalText,
    Script,
    Text,
    ToolCall,
)

STOP_REASONS = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "content_filter": "refusal"}
_KINDS = {
    400: ("invalid_request_error", "The request was refused."),
    401: ("authentication_error", "invalid x-api-key"),
    402: ("billing_error", "Your credit balance is too low to access the API."),
    403: ("permission_error", "Your API key does not have permission to use the specified resource."),
    404: ("not_found_error", "Not found"),
    413: ("request_too_large", "Request exceeds the maximum size"),
    429: ("rate_limit_error", "This request would exceed your rate limit. Please try again later."),
    500: ("api_error", "Internal server error"),
    504: ("timeout_error", "The request timed out."),
    529: ("overloaded_error", "Overloaded"),
}


def check_access(headers: Mapping[str, str], query: str, script: Script) -> Refusal | None:
    """Refuse a request without a key or a version, or with another key than the script's."""
    del query
    scheme, _, token = headers.get("authorization", "").partition(" ")
    given = headers.get("x-api-key", "") or (token.strip() if scheme.lower() == "bearer" else "")
    if not given:
        return Refusal(401, "missing_key", "x-api-key header is required", "authentication_error")
    if script.api_key is not None and given != script.api_key:
        return Refusal(401, "wrong_key", "invalid x-api-key", "authentication_error")
    if "anthropic-version" not in headers:
        return refuse("missing_version", "anthropic-version: header is required")
    return None


def read(received: Received) -> Asked | Refusal:
    """Check a body like the provider, then read it."""
    return _read(received, needs_limit=True)


def count(received: Received) -> JsonObject | Refusal:
    """Count the tokens of a request by the local rule."""
    asked = _read(received, needs_limit=False)
    return asked if isinstance(asked, Refusal) else {"input_tokens": count_input(asked)}


def _read(received: Received, *, needs_limit: bool) -> Asked | Refusal:
    body, script = received.body, received.script
    if not isinstance(body, dict):
        return refuse("wrong_type", "Input should be a valid dictionary")
    refused = refuse_body(body, needs_limit=needs_limit)
    if refused:
        return refused
    model = str(body["model"])
    if script.models and model not in script.models:
        return Refusal(404, "unknown_model", f"model: {model}", "not_found_error")
    extra = tuple(name for name in body if name not in FIELDS)
    if extra and script.refuses_extra_fields:
        return refuse("extra_field", f"{extra[0]}: Extra inputs are not permitted")
    tools = body.get("tools")
    return Asked(
        dialect="anthropic_messages",
        model=model,
        messages=(*_system(body.get("system")), *_messages(body["messages"])),
        tools=tuple(str(tool.get("name")) for tool in tools if isinstance(tool, dict))
        if isinstance(tools, list)
        else (),
        is_stream=bool(body.get("stream")),
        body=body,
        headers=received.headers,
        extra_fields=extra,
    )


def _system(system: Json) -> tuple[AskedMessage, ...]:
    if not system:
        return ()
    blocks = system if isinstance(system, list) else [system]
    texts = tuple(str(block["text"]) if isinstance(block, dict) else str(block) for block in blocks)
    return (AskedMessage("system", texts),)


def _messages(messages: Json) -> tuple[AskedMessage, ...]:
    """Read the history; each tool result becomes a message of its own, as in the other dialects."""
    found: list[AskedMessage] = []
    names: dict[str, str] = {}
    for message in messages if isinstance(messages, list) else []:
        if not isinstance(message, dict):
            continue
        content = message["content"]
        blocks: list[Json] = content if isinstance(content, list) else [{"type": "text", "text": content}]
        inside = [block for block in blocks if isinstance(block, dict)]
        texts = tuple(str(block["text"]) for block in inside if block["type"] == "text" and block["text"])
        calls = tuple(
            AskedCall(str(block["id"]), str(block["name"]), json.dumps(block["input"]))
            for block in inside
            if block["type"] == "tool_use"
        )
        names.update({call.id: call.name for call in calls})
        results = [_result(block, names) for block in inside if block["type"] == "tool_result"]
        images = sum(block["type"] in ("image", "document") for block in inside)
        found.extend(AskedMessage("tool", (), (), (result,)) for result in results)
        if texts or calls or images or not results:
            found.append(AskedMessage("user" if message["role"] == "user" else "assistant", texts, calls, (), images))
    return tuple(found)


def _result(block: JsonObject, names: Mapping[str, str]) -> AskedResult:
    content = block.get("content", "")
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    texts = [str(part["text"]) for part in parts if isinstance(part, dict) and part.get("type") == "text"]
    call_id = str(block["tool_use_id"])
    return AskedResult(call_id, names.get(call_id, ""), "\n".join(texts), block.get("is_error") is True)


def stop_reason(reply: Reply) -> str | None:
    """The dialect's word for the finish."""
    if reply.finish == "stop" and reply.refusal:
        return "refusal"
    return None if reply.finish is None else STOP_REASONS.get(reply.finish, reply.finish)


def usage_of(counts: Counts) -> JsonObject:
    """Spell the counts; here the cached tokens are not part of the input tokens."""
    return {
        "input_tokens": counts.input - counts.cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": counts.cached,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
        "output_tokens": counts.output,
        "service_tier": "standard",
    }


def signature_of(thinking: str) -> str:
    """A signature that a client has to send back; it depends on the text alone."""
    return f"mock-signature-{hashlib.sha256(thinking.encode('utf-8', 'surrogatepass')).hexdigest()[:24]}"


def whole(asked: Asked, reply: Reply) -> bytes:
    """Write an answer in one body; a malformed or raw part of the script takes its place."""
    del asked
    for part in reply.parts:
        if isinstance(part, Malformed):
            return part.text.encode("utf-8", "surrogatepass")
        if isinstance(part, RawBytes):
            return part.data
        if isinstance(part, ErrorEvent):
            return encode_json(_event_error(part))
    return encode_json(_message(reply, _blocks(reply), stop_reason(reply), reply.counts))


def _message(reply: Reply, content: list[Json], reason: str | None, counts: Counts | None) -> JsonObject:
    message: JsonObject = {
        "id": reply.id,
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "content": content,
        "stop_reason": reason,
        "stop_sequence": None,
    }
    if counts:
        message["usage"] = usage_of(counts)
    return message


def _blocks(reply: Reply) -> list[Json]:
    blocks: list[Json] = []
    calls = iter(reply.calls)
    texts: list[str] = []
    kind = ""

    def close() -> None:
        if texts and kind == "text":
            blocks.append({"type": "text", "text": "".join(texts)})
        elif texts:
            thinking = "".join(texts)
            blocks.append({"type": "thinking", "thinking": thinking, "signature": signature_of(thinking)})
        texts.clear()

    for part in reply.parts:
        if isinstance(part, Text | RefusalText | Reasoning):
            wanted = "thinking" if isinstance(part, Reasoning) else "text"
            if wanted != kind:
                close()
            kind = wanted
            texts.append(part.text)
        elif isinstance(part, ToolCall):
            close()
            blocks.append(_tool_use(next(calls)))
    close()
    return blocks


def _tool_use(call: SaidCall) -> JsonObject:
    spelled: JsonObject = {"type": "tool_use"} if call.id is None else {"type": "tool_use", "id": call.id}
    try:
        value: Json = json.loads(call.arguments or "{}")
    except ValueError:
        value = call.arguments  # what never became JSON stays a text, which no client takes for an input
    return {**spelled, "name": call.name, "input": value}


def stream(asked: Asked, reply: Reply) -> Sequence[Item]:
    """Write an answer as named events: the message opens, its blocks come one by one, then the reason and the end."""
    del asked
    return _Writer(reply).items()


class _Writer:
    """Writes the events of one message, keeping track of the open block."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self._calls = iter(reply.calls)
        self._items: list[Item] = []
        self._index = -1
        self._open = ""
        self._thought = ""

    def items(self) -> list[Item]:
        """All events."""
        counts = self._reply.counts
        opening = Counts(counts.input, min(counts.output, 1), counts.cached, 0) if counts else None
        self._event({"type": "message_start", "message": _message(self._reply, [], None, opening)})
        for part in self._reply.parts:
            self._part(part)
        self._close()
        closing: JsonObject = {
            "type": "message_delta",
            "delta": {"stop_reason": stop_reason(self._reply), "stop_sequence": None},
        }
        if counts:
            spelled = usage_of(counts)
            names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
            closing["usage"] = {name: spelled[name] for name in names}
        self._event(closing)
        for _ in range(self._reply.stream.end_marks):
            self._event({"type": "message_stop"})
        return self._items

    def _event(self, data: JsonObject, *, is_piece: bool = False) -> None:
        name = str(data["type"]).encode("ascii")
        self._items.append(Send(b"event: " + name + b"\ndata: " + encode_json(data) + b"\n\n", is_piece))

    def _close(self) -> None:
        if not self._open:
            return
        if self._open == "thinking":
            self._delta({"type": "signature_delta", "signature": signature_of(self._thought)}, is_piece=False)
            self._thought = ""
        self._event({"type": "content_block_stop", "index": self._index})
        self._open = ""

    def _begin(self, kind: str, block: JsonObject, *, is_piece: bool = False) -> None:
        self._close()
        self._index += 1
        self._open = kind
        start: JsonObject = {"type": "content_block_start", "index": self._index, "content_block": block}
        self._event(start, is_piece=is_piece)
        if self._index == 0:
            self._event({"type": "ping"})

    def _delta(self, delta: JsonObject, *, is_piece: bool = True) -> None:
        self._event({"type": "content_block_delta", "index": self._index, "delta": delta}, is_piece=is_piece)

    def _part(self, part: object) -> None:
        split = self._reply.stream.split
        if isinstance(part, Text | RefusalText):
            if self._open != "text":
                self._begin("text", {"type": "text", "text": ""})
            for piece in split_text(part.text, split):
                self._delta({"type": "text_delta", "text": piece})
        elif isinstance(part, Reasoning):
            if self._open != "thinking":
                self._begin("thinking", {"type": "thinking", "thinking": "", "signature": ""})
            self._thought += part.text
            for piece in split_text(part.text, split):
                self._delta({"type": "thinking_delta", "thinking": piece})
        elif isinstance(part, ToolCall):
            call = next(self._calls)
            spelled: JsonObject = {} if call.id is None else {"id": call.id}
            self._begin("tool", {"type": "tool_use", **spelled, "name": call.name, "input": {}}, is_piece=True)
            for piece in split_text(call.arguments, split):
                self._delta({"type": "input_json_delta", "partial_json": piece})
        elif isinstance(part, AtGate):
            self._items.append(Wait(part.name))
        elif isinstance(part, Break):
            self._items.append(Die(part.kind))
        elif isinstance(part, Malformed):
            data = part.text.encode("utf-8", "surrogatepass")
            self._items.append(Send(b"event: content_block_delta\ndata: " + data + b"\n\n", is_piece=True))
        elif isinstance(part, RawBytes):
            self._items.append(Send(part.data, is_piece=True))
        elif isinstance(part, Comment):
            self._items.append(Send(b": " + part.text.encode("utf-8", "replace") + b"\n\n"))
        elif isinstance(part, ErrorEvent):
            self._event(_event_error(part), is_piece=True)


def _event_error(part: ErrorEvent) -> JsonObject:
    kind = "api_error" if part.kind == "server_error" else part.kind
    return {"type": "error", "error": {"type": kind, "message": part.message}}


def error(refusal: Refusal, script: Script) -> JsonObject:
    """Write an error body; a code of ours stands beside the provider's fields."""
    del script
    content: JsonObject = {"type": refusal.kind, "message": refusal.message}
    if refusal.code is not None:
        content["code"] = refusal.code
    return {"type": "error", "error": content, "request_id": "mock-req-refused"}


def usual_error(status: int, code: str | None) -> tuple[str, str | None, str]:
    """The usual type and message of an error status; this dialect has no codes."""
    kind, message = _KINDS.get(status, _KINDS[500] if status >= 500 else _KINDS[400])
    return kind, code, message


DIALECT = Dialect(
    name="anthropic_messages",
    id_kind="msg",
    request_id_header="request-id",
    content_type_stream="text/event-stream; charset=utf-8",
    addresses=(
        Address("POST", "/messages"),
        Address("POST", "/messages/count_tokens", count),
        Address("GET", "/models", list_models, takes_body=False),
        Address("GET", "/models/{model*}", show_model, takes_body=False),
    ),
    prefixes=("/v1", "", "/anthropic/v1", "/anthropic"),
    bases=(
        Base("anthropic", "", ("ANTHROPIC_BASE_URL",), ("ANTHROPIC_API_KEY",)),
        Base("anthropic_messages", ""),
    ),
    check_access=check_access,
    read=read,
    whole=whole,
    stream=stream,
    error=error,
    usual_error=usual_error,
    marks=("anthropic-version",),
    owns=("/anthropic/",),
)
