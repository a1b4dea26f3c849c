"""What a model cannot do, refused in its provider's words: pictures, answers too long, requests too long.

Room: pure; the deciding room comes in, after a dialect has read the request.
Source: the error bodies of the providers as clients have reported them; the token counts are ours, by the local rule.
"""

from __future__ import annotations

from collections.abc import Mapping

from mock_provider.asked import Asked, Refusal
from mock_provider.dialects.codec import count_input
from mock_provider.json_values import JsonPath, find_value
from mock_provider.steps import ModelFacts, Script
from mock_provider.values import value


@value
class Words:
    """How one provider refuses. Shape: the texts have places for given, limit and model; kind is its type."""

    kind: str
    output_fields: tuple[JsonPath, ...]
    output: str
    images: str
    context: str
    output_code: str | None = None
    context_code: str | None = None


def _path(*parts: str) -> JsonPath:
    return JsonPath(".".join(parts), parts)


_CHAT = Words(
    kind="invalid_request_error",
    output_fields=(_path("max_completion_tokens"), _path("max_tokens")),
    output="max_tokens is too large: {given}. This model supports at most {limit} completion tokens, whereas you "
    "provided {given}.",
    images="Invalid content type. image_url is only supported by certain models.",
    context="This model's maximum context length is {limit} tokens. However, your messages resulted in {given} tokens. "
    "Please reduce the length of the messages.",
    output_code="invalid_value",
    context_code="context_length_exceeded",
)
_WORDS: Mapping[str, Words] = {
    "openai_chat": _CHAT,
    "openai_responses": Words(
        kind="invalid_request_error",
        output_fields=(_path("max_output_tokens"),),
        output="Invalid 'max_output_tokens': integer above maximum value. Expected a value <= {limit}, but got {given} "
        "instead.",
        images="Invalid value: 'input_image'. The model '{model}' does not support image input.",
        context="Your input exceeds the context window of this model. Please adjust your input and try again.",
        output_code="integer_above_max_value",
        context_code="context_length_exceeded",
    ),
    "anthropic_messages": Words(
        kind="invalid_request_error",
        output_fields=(_path("max_tokens"),),
        output="max_tokens: {given} > {limit}, which is the maximum allowed number of output tokens for {model}",
        images="'{model}' does not support image input.",
        context="prompt is too long: {given} tokens > {limit} maximum",
    ),
    "gemini": Words(
        kind="INVALID_ARGUMENT",
        output_fields=(_path("generationConfig", "maxOutputTokens"),),
        output="Unable to submit request because it has a maxOutputTokens value of {given} but the supported range is "
        "from 1 (inclusive) to {limit} (inclusive). Update the value and try again.",
        images="Image input modality is not enabled for models/{model}",
        context="The input token count ({given}) exceeds the maximum number of tokens allowed ({limit}).",
    ),
    "ollama": Words(
        kind="",
        output_fields=(),  # the server itself cuts what is too long
        output="",
        images="this model is missing data required for image input",
        context="the input length exceeds the context length",
    ),
    "bedrock": Words(
        kind="ValidationException",
        output_fields=(_path("inferenceConfig", "maxTokens"), _path("max_tokens")),
        output="The maximum tokens you requested exceeds the model limit of {limit}. Try again with a maximum tokens "
        "value that is lower than {limit}.",
        images="This model doesn't support the image content block that you provided. Update and try again.",
        context="Input is too long for requested model.",
    ),
}


def refuse_by_facts(asked: Asked, script: Script) -> Refusal | None:
    """Hold a request against what its model can do. Shape: the first rule that is broken."""
    if not script.facts:
        return None
    facts = next((facts for facts in script.facts if facts.name == asked.model), None)
    if facts is None:
        return None
    words = _WORDS.get(asked.dialect, _CHAT)
    return _images(asked, facts, words) or _output(asked, facts, words) or _context(asked, facts, words)


def _images(asked: Asked, facts: ModelFacts, words: Words) -> Refusal | None:
    if facts.takes_images or not any(message.images for message in asked.messages):
        return None
    return Refusal(400, "images_to_text_model", words.images.format(model=facts.name), words.kind)


def _output(asked: Asked, facts: ModelFacts, words: Words) -> Refusal | None:
    limit = facts.max_output_tokens
    if limit is None:
        return None
    for path in words.output_fields:
        found = find_value(asked.body, path)
        value = found.value if found else None
        if isinstance(value, int | float) and not isinstance(value, bool) and value > limit:
            text = words.output.format(given=value, limit=limit, model=facts.name)
            return Refusal(400, "max_tokens_above_limit", text, words.kind, words.output_code, path.text)
    return None


def _context(asked: Asked, facts: ModelFacts, words: Words) -> Refusal | None:
    limit = facts.context_tokens
    if limit is None:
        return None
    given = count_input(asked)
    if given <= limit:
        return None
    text = words.context.format(given=given, limit=limit)
    return Refusal(400, "context_overflow", text, words.kind, words.context_code, "messages")
