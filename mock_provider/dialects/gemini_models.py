"""The model list of the Gemini format, and token counts.

Room: pure; the Gemini dialect comes in.
Source: the provider's published API reference for models.list, models.get and models.countTokens.
"""

from __future__ import annotations

from urllib.parse import parse_qs

from mock_provider.asked import Refusal
from mock_provider.dialects.codec import Received, model_names
from mock_provider.dialects.gemini_refusals import refuse
from mock_provider.dialects.gemini_rules import refuse_model
from mock_provider.json_values import JsonObject

MAX_PAGE = 1000
_USUAL_PAGE = 50
_TOKENS = "mock-page-"


def list_models(received: Received) -> JsonObject | Refusal:
    """One page of the model list."""
    asked = parse_qs(received.query)
    size = asked.get("pageSize", [str(_USUAL_PAGE)])[-1]
    token = asked.get("pageToken", [f"{_TOKENS}0"])[-1] or f"{_TOKENS}0"
    if not size.isascii() or not size.isdigit():
        return refuse("wrong_type", f"Invalid value at 'page_size' (TYPE_INT32), \"{size}\"")
    start = token.removeprefix(_TOKENS)
    if not token.startswith(_TOKENS) or not start.isascii() or not start.isdigit():
        return refuse("bad_option", "Page token is not valid.")
    names = model_names(received.script)
    end = int(start) + min(int(size) or _USUAL_PAGE, MAX_PAGE)
    page: JsonObject = {"models": [_model(name) for name in names[int(start) : end]]}
    if end < len(names):
        page["nextPageToken"] = f"{_TOKENS}{end}"
    return page


def show_model(received: Received) -> JsonObject | Refusal:
    """One entry of the model list; without a list any name has one."""
    name = received.arguments["model"]
    return refuse_model(name, received.script, "models.get") or _model(name)


def _model(name: str) -> JsonObject:
    return {
        "name": f"models/{name}",
        "version": "001",
        "displayName": name,
        "description": "A scripted model.",
        "inputTokenLimit": 1048576,
        "outputTokenLimit": 65536,
        "supportedGenerationMethods": ["generateContent", "countTokens", "embedContent"],
        "temperature": 1,
        "topP": 0.95,
        "topK": 64,
        "maxTemperature": 2,
        "thinking": True,
    }
