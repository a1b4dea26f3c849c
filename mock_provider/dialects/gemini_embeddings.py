"""Embeddings in the Gemini format.

Room: pure; the Gemini dialect offers the addresses.
Source: the provider's published API reference for models.embedContent and models.batchEmbedContents, which its
clients use.
"""

from __future__ import annotations

from collections.abc import Mapping

from mock_provider.asked import Refusal
from mock_provider.dialects.codec import Received
from mock_provider.dialects.gemini_fields import pick_number, pick_object, pick_objects, pick_text
from mock_provider.dialects.gemini_refusals import refuse
from mock_provider.dialects.gemini_rules import refuse_model, refuse_types
from mock_provider.dialects.openai_embeddings import vector_of
from mock_provider.json_values import Json, JsonObject

DIMENSIONS: Mapping[str, int] = {"text-embedding-004": 768, "embedding-001": 768}
USUAL_DIMENSIONS = 3072  # of gemini-embedding-001 and later
MAX_REQUESTS = 100


def embed(received: Received) -> JsonObject | Refusal:
    """Answer a request for one embedding, or refuse it like the provider."""
    body = _checked(received, "EmbedContentRequest", "embedContent")
    if isinstance(body, Refusal):
        return body
    vector = _vector(body, received.arguments["model"], "EmbedContentRequest")
    return vector if isinstance(vector, Refusal) else {"embedding": vector}


def embed_batch(received: Received) -> JsonObject | Refusal:
    """Answer a request for several embeddings, in their order."""
    body = _checked(received, "BatchEmbedContentsRequest", "batchEmbedContents")
    if isinstance(body, Refusal):
        return body
    requests = pick_objects(body, "requests")
    here = "BatchEmbedContentsRequest.requests"
    if not requests:
        return refuse("empty_array", f"* {here}: at least one request is required\n")
    if len(requests) > MAX_REQUESTS:
        return refuse("too_many_inputs", f"* {here}: at most {MAX_REQUESTS} requests can be in one batch\n")
    model = received.arguments["model"]
    found: list[Json] = []
    for at, request in enumerate(requests):
        if pick_text(request, "model").removeprefix("models/") != model:
            text = f"* {here}[{at}].model: must be the model of the batch, models/{model}\n"
            return refuse("wrong_model", text)
        vector = _vector(request, model, f"{here}[{at}]")
        if isinstance(vector, Refusal):
            return vector
        found.append(vector)
    return {"embeddings": found}


def _checked(received: Received, message: str, method: str) -> JsonObject | Refusal:
    unknown = refuse_types(received.body, message, received.script)
    if isinstance(unknown, Refusal):
        return unknown
    refused = refuse_model(received.arguments["model"], received.script, method)
    return refused or (received.body if isinstance(received.body, dict) else {})


def _vector(request: JsonObject, model: str, here: str) -> JsonObject | Refusal:
    texts = [pick_text(part, "text") for part in pick_objects(pick_object(request, "content"), "parts")]
    text = "\n".join(filter(None, texts))
    if not text:
        return refuse("missing_content", f"* {here}.content: content is empty\n")
    most = DIMENSIONS.get(model, USUAL_DIMENSIONS)
    size = pick_number(request, "outputDimensionality")
    if size is not None and not 1 <= size <= most:
        text = f"* {here}.output_dimensionality: must be between 1 and {most}\n"
        return refuse("out_of_range", text)
    return {"values": list(vector_of(text, most if size is None else int(size)))}
