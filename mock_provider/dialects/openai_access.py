"""Who may ask, and the models that may be asked, as the OpenAI endpoints say it.

Room: pure; the OpenAI dialects come in.
Source: the provider's error bodies for missing and wrong keys; its published API reference for /v1/models.
"""

from __future__ import annotations

from collections.abc import Mapping

from mock_provider.asked import Refusal
from mock_provider.dialects.codec import Received, model_names
from mock_provider.json_values import JsonObject
from mock_provider.steps import Script


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
