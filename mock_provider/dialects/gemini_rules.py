"""What the Gemini endpoints refuse, in their own words.

Room: pure; only the Gemini dialect comes in.
Source: the provider's published API reference for models.generateContent; its error bodies as clients have
reported them.
"""

from __future__ import annotations

from mock_provider.asked import Refusal
from mock_provider.dialects.gemini_fields import (
    examine,
    pick,
    pick_list,
    pick_number,
    pick_object,
    pick_objects,
    pick_text,
    unknown_name,
)
from mock_provider.dialects.gemini_history_rules import refuse_turns
from mock_provider.dialects.gemini_refusals import refuse
from mock_provider.dialects.gemini_schema import schema_violations
from mock_provider.dialects.gemini_tool_rules import declared_names, refuse_tools
from mock_provider.dialects.json_schema import schema_problem
from mock_provider.json_values import Json, JsonObject
from mock_provider.steps import Script

MAX_CANDIDATES = 8
_RANGES: tuple[tuple[str, str, float, float], ...] = (
    ("temperature", "temperature must be in the range [0.0, 2.0].", 0, 2),
    ("topP", "top_p must be in the range [0.0, 1.0].", 0, 1),
    ("topK", "top_k must be positive.", 1, 1 << 31),
    ("candidateCount", f"candidate_count must be in the range [1, {MAX_CANDIDATES}].", 1, MAX_CANDIDATES),
    ("maxOutputTokens", "max_output_tokens must be positive.", 1, 1 << 31),
    ("presencePenalty", "presence_penalty must be in the range [-2.0, 2.0).", -2, 2),
    ("frequencyPenalty", "frequency_penalty must be in the range [-2.0, 2.0).", -2, 2),
    ("logprobs", "logprobs must be in the range [0, 20].", 0, 20),
)
_TEXT_TYPES = ("", "text/plain", "application/json", "text/x.enum")
# Of models before Gemini 3, as clients have reported it.
_NO_TOOLS_WITH_JSON = ("gemini-1", "gemini-2")


def refuse_model(name: str, script: Script, method: str) -> Refusal | None:
    """Refuse a model that the script does not list."""
    if not script.models or name in script.models:
        return None
    text = (
        f"models/{name} is not found for API version v1beta, or is not supported for {method}. Call ListModels to see "
        "the list of available models and their supported methods."
    )
    return refuse("unknown_model", text, status=404, kind="NOT_FOUND")


def refuse_types(body: Json, message: str, script: Script) -> tuple[str, ...] | Refusal:
    """Check the types in a whole body. Shape: the places of fields that the provider does not know."""
    if not isinstance(body, dict):
        text = 'Invalid JSON payload received. Unknown name "": Root element must be a message.'
        return refuse("wrong_type", text)
    unknown: list[str] = []
    refused = examine(body, message, "", unknown)
    if refused:
        return refused
    if unknown and script.refuses_extra_fields:
        path, _, name = unknown[0].rpartition(".")
        return unknown_name("extra_field", name, path)
    return tuple(unknown)


def refuse_request(body: JsonObject, model: str, *, has_sound_contents: bool = False) -> Refusal | None:
    """Check what a body of the right types says.

    Shape: the first rule that is broken; has_sound_contents says that the contents are known to break none.
    """
    contents = pick_objects(body, "contents")
    if not contents:
        return refuse("empty_array", "* GenerateContentRequest.contents: contents is not specified\n")
    system = pick(body, "systemInstruction")
    if isinstance(system, dict) and not any(pick_text(part, "text") for part in pick_objects(system, "parts")):
        text = "* GenerateContentRequest.system_instruction.parts: contents.parts must not be empty.\n"
        return refuse("missing_content", text)
    refused = None if has_sound_contents else refuse_turns(contents, model)
    return refused or refuse_tools(body) or _config(body, model)


def _config(body: JsonObject, model: str) -> Refusal | None:
    config = pick_object(body, "generationConfig")
    here = "GenerateContentRequest.generation_config"
    for name, text, least, most in _RANGES:
        value = pick_number(config, name)
        if value is not None and not least <= value <= most:
            return refuse("out_of_range", f"* {here}.{text.split(' ', 1)[0]}: {text}\n")
    if len(pick_list(config, "stopSequences")) > 5:
        return refuse("out_of_range", f"* {here}.stop_sequences: The number of stop sequences must be at most 5.\n")
    thinking = pick_object(config, "thinkingConfig")
    if pick(thinking, "thinkingBudget") is not None and pick_text(thinking, "thinkingLevel"):
        return refuse("bad_option", "You can only set only one of thinking budget and thinking level.")
    return _format(config, model, has_tools=bool(declared_names(body)))


def _format(config: JsonObject, model: str, *, has_tools: bool) -> Refusal | None:
    here = "GenerateContentRequest.generation_config"
    kind = pick_text(config, "responseMimeType")
    if kind not in _TEXT_TYPES:
        text = "allowed mimetypes are `text/plain`, `application/json` and `text/x.enum`."
        return refuse("bad_option", f"* {here}.response_mime_type: {text}\n")
    schema = pick(config, "responseSchema")
    free = pick(config, "responseJsonSchema")
    free = pick(config, "_responseJsonSchema") if free is None else free
    if (schema is not None or free is not None) and kind not in ("application/json", "text/x.enum"):
        text = "only allowed when response_mime_type is `application/json` or `text/x.enum`"
        return refuse("bad_option", f"* {here}.response_schema: {text}\n")
    if kind == "application/json" and has_tools and model.startswith(_NO_TOOLS_WITH_JSON):
        return refuse("bad_option", "Function calling with a response mime type: 'application/json' is unsupported")
    if isinstance(schema, dict):
        violations = schema_violations(schema, f"{here}.response_schema")
        if violations:
            return refuse("bad_schema", "".join(f"* {one}\n" for one in violations))
    if free is not None:
        problem = schema_problem(free)
        if problem:
            return refuse("bad_schema", f"* {here}.response_json_schema: {problem}\n")
    return None
