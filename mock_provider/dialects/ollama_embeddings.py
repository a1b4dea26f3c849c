"""Embeddings in the two forms that Ollama has.

Room: pure; the Ollama dialect offers the addresses.
Source: the server's own source text (EmbedHandler, EmbeddingsHandler): the older form has one text and `embedding`.
"""

from __future__ import annotations

from mock_provider.asked import Refusal
from mock_provider.dialects.codec import Counts, Received
from mock_provider.dialects.ollama_output import metrics
from mock_provider.dialects.ollama_refusals import refuse
from mock_provider.dialects.ollama_rules import refuse_fields, refuse_model, refuse_options
from mock_provider.dialects.openai_embeddings import vector_of
from mock_provider.json_values import Json, JsonObject
from mock_provider.pieces import count_tokens

DIMENSIONS = 768
_SHARED = {"model": "string", "keep_alive": "", "options": "map[string]interface {}"}
_EMBED = {**_SHARED, "input": "", "truncate": "bool", "dimensions": "int"}
_EMBEDDINGS = {**_SHARED, "prompt": "string"}


def embed(received: Received) -> JsonObject | Refusal:
    """Answer with one unit vector a text."""
    extra = refuse_fields(received.body, "EmbedRequest", _EMBED, received.script)
    body = received.body if isinstance(received.body, dict) else {}
    refused = extra if isinstance(extra, Refusal) else refuse_model(body, received.script) or refuse_options(body)
    if refused:
        return refused
    given = body.get("input")
    listed = given if isinstance(given, list) else [given] if given else []
    texts = [text for text in listed if isinstance(text, str)]
    if len(texts) != len(listed):
        return refuse("wrong_type", "invalid input type")
    wanted = body.get("dimensions")
    size = min(wanted, DIMENSIONS) if isinstance(wanted, int) and wanted > 0 else DIMENSIONS
    vectors: list[Json] = [list(vector_of(text, size)) for text in texts]
    answer: JsonObject = {"model": body.get("model"), "embeddings": vectors}
    if not vectors:
        return answer
    counted = metrics(Counts(count_tokens(*texts), 0, 0, 0))
    return {**answer, **{name: counted[name] for name in ("total_duration", "load_duration", "prompt_eval_count")}}


def embed_prompt(received: Received) -> JsonObject | Refusal:
    """Answer in the older form."""
    extra = refuse_fields(received.body, "EmbeddingRequest", _EMBEDDINGS, received.script)
    body = received.body if isinstance(received.body, dict) else {}
    refused = extra if isinstance(extra, Refusal) else refuse_model(body, received.script) or refuse_options(body)
    if refused:
        return refused
    prompt = body.get("prompt")
    return {"embedding": list(vector_of(prompt, DIMENSIONS)) if isinstance(prompt, str) and prompt else []}
