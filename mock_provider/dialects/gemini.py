"""Gemini: requests read, answers and streams written.

Room: pure; the dialect table comes in.
Source: the provider's published API reference for models.generateContent and models.streamGenerateContent, v1 and
v1beta; its Python client 3.x asks below /v1, its command-line client and older Node client below /v1beta.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import parse_qs

from mock_provider.asked import Asked, AskedMessage, Refusal
from mock_provider.dialects.codec import Address, Dialect, Headers, Received, Reply, count_input
from mock_provider.dialects.gemini_embeddings import embed, embed_batch
from mock_provider.dialects.gemini_fields import (
    pick,
    pick_number,
    pick_object,
    pick_objects,
)
from mock_provider.dialects.gemini_history import join, read_content, read_sound, read_texts
from mock_provider.dialects.gemini_history_rules import NEED_SIGNATURES
from mock_provider.dialects.gemini_models import list_models, show_model
from mock_provider.dialects.gemini_output import (
    candidate_fields,
    ending_of,
    response_fields,
    whole_parts,
)
from mock_provider.dialects.gemini_refusals import error, event_error, refuse, usual_error
from mock_provider.dialects.gemini_rules import refuse_model, refuse_request, refuse_types
from mock_provider.dialects.gemini_stream import EVENTS, write_chunks
from mock_provider.dialects.gemini_tool_rules import declared_names
from mock_provider.json_values import Json, JsonObject, encode_json
from mock_provider.pieces import size_bytes
from mock_provider.steps import ErrorEvent, Malformed, RawBytes, Script

_STREAM = "stream"


def check_access(headers: Mapping[str, str], query: str, script: Script) -> Refusal | None:
    """Refuse a request without a key in header, query or as bearer token, or with another than the script's."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    given = headers.get("x-goog-api-key") or parse_qs(query).get("key", [""])[-1]
    given = given or (token.strip() if scheme.lower() == "bearer" else "")
    if not given:
        text = (
            "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or "
            "other form of API consumer identity to call this API."
        )
        return refuse("missing_key", text, status=403, kind="PERMISSION_DENIED")
    if script.api_key is not None and given != script.api_key:
        refusal = refuse("wrong_key", "API key not valid. Please pass a valid API key.")
        return replace(refusal, code="API_KEY_INVALID")
    return None


def read(received: Received) -> Asked | Refusal:
    """Check a body like the provider, then read it."""
    return _read(received, received.body, "streamGenerateContent" if received.form else "generateContent")


def count(received: Received) -> JsonObject | Refusal:
    """Count the tokens of a request by the local rule."""
    unknown = refuse_types(received.body, "CountTokensRequest", received.script)
    if isinstance(unknown, Refusal):
        return unknown
    body = received.body if isinstance(received.body, dict) else {}
    whole_request = pick(body, "generateContentRequest")
    asked = _read(received, body if whole_request is None else whole_request, "countTokens")
    if isinstance(asked, Refusal):
        return asked
    tokens = count_input(asked)
    return {"totalTokens": tokens, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": tokens}]}


def _read(received: Received, body: Json, method: str) -> Asked | Refusal:
    unknown = refuse_types(body, "GenerateContentRequest", received.script)
    if isinstance(unknown, Refusal) or not isinstance(body, dict):
        return unknown if isinstance(unknown, Refusal) else refuse("wrong_type", "Root element must be a message.")
    model = received.arguments["model"]
    sound = read_sound(pick(body, "contents"), needs_signatures=model.startswith(NEED_SIGNATURES))
    refused = refuse_model(model, received.script, method) or refuse_request(
        body, model, has_sound_contents=sound is not None
    )
    if refused:
        return refused
    system = _system(pick_object(body, "systemInstruction"))
    said, said_bytes = (_messages(body), None) if sound is None else sound.all()
    if said_bytes is not None:
        said_bytes += sum(size_bytes(message.said()) for message in system)
    is_stream = received.form == _STREAM
    wants_events = is_stream and parse_qs(received.query).get("alt", [""])[-1] == "sse"
    return Asked(
        dialect="gemini",
        model=model,
        messages=(*system, *said),
        tools=tuple(declared_names(body)),
        is_stream=is_stream,
        body=body,
        headers=received.headers,
        choices=int(pick_number(pick_object(body, "generationConfig"), "candidateCount") or 1),
        extra_fields=unknown,
        form=EVENTS if wants_events else received.form,
        said_bytes=said_bytes,
    )


def _system(content: JsonObject) -> tuple[AskedMessage, ...]:
    texts = read_texts(content)
    return (AskedMessage("system", texts),) if texts else ()


def _messages(body: JsonObject) -> tuple[AskedMessage, ...]:
    """Read a history that the rules took."""
    found: list[AskedMessage] = []
    for content in pick_objects(body, "contents"):
        for message in read_content(content):
            if message.role == "assistant" and found and found[-1].role == "assistant":
                message = join(found.pop(), message)
            found.append(message)
    return tuple(found)


def whole(asked: Asked, reply: Reply) -> bytes:
    """Write an answer in one body; a malformed or raw part of the script takes its place."""
    for part in reply.parts:
        if isinstance(part, Malformed):
            return part.text.encode("utf-8", "surrogatepass")
        if isinstance(part, RawBytes):
            return part.data
        if isinstance(part, ErrorEvent):
            return encode_json(event_error(part))
    ending = ending_of(reply)
    candidates: list[Json] = [candidate_fields(at, whole_parts(reply), ending) for at in range(asked.choices)]
    return encode_json(response_fields(reply, candidates, is_over=True))


def stream_head(asked: Asked) -> tuple[str, Headers]:
    """Events and an array have content types of their own."""
    return ("text/event-stream" if asked.form == EVENTS else "application/json; charset=UTF-8"), ()


DIALECT = Dialect(
    name="gemini",
    id_kind="resp",
    request_id_header="",
    content_type_stream="text/event-stream",
    addresses={
        "POST /models/{model}:streamGenerateContent": Address(form=_STREAM),
        "POST /models/{model}:countTokens": Address(count),
        "POST /models/{model}:embedContent": Address(embed),
        "POST /models/{model}:batchEmbedContents": Address(embed_batch),
        "GET /models": Address(list_models, takes_body=False),
        "GET /models/{model}": Address(show_model, takes_body=False),
    },
    check_access=check_access,
    read=read,
    whole=whole,
    stream=write_chunks,
    keep_alive=b"\r\n",  # an empty line: its Python client takes a comment for a broken answer
    error=error,
    usual_error=usual_error,
    has_call_ids=False,
    stream_head=stream_head,
)
