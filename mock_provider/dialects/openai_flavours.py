"""How services that speak the OpenAI formats depart from the original: fields, counts, error bodies.

Room: pure; the OpenAI dialects and the script's checks come in.
Source: DeepSeek's API documentation (`reasoning_content`, cache counts); OpenRouter's API reference (`reasoning`,
`reasoning_details`, `native_finish_reason`, cost, processing comments, errors with a number for a code); vLLM's
protocol module (`stop_reason`, `prompt_logprobs`, reasoning fields, errors by class name); Azure OpenAI's reference
(content filter results, the chunk without choices that opens a stream, errors of its gateway).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from mock_provider.asked import Refusal
from mock_provider.dialects.codec import Counts
from mock_provider.json_values import Json, JsonObject, encode_json
from mock_provider.steps import Script
from mock_provider.values import value

_HARMLESS: JsonObject = {
    kind: {"filtered": False, "severity": "safe"} for kind in ("hate", "self_harm", "sexual", "violence")
}
_FILTERED: list[Json] = [{"prompt_index": 0, "content_filter_results": _HARMLESS}]


@value
class Flavour:
    """One service.

    Shape: message, choice, answer and chunk are fields beside the usual ones; reasoning names the fields that hold
    thinking, has_details adds it in pieces with a type. opening goes before the first event of a stream.
    always_counts sends the counts of a stream unasked; says_text gives empty text beside calls instead of null.
    """

    message: JsonObject = field(default_factory=dict)
    choice: JsonObject = field(default_factory=dict)
    answer: JsonObject = field(default_factory=dict)
    chunk: JsonObject = field(default_factory=dict)
    chunk_choice: JsonObject = field(default_factory=dict)
    reasoning: tuple[str, ...] = ("reasoning_content",)
    has_details: bool = False
    opening: bytes = b""
    always_counts: bool = False
    says_text: bool = False


_EMPTY_CHUNK: JsonObject = {
    "choices": [],
    "created": 0,
    "id": "",
    "model": "",
    "object": "",
    "prompt_filter_results": _FILTERED,
}
FLAVOURS: Mapping[str, Flavour] = {
    "openai": Flavour(message={"refusal": None, "annotations": []}),
    "deepseek": Flavour(says_text=True),
    "openrouter": Flavour(
        message={"refusal": None},
        answer={"provider": "mock-provider"},
        chunk={"provider": "mock-provider"},
        reasoning=("reasoning",),
        has_details=True,
        opening=b": OPENROUTER PROCESSING\n\n",
        always_counts=True,
    ),
    "vllm": Flavour(
        message={"refusal": None, "annotations": None, "audio": None, "function_call": None, "tool_calls": []},
        choice={"stop_reason": None, "token_ids": None},
        answer={
            "service_tier": None,
            "prompt_logprobs": None,
            "prompt_token_ids": None,
            "kv_transfer_params": None,
        },
        chunk_choice={"stop_reason": None, "token_ids": None},
        reasoning=("reasoning", "reasoning_content"),
    ),
    "azure": Flavour(
        message={"refusal": None, "annotations": []},
        choice={"content_filter_results": _HARMLESS},
        answer={"prompt_filter_results": _FILTERED},
        chunk_choice={"content_filter_results": {}},
        opening=b"data: " + encode_json(_EMPTY_CHUNK) + b"\n\n",
    ),
}


def reasoning_fields(flavour: str, text: str) -> JsonObject:
    """The fields that hold thinking."""
    how = FLAVOURS[flavour]
    fields: JsonObject = dict.fromkeys(how.reasoning, text)
    if how.has_details:
        fields["reasoning_details"] = [{"type": "reasoning.text", "text": text, "format": "unknown", "index": 0}]
    return fields


def finish_fields(flavour: str, finish: str | None) -> JsonObject:
    """The fields that say why a choice ended."""
    if flavour == "openrouter":
        return {"finish_reason": finish, "native_finish_reason": finish}
    return {"finish_reason": finish}


def usage_of(counts: Counts, flavour: str) -> JsonObject:
    """Spell the counts of a chat answer."""
    total: JsonObject = {
        "prompt_tokens": counts.input,
        "completion_tokens": counts.output,
        "total_tokens": counts.input + counts.output,
        "prompt_tokens_details": {"cached_tokens": counts.cached, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": counts.reasoning,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }
    if flavour in ("deepseek", "vllm"):
        total["prompt_tokens_details"] = {"cached_tokens": counts.cached}
        total["completion_tokens_details"] = {"reasoning_tokens": counts.reasoning}
    if flavour == "deepseek":
        total["prompt_cache_hit_tokens"] = counts.cached
        total["prompt_cache_miss_tokens"] = counts.input - counts.cached
    if flavour == "openrouter":
        total |= {"cost": 0, "is_byok": False, "cost_details": {"upstream_inference_cost": None}}
    return total


_CLASSES = {
    400: "BadRequestError",
    401: "AuthenticationError",
    403: "PermissionDeniedError",
    404: "NotFoundError",
    422: "UnprocessableEntityError",
    429: "RateLimitError",
}
_GATEWAY = {
    "missing_key": "Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid "
    "key for an active subscription and use a correct regional API endpoint for your resource.",
    "unknown_model": "The API deployment for this resource does not exist. If you created the deployment within the "
    "last 5 minutes, please wait a moment and try again.",
}
OWN_CODE = "mock_unmatched"


def error(refusal: Refusal, script: Script) -> JsonObject:
    """Write an error body in the form of the script's flavour; our own code stands in each of them."""
    flavour = script.flavour
    plain: JsonObject = {
        "message": refusal.message,
        "type": refusal.kind,
        "param": refusal.param,
        "code": refusal.code,
    }
    if flavour == "deepseek":
        plain["code"] = refusal.code or refusal.kind
        if refusal.status == 401:
            plain |= {"type": "authentication_error", "code": "invalid_request_error"}
    elif flavour == "openrouter":
        plain = {"message": refusal.message, "code": refusal.code if refusal.code == OWN_CODE else refusal.status}
        if refusal.code is not None:
            plain["metadata"] = {"provider_name": "mock-provider", "raw": refusal.code}
    elif flavour == "vllm":
        if refusal.status == 401:
            return {"error": "Unauthorized"}
        usual = "InternalServerError" if refusal.status >= 500 else "BadRequestError"
        plain["type"] = _CLASSES.get(refusal.status, usual)
        plain["code"] = refusal.code if refusal.code == OWN_CODE else refusal.status
    elif flavour == "azure":
        return {"error": _gateway_error(refusal, plain)}
    return {"error": plain}


def _gateway_error(refusal: Refusal, plain: JsonObject) -> JsonObject:
    """Azure's gateway answers for keys, deployments and limits, and its content filter for prompts."""
    if refusal.rule in ("missing_key", "wrong_key"):
        return {"code": "401", "message": _GATEWAY["missing_key"]}
    if refusal.rule == "unknown_model":
        return {"code": "DeploymentNotFound", "message": _GATEWAY["unknown_model"]}
    if refusal.rule == "missing_api_version":
        return {"code": "404", "message": refusal.message}
    if refusal.status == 429 and refusal.code == "rate_limit_exceeded":
        return {"code": "429", "message": refusal.message}
    if refusal.code == "content_filter":
        inner: JsonObject = {"code": "ResponsibleAIPolicyViolation", "content_filter_result": _HARMLESS}
        return {**plain, "type": None, "param": "prompt", "status": refusal.status, "innererror": inner}
    return plain
