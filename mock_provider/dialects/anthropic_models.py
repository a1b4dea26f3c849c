"""The model list of the Anthropic format.

Room: pure; the messages dialect comes in.
Source: the provider's published API reference for /v1/models; the SDK's own types for the fields.
"""

from __future__ import annotations

from datetime import UTC, datetime

from mock_provider.asked import Refusal
from mock_provider.dialects.codec import Received, model_names
from mock_provider.json_values import JsonObject


def list_models(received: Received) -> JsonObject:
    """The model list."""
    names = model_names(received.script)
    return {
        "data": [_model(name, received.script.created) for name in names],
        "has_more": False,
        "first_id": names[0] if names else None,
        "last_id": names[-1] if names else None,
    }


def show_model(received: Received) -> JsonObject | Refusal:
    """One entry of the model list; without a list any name has one."""
    name, names = received.arguments["model"], model_names(received.script)
    if names and name not in names:
        return Refusal(404, "unknown_model", f"model: {name}", "not_found_error")
    return _model(name, received.script.created)


def _model(name: str, created: int) -> JsonObject:
    moment = datetime.fromtimestamp(created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "type": "model",
        "id": name,
        "display_name": name,
        "created_at": moment,
        "lifecycle": "active",
        "capabilities": None,
        "max_input_tokens": None,
        "max_tokens": None,
        "deprecated_at": None,
        "retires_at": None,
    }
