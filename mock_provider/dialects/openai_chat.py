"""Chat completions: requests read, answers and streams written, in the flavour of the script.

Room: pure; the dialect table comes in.
Source: the published API schema of /v1/chat/completions; openai_flavours names the sources of the flavours.
"""

from __future__ import annotations

from collections.abc import Hashable
from urllib.parse import parse_qs

from mock_provider.asked import Asked, Refusal
from mock_provider.dialects.codec import Address, Dialect, Received, Reply, SaidCall
from mock_provider.dialects.openai_access import check_access, list_models, show_model
from mock_provider.dialects.openai_chat_events import chat_logprobs, error_fields, write_chunks
from mock_provider.dialects.openai_chat_history import read_history, weigh_history
from mock_provider.dialects.openai_chat_rules import FIELDS, refuse_body
from mock_provider.dialects.openai_embeddings import embed
from mock_provider.dialects.openai_flavours import FLAVOURS, error, finish_fields, reasoning_fields, usage_of
from mock_provider.dialects.openai_functions import asks_old_way, finish_of_old, function_names, spell_call
from mock_provider.dialects.openai_refusals import kind_of, usual_error
from mock_provider.dialects.openai_tool_rules import read_tools
from mock_provider.json_values import JsonObject, encode_json
from mock_provider.steps import (
    ErrorEvent,
    Malformed,
    RawBytes,
)


def read(received: Received) -> Asked | Refusal:
    """Check a body like the provider, then read it."""
    body, script = received.body, received.script
    if not isinstance(body, dict):
        return Refusal(400, "wrong_type", f"Invalid type for request body: expected an object, got {kind_of(body)}.")
    if received.form == "deployment":
        if "api-version" not in parse_qs(received.query):
            return Refusal(404, "missing_api_version", "Resource not found", code="404")
        body = {**body, "model": received.arguments["deployment"]}
    sent = body.get("messages")
    history = read_history(sent) if sent and isinstance(sent, list) else None
    offered = read_tools(body.get("tools"))
    refused = refuse_body(body, offered, has_sound_messages=history is not None)
    if refused:
        return refused
    model = str(body["model"])
    if script.models and model not in script.models:
        message = f"The model `{model}` does not exist or you do not have access to it."
        return Refusal(404, "unknown_model", message, code="model_not_found")
    extra = () if FIELDS.issuperset(body) else tuple(name for name in body if name not in FIELDS)
    if extra and script.refuses_extra_fields:
        return Refusal(400, "extra_field", f"Unrecognized request argument supplied: {extra[0]}", param=extra[0])
    options = body.get("stream_options")
    wants_usage = isinstance(options, dict) and bool(options.get("include_usage"))
    choices = body.get("n")
    count = choices if isinstance(choices, int) else 1
    messages, said_bytes = history or ((), 0)
    is_stream = bool(body.get("stream"))
    # In their order, not by name, which would take three times as long in every request.
    return Asked(
        "openai_chat",
        model,
        messages,
        offered.names or function_names(body),
        is_stream,
        body,
        received.headers,
        wants_usage,
        count,
        extra,
        "",
        said_bytes,
        not asks_old_way(body),
    )


def whole(asked: Asked, reply: Reply) -> bytes:
    """Write an answer in one body; a malformed or raw part of the script takes its place."""
    for part in reply.parts:
        if isinstance(part, Malformed):
            return part.text.encode("utf-8", "surrogatepass")
        if isinstance(part, RawBytes):
            return part.data
        if isinstance(part, ErrorEvent):
            return encode_json(error_fields(part))
    flavour = FLAVOURS[reply.flavour]
    says_text = flavour.says_text or not (reply.calls or reply.refusal)
    message: JsonObject = {"role": "assistant", "content": reply.text or ("" if says_text else None)}
    if reply.reasoning:
        message |= reasoning_fields(reply.flavour, reply.reasoning)
    message |= flavour.message
    if reply.refusal:
        message["refusal"] = reply.refusal
    is_old = bool(reply.calls) and asks_old_way(asked.body)
    if is_old:
        message |= spell_call(reply.calls)
    elif reply.calls:
        custom = read_tools(asked.body.get("tools")).custom
        message["tool_calls"] = [_whole_call(call, is_custom=call.name in custom) for call in reply.calls]
    answer: JsonObject = {
        "id": reply.id,
        "object": "chat.completion",
        "created": reply.created,
        "model": reply.model,
        "choices": [
            {
                "index": index,
                "message": message,
                "logprobs": chat_logprobs(asked, {"content": reply.text, "refusal": reply.refusal}),
                **finish_fields(reply.flavour, finish_of_old(reply.finish) if is_old else reply.finish),
                **flavour.choice,
            }
            for index in range(asked.choices)
        ],
    }
    if reply.counts:
        answer["usage"] = usage_of(reply.counts, reply.flavour)
    return encode_json({**answer, "system_fingerprint": "fp_mock", **flavour.answer})


_LOOKED_AT = frozenset({"logprobs", "tools", "functions"})


def answer_key(asked: Asked) -> Hashable:
    """What `whole` looks at: how many answers, probabilities, tools that take free text, the form of calls."""
    body = asked.body
    if _LOOKED_AT.isdisjoint(body):
        return asked.choices
    return (
        asked.choices,
        asks_old_way(body),
        body.get("logprobs") is True,
        str(body.get("top_logprobs")),
        read_tools(body.get("tools")).custom,
    )


def stream_key(asked: Asked) -> Hashable:
    """What `write_chunks` looks at: the same, and whether counts are asked for."""
    return answer_key(asked), asked.wants_usage


def _whole_call(call: SaidCall, *, is_custom: bool) -> JsonObject:
    spelled: JsonObject = {} if call.id is None else {"id": call.id}
    if is_custom:
        return {**spelled, "type": "custom", "custom": {"name": call.name, "input": call.arguments}}
    return {**spelled, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


DIALECT = Dialect(
    name="openai_chat",
    id_kind="chatcmpl",
    request_id_header="x-request-id",
    content_type_stream="text/event-stream; charset=utf-8",
    addresses={
        "POST /embeddings": Address(embed),
        "GET /models": Address(list_models, takes_body=False),
        "GET /models/{model*}": Address(show_model, takes_body=False),
        "POST /deployments/{deployment}/chat/completions": Address(form="deployment"),
        "POST /deployments/{deployment}/embeddings": Address(embed),
    },
    check_access=check_access,
    read=read,
    whole=whole,
    stream=write_chunks,
    error=error,
    usual_error=usual_error,
    answer_key=answer_key,
    stream_key=stream_key,
    is_wordblind=True,
    sound_bytes=weigh_history,
)
