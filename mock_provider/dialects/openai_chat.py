"""Chat completions: requests read, answers and streams written, with the DeepSeek flavour.

Room: pure; the dialect table comes in.
Source: the published API schema of /v1/chat/completions; DeepSeek's API documentation for `reasoning_content`
and the cache counts in usage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mock_provider.asked import Asked, AskedCall, AskedMessage, AskedResult, Refusal, Role
from mock_provider.dialects.codec import Address, Base, Counts, Dialect, Received, Reply, SaidCall, model_names
from mock_provider.dialects.openai_chat_rules import FIELDS, refuse_body
from mock_provider.dialects.openai_refusals import kind_of, usual_error
from mock_provider.dialects.openai_tool_rules import tool_names
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

DONE = b"data: [DONE]\n\n"


def check_access(headers: Mapping[str, str], query: str, script: Script) -> Refusal | None:
    """Refuse a request without a key, or with another than the script's."""
    del query
    scheme, _, token = headers.get("authorization", "").partition(" ")
    given = token.strip() if scheme.lower() == "bearer" else headers.get("api-key", "")
    if not given:
        message = (
            "You didn't provide an API key. You need to provide your API key in an Authorization header using "
            "Bearer auth (i.e. Authorization: Bearer YOUR_KEY)."
        )
        return Refusal(401, "missing_key", message)
    if script.api_key is not None and given != script.api_key:
        message = "Incorrect API key provided. You can find your API key in the script of the mock provider."
        return Refusal(401, "wrong_key", message, code="invalid_api_key")
    return None


def read(received: Received) -> Asked | Refusal:
    """Check a body like the provider, then read it."""
    body, script = received.body, received.script
    if not isinstance(body, dict):
        return Refusal(400, "wrong_type", f"Invalid type for request body: expected an object, got {kind_of(body)}.")
    refused = refuse_body(body)
    if refused:
        return refused
    model = str(body["model"])
    if script.models and model not in script.models:
        message = f"The model `{model}` does not exist or you do not have access to it."
        return Refusal(404, "unknown_model", message, code="model_not_found")
    extra = tuple(name for name in body if name not in FIELDS)
    if extra and script.refuses_extra_fields:
        return Refusal(400, "extra_field", f"Unrecognized request argument supplied: {extra[0]}", param=extra[0])
    options = body.get("stream_options")
    choices = body.get("n")
    return Asked(
        dialect="openai_chat",
        model=model,
        messages=_messages(body["messages"]),
        tools=tool_names(body.get("tools")),
        is_stream=bool(body.get("stream")),
        body=body,
        headers=received.headers,
        wants_usage=isinstance(options, dict) and bool(options.get("include_usage")),
        choices=choices if isinstance(choices, int) else 1,
        extra_fields=extra,
    )


_ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}


def _messages(messages: Json) -> tuple[AskedMessage, ...]:
    found: list[AskedMessage] = []
    names: dict[str, str] = {}
    for message in messages if isinstance(messages, list) else []:
        if not isinstance(message, dict):
            continue
        texts, images = _texts(message.get("content"))
        calls = _calls(message.get("tool_calls"))
        names.update({call.id: call.name for call in calls})
        role = _ROLES[str(message["role"])]
        if role == "tool":
            call_id = str(message.get("tool_call_id", ""))
            result = AskedResult(call_id, names.get(call_id, str(message.get("name", ""))), "\n".join(texts))
            found.append(AskedMessage("tool", (), (), (result,), images))
        else:
            found.append(AskedMessage(role, texts, calls, (), images))
    return tuple(found)


def _texts(content: Json) -> tuple[tuple[str, ...], int]:
    if isinstance(content, str):
        return ((content,) if content else ()), 0
    texts: list[str] = []
    images = 0
    for part in content if isinstance(content, list) else []:
        if isinstance(part, dict):
            if part.get("type") in ("text", "refusal"):
                texts.append(str(part.get(str(part["type"]), "")))
            elif part.get("type") == "image_url":
                images += 1
    return tuple(texts), images


def _calls(calls: Json) -> tuple[AskedCall, ...]:
    found: list[AskedCall] = []
    for call in calls if isinstance(calls, list) else []:
        if isinstance(call, dict):
            inner = call.get("function", call.get("custom"))
            inner = inner if isinstance(inner, dict) else {}
            arguments = inner.get("arguments", inner.get("input", ""))
            found.append(AskedCall(str(call["id"]), str(inner.get("name", "")), str(arguments)))
    return tuple(found)


def usage_of(counts: Counts, flavour: str) -> JsonObject:
    """Spell the counts."""
    total: JsonObject = {
        "prompt_tokens": counts.input,
        "completion_tokens": counts.output,
        "total_tokens": counts.input + counts.output,
        "prompt_tokens_details": {"cached_tokens": counts.cached, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": counts.reasoning,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }
    if flavour == "deepseek":
        total["prompt_tokens_details"] = {"cached_tokens": counts.cached}
        total["completion_tokens_details"] = {"reasoning_tokens": counts.reasoning}
        total["prompt_cache_hit_tokens"] = counts.cached
        total["prompt_cache_miss_tokens"] = counts.input - counts.cached
    return total


def whole(asked: Asked, reply: Reply) -> bytes:
    """Write an answer in one body; a malformed or raw part of the script takes its place."""
    for part in reply.parts:
        if isinstance(part, Malformed):
            return part.text.encode("utf-8", "surrogatepass")
        if isinstance(part, RawBytes):
            return part.data
        if isinstance(part, ErrorEvent):
            return encode_json(_event_error(part))
    message: JsonObject = {"role": "assistant", "content": reply.text or ("" if _is_text(reply) else None)}
    if reply.reasoning:
        message["reasoning_content"] = reply.reasoning
    if reply.flavour == "openai":
        message["refusal"] = reply.refusal or None
        message["annotations"] = []
    elif reply.refusal:
        message["refusal"] = reply.refusal
    if reply.calls:
        message["tool_calls"] = [_whole_call(call) for call in reply.calls]
    choices: list[Json] = [
        {"index": index, "message": message, "logprobs": None, "finish_reason": reply.finish}
        for index in range(asked.choices)
    ]
    answer: JsonObject = {
        "id": reply.id,
        "object": "chat.completion",
        "created": reply.created,
        "model": reply.model,
        "choices": choices,
    }
    if reply.counts:
        answer["usage"] = usage_of(reply.counts, reply.flavour)
    answer["system_fingerprint"] = "fp_mock"
    return encode_json(answer)


def _is_text(reply: Reply) -> bool:
    return reply.flavour == "deepseek" or not (reply.calls or reply.refusal)


def _whole_call(call: SaidCall) -> JsonObject:
    spelled: JsonObject = {} if call.id is None else {"id": call.id}
    return {**spelled, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def stream(asked: Asked, reply: Reply) -> Sequence[Item]:
    """Write an answer as events: a role first, then the parts, the finish reason, usage when asked for, end marks."""
    items: list[Item] = []
    for index in range(asked.choices):
        writer = _Writer(asked, reply, index)
        items.append(writer.event({"role": "assistant", "content": ""}, is_piece=False))
        items.extend(writer.parts())
        if reply.finish is not None:
            items.append(writer.event({}, is_piece=False, finish=reply.finish))
    if asked.wants_usage and reply.counts:
        items.append(_Writer(asked, reply, 0).usage(reply.counts))
    items.extend(Send(DONE) for _ in range(reply.stream.end_marks))
    return items


class _Writer:
    """Writes the events of one choice."""

    def __init__(self, asked: Asked, reply: Reply, index: int) -> None:
        self._asked = asked
        self._reply = reply
        self._index = index
        self._calls = iter(reply.calls)

    def _chunk(self, choices: list[Json], usage: Json) -> Send:
        chunk: JsonObject = {
            "id": self._reply.id,
            "object": "chat.completion.chunk",
            "created": self._reply.created,
            "model": self._reply.model,
            "system_fingerprint": "fp_mock",
            "choices": choices,
        }
        if self._asked.wants_usage:
            chunk["usage"] = usage
        return Send(b"data: " + encode_json(chunk) + b"\n\n")

    def event(self, delta: JsonObject, *, is_piece: bool = True, finish: str | None = None) -> Send:
        """One chunk of this choice."""
        choice: JsonObject = {"index": self._index, "delta": delta, "logprobs": None, "finish_reason": finish}
        return Send(self._chunk([choice], None).data, is_piece)

    def usage(self, counts: Counts) -> Send:
        """The closing chunk without choices."""
        return self._chunk([], usage_of(counts, self._reply.flavour))

    def parts(self) -> list[Item]:
        """All parts in order."""
        items: list[Item] = []
        split = self._reply.stream.split
        for part in self._reply.parts:
            if isinstance(part, Text):
                items.extend(self.event({"content": piece}) for piece in split_text(part.text, split))
            elif isinstance(part, Reasoning):
                items.extend(self.event({"reasoning_content": piece}) for piece in split_text(part.text, split))
            elif isinstance(part, RefusalText):
                items.extend(self.event({"refusal": piece}) for piece in split_text(part.text, split))
            elif isinstance(part, ToolCall):
                items.extend(self._call(next(self._calls)))
            elif isinstance(part, AtGate):
                items.append(Wait(part.name))
            elif isinstance(part, Break):
                items.append(Die(part.kind))
            elif isinstance(part, Malformed):
                items.append(Send(b"data: " + part.text.encode("utf-8", "surrogatepass") + b"\n\n", is_piece=True))
            elif isinstance(part, RawBytes):
                items.append(Send(part.data, is_piece=True))
            elif isinstance(part, Comment):
                items.append(Send(b": " + part.text.encode("utf-8", "replace") + b"\n\n"))
            else:
                items.append(Send(b"data: " + encode_json(_event_error(part)) + b"\n\n", is_piece=True))
        return items

    def _call(self, call: SaidCall) -> list[Item]:
        """A call opens with id and name, its arguments follow in fragments."""
        opening: JsonObject = {"index": call.index}
        if call.id is not None:
            opening["id"] = call.id
        opening |= {"type": "function", "function": {"name": call.name, "arguments": ""}}
        pieces = split_text(call.arguments, self._reply.stream.split)
        return [
            self.event({"tool_calls": [opening]}),
            *(
                self.event({"tool_calls": [{"index": call.index, "function": {"arguments": piece}}]})
                for piece in pieces
            ),
        ]


def _event_error(part: ErrorEvent) -> JsonObject:
    return {"error": {"message": part.message, "type": part.kind, "param": None, "code": part.code}}


def error(refusal: Refusal, script: Script) -> JsonObject:
    """Write an error body; DeepSeek fills the code where the original leaves it empty."""
    code = refusal.code
    kind = refusal.kind
    if script.flavour == "deepseek":
        code = code or kind
        if refusal.status == 401:
            kind, code = "authentication_error", "invalid_request_error"
    return {"error": {"message": refusal.message, "type": kind, "param": refusal.param, "code": code}}


def list_models(received: Received) -> JsonObject:
    """The model list."""
    script = received.script
    return {"object": "list", "data": [_model(name, script.created) for name in model_names(script)]}


def show_model(received: Received) -> JsonObject | Refusal:
    """One entry of the model list; without a list any name has one."""
    name, names = received.arguments["model"], model_names(received.script)
    if names and name not in names:
        message = f"The model '{name}' does not exist"
        return Refusal(404, "unknown_model", message, code="model_not_found", param="model")
    return _model(name, received.script.created)


def _model(name: str, created: int) -> JsonObject:
    return {"id": name, "object": "model", "created": created, "owned_by": "mock-provider"}


DIALECT = Dialect(
    name="openai_chat",
    id_kind="chatcmpl",
    request_id_header="x-request-id",
    content_type_stream="text/event-stream; charset=utf-8",
    addresses=(
        Address("POST", "/chat/completions"),
        Address("GET", "/models", list_models, takes_body=False),
        Address("GET", "/models/{model*}", show_model, takes_body=False),
    ),
    prefixes=("/v1", "", "/beta"),
    bases=(
        Base("openai_chat", "/v1"),
        Base("openai", "/v1", ("OPENAI_BASE_URL",), ("OPENAI_API_KEY",)),
        Base("deepseek", "", ("DEEPSEEK_BASE_URL",), ("DEEPSEEK_API_KEY",)),
    ),
    check_access=check_access,
    read=read,
    whole=whole,
    stream=stream,
    error=error,
    usual_error=usual_error,
)
