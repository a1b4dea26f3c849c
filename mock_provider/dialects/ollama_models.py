"""The models of an Ollama server: listed, loaded, shown; and its version.

Room: pure; the Ollama dialect comes in.
Source: the server's published API reference; its own source text (api/types.go) for the fields.
"""

from __future__ import annotations

import hashlib

from mock_provider.asked import Refusal
from mock_provider.dialects.codec import Received, model_names
from mock_provider.dialects.ollama_output import moment
from mock_provider.dialects.ollama_refusals import wrong_type
from mock_provider.dialects.ollama_rules import refuse_model
from mock_provider.json_values import Json, JsonObject

VERSION = "0.35.1"  # clients ask before they use what is new; of the server whose source text is cited
_SIZE_BYTES = 4_000_000_000
_DETAILS: JsonObject = {
    "parent_model": "",
    "format": "gguf",
    "family": "mock",
    "families": ["mock"],
    "parameter_size": "8.0B",
    "quantization_level": "Q4_K_M",
}


def show_version(received: Received) -> JsonObject:
    """The version of the server."""
    del received
    return {"version": VERSION}


def list_models(received: Received) -> JsonObject:
    """The models that are there."""
    return {"models": _listed(received)}


def list_loaded(received: Received) -> JsonObject:
    """The models that are in memory: all of them."""
    never = "2318-10-04T00:00:00Z"  # what a keep-alive without end looks like
    models: list[Json] = [
        {**model, "expires_at": never, "size_vram": _SIZE_BYTES, "context_length": 131072}
        for model in _listed(received)
        if isinstance(model, dict)
    ]
    return {"models": models}


def _listed(received: Received) -> list[Json]:
    names = [name if ":" in name else f"{name}:latest" for name in model_names(received.script)]
    return [
        {
            "name": name,
            "model": name,
            "modified_at": moment(received.script.created),
            "size": _SIZE_BYTES,
            "digest": hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest(),
            "details": _DETAILS,
        }
        for name in names
    ]


def show_model(received: Received) -> JsonObject | Refusal:
    """Everything about one model; without a list any name has one."""
    body = received.body
    if not isinstance(body, dict):
        return wrong_type("body", body, "api.ShowRequest")
    asked: JsonObject = {"model": body.get("model") or body.get("name")}  # the older name is still taken here
    refused = refuse_model(asked, received.script)
    if refused:
        return refused
    return {
        "license": "None: a scripted model.",
        "modelfile": f"FROM {asked['model']}\n",
        "parameters": "",
        "template": "{{ .Prompt }}",
        "details": _DETAILS,
        "model_info": {
            "general.architecture": "mock",
            "general.parameter_count": 8_000_000_000,
            "mock.context_length": 131072,
            "mock.embedding_length": 768,
        },
        "capabilities": ["completion", "tools", "thinking", "insert", "vision", "embedding"],
        "modified_at": moment(received.script.created),
    }
