"""What the Responses endpoint refuses, in its own words.

Room: pure; only the Responses dialect comes in. Input items are checked in openai_input_rules, tools and the wanted
form of the answer in openai_responses_tool_rules.
Source: the provider's published API reference and SDK types for names, types and limits; its error bodies as clients
have reported them for the words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mock_provider.asked import Refusal
from mock_provider.dialects.openai_input_rules import refuse_input
from mock_provider.dialects.openai_refusals import (
    missing,
    out_of_range,
    too_long,
    too_many,
    unknown_value,
    wrong_type,
)
from mock_provider.dialects.openai_responses_tool_rules import refuse_text, refuse_tool_choice, refuse_tools
from mock_provider.json_values import Json, JsonObject

FIELDS = frozenset(
    {
        "access_programs",
        "background",
        "background_options",
        "context_management",
        "conversation",
        "image",
        "include",
        "input",
        "instructions",
        "max_output_tokens",
        "max_tool_calls",
        "metadata",
        "model",
        "moderation",
        "parallel_tool_calls",
        "previous_response_id",
        "prompt",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "reasoning",
        "safety_identifier",
        "service_tier",
        "store",
        "stream",
        "stream_options",
        "temperature",
        "text",
        "tool_choice",
        "tools",
        "top_logprobs",
        "top_p",
        "truncation",
        "user",
    }
)
# Fields of the older endpoint, and where they went. Source: the provider's message names the new place.
MOVED: Mapping[str, str] = {
    "messages": "input",
    "functions": "tools",
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
    "reasoning_effort": "reasoning.effort",
    "response_format": "text.format",
    "verbosity": "text.verbosity",
}
INCLUDABLE = (
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
    "message.input_image.image_url",
    "computer_call_output.output.image_url",
    "code_interpreter_call.outputs",
    "reasoning.encrypted_content",
    "message.output_text.logprobs",
)
_BOOLEANS = ("stream", "store", "background", "parallel_tool_calls")
_STRINGS = ("instructions", "previous_response_id", "prompt_cache_key", "safety_identifier", "user")
_WORDS: Mapping[str, Sequence[str]] = {
    "truncation": ("auto", "disabled"),
    "service_tier": ("auto", "default", "flex", "scale", "priority", "fast", "ultrafast"),
}
_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_SUMMARIES = ("auto", "concise", "detailed")
_RANGES: tuple[tuple[str, float, float, str], ...] = (
    ("temperature", 0, 2, "decimal"),
    ("top_p", 0, 1, "decimal"),
    ("max_output_tokens", 16, 1 << 31, "integer"),
    ("max_tool_calls", 1, 1 << 31, "integer"),
    ("top_logprobs", 0, 20, "integer"),
)
MAX_PAIRS, MAX_PAIR_KEY, MAX_PAIR_VALUE = 16, 64, 512


def refuse_body(body: JsonObject, *, is_open: bool, has_sound_input: bool = False) -> Refusal | None:
    """Check all of a request body that can be judged by itself.

    Shape: the first rule that is broken, in the provider's order. is_open is for servers that give reasoning unsealed,
    has_sound_input says that the input is known to break no rule.
    """
    return (
        _moved(body)
        or _model(body)
        or _types(body)
        or _ranges(body)
        or _previous(body)
        or (None if has_sound_input else refuse_input(body, is_open=is_open))
        or refuse_tools(body)
        or refuse_tool_choice(body)
        or refuse_text(body)
        or _reasoning(body.get("reasoning"))
        or _include(body.get("include"))
        or _metadata(body.get("metadata"))
    )


def _moved(body: JsonObject) -> Refusal | None:
    name = next((name for name in MOVED if name in body), None)
    if name is None:
        return None
    text = (
        f"Unsupported parameter: '{name}'. In the Responses API, this parameter has moved to '{MOVED[name]}'. "
        "Try again with the new parameter."
    )
    return Refusal(400, "moved_field", text, code="unsupported_parameter", param=name)


def _model(body: JsonObject) -> Refusal | None:
    if body.get("model") in (None, ""):
        return missing("model")
    return None if isinstance(body["model"], str) else wrong_type("model", "a string", body["model"])


def _types(body: JsonObject) -> Refusal | None:
    for name in _BOOLEANS:
        value = body.get(name)
        if value is not None and not isinstance(value, bool):
            return wrong_type(name, "a boolean", value)
    for name in _STRINGS:
        value = body.get(name)
        if value is not None and not isinstance(value, str):
            return wrong_type(name, "a string", value)
    for name, known in _WORDS.items():
        value = body.get(name)
        if value is not None and value not in known:
            return unknown_value("unknown_word", name, value, known)
    options = body.get("stream_options")
    if options is None:
        return None
    if not isinstance(options, dict):
        return wrong_type("stream_options", "an object", options)
    if not body.get("stream"):
        text = "The 'stream_options' parameter is only allowed when 'stream' is enabled."
        return Refusal(400, "stream_options_without_stream", text, param="stream_options")
    return None


def _ranges(body: JsonObject) -> Refusal | None:
    for name, least, most, kind in _RANGES:
        problem = out_of_range(body.get(name), name, least, most, kind)
        if problem:
            return problem
    return None


def _previous(body: JsonObject) -> Refusal | None:
    previous, conversation = body.get("previous_response_id"), body.get("conversation")
    if isinstance(previous, str) and not previous.startswith("resp"):
        text = f"Invalid 'previous_response_id': '{previous}'. Expected an ID that begins with 'resp'."
        return Refusal(400, "id_prefix", text, code="invalid_value", param="previous_response_id")
    if previous is not None and conversation is not None:
        text = (
            "Mutually exclusive parameters: Ensure you are only providing one of: "
            "'previous_response_id' or 'conversation'."
        )
        return Refusal(400, "two_histories", text, code="mutually_exclusive_parameters")
    if body.get("background") and body.get("store") is False:
        text = "Background mode requires 'store' to be true."
        return Refusal(400, "background_without_store", text, param="background")
    return None


def _reasoning(reasoning: Json) -> Refusal | None:
    if reasoning is None:
        return None
    if not isinstance(reasoning, dict):
        return wrong_type("reasoning", "an object", reasoning)
    for name, known in (("effort", _EFFORTS), ("summary", _SUMMARIES), ("generate_summary", _SUMMARIES)):
        value = reasoning.get(name)
        if value is not None and value not in known:
            return unknown_value("unknown_word", f"reasoning.{name}", value, known)
    return None


def _include(include: Json) -> Refusal | None:
    if include is None:
        return None
    if not isinstance(include, list):
        return wrong_type("include", "an array of strings", include)
    at = next((at for at, name in enumerate(include) if name not in INCLUDABLE), None)
    return None if at is None else unknown_value("unknown_word", f"include[{at}]", include[at], INCLUDABLE)


def _metadata(metadata: Json) -> Refusal | None:
    if metadata is None:
        return None
    if not isinstance(metadata, dict):
        return wrong_type("metadata", "an object", metadata)
    if len(metadata) > MAX_PAIRS:
        return too_many("too_many_pairs", "metadata", len(metadata), MAX_PAIRS)
    for name, value in metadata.items():
        if not isinstance(value, str):
            return wrong_type(f"metadata.{name}", "a string", value)
        if len(name) > MAX_PAIR_KEY:
            return too_long("pair_length", "metadata", len(name), MAX_PAIR_KEY)
        if len(value) > MAX_PAIR_VALUE:
            return too_long("pair_length", f"metadata.{name}", len(value), MAX_PAIR_VALUE)
    return None
