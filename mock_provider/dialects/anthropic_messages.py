"""Anthropic messages: requests read, answers and event streams written.

Room: pure; the dialect table comes in.
Source: the provider's published API reference for /v1/messages, its streaming events and its error types.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from mock_provider.asked import Asked, AskedMessage, Refusal
from mock_provider.dialects.anthropic_events import write_events
from mock_provider.dialects.anthropic_history import read_any, read_sound, read_tools, weigh
from mock_provider.dialects.anthropic_models import list_models, show_model
from mock_provider.dialects.anthropic_output import content_blocks, error_fields, message_fields, stop_reason
from mock_provider.dialects.anthropic_rules import FIELDS, refuse, refuse_body, refuse_last
from mock_provider.dialects.codec import (
    Address,
    Dialect,
    Received,
    Reply,
    count_input,
)
from mock_provider.json_values import Json, JsonObject, encode_json
from mock_provider.pieces import size_bytes
from mock_provider.steps import (
    ErrorEvent,
    Malformed,
    RawBytes,
    Script,
)

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
    sent = body.get("messages")
    history = read_sound(sent) if isinstance(sent, list) else None
    offered, is_sound = read_tools(body.get("tools"))
    refused = refuse_body(
        body,
        needs_limit=needs_limit,
        has_sound_messages=history is not None,
        has_sound_tools=is_sound and isinstance(body.get("tools"), list),
    )
    if refused:
        return refused
    model = str(body["model"])
    if script.models and model not in script.models:
        return Refusal(404, "unknown_model", f"model: {model}", "not_found_error")
    extra = () if FIELDS.issuperset(body) else tuple(name for name in body if name not in FIELDS)
    if extra and script.refuses_extra_fields:
        return refuse("extra_field", f"{extra[0]}: Extra inputs are not permitted")
    system = _system(body.get("system"))
    said, said_bytes = history or read_any(sent if isinstance(sent, list) else ())
    return Asked(
        dialect="anthropic_messages",
        model=model,
        messages=(*system, *said),
        tools=offered,
        is_stream=bool(body.get("stream")),
        body=body,
        headers=received.headers,
        extra_fields=extra,
        said_bytes=said_bytes + sum(size_bytes(message.said()) for message in system),
    )


def sound_bytes(messages: Sequence[Json]) -> int | None:
    """The size in bytes of all that is said in messages in which no rule is broken; else None."""
    size = weigh(messages)
    return None if size is None or refuse_last(messages) else size


def _system(system: Json) -> tuple[AskedMessage, ...]:
    if not system:
        return ()
    blocks = system if isinstance(system, list) else [system]
    texts = tuple(str(block["text"]) if isinstance(block, dict) else str(block) for block in blocks)
    return (AskedMessage("system", texts),)


def whole(asked: Asked, reply: Reply) -> bytes:
    """Write an answer in one body; a malformed or raw part of the script takes its place."""
    del asked
    for part in reply.parts:
        if isinstance(part, Malformed):
            return part.text.encode("utf-8", "surrogatepass")
        if isinstance(part, RawBytes):
            return part.data
        if isinstance(part, ErrorEvent):
            return encode_json(error_fields(part))
    return encode_json(message_fields(reply, content_blocks(reply), stop_reason(reply), reply.counts))


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


def answer_key(asked: Asked) -> Hashable:
    """What `whole` and `write_events` look at: nothing of the request."""
    return asked.dialect


DIALECT = Dialect(
    name="anthropic_messages",
    id_kind="msg",
    request_id_header="request-id",
    content_type_stream="text/event-stream; charset=utf-8",
    addresses={
        "POST /messages/count_tokens": Address(count),
        "GET /models": Address(list_models, takes_body=False),
        "GET /models/{model*}": Address(show_model, takes_body=False),
    },
    check_access=check_access,
    read=read,
    whole=whole,
    stream=write_events,
    keep_alive=b'event: ping\ndata: {"type":"ping"}\n\n',
    error=error,
    usual_error=usual_error,
    answer_key=answer_key,
    stream_key=answer_key,
    is_wordblind=True,
    sound_bytes=sound_bytes,
)
