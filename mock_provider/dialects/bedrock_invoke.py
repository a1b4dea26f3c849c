"""InvokeModel: the body of another format in the envelope of Bedrock.

Room: pure; the Bedrock dialect comes in. Anthropic messages and Titan embeddings are known.
Source: the provider's published user guide ("Anthropic Claude Messages API": the model stands in the address, the
version in the body; "Amazon Titan Embeddings Text"); the service model (ResponseStream: each event of the format is one
`chunk`, in base64). The last event carries the counts a second time, as `amazon-bedrock-invocationMetrics`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import replace

from mock_provider.asked import Asked, Refusal
from mock_provider.dialects import anthropic_messages
from mock_provider.dialects.anthropic_events import write_events
from mock_provider.dialects.bedrock_frames import event, exception
from mock_provider.dialects.bedrock_output import LATENCY_MS
from mock_provider.dialects.bedrock_refusals import exception_of, refuse
from mock_provider.dialects.codec import Received, Reply
from mock_provider.dialects.openai_embeddings import vector_of
from mock_provider.faults import Item, Send
from mock_provider.json_values import Json, JsonObject, encode_json
from mock_provider.pieces import count_tokens
from mock_provider.steps import ErrorEvent

VERSION = "bedrock-2023-05-31"
_TITAN_SIZES = (256, 512, 1024)


def read_invoke(received: Received, model: str, *, is_stream: bool) -> Asked | Refusal | JsonObject:
    """Check a body in the format of its model, then read it."""
    body = received.body
    if isinstance(body, dict) and "inputText" in body and "messages" not in body:
        return _embed(body)
    if not isinstance(body, dict):
        return refuse("wrong_type", "Malformed input request: expected type: JSONObject, please reformat your input.")
    if body.get("anthropic_version") != VERSION:
        given = body.get("anthropic_version")
        text = f"#/anthropic_version: {json.dumps(given)} is not a valid enum value" if given else ""
        text = text or "#: required key [anthropic_version] not found"
        return refuse("missing_version", f"Malformed input request: {text}, please reformat your input and try again.")
    given_names = ("anthropic_version", "anthropic_beta")
    plain: JsonObject = {name: value for name, value in body.items() if name not in given_names}
    stray = next((name for name in ("model", "stream") if name in plain), None)
    if stray is not None:
        return refuse("extra_field", f"{stray}: Extra inputs are not permitted")
    script = replace(received.script, models=())
    asked = anthropic_messages.read(replace(received, body={"model": model, **plain}, script=script))
    if isinstance(asked, Refusal):
        return refuse(asked.rule, asked.message)
    return replace(asked, dialect="bedrock", is_stream=is_stream, body=body, form=received.form)


def _embed(body: JsonObject) -> JsonObject | Refusal:
    text, size = body["inputText"], body.get("dimensions", _TITAN_SIZES[-1])
    if not isinstance(text, str) or not text:
        words = (
            "#/inputText: expected minLength: 1, actualLength: 0"
            if text == ""
            else "#/inputText: expected type: String"
        )
        return refuse("bad_input", f"Malformed input request: {words}, please reformat your input and try again.")
    if not isinstance(size, int) or isinstance(size, bool) or size not in _TITAN_SIZES:
        words = f"#/dimensions: {json.dumps(size)} is not a valid enum value"
        return refuse("out_of_range", f"Malformed input request: {words}, please reformat your input and try again.")
    vector: list[Json] = list(vector_of(text, size))
    return {
        "embedding": vector,
        "embeddingsByType": {"float": vector},
        "inputTextTokenCount": max(count_tokens(text), 1),
    }


def write_chunks(asked: Asked, reply: Reply) -> Iterator[Item]:
    """Write an answer as the events of its format, each in a frame."""
    errors = (part for part in reply.parts if isinstance(part, ErrorEvent))
    for item in write_events(asked, reply):
        if not isinstance(item, Send):
            yield item
            continue
        kind, _, data = item.data.removeprefix(b"event: ").partition(b"\ndata: ")
        if item.data.startswith(b": ") or kind == b"ping":
            continue  # frames have no place for what only keeps a connection alive
        if not item.data.startswith(b"event: "):
            yield item
        elif kind == b"error":
            part = next(errors)
            yield Send(exception(exception_of(part), encode_json({"message": part.message})), item.is_piece)
        else:
            data = data.removesuffix(b"\n\n")
            if kind == b"message_stop" and reply.counts is not None:
                data = encode_json(_last_event(reply))
            payload = encode_json({"bytes": base64.b64encode(data).decode("ascii")})
            yield Send(event("chunk", payload), item.is_piece)


def _last_event(reply: Reply) -> JsonObject:
    counts = reply.counts
    if counts is None:
        return {"type": "message_stop"}
    metrics: JsonObject = {
        "inputTokenCount": counts.input - counts.cached,
        "outputTokenCount": counts.output,
        "invocationLatency": LATENCY_MS,
        "firstByteLatency": LATENCY_MS,
        "cacheReadInputTokenCount": counts.cached,
        "cacheWriteInputTokenCount": 0,
    }
    return {"type": "message_stop", "amazon-bedrock-invocationMetrics": metrics}
